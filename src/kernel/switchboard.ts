/**
 * What every part of the router needs: the state, the envelope of the line at hand, and the few ways to send or refuse.
 *
 * A line is sent on as it came, or with edits at offsets of its envelope. Lines of the bus's own end with a newline.
 */
import { Envelope } from '../wire/envelope.ts'
import { FIELD, type Field } from '../wire/fields.ts'
import type { Core } from './core.ts'
import type { Dialect } from './dialect.ts'
import { FAULTS, faultLine, faultOf, type Reason } from './faults.ts'
import type { Flow } from './flow.ts'
import { Observation } from './observation.ts'
import type { Client, Peer, Worker } from './peers.ts'
import type { Request } from './requests.ts'
import { spell } from './requests.ts'
import { cut, type Edit, replace } from './splice.ts'
import type { Supervisor } from './supervisor.ts'
import type { Tongues } from './tongue.ts'
import type { SessionId } from './vocabulary.ts'

/** What the router cannot do alone. */
export interface RouterHost {
  /** The client gets what it is owed, then it is closed. */
  closeClient(client: Client): void
  /** A client that sends no more may have got its last answer. */
  maybeFinish(client: Client): void
}

export class Switchboard {
  readonly core: Core
  readonly flow: Flow
  readonly host: RouterHost
  readonly tongues: Tongues
  readonly envelope = new Envelope()
  readonly observation = new Observation(this)
  supervisor!: Supervisor

  constructor(core: Core, flow: Flow, host: RouterHost, tongues: Tongues) {
    this.core = core
    this.flow = flow
    this.host = host
    this.tongues = tongues
  }

  /** The line at hand, with its newline. */
  forward(to: Peer, edits: readonly Edit[] | undefined): void {
    const { envelope } = this
    if (edits === undefined || edits.length === 0) this.flow.send(to, envelope.bytes, envelope.start, envelope.end + 1)
    else this.flow.sendEdited(to, envelope, edits)
  }

  /** A copy of the line at hand, with its newline. */
  copyLine(): Buffer {
    const { bytes, start, end } = this.envelope
    return Buffer.from(bytes.subarray(start, end + 1))
  }

  /** The edits that take out what the protocol of a worker does not know. */
  cuts(dialect: Dialect): Edit[] {
    const { addressing } = this.core.spec
    return cut(this.envelope, addressing === undefined ? dialect.cuts : [...dialect.cuts, ...addressing.fields])
  }

  /** The edits that give every session of the call at hand the id by which the worker knows it. */
  renamesTo(worker: Worker, client: Client, dialect: Dialect): Edit[] {
    const names = this.core.sessionNames
    if (names === undefined) return []
    return this.#renames(dialect, (name) => {
      const known = names.find(name)
      return client.sessions.get(name)?.idAtWorker ?? (known?.pool === worker.pool.spec.id ? known.id : name)
    })
  }

  /** And the name by which clients know it. */
  renamesFrom(worker: Worker): Edit[] {
    if (this.core.sessionNames === undefined) return []
    const { dialect } = worker.tongue ?? this.tongues.acp
    return this.#renames(dialect, (id) => this.nameAtClient(worker, id))
  }

  nameAtClient(worker: Worker, id: SessionId): SessionId {
    return worker.sessions.get(id)?.id ?? this.core.sessionNames?.nameOf(worker.pool.spec.id, id) ?? id
  }

  #renames(dialect: Dialect, rename: (from: SessionId) => SessionId): Edit[] {
    return dialect.sessionFields.flatMap((field) => {
      const from = this.envelope.text(field)
      const to = from === undefined ? undefined : rename(from)
      return to === undefined || to === from ? [] : [replace(this.envelope, field, JSON.stringify(to))]
    })
  }

  /** A request is answered; a notification can only be counted. */
  refuse(client: Client, isRequest: boolean, reason: Reason, detail?: Record<string, unknown>): void {
    if (!isRequest) return this.core.drop(reason)
    this.fail(client, this.envelope.idSpelling(), reason, detail)
  }

  fail(client: Client, idSpelling: string, reason: Reason, detail?: Record<string, unknown>): void {
    this.core.countRefusal(reason)
    if (client.isInternal) return this.failExchange(client, reason, detail)
    this.flow.sendLine(client, faultLine(idSpelling, reason, detail))
    if (client.state === 'half-closed') this.host.maybeFinish(client)
  }

  /** An internal client hears of faults of the bus apart from what its worker says. */
  failExchange(client: Client, reason: Reason, detail?: Record<string, unknown>): void {
    this.core.actions.push({ do: 'exchange-failed', client: client.id, error: faultOf(reason, detail) })
    if (client.state === 'half-closed') this.host.maybeFinish(client)
  }

  /** The bus answers in its own name; `result` is JSON. */
  answer(to: Peer, idSpelling: string, result: string): void {
    this.flow.sendLine(to, Buffer.from(`{"jsonrpc":"2.0","id":${idSpelling},"result":${result}}\n`))
    if (to.kind === 'client' && to.state === 'half-closed') this.host.maybeFinish(to)
  }

  refuseQuestion(worker: Worker, idSpelling: string, reason: Reason): void {
    this.core.countRefusal(reason)
    this.flow.sendLine(worker, faultLine(idSpelling, reason))
  }

  /** What a peer did wrong ends its connection; an exchange only hears of it, for it speaks for somebody else. */
  closeFor(client: Client, reason: Reason, idSpelling: string, problem?: string): void {
    this.core.countRefusal(reason)
    if (client.isInternal) return this.failExchange(client, reason, problem === undefined ? undefined : { problem })
    this.core.log('warn', `client closed: ${problem ?? FAULTS[reason].message}`, { client: client.id, reason })
    this.flow.sendLine(client, faultLine(idSpelling, reason, problem === undefined ? undefined : { problem }))
    this.host.closeClient(client)
  }

  /** A request of the bus's own to a worker; the envelope holds the answer when `onAnswer` is called. */
  ask(worker: Worker, method: string, params: unknown, onAnswer: (isResult: boolean) => void): void {
    const { key } = this.core.requests.openOwn(worker, onAnswer)
    this.tell(worker, { jsonrpc: '2.0', id: key, method, params })
  }

  tell(worker: Worker, message: Record<string, unknown>): void {
    this.flow.sendLine(worker, Buffer.from(`${JSON.stringify(message)}\n`))
  }

  /** The worker is told that nobody waits for the answer any more, in its own words. */
  tellCancelled(request: Request): void {
    const cancel = request.tongue?.dialect.cancel
    if (cancel === undefined || !request.worker.isAlive || request.row?.opens !== undefined || request.row?.isTurn)
      return
    const id = spell(request.key)
    const line = `{"jsonrpc":"2.0","method":${JSON.stringify(cancel.method)},"params":{"${cancel.key}":${id}}}\n`
    this.flow.sendLine(request.worker, Buffer.from(line))
  }

  /** Nothing more is owed for the request (contract: the promise); what waited for its end goes on. */
  waive(request: Request): void {
    const { client, worker } = request
    if (client === undefined) return
    this.core.requests.waive(request)
    this.flow.excuse(client, request.clientKey)
    this.observation.failed(request)
    this.supervisor.maybeDismiss(worker)
    if (client.state === 'half-closed') this.host.maybeFinish(client)
  }

  /** The session a message names, wherever it may. */
  sessionNamed(): string | undefined {
    const { envelope } = this
    return envelope.text(FIELD.sessionId) ?? envelope.text(FIELD.paramsSessionId)
  }

  textOf(field: Field): string | undefined {
    return this.envelope.text(field)
  }
}
