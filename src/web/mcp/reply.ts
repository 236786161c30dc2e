/**
 * The answer to one POST: JSON, if the answer is the first message for it and comes soon, else a stream that the answer ends
 * (contract 10.8).
 *
 * It knows nothing of event ids or of what else a client has: whoever uses it hears when the stream opens and when the reader goes.
 */
import { EventStream } from '../event-stream.ts'
import type { WebRequest } from '../web-request.ts'

/** A request that takes longer is answered by a stream. */
const PATIENCE_MS = 1_000

export interface ReplyEvents {
  /** The stream is there, and nothing has been sent on it yet. */
  opened(stream: EventStream): void
  /** Its reader has gone before the end. */
  gone(): void
  drained(): void
}

export class Reply {
  readonly web: WebRequest
  readonly #events: ReplyEvents
  readonly #headers: Readonly<Record<string, string>>
  #timer: NodeJS.Timeout | undefined
  #stream: EventStream | undefined
  #isOver = false

  constructor(
    web: WebRequest,
    events: ReplyEvents,
    { patienceMs = PATIENCE_MS, headers = {} }: { patienceMs?: number; headers?: Record<string, string> } = {},
  ) {
    this.web = web
    this.#events = events
    this.#headers = headers
    this.#timer = setTimeout(() => this.open(), patienceMs)
    web.onceClosed(() => {
      clearTimeout(this.#timer)
      // A stream tells of its reader itself.
      if (this.#isOver || this.#stream !== undefined) return
      this.#isOver = true
      this.#events.gone()
    })
  }

  /** Nothing has been said yet. */
  get isWaiting(): boolean {
    return !this.#isOver && this.#stream === undefined
  }

  /** The stream, opened if need be; undefined: nobody is there. */
  open(): EventStream | undefined {
    if (!this.isWaiting) return this.#stream
    clearTimeout(this.#timer)
    const { gone, drained } = this.#events
    this.#stream = new EventStream(
      this.web,
      () => gone.call(this.#events),
      () => drained.call(this.#events),
      this.#headers,
    )
    this.#events.opened(this.#stream)
    return this.#stream
  }

  /** The only word, if nothing has been said yet. */
  settle(answer: (web: WebRequest) => void): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    answer(this.web)
  }
}
