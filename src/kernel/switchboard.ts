/**
 * What every part of the router needs: the state, the other parts, and the few ways to send, answer or refuse.
 *
 * A line is sent on as it came, or with edits at offsets of its envelope. Lines of the bus's own end with a newline.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { cut, type Edit, replace } from '../wire/splice.ts'
import { Aggregates } from './aggregates.ts'
import type { Assignment } from './assignment.ts'
import { Audit } from './audit.ts'
import type { Core } from './core.ts'
import type { DialectTable } from './dialect-table.ts'
import type { Dialects } from './dialects.ts'
import { FAULTS, faultLine, faultOf, type Reason } from './faults.ts'
import type { Flow } from './flow.ts'
import { Handshakes } from './handshakes.ts'
import { FarSessions } from './kept/far-sessions.ts'
import { Kept } from './kept/kept.ts'
import { FIXED } from './limits.ts'
import { Observation } from './observation.ts'
import { type Request, spell } from './owed.ts'
import type { Client, Peer, Worker } from './peers.ts'
import { Places } from './places.ts'
import type { Route } from './route.ts'
import type { Supervisor } from './supervisor.ts'
import type { SessionId } from './vocabulary.ts'
import { Waiting } from './waiting.ts'

/** What the router cannot do alone. */
export interface RouterHost {
  /** The client gets what it is owed, then it is closed. */
  closeClient(client: Client, waitMs?: number): void
  /** A client that sends no more may have got its last answer. */
  maybeFinish(client: Client): void
}

type Detail = Record<string, unknown>
type OnAnswer = (line: Envelope, isResult: boolean) => void

interface OwnRequest {
  readonly method: string
  readonly params: unknown
}

export class Switchboard {
  readonly core: Core
  readonly flow: Flow
  readonly host: RouterHost
  readonly dialects: Dialects
  readonly observation = new Observation(this)
  readonly audit: Audit
  readonly waiting = new Waiting(this)
  readonly handshakes = new Handshakes(this)
  readonly aggregates = new Aggregates(this)
  readonly kept = new Kept(this)
  readonly places = new Places(this)
  readonly farSessions = new FarSessions(this)
  supervisor!: Supervisor
  assignment!: Assignment
  /** Lets a message go on that has waited. */
  router!: { proceed(route: Route): void; enter(route: Route): void }

  constructor(core: Core, flow: Flow, host: RouterHost, dialects: Dialects) {
    this.core = core
    this.flow = flow
    this.host = host
    this.dialects = dialects
    this.audit = new Audit(core, dialects)
  }

  // ---- lines of peers ----

  forward(to: Peer, line: Envelope, edits?: readonly Edit[]): void {
    if (edits === undefined || edits.length === 0) this.flow.send(to, line.bytes, line.start, line.end + 1)
    else this.flow.sendEdited(to, line, edits)
  }

  /** The edits that take out what the protocol of a worker does not know. */
  cuts(line: Envelope, table: DialectTable): Edit[] {
    const { addressing } = this.core.spec
    return cut(line, addressing === undefined ? table.cuts : [...table.cuts, ...addressing.fields])
  }

  /** The edits that give every session of a client's call the id by which the worker knows it. */
  renamesTo(worker: Worker, client: Client, line: Envelope): Edit[] {
    const names = this.core.sessionNames
    if (names === undefined) return []
    return this.#renames(worker, line, (name) => {
      const known = names.find(name)
      return client.sessions.get(name)?.idAtWorker ?? (known?.pool === worker.pool.spec.id ? known.id : name)
    })
  }

  /** And the name by which clients know it. */
  renamesFrom(worker: Worker, line: Envelope): Edit[] {
    if (this.core.sessionNames === undefined) return []
    return this.#renames(worker, line, (id) => this.nameAtClient(worker, id))
  }

  nameAtClient(worker: Worker, id: SessionId): SessionId {
    return worker.sessions.get(id)?.id ?? this.core.sessionNames?.nameOf(worker.pool.spec.id, id) ?? id
  }

  #renames(worker: Worker, line: Envelope, rename: (from: SessionId) => SessionId): Edit[] {
    const dialect = worker.dialect ?? this.dialects.withSessions
    return (dialect?.table.sessionFields ?? []).flatMap((field) => {
      const from = line.text(field)
      const to = from === undefined ? undefined : rename(from)
      return to === undefined || to === from ? [] : [replace(line, field, JSON.stringify(to))]
    })
  }

  /** Every request is recorded at its worker before it is sent (contract 6.1). */
  send(request: Request, line: Envelope, worker: Worker): void {
    if (!worker.owesAnswer) worker.lastActivityMs = this.core.nowMs
    this.core.owed.send(request, line, worker)
  }

  /** Whose message is told to be on its way; an exchange of the gateway's is not sent to a worker that does not read (spec N14). */
  mayTell(client: Client, worker: Worker, request: Request | undefined): boolean {
    if (client.carriesMessages || !worker.outbox.isFull) {
      this.core.actions.push({ do: 'routed', client: client.id, worker: worker.id, generation: worker.generation })
      return true
    }
    if (request === undefined) this.core.drop('overloaded')
    else this.settle(request, 'overloaded', { pool: worker.pool.spec.id })
    return false
  }

  // ---- answers and refusals of the bus ----

  /** A message of a client ends here: a request is answered, a notification can only be counted. */
  refuse({ request }: Route, reason: Reason, detail?: Detail): void {
    if (request === undefined) return this.core.drop(reason)
    this.settle(request, reason, detail)
  }

  /** The caller has no right to what it wants (contract 9.18, 9.19). */
  deny(route: Route, detail: Detail): void {
    route.client.owner!.refused++
    this.audit.denied(route)
    this.refuse(route, 'not_allowed', detail)
  }

  /** The bus ends a request that its client still waits for. */
  settle(request: Request, reason: Reason, detail?: Detail): void {
    const { client, route } = request
    if (client === undefined || request.isSettled) return
    request.outcome = reason
    this.core.owed.settle(request)
    if (request.observed !== 0) this.observation.failed(request, faultOf(reason, detail))
    this.fail(client, request.idSpelling, reason, detail)
    if (route !== undefined) this.waiting.withdraw(route)
    this.giveUpKept(request, reason)
  }

  /** A kept session waits for the request no more. */
  giveUpKept(request: Request, reason: Reason): void {
    if (request.kept !== undefined) this.kept.turns.failed(request, reason)
    if (request.claimed !== undefined) this.kept.claims.abandon(request)
  }

  fail(client: Client, idSpelling: string, reason: Reason, detail?: Detail): void {
    this.core.countRefusal(reason)
    if (client.isExchange) return this.failExchange(client, reason, detail)
    this.flow.sendFault(client, idSpelling, reason, detail)
    if (client.state === 'half-closed') this.host.maybeFinish(client)
  }

  /** An internal client hears of faults of the bus apart from what its worker says. */
  failExchange(client: Client, reason: Reason, detail?: Detail): void {
    this.core.actions.push({ do: 'exchange-failed', client: client.id, error: faultOf(reason, detail) })
    if (client.state === 'half-closed') this.host.maybeFinish(client)
  }

  /** The bus answers a request in its own name, or with what a worker has said; `outcome` is a member of JSON. */
  answerRequest(request: Request, outcome: string): void {
    const { client } = request
    if (client === undefined || request.isSettled) return
    this.core.owed.settle(request)
    this.flow.sendLine(client, Buffer.from(`{"jsonrpc":"2.0","id":${request.idSpelling},${outcome}}\n`))
    if (client.state === 'half-closed') this.host.maybeFinish(client)
  }

  /** The worker's own answer has ended the request, and is not what its client gets. */
  answerSettled({ client, idSpelling }: Request, outcome: string): void {
    if (client === undefined) return
    this.flow.sendLine(client, Buffer.from(`{"jsonrpc":"2.0","id":${idSpelling},${outcome}}\n`))
    if (client.state === 'half-closed') this.host.maybeFinish(client)
  }

  answerQuestion(worker: Worker, idSpelling: string, result: string): void {
    this.flow.sendLine(worker, Buffer.from(`{"jsonrpc":"2.0","id":${idSpelling},"result":${result}}\n`))
  }

  refuseQuestion(worker: Worker, idSpelling: string, reason: Reason): void {
    this.core.countRefusal(reason)
    this.flow.sendLine(worker, faultLine(idSpelling, reason))
  }

  /** What a peer did wrong ends its connection; an exchange only hears of it, for it speaks for somebody else. */
  closeFor(client: Client, reason: Reason, idSpelling: string, problem?: string): void {
    this.core.countRefusal(reason)
    if (client.isExchange) return this.failExchange(client, reason, problem === undefined ? undefined : { problem })
    this.core.log('warn', `client closed: ${problem ?? FAULTS[reason].message}`, { client: client.id, reason })
    this.flow.sendFault(client, idSpelling, reason, problem === undefined ? undefined : { problem })
    this.host.closeClient(client)
  }

  // ---- the bus's own words to workers ----

  /** A request of the bus's own that nobody waits for: its row is forgotten after a while. */
  ask(worker: Worker, message: OwnRequest, onAnswer: OnAnswer = () => {}): void {
    this.#askWithin(FIXED.ownRequestMs, worker, message, onAnswer)
  }

  /** A request of the bus's own that others wait for: a worker that does not answer in the time it has to start is ended. */
  await(worker: Worker, message: OwnRequest, onAnswer: OnAnswer): void {
    const request = this.#askWithin(worker.pool.spec.startTimeoutMs, worker, message, onAnswer)
    request.isAwaited = true
    worker.awaitedCount++
  }

  #askWithin(waitMs: number, worker: Worker, { method, params }: OwnRequest, onAnswer: OnAnswer): Request {
    const { core } = this
    const wasIdle = !worker.owesAnswer
    const request = core.owed.openOwn(worker, onAnswer)
    if (wasIdle) worker.lastActivityMs = core.nowMs
    if (waitMs > 0) request.timer = core.timers.set(core.nowMs + waitMs, () => this.#unanswered(request, worker))
    this.tell(worker, { jsonrpc: '2.0', id: request.key, method, params })
    return request
  }

  #unanswered(request: Request, worker: Worker): void {
    this.core.owed.settle(request)
    if (!request.isAwaited || !worker.isAlive) return
    const why = 'it did not answer the handshake within start_timeout_sec'
    this.supervisor.endBroken(worker, 'worker_exited', { why })
  }

  tell(worker: Worker, message: Detail): void {
    this.flow.sendLine(worker, Buffer.from(`${JSON.stringify(message)}\n`))
  }

  /** The worker is told that nobody waits for the answer any more, in its own words. */
  tellCancelled({ dialect, worker, row, key }: Request): void {
    const cancel = dialect?.table.cancel
    if (cancel === undefined || !worker?.isAlive || row?.opens !== undefined || row?.isTurn) return
    const id = spell(key)
    const line = `{"jsonrpc":"2.0","method":${JSON.stringify(cancel.method)},"params":{"${cancel.key}":${id}}}\n`
    this.flow.sendLine(worker, Buffer.from(line))
  }

  /** Nothing more is owed for the request (contract: the promise); what waited for its end goes on. */
  waive(request: Request): void {
    const { client, worker, route } = request
    if (client === undefined || request.isSettled) return
    request.outcome = 'cancelled'
    this.core.owed.waive(request)
    this.flow.excuse(client, request.clientKey)
    this.observation.failed(request)
    if (worker !== undefined) this.supervisor.maybeDismiss(worker)
    if (route !== undefined) this.waiting.withdraw(route)
    if (client.state === 'half-closed') this.host.maybeFinish(client)
  }
}

/** The session a message names, wherever it may. */
export function sessionNamed(line: Envelope): SessionId | undefined {
  return line.text(FIELD.sessionId) ?? line.text(FIELD.paramsSessionId)
}
