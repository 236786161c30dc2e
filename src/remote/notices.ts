/**
 * Sentences about an upstream for the log: a few at a time, since it may give cause for as many as it sends messages. What
 * is left out is counted, and told with the next one.
 */
const MAX_IN_WINDOW = 20
const WINDOW_MS = 10_000

export class Notices {
  readonly #tell: (sentence: string) => void
  #windowStartMs = Number.NEGATIVE_INFINITY
  #count = 0
  #leftOut = 0

  constructor(tell: (sentence: string) => void) {
    this.#tell = tell
  }

  add(sentence: string, nowMs = performance.now()): void {
    if (nowMs - this.#windowStartMs >= WINDOW_MS) {
      this.#windowStartMs = nowMs
      this.#count = 0
    }
    if (this.#count++ >= MAX_IN_WINDOW) {
      this.#leftOut++
      return
    }
    const more = this.#leftOut === 0 ? '' : ` (and ${this.#leftOut} more before)`
    this.#leftOut = 0
    this.#tell(`${sentence}${more}`)
  }
}
