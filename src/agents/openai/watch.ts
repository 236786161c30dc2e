/**
 * Guards one request to the endpoint: it ends when the turn is cancelled or when the endpoint is silent for too long.
 *
 * Silence is measured only while somebody waits for bytes: a slow client is not the endpoint's fault.
 * Invariant: after `stop` no timer and no listener is left.
 */
export class Watch {
  readonly #controller = new AbortController()
  readonly #turn: AbortSignal
  readonly #timer: NodeJS.Timeout
  #waiting = false

  constructor(turn: AbortSignal, timeoutMs: number) {
    this.#turn = turn
    this.#timer = setTimeout(() => this.#elapsed(timeoutMs), timeoutMs).unref()
    if (turn.aborted) this.abort()
    else turn.addEventListener('abort', this.abort, { once: true })
  }

  /** For `fetch`: aborts on cancel, silence or `abort`. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Waits for bytes under the clock. */
  async wait<T>(bytes: Promise<T>): Promise<T> {
    this.#waiting = true
    this.#timer.refresh()
    try {
      return await bytes
    } finally {
      this.#waiting = false
    }
  }

  /** Ends the request now. */
  readonly abort = (): void => {
    this.#controller.abort(this.#turn.reason)
    this.stop()
  }

  /** Lets go of the request; it may end by itself. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#turn.removeEventListener('abort', this.abort)
  }

  #elapsed(timeoutMs: number): void {
    if (!this.#waiting) return
    this.#controller.abort(new Error(`no data for ${timeoutMs / 1000} s`))
    this.stop()
  }
}
