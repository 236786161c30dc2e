/**
 * Posts messages to an MCP server with the headers of their era, and sends once more what was refused without effect: after
 * a lost session, and after a call without the headers its tool wants (contract 11.3).
 *
 * A new session is opened once for all who lost the old one; whatever is to be sent meanwhile waits for it. It decides
 * nothing about an answer but that.
 */
import { RemoteFault } from '../faults.ts'
import { UpstreamFailure } from '../upstream.ts'
import type { HttpCaller, HttpReply } from './http-caller.ts'
import { Inquiry, type Posted } from './inquiry.ts'
import { type Incoming, type Outgoing, readOutgoing } from './message.ts'
import { refusalOf } from './refusal.ts'
import { isSessionLost, type Session, SessionMemory } from './session.ts'
import { statelessHeaders } from './stateless-headers.ts'
import { asObject, ToolHeaders } from './tool-headers.ts'

export interface PosterEvents {
  /** There is another session in the place of a lost one. */
  renewed(): void
  /** There is none, and none can be had. */
  lost(failure: UpstreamFailure): void
}

interface Answered {
  readonly reply: HttpReply
  readonly answer: Incoming
}

const ACCEPT = 'application/json, text/event-stream'
const RENEW_MS = 30_000
const GOODBYE_MS = 2_000
const HEADER_MISMATCH = -32020
const MAX_PAGES = 20
const INITIALIZED = line({ jsonrpc: '2.0', method: 'notifications/initialized' })

export class Poster {
  readonly memory = new SessionMemory()
  readonly #caller: HttpCaller
  readonly #maxMessageBytes: number
  readonly #events: PosterEvents
  readonly #tools = new ToolHeaders()
  /** While it is there nothing else is sent. */
  #barrier: Promise<void> | undefined
  #introduced: () => void = () => {}

  constructor(caller: HttpCaller, maxMessageBytes: number, events: PosterEvents) {
    this.#caller = caller
    this.#maxMessageBytes = maxMessageBytes
    this.#events = events
  }

  async post(message: Outgoing, signal: AbortSignal): Promise<Posted> {
    for (let isSecond = false; ; isSecond = true) {
      while (this.#barrier !== undefined && message.method !== 'initialize') await this.#barrier
      signal.throwIfAborted()
      const session = isInSession(message) ? this.memory.current : undefined
      const posted = await this.#send(message, session, signal)
      const { reply, body } = posted
      if (body === undefined || isSecond) return posted
      if (isSessionLost(session, reply.status, body)) await this.renew(session)
      else if (!(await this.#wantsHeaders(message, reply, body))) return posted
    }
  }

  /** An introduction is under way: until it is answered nobody knows what else may be said. */
  introduce(running: Promise<unknown>): void {
    void this.#alone(
      () =>
        new Promise((resolve) => {
          this.#introduced = resolve
          void running.then(() => resolve())
        }),
    )
  }

  /** The client has introduced itself: nothing else is said before the server knows that. */
  async confirm(message: Outgoing): Promise<void> {
    this.memory.confirmation = message
    await this.#alone(async () => {
      const { reply, body } = await this.#send(message, this.memory.current, AbortSignal.timeout(RENEW_MS))
      if (body === undefined) reply.discard()
    })
  }

  get(lastEventId: string | undefined, session: Session | undefined, signal: AbortSignal): Promise<HttpReply> {
    const headers = {
      accept: 'text/event-stream',
      ...this.memory.headers(session),
      // Any text is one; in a head it is its UTF-8.
      ...(lastEventId === undefined ? {} : { 'last-event-id': Buffer.from(lastEventId).latin1Slice() }),
    }
    return this.#caller.call({ method: 'GET', headers, signal })
  }

  /** The session is not needed any more. */
  async leave(): Promise<void> {
    const { current } = this.memory
    if (current?.id === undefined) return
    const headers = this.memory.headers(current)
    const reply = await this.#caller.call({ method: 'DELETE', headers, signal: AbortSignal.timeout(GOODBYE_MS) })
    reply.discard()
  }

  /** A request was answered. */
  answered(message: Outgoing, reply: HttpReply, answer: Incoming): void {
    if (!answer.isResult) return
    if (message.method === 'initialize') {
      this.memory.welcome(message, reply, answer)
      this.#introduced()
    } else if (message.version === undefined) this.memory.note(message)
    else if (message.method === 'tools/list') this.#tools.learn(resultIn(answer)['tools'])
  }

  /** The server has forgotten the session: opens another, once for all who noticed. */
  async renew(session: Session | undefined): Promise<void> {
    if (this.memory.current !== session || this.#barrier !== undefined) return this.#barrier
    try {
      await this.#alone(() => this.#initialise())
    } catch (cause) {
      const failure = cause instanceof UpstreamFailure ? cause : new UpstreamFailure(NO_OTHER_SESSION, { cause })
      this.#events.lost(failure)
      throw failure
    }
    this.#events.renewed()
  }

  /** Behind whoever acts alone already. */
  async #alone(act: () => Promise<void>): Promise<void> {
    const before = this.#barrier ?? Promise.resolve()
    const acting = before.then(act)
    const barrier = acting.catch(() => {})
    this.#barrier = barrier
    try {
      await acting
    } finally {
      if (this.#barrier === barrier) this.#barrier = undefined
    }
  }

  async #initialise(): Promise<void> {
    const { introduction, confirmation } = this.memory
    if (introduction === undefined) throw new UpstreamFailure(NO_OTHER_SESSION)
    const { reply, answer } = await this.#ask(introduction, undefined)
    const session = this.memory.welcome(introduction, reply, answer)
    const confirmed = await this.#send(confirmation ?? INITIALIZED, session, AbortSignal.timeout(RENEW_MS))
    if (confirmed.body === undefined) confirmed.reply.discard()
    // What is no more there costs nobody the session.
    for (const message of this.memory.repeats)
      if ((await this.#answerTo(message, session))?.answer.isResult !== true) this.memory.forget(message)
  }

  async #ask(message: Outgoing, session: Session | undefined): Promise<Answered> {
    const answered = await this.#answerTo(message, session)
    if (answered?.answer.isResult !== true) throw new UpstreamFailure(NO_OTHER_SESSION)
    return answered
  }

  /** A request of ours: its answer is nobody else's. */
  async #answerTo(message: Outgoing, session: Session | undefined): Promise<Answered | undefined> {
    let answered: Answered | undefined
    const inquiry = new Inquiry(message, {
      maxMessageBytes: () => this.#maxMessageBytes,
      post: (asked, signal) => this.#send(asked, session, signal),
      resume: (lastEventId, of, signal) => this.get(lastEventId, of, signal),
      deliver: async () => {},
      answered: (_message, reply, answer) => {
        answered = { reply, answer }
      },
      sessionLost: () => {},
    })
    const timer = setTimeout(() => inquiry.close(), RENEW_MS)
    const failure = await inquiry.run()
    clearTimeout(timer)
    if (failure !== undefined) throw failure
    return answered
  }

  async #send(message: Outgoing, session: Session | undefined, signal: AbortSignal): Promise<Posted> {
    const own = message.version === undefined ? this.memory.headers(session) : statelessHeaders(message, this.#tools)
    const headers = { 'content-type': 'application/json', accept: ACCEPT, ...own }
    const reply = await this.#caller.call({ method: 'POST', headers, body: message.body, signal })
    if (reply.isSuccess) return { reply, session }
    const body = await reply.read(this.#maxMessageBytes)
    const why = refusalOf(reply.status, message)
    return { reply, session, body, ...(why && { refusal: new UpstreamFailure(why, { isRefusal: true }) }) }
  }

  /** The call was refused for its headers, and its tool wants others than were sent. */
  async #wantsHeaders(message: Outgoing, reply: HttpReply, body: Buffer): Promise<boolean> {
    if (message.version === undefined || message.method !== 'tools/call' || reply.status !== 400) return false
    if (asObject(asObject(parse(body))['error'])['code'] !== HEADER_MISMATCH) return false
    const before = JSON.stringify(statelessHeaders(message, this.#tools))
    try {
      await this.#learnTools(message)
    } catch (cause) {
      if (!(cause instanceof UpstreamFailure) && !(cause instanceof RemoteFault)) throw cause
    }
    return JSON.stringify(statelessHeaders(message, this.#tools)) !== before
  }

  async #learnTools({ body }: Outgoing): Promise<void> {
    const { _meta } = asObject(asObject(parse(body))['params'])
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const params = { _meta, ...(cursor === undefined ? {} : { cursor }) }
      const { answer } = await this.#ask(
        line({ jsonrpc: '2.0', id: 'stdio-bus/tools', method: 'tools/list', params }),
        undefined,
      )
      const { tools, nextCursor } = resultIn(answer)
      this.#tools.learn(tools)
      if (typeof nextCursor !== 'string') return
      cursor = nextCursor
    }
  }
}

const NO_OTHER_SESSION = 'it has ended the session and opens no other'

/** An introduction opens a session, and the stateless era has none. */
function isInSession({ version, method }: Outgoing): boolean {
  return version === undefined && method !== 'initialize'
}

function resultIn(answer: Incoming): Readonly<Record<string, unknown>> {
  return asObject(asObject(parse(answer.line))['result'])
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

function line(message: object): Outgoing {
  const body = Buffer.from(JSON.stringify(message))
  return readOutgoing(body, 0, body.length)!
}
