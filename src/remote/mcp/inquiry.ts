/**
 * One request under way to an MCP server over HTTP, from its POST to its answer (contract 11.3, 11.4).
 *
 * Whatever happens it ends once: with the answer of the server, with a fault, or in silence after a cancel. What else the
 * server says on the stream of the request is passed on as it comes. A stream that is torn is taken up again where it was.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { toOneLine } from '../../wire/one-line.ts'
import { RemoteFault } from '../faults.ts'
import { BROKEN_OFF, UpstreamFailure } from '../upstream.ts'
import { type Bookmark, readEvents } from './event-stream.ts'
import { type HttpReply, Unreachable } from './http-caller.ts'
import { type Incoming, messagesOf, type Outgoing, readIncoming } from './message.ts'
import { isSessionLost, type Session } from './session.ts'

/** What an inquiry asks of whoever runs it. */
export interface InquiryHost {
  maxMessageBytes(): number
  /** Sends the message; the reply, and the session that it named. */
  post(message: Outgoing, signal: AbortSignal): Promise<Posted>
  /** Takes a stream up again behind an event. */
  resume(lastEventId: string, session: Session | undefined, signal: AbortSignal): Promise<HttpReply>
  /** Resolves when whoever reads has room for more. */
  deliver(line: Buffer): Promise<void>
  /** The answer has come, and is not delivered yet. */
  answered(message: Outgoing, reply: HttpReply, answer: Incoming): void
  /** The server does not know the session any more. */
  sessionLost(session: Session | undefined): void
}

export interface Posted {
  readonly reply: HttpReply
  readonly session: Session | undefined
  /** Of a reply that is no success: it is read already. */
  readonly body?: Buffer
  /** The upstream does not want us at all. */
  readonly refusal?: UpstreamFailure
}

const MAX_RESUMES = 5
const RESUME_WITHIN_MS = 30_000
const RESUME_AFTER_MS = 1_000
/** How long the answer to a cancelled request is still waited for. */
const CANCELLED_MS = 5_000
/** How long a stream may stay open behind its answer, so that its connection can be used again. */
const REST_MS = 1_000
/** What is read of a response that says why there is no stream. */
const MAX_REFUSAL_BYTES = 64 * 1024

export class Inquiry {
  readonly message: Outgoing
  readonly #host: InquiryHost
  readonly #controller = new AbortController()
  readonly #bookmark: Bookmark = { lastEventId: undefined, retryMs: undefined }
  #session: Session | undefined
  #isSettled = false
  #isCancelled = false

  constructor(message: Outgoing, host: InquiryHost) {
    this.message = message
    this.#host = host
  }

  /** Resolves when it is over; why the upstream could not be reached or does not want us, if that is so. */
  async run(): Promise<UpstreamFailure | undefined> {
    let refusal: UpstreamFailure | undefined
    try {
      const posted = await this.#host.post(this.message, this.#controller.signal)
      this.#session = posted.session
      refusal = posted.refusal
      await this.#take(posted.reply, posted.body)
    } catch (cause) {
      return (await this.#fail(cause)) ?? refusal
    }
    return refusal
  }

  /** Its client does not want the answer any more; one that comes soon is delivered. */
  cancel(): void {
    this.#isCancelled = true
    setTimeout(() => this.close(), CANCELLED_MS).unref()
  }

  /** Ends it now, without a word. */
  close(): void {
    this.#isSettled = true
    this.#controller.abort()
  }

  /** It was answered elsewhere. */
  settle(): void {
    this.#isSettled = true
    setTimeout(() => this.#controller.abort(), REST_MS).unref()
  }

  async #fail(cause: unknown): Promise<UpstreamFailure | undefined> {
    const failure = cause instanceof UpstreamFailure ? cause : undefined
    if (this.#isSettled || this.#controller.signal.aborted) return undefined
    this.#isSettled = true
    this.#controller.abort()
    if (!this.#isCancelled) await this.#host.deliver(faultOf(cause).line(this.message.idSpelling))
    return failure
  }

  async #take(reply: HttpReply, body: Buffer | undefined): Promise<void> {
    if (!reply.isSuccess) return this.#takeFailure(reply, body ?? Buffer.alloc(0))
    if (reply.isEventStream) return this.#follow(reply)
    if (!reply.isJson) {
      reply.discard()
      throw new RemoteFault('upstream_bad_response', { problem: 'it is neither JSON nor a stream of events' })
    }
    const text = toOneLine(await reply.read(this.#host.maxMessageBytes()))
    for (const each of messagesOf(text)) await this.#hear(reply, each)
    if (!this.#isSettled) throw new RemoteFault('upstream_bad_response', { problem: 'it holds no answer' })
  }

  /** A JSON-RPC answer of any status is one. */
  async #takeFailure(reply: HttpReply, body: Buffer): Promise<void> {
    const { status, retryAfterMs } = reply
    const incoming = reply.isJson ? readIncoming(toOneLine(body), this.message) : undefined
    if (incoming?.kind === 'answer') return this.#settleWith(reply, incoming)
    const isRetryable = status === 408 || status === 429 || status >= 500
    const detail = { status, ...(isRetryable ? { retryable: true } : {}) }
    throw new RemoteFault(
      'upstream_failed',
      retryAfterMs === undefined ? detail : { ...detail, retry_after_ms: retryAfterMs },
    )
  }

  async #follow(first: HttpReply): Promise<void> {
    let reply = first
    for (;;) {
      await this.#readStream(reply)
      if (this.#isSettled) return
      // It may have been cancelled: then nothing more is to come.
      if (this.#isCancelled) return this.close()
      reply = await this.#takeUp()
    }
  }

  async #readStream(reply: HttpReply): Promise<void> {
    try {
      for await (const data of readEvents(reply.body, this.#host.maxMessageBytes(), this.#bookmark))
        for (const each of messagesOf(toOneLine(data))) await this.#hear(reply, each)
    } catch (cause) {
      if (cause instanceof RemoteFault) {
        reply.body.destroy()
        throw cause
      }
      if (this.#controller.signal.aborted && !this.#isSettled) throw cause
    }
  }

  async #hear(reply: HttpReply, text: Buffer): Promise<void> {
    if (this.#isSettled) return
    const incoming = readIncoming(text, this.message)
    if (incoming.kind === 'answer') return this.#settleWith(reply, incoming)
    if (incoming.kind === 'message') return this.#host.deliver(incoming.line)
    const problem = incoming.kind === 'junk' ? 'it is no JSON-RPC message' : 'it answers another request'
    throw new RemoteFault('upstream_bad_response', { problem })
  }

  async #settleWith(reply: HttpReply, answer: Incoming): Promise<void> {
    this.#host.answered(this.message, reply, answer)
    this.settle()
    await this.#host.deliver(answer.line)
  }

  /** The stream has ended without the answer: goes on behind the last event, if there is one. */
  async #takeUp(): Promise<HttpReply> {
    const { signal } = this.#controller
    const { lastEventId } = this.#bookmark
    if (lastEventId === undefined || this.message.version !== undefined) throw broken('it broke off before its answer')
    const untilMs = performance.now() + RESUME_WITHIN_MS
    let why = BROKEN_OFF
    for (let tries = 0; tries < MAX_RESUMES && performance.now() < untilMs; tries++) {
      await sleep(this.#bookmark.retryMs ?? RESUME_AFTER_MS, undefined, { signal })
      try {
        const reply = await this.#host.resume(lastEventId, this.#session, signal)
        if (reply.status === 200 && reply.isEventStream) return reply
        const body = await reply.read(MAX_REFUSAL_BYTES).catch(() => Buffer.alloc(0))
        if (reply.status < 500 && reply.status !== 429) return this.#cannotResume(reply.status, body)
        why = `it answers HTTP ${reply.status}`
      } catch (cause) {
        if (!(cause instanceof UpstreamFailure)) throw cause
        if (cause.isRefusal) throw cause
        why = cause.why
      }
    }
    throw broken(`it broke off before its answer and could not be taken up again: ${why}`)
  }

  #cannotResume(status: number, body: Buffer): never {
    if (isSessionLost(this.#session, status, body)) this.#host.sessionLost(this.#session)
    throw broken(`it broke off before its answer and cannot be taken up again (HTTP ${status})`)
  }
}

function broken(why: string): RemoteFault {
  return new RemoteFault('worker_exited', { why })
}

function faultOf(cause: unknown): RemoteFault {
  if (cause instanceof RemoteFault) return cause
  if (cause instanceof Unreachable) return new RemoteFault('no_worker', { why: cause.why })
  return broken(cause instanceof UpstreamFailure ? cause.why : BROKEN_OFF)
}
