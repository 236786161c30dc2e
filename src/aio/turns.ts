/**
 * Shares the thread with everybody else: all streams together get about a millisecond of each turn of the loop.
 *
 * What is there already is read without a break by the runtime, for as long as it comes. So whoever reads asks after each
 * piece of work; when the time is over, it waits for the next turn. A piece that took longer is followed by a rest as
 * long, so that at least half of the time is left to others. Nothing is dropped, only put off.
 */
const TURN_MS = 1
/** Below this the next turn comes at once. */
const LONG_MS = 2

export class Turns {
  #startMs: number | undefined
  #next: Promise<void> | undefined

  /** To be awaited before the next piece of work; undefined: there is time left. */
  over(): Promise<void> | undefined {
    if (this.#next !== undefined) return this.#next
    const nowMs = performance.now()
    if (this.#startMs === undefined) {
      this.#startMs = nowMs
      setImmediate(() => this.#begin())
      return undefined
    }
    const tookMs = nowMs - this.#startMs
    if (tookMs < TURN_MS) return undefined
    this.#next = new Promise((resolve) => {
      const goOn = (): void => {
        this.#next = undefined
        this.#startMs = undefined
        resolve()
      }
      if (tookMs < LONG_MS) setImmediate(goOn)
      else setTimeout(goOn, tookMs)
    })
    return this.#next
  }

  /** The loop has turned: what is done from now on counts anew. */
  #begin(): void {
    if (this.#next === undefined) this.#startMs = undefined
  }
}
