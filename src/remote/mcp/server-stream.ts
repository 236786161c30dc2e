/**
 * The stream of a GET, on which a server of the handshake era says what belongs to no request (contract 11.3).
 *
 * It is opened once there is a session and opened again when it breaks, behind the last event, for as long as the upstream is
 * not given up. 405 means that there is none. An upstream that cannot be reached for too long is told of; any other trouble
 * costs this stream alone.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { toOneLine } from '../../wire/one-line.ts'
import { RemoteFault } from '../faults.ts'
import { UpstreamFailure } from '../upstream.ts'
import { type Bookmark, readEvents } from './event-stream.ts'
import type { HttpReply } from './http-caller.ts'
import { messagesOf } from './message.ts'
import { refusalOf } from './refusal.ts'

export interface StreamHost {
  readonly maxMessageBytes: number
  get(lastEventId: string | undefined, signal: AbortSignal): Promise<HttpReply>
  /** A message of the server, as a line without its newline; resolves when there is room for more. */
  heard(text: Buffer): Promise<void>
  note(sentence: string): void
  /** Whether this status and body say that the server does not know the session any more. */
  isSessionLost(status: number, body: Buffer): boolean
  sessionLost(): void
  /** It has been tried often enough: whoever closes this stream has given the upstream up. */
  unreachable(failure: UpstreamFailure): void
  refused(status: number): void
}

const MAX_TRIES = 5
const TRY_AFTER_MS = 1_000
const MAX_PAUSE_MS = 30_000
const NONE = 405
/** What is read of a response that says why there is no stream. */
const MAX_REFUSAL_BYTES = 64 * 1024

export class ServerStream {
  readonly #host: StreamHost
  readonly #controller = new AbortController()
  readonly #bookmark: Bookmark = { lastEventId: undefined, retryMs: undefined }
  #failures = 0
  #wasConnected = false
  /** A connection is open. */
  isConnected = false

  constructor(host: StreamHost) {
    this.#host = host
  }

  close(): void {
    this.#controller.abort()
  }

  /** Resolves when there is no stream any more. */
  async run(): Promise<void> {
    const { signal } = this.#controller
    try {
      while (!signal.aborted && (await this.#once())) await sleep(this.#pauseMs, undefined, { signal })
    } catch (cause) {
      if (!signal.aborted) throw cause
    }
  }

  get #pauseMs(): number {
    const { retryMs = TRY_AFTER_MS } = this.#bookmark
    return Math.min(retryMs * 2 ** Math.max(0, this.#failures - 1), MAX_PAUSE_MS)
  }

  /** One connection; whether to try another. */
  async #once(): Promise<boolean> {
    const { signal } = this.#controller
    try {
      const reply = await this.#host.get(this.#bookmark.lastEventId, signal)
      if (reply.status !== 200 || !reply.isEventStream) return await this.#judge(reply)
      this.#failures = 0
      await this.#read(reply)
    } catch (cause) {
      if (signal.aborted || !(cause instanceof UpstreamFailure)) throw cause
      if (++this.#failures >= MAX_TRIES) this.#host.unreachable(cause)
    }
    return true
  }

  async #judge(reply: HttpReply): Promise<boolean> {
    const { status } = reply
    const body = await reply.read(MAX_REFUSAL_BYTES).catch(() => Buffer.alloc(0))
    if (status === NONE) return false
    if (refusalOf(status) !== undefined) this.#host.refused(status)
    else if (this.#host.isSessionLost(status, body)) {
      // Where no stream of the session was ever given there is none: a server that says it with 404 would say it of every session.
      if (this.#wasConnected) this.#host.sessionLost()
    } else {
      // Perhaps it has forgotten the event: what was missed is lost, what comes is not.
      this.#bookmark.lastEventId = undefined
      this.#failures++
      return true
    }
    return false
  }

  async #read(reply: HttpReply): Promise<void> {
    this.isConnected = this.#wasConnected = true
    try {
      for await (const data of readEvents(reply.body, this.#host.maxMessageBytes, this.#bookmark))
        for (const each of messagesOf(toOneLine(data))) await this.#host.heard(each)
    } catch (cause) {
      if (this.#controller.signal.aborted) throw cause
      if (cause instanceof RemoteFault) this.#host.note(`what came on the stream was dropped: ${cause.reason}`)
      reply.body.destroy()
    } finally {
      this.isConnected = false
    }
  }
}
