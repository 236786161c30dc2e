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

/** What is looked at in one go: many short messages cost more than their bytes. */
const PIECE_BYTES = 4 * 1024

export function* piecesOf(chunk: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < chunk.length; from += PIECE_BYTES) yield chunk.subarray(from, from + PIECE_BYTES)
}

export class Turns {
  /** When this turn began; undefined: nobody has done anything in it. */
  #startMs: number | undefined
  #next: Promise<void> | undefined

  /** To be awaited before the next piece of work; undefined: there is time left. */
  over(): Promise<void> | undefined {
    if (this.#next !== undefined) return this.#next
    if (this.#startMs === undefined) this.#begin()
    const tookMs = performance.now() - this.#startMs!
    if (tookMs < TURN_MS) return undefined
    this.#next = new Promise((resolve) => {
      const goOn = (): void => {
        this.#next = undefined
        this.#begin()
        resolve()
      }
      if (tookMs < LONG_MS) setImmediate(goOn)
      else setTimeout(goOn, tookMs)
    })
    return this.#next
  }

  /** When the loop has turned, what is done counts anew, unless somebody waits for that. */
  #begin(): void {
    const startMs = performance.now()
    this.#startMs = startMs
    setImmediate(() => {
      if (this.#next === undefined && this.#startMs === startMs) this.#startMs = undefined
    })
  }
}
