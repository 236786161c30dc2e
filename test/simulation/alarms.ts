/** What is due at some moment of the simulated clock, in the order of moments and then of setting. */
interface Alarm {
  readonly atMs: number
  readonly order: number
  readonly ring: () => void
}

export class Alarms {
  readonly #alarms = new Set<Alarm>()
  #order = 0

  get nextAtMs(): number {
    return this.#next()?.atMs ?? Number.POSITIVE_INFINITY
  }

  /** What it returns takes the alarm back. */
  set(atMs: number, ring: () => void): () => void {
    const alarm = { atMs, order: this.#order++, ring }
    this.#alarms.add(alarm)
    return () => void this.#alarms.delete(alarm)
  }

  /** Rings what was due before this call; what it sets is for the next one. */
  ring(nowMs: number): boolean {
    const { nextAtMs } = this
    const last = this.#order
    for (let next = this.#next(); next !== undefined && next.atMs <= nowMs; next = this.#next()) {
      if (next.order >= last) break
      this.#alarms.delete(next)
      next.ring()
    }
    return nextAtMs <= nowMs
  }

  #next(): Alarm | undefined {
    let next: Alarm | undefined
    for (const alarm of this.#alarms) {
      const isSooner = next === undefined || alarm.atMs < next.atMs
      if (isSooner || (alarm.atMs === next!.atMs && alarm.order < next!.order)) next = alarm
    }
    return next
  }
}
