/**
 * The time of the bus, which stands still while the bus itself does not run (contract 8.3).
 *
 * A process that was stopped, or whose machine slept, wakes long after a deadline that it would have met. That time counts
 * against nobody: it is taken out of the clock, so that what came meanwhile is read before anything is due. Invariant: the
 * clock never goes back.
 */

/** Whoever is later than this for a deadline was not running. */
const LATE_MS = 1_000

export class BusClock {
  #absentMs = 0
  #lastMs = 0

  /** The time of the bus at `systemMs`; `dueMs`: when, by this clock, it was to run at the latest. */
  read(systemMs: number, dueMs: number): number {
    const timeMs = systemMs - this.#absentMs
    if (timeMs - dueMs <= LATE_MS) this.#lastMs = timeMs
    else this.#absentMs = systemMs - this.#lastMs
    return this.#lastMs
  }
}

/** Calls `run` after `delayMs`; when that was missed by far, a moment later, so that what waits can be read first. */
export function afterWaking(delayMs: number, run: () => void): () => void {
  const dueMs = performance.now() + delayMs
  const look = (): void => {
    if (performance.now() - dueMs <= LATE_MS) return run()
    timer = setTimeout(run, LATE_MS).unref()
  }
  let timer = setTimeout(look, delayMs).unref()
  return () => clearTimeout(timer)
}
