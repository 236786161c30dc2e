/**
 * How a session begins: a client's `initialize`, whose success carries the session's id (contract 10.7), or the same message once
 * more after the bus was away, whose answer nobody gets.
 */
import type { Reason } from '../../kernel/faults.ts'
import { notificationLine } from '../../wire/jsonrpc.ts'
import type { WebPort } from '../port.ts'
import { refusalOf } from '../rpc.ts'
import type { Refusal, WebRequest } from '../web-request.ts'
import { Reply } from './reply.ts'
import { STATELESS } from './revisions.ts'
import { Session, type SessionNews } from './session.ts'
import { answerOnce, refusalIn } from './statuses.ts'

/** Only the answer can say whether there is a session, so it is waited for; after that the id goes out on trust. */
const PATIENCE_MS = 15_000
const CONFIRMED = notificationLine('notifications/initialized', {}).subarray(0, -1)

/** What becomes of a session. */
export interface SessionFate {
  begun(session: Session): void
  ended(by: 'client' | 'bus'): void
}

export class Handshake implements SessionNews {
  readonly #web: WebRequest
  readonly #fate: SessionFate
  readonly #headers: Record<string, string>
  readonly #session: Session
  readonly #reply: Reply
  readonly #id: string

  constructor(web: WebRequest, port: WebPort, about: { sessionId: string; requestId: string }, fate: SessionFate) {
    this.#web = web
    this.#fate = fate
    this.#id = about.requestId
    this.#headers = { 'mcp-session-id': about.sessionId }
    this.#session = new Session(port, this)
    const gone = (): void => this.#session.end()
    const events = { opened: () => {}, gone, drained: () => {} }
    this.#reply = new Reply(web, events, { patienceMs: PATIENCE_MS, headers: this.#headers })
  }

  begin(initialize: Buffer): void {
    this.#session.open(this.#web, this.#web.pool, initialize)
  }

  answered(line: Buffer, fault: Reason | undefined, revision: string | undefined): void {
    if (revision !== undefined) this.#fate.begun(this.#session)
    if (!this.#reply.isWaiting) this.#endStream(line)
    else if (revision !== undefined) this.#reply.settle((web) => web.answer(200, line, this.#headers))
    else this.#reply.settle((web) => answerOnce(web, line, refusalOfHandshake(line, fault, this.#id)))
    if (revision === undefined) this.#session.end()
  }

  #endStream(line: Buffer): void {
    const stream = this.#reply.open()
    stream?.send(line)
    stream?.end()
  }

  ended(by: 'client' | 'bus', how: 'flush' | 'drop'): void {
    this.#fate.ended(by)
    const refusal = { reason: 'shutting_down', id: this.#id } as const
    if (this.#reply.isWaiting)
      this.#reply.settle((web) => (how === 'drop' ? web.response.destroy() : web.refuse(refusal)))
    else this.#reply.open()?.end()
  }
}

/** A server of the stateless era alone says which revision it has. */
function refusalOfHandshake(line: Buffer, fault: Reason | undefined, id: string): Refusal | undefined {
  if (fault === 'protocol_mismatch') {
    const { detail } = refusalOf(line, fault)
    return { reason: 'unknown_version', detail: { supported: [STATELESS], ...detail }, id }
  }
  return refusalIn(line, fault, 'handshake', id)
}

export class Restoration implements SessionNews {
  readonly #fate: SessionFate
  readonly #revision: string
  readonly session: Session

  constructor(port: WebPort, revision: string, fate: SessionFate) {
    this.#fate = fate
    this.#revision = revision
    this.session = new Session(port, this)
  }

  begin(web: WebRequest, initialize: Buffer): void {
    this.session.open(web, web.pool, initialize)
  }

  /** Its client knows of nothing: what was agreed on must hold still. */
  answered(_line: Buffer, _fault: Reason | undefined, revision: string | undefined): void {
    if (revision !== this.#revision) return this.session.end()
    this.session.say(CONFIRMED)
    this.#fate.begun(this.session)
  }

  ended(by: 'client' | 'bus'): void {
    this.#fate.ended(by)
  }
}
