/**
 * An MCP server over Streamable HTTP as a stream of lines: what is written becomes POSTs, what is answered becomes lines
 * (contract 11.3).
 *
 * Both eras pass, each message by what it says itself. Nothing piles up: requests beyond a bound wait, and whoever writes
 * waits with them; responses are read no faster than their lines are. It ends when the upstream cannot be reached and
 * nothing of it is open any more, or does not want us.
 */
import { Duplex } from 'node:stream'
import type { IdKey } from '../../wire/envelope.ts'
import { LineSplitter } from '../../wire/frame.ts'
import { printable } from '../../wire/printable.ts'
import { type Connect, type Connection, type Opening, type Upstream, UpstreamFailure, type Via } from '../upstream.ts'
import { HttpCaller, Unreachable } from './http-caller.ts'
import { Inquiry, type InquiryHost } from './inquiry.ts'
import { Lane } from './lane.ts'
import { type Outgoing, readIncoming, readOutgoing } from './message.ts'
import { Poster } from './poster.ts'
import { refusalOf } from './refusal.ts'
import { ServerStream } from './server-stream.ts'
import { isSessionLost } from './session.ts'

/** Requests that are under way at once, and the bytes that may wait for others to end. */
const MAX_INQUIRIES = 1_024
const MAX_WAITING_BYTES = 1024 * 1024

export const connectHttp: Connect = async (upstream, opening) => {
  const caller = await HttpCaller.open(upstream, opening.signal)
  await caller.passOn(opening.vias)
  return new HttpConnection(caller, upstream, opening)
}

class HttpConnection implements Connection {
  readonly stream: HttpUpstream
  readonly #caller: HttpCaller

  constructor(caller: HttpCaller, upstream: Upstream, opening: Opening) {
    this.#caller = caller
    this.stream = new HttpUpstream(caller, upstream.maxMessageBytes, opening)
  }

  passOn(via: Via): void {
    this.#caller.passOn([via]).catch((failure: UpstreamFailure) => this.stream.lose(failure))
  }
}

class HttpUpstream extends Duplex {
  readonly #caller: HttpCaller
  readonly #poster: Poster
  readonly #maxMessageBytes: number
  readonly #opening: Opening
  readonly #lines = new LineSplitter(Number.POSITIVE_INFINITY)
  readonly #inquiries = new Set<Inquiry>()
  /** The newest with each id. */
  readonly #byId = new Map<IdKey, Inquiry>()
  readonly #lane: Lane
  #waiting: Outgoing[] = []
  #waitingBytes = 0
  #serverStream: ServerStream | undefined
  /** Tells whoever wrote that there is room again. */
  #admit: (() => void) | undefined
  /** Those who have read something that does not fit yet. */
  #readers: (() => void)[] = []
  #isOver = false

  constructor(caller: HttpCaller, maxMessageBytes: number, opening: Opening) {
    super({ allowHalfOpen: false })
    this.#caller = caller
    this.#maxMessageBytes = maxMessageBytes
    this.#opening = opening
    this.#poster = new Poster(caller, maxMessageBytes, {
      renewed: () => this.#openServerStream(),
      lost: (failure) => this.lose(failure),
    })
    this.#lane = new Lane(
      (message, signal) => this.#tell(message, signal),
      () => this.#maybeAdmit(),
    )
  }

  // ---- towards the server ----

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#lines.push(chunk, 0, (bytes, start, end) => {
      const message = readOutgoing(bytes, start, end)
      if (message === undefined) this.#opening.note('a line that is no message was not sent')
      else this.#take(message)
      return true
    })
    this.#admit = done
    this.#maybeAdmit()
  }

  #maybeAdmit(): void {
    if (this.#waitingBytes + this.#lane.bytes > MAX_WAITING_BYTES) return
    const admit = this.#admit
    this.#admit = undefined
    admit?.()
  }

  #take(message: Outgoing): void {
    if (this.#isOver) return
    if (message.kind === 'request') return this.#ask(message)
    if (message.method === 'notifications/initialized') return void this.#confirm(message)
    if (message.method !== 'notifications/cancelled' || !this.#cancel(message)) this.#lane.push(message)
  }

  #ask(message: Outgoing): void {
    if (this.#inquiries.size < MAX_INQUIRIES) return this.#start(message)
    this.#waiting.push(message)
    this.#waitingBytes += message.body.length
  }

  #start(message: Outgoing): void {
    const inquiry = new Inquiry(message, this.#host)
    this.#inquiries.add(inquiry)
    this.#byId.set(message.id!, inquiry)
    const running = inquiry.run()
    if (message.method === 'initialize') this.#poster.introduce(running)
    void running.then((failure) => {
      this.#inquiries.delete(inquiry)
      if (this.#byId.get(message.id!) === inquiry) this.#byId.delete(message.id!)
      this.#startNext()
      if (failure !== undefined) this.#judge(failure)
    })
  }

  #startNext(): void {
    const next = this.#waiting.shift()
    if (next === undefined || this.#isOver) return
    this.#waitingBytes -= next.body.length
    this.#start(next)
    this.#maybeAdmit()
  }

  /** True when nothing is to be sent for it. */
  #cancel({ cancels }: Outgoing): boolean {
    const at = this.#waiting.findIndex(({ id }) => id === cancels)
    if (at !== -1) {
      this.#waitingBytes -= this.#waiting.splice(at, 1)[0]!.body.length
      return true
    }
    const inquiry = cancels === undefined ? undefined : this.#byId.get(cancels)
    if (inquiry?.message.version !== undefined) {
      inquiry.close()
      return true
    }
    inquiry?.cancel()
    return false
  }

  async #confirm(message: Outgoing): Promise<void> {
    try {
      await this.#poster.confirm(message)
      this.#openServerStream()
    } catch (cause) {
      this.#notSent(message, cause)
    }
  }

  async #tell(message: Outgoing, signal: AbortSignal): Promise<void> {
    try {
      const { reply, body, refusal } = await this.#poster.post(message, signal)
      if (body === undefined) reply.discard()
      else this.#opening.note(`${nameOf(message)} was not taken: HTTP ${reply.status}`)
      if (refusal !== undefined) this.lose(refusal)
    } catch (cause) {
      this.#notSent(message, cause)
    }
  }

  #notSent(message: Outgoing, cause: unknown): void {
    if (this.#isOver) return
    const why = cause instanceof UpstreamFailure ? cause.why : 'it was not answered in time'
    this.#opening.note(`${nameOf(message)} was not sent: ${why}`)
    if (cause instanceof UpstreamFailure) this.#judge(cause)
  }

  // ---- from the server ----

  readonly #host: InquiryHost = {
    maxMessageBytes: () => this.#maxMessageBytes,
    post: (message, signal) => this.#poster.post(message, signal),
    resume: (lastEventId, session, signal) => this.#poster.get(lastEventId, session, signal),
    deliver: (line) => this.#deliver(line),
    answered: (message, reply, answer) => this.#poster.answered(message, reply, answer),
    sessionLost: (session) => void this.#poster.renew(session).catch(() => {}),
  }

  #deliver(line: Buffer): Promise<void> {
    if (this.#isOver || this.push(line)) return Promise.resolve()
    return new Promise((resolve) => this.#readers.push(resolve))
  }

  override _read(): void {
    for (const goOn of this.#readers.splice(0)) goOn()
  }

  #openServerStream(): void {
    this.#serverStream?.close()
    const session = this.#poster.memory.current
    if (session === undefined || this.#isOver) return
    const stream = new ServerStream({
      maxMessageBytes: this.#maxMessageBytes,
      get: (lastEventId, signal) => this.#poster.get(lastEventId, session, signal),
      heard: (text) => this.#hear(text),
      note: (sentence) => this.#opening.note(sentence),
      isSessionLost: (status, body) => isSessionLost(session, status, body),
      sessionLost: () => void this.#poster.renew(session).catch(() => {}),
      unreachable: (failure) => this.#judge(failure),
      refused: (status) => this.lose(new UpstreamFailure(refusalOf(status)!, { isRefusal: true })),
    })
    this.#serverStream = stream
    void stream.run()
  }

  /** What belongs to no request; some servers answer here as well. */
  async #hear(text: Buffer): Promise<void> {
    const { kind, id, line } = readIncoming(text, undefined)
    if (kind === 'junk') return this.#opening.note('what is no message was dropped')
    const inquiry = id === undefined ? undefined : this.#byId.get(id)
    if (kind !== 'message' && inquiry === undefined)
      return this.#opening.note('an answer that nobody waits for was dropped')
    inquiry?.settle()
    return this.#deliver(line)
  }

  // ---- the end ----

  /** It could not be reached, or broke off: it is given up when nothing of it is open. */
  #judge(failure: UpstreamFailure): void {
    const isOpen = this.#inquiries.size > 0 || this.#serverStream?.isConnected === true
    if (failure.isRefusal || (failure instanceof Unreachable && !isOpen)) this.lose(failure)
  }

  lose(failure: UpstreamFailure): void {
    if (this.#isOver) return
    this.#closeAll()
    this.#opening.lost(failure)
    this.push(null)
  }

  override _final(done: (error?: Error | null) => void): void {
    const hasLeft = this.#isOver ? Promise.resolve() : this.#poster.leave()
    this.#closeAll()
    hasLeft
      .catch(() => {})
      .then(() => {
        if (!this.readableEnded) this.push(null)
        done()
      })
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#closeAll()
    this.#caller.destroy()
    done(error)
  }

  #closeAll(): void {
    this.#isOver = true
    this.#serverStream?.close()
    for (const inquiry of this.#inquiries) inquiry.close()
    this.#waiting = []
    this.#waitingBytes = 0
    this.#lane.clear()
    this._read()
    this.#maybeAdmit()
  }
}

function nameOf({ kind, method }: Outgoing): string {
  return kind === 'response' ? 'an answer' : `a notification (${printable(method.slice(0, 64))})`
}
