/**
 * Decides where a line goes: from a client to a worker, and back (contract 6).
 *
 * It reads the envelope, sorts out what cannot be routed, and hands the rest to `inbound.ts` or `outbound.ts`. Invariant:
 * a line reaches the peer it is meant for or nobody.
 */

import { Batches, messagesIn, unpack } from '../wire/batches.ts'
import { BAD_PARAMS_SESSION, Envelope, SHAPE } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { isBlank } from '../wire/json-text.ts'
import { idSeenIn } from '../wire/leading-id.ts'
import { hasNamespace, isForBus } from '../wire/method-names.ts'
import { type Edit, replace } from '../wire/splice.ts'
import { Admission } from './admission.ts'
import { Assignment } from './assignment.ts'
import { Calls } from './calls.ts'
import { Departures } from './departures.ts'
import { Inbound } from './inbound.ts'
import { mayBeFar } from './kept/far-sessions.ts'
import { isSessionMethod, type SessionMethod, SessionMethods } from './kept/session-methods.ts'
import { FIXED } from './limits.ts'
import { Outbound } from './outbound.ts'
import type { Client, Peer, Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import { BUS_METHODS, isBusMethod, type Role } from './rights.ts'
import { SharedDuties } from './shared-duties.ts'
import { about } from './supervisor.ts'
import type { Switchboard } from './switchboard.ts'

const OPEN_OBJECT = 0x7b

export class Router {
  readonly #board: Switchboard
  readonly #inbound: Inbound
  readonly #duties: SharedDuties
  readonly #outbound: Outbound
  readonly #sessionMethods: SessionMethods
  readonly calls: Calls
  readonly departures: Departures
  readonly admission: Admission
  /** A reader for each line under way: what one line sets free may bring the next. */
  readonly #readers: Envelope[] = []
  #depth = 0

  constructor(board: Switchboard) {
    this.#board = board
    this.calls = new Calls(board)
    this.#duties = new SharedDuties(board)
    this.#inbound = new Inbound(board, this.#duties)
    this.#outbound = new Outbound(board)
    this.#sessionMethods = new SessionMethods(board)
    this.departures = new Departures(board)
    this.admission = new Admission(board, this.#inbound.poolChoice, this.departures)
    board.assignment = new Assignment(board)
    board.router = this.#inbound
  }

  /** A line has come from `peer`; its newline stands at `end`. */
  takeLine(peer: Peer, bytes: Buffer, start: number, end: number): void {
    // A message begins with a brace: only what does not may be blank.
    if (bytes[start] !== OPEN_OBJECT && isBlank(bytes, start, end)) return
    const line = (this.#readers[this.#depth] ??= new Envelope())
    this.#depth++
    line.read(bytes, start, end)
    if (peer.kind === 'client') this.#fromClient(peer, line)
    else this.#fromWorker(peer, line)
    this.#depth--
    line.release()
  }

  /** The line was longer than allowed; what was seen of it may tell its id (contract 8.2). */
  overflowed(peer: Peer): void {
    if (peer.kind === 'worker') {
      const why = 'it wrote a line longer than max_input_buffer'
      return this.#board.supervisor.endBroken(peer, 'worker_exited', { why })
    }
    const problem = `a line may have ${peer.splitter.maxLineBytes} bytes`
    this.#board.closeFor(peer, 'message_too_large', idSeenIn(peer.splitter.head, FIXED.maxHeadBytes), problem)
  }

  // ---- workers come and go ----

  workerSpawned(worker: Worker): void {
    const { handshakes, supervisor } = this.#board
    if (worker.pool.spec.sharing !== 'isolated') worker.dialect = worker.pool.dialect
    if (handshakes.greetsAtStart(worker.pool)) handshakes.greet(worker)
    else supervisor.step(worker, 'started')
  }

  workerOpened(worker: Worker): void {
    const { assignment } = this.#board
    const { pool } = worker
    this.#duties.workerOpened(worker)
    assignment.serve(pool)
    if (pool.spec.sharing === 'lease') assignment.grant(pool)
  }

  poolEmptied(pool: Pool): void {
    this.#board.assignment.dismiss(pool)
  }

  /** A reload has put `successor` in the place of `pool`: whoever waits is served there. */
  poolSucceeded(pool: Pool, successor: Pool): void {
    this.#board.assignment.moveWaiting(pool, successor)
  }

  workerLeft(pool: Pool): void {
    this.#board.assignment.workerLeft(pool)
  }

  // ---- from a client ----

  #fromClient(client: Client, line: Envelope): void {
    const { core } = this.#board
    const { shape } = line
    if (shape === SHAPE.bad && client.hasBatches && line.isArray) return this.#takeBatch(client, line)
    core.totals.linesFromClients++
    if (client.owner === undefined) {
      client.hasSpoken = true
      return this.admission.takeFirst(client, line)
    }
    if (shape === SHAPE.notJson) return this.#board.closeFor(client, 'not_json', 'null')
    if (shape === SHAPE.bad && client.servesCalls && this.calls.isLoose(line))
      return this.calls.takeAnswer(client, line)
    if (shape === SHAPE.bad) return this.#board.closeFor(client, 'bad_envelope', line.idSpelling(), line.problem)
    const isFirst = !client.hasSpoken
    client.hasSpoken = true
    if (shape === SHAPE.response) return this.#takeAnswer(client, line)
    if (line.hasBadParamsSession)
      return this.#board.closeFor(client, 'bad_envelope', line.idSpelling(), BAD_PARAMS_SESSION)
    if (client.isInternal) return this.#inbound.take(client, line, this.#farPool(client))
    if (isForBus(line)) return this.#takeBusMethod(client, line, isFirst)
    if (client.isCaller && shape !== SHAPE.request && this.calls.takeCancel(client, line)) return
    if (core.spec.farAgents !== undefined && this.#callFar(client, line)) return
    if (this.calls.isAgentNamed(line)) return this.#call(client, line)
    this.#inbound.take(client, line)
  }

  /** An agent that only other nodes have is called there, whose gateway it is (contract 14.10): one hop, no further. */
  #callFar(client: Client, line: Envelope): boolean {
    const { spec, pools } = this.#board.core
    if (client.door === 'cluster' || !hasNamespace(line)) return false
    const [agent] = line.text(FIELD.method)!.split('::', 1)
    const pool = pools.get(spec.farAgents!.get(agent!) ?? '')
    if (pool === undefined) return false
    if (client.owner!.isUnbound || this.#inbound.permission.mayCall(client, line))
      this.#inbound.take(client, line, pool)
    return true
  }

  /** Through which an agent is reached that an agent of this node calls (contract 14.10). */
  #farPool({ cause, pool }: Client): Pool | undefined {
    return cause === undefined ? undefined : this.#board.core.pools.get(pool!)
  }

  #call(client: Client, line: Envelope): void {
    if (line.shape === SHAPE.request && !this.#inbound.mayAsk(client, line)) return
    if (!client.owner!.isUnbound && !isForBus(line) && !this.#inbound.permission.mayCall(client, line)) return
    this.calls.takeFromClient(client, line)
  }

  /** Several messages in one array: all of them are sound, or none is taken. Their answers leave in one array too. */
  #takeBatch(client: Client, line: Envelope): void {
    const { lines, keys, problem } = unpack(line, FIXED.maxBatchMessages)
    if (problem !== undefined) return this.#board.closeFor(client, 'bad_envelope', 'null', problem)
    // An answer tells its id only: one that is still owed to an earlier request must not wait for the array.
    const taken = this.#board.core.owed.keysOf(client)
    const own = keys.filter((key) => !taken.has(key))
    if (own.length > 0) {
      client.batches ??= new Batches()
      client.batches.open(own)
    }
    for (const message of lines) {
      if (client.state !== 'open') return
      this.takeLine(client, message, 0, message.length - 1)
    }
  }

  /** The bus's own methods: those that concern the connection are answered here. */
  #takeBusMethod(client: Client, line: Envelope, isFirst: boolean): void {
    const { core } = this.#board
    const method = line.text(FIELD.method)!
    if (method === 'bus::open' && this.admission.open(client, line, isFirst)) return
    const isKnown = isSessionMethod(method) && (this.#board.kept.isOn || mayBeFar(client, core.spec))
    if (isKnown) return this.#takeSessionMethod(client, line, method)
    if (core.spec.hasAccess && line.shape === SHAPE.request && this.#takeAccessMethod(client, line, method)) return
    if (method !== 'bus::open' && this.calls.isOn) return this.#call(client, line)
    this.#refuseMethod(client, line, method)
  }

  /** What is asked of the bus where callers are told apart (contract 9.6). */
  #takeAccessMethod(client: Client, line: Envelope, method: string): boolean {
    const { core } = this.#board
    if (method !== 'bus::whoami' && !isBusMethod(method)) return false
    if (!this.#inbound.mayAsk(client, line)) return true
    const request = core.owed.accept(line, client)
    if (!isBusMethod(method)) {
      this.#board.answerRequest(request, `"result":${JSON.stringify(this.admission.describe(client))}`)
    } else if ((BUS_METHODS[method] as readonly Role[]).includes(client.owner!.rights.role)) {
      request.isAtGateway = true
      core.actions.push({ do: 'administer', client: client.id, method, id: request.idSpelling })
    } else {
      client.owner!.refused++
      this.#board.settle(request, 'not_allowed', { method })
    }
    return true
  }

  /** What is asked of sessions that outlive their clients (contract 12.19, 12.20). */
  #takeSessionMethod(client: Client, line: Envelope, method: SessionMethod): void {
    const { core, audit } = this.#board
    if (line.shape !== SHAPE.request) return core.drop('unknown_method')
    if (!this.#inbound.mayAsk(client, line)) return
    const request = core.owed.accept(line, client)
    if (core.spec.hasAudit) audit.beginCall(request, line)
    if (method === 'bus::sessions.list' && mayBeFar(client, core.spec))
      this.#board.places.gather(request, line, undefined)
    else this.#sessionMethods.serve(method, request, line)
  }

  #refuseMethod(client: Client, line: Envelope, method: string): void {
    if (line.shape === SHAPE.request) this.#board.fail(client, line.idSpelling(), 'unknown_method', { method })
    else this.#board.core.drop('unknown_method')
  }

  /** A client answers what a worker asked it. */
  #takeAnswer(client: Client, line: Envelope): void {
    const { core, observation } = this.#board
    const key = line.key(FIELD.id)
    if (key === undefined) return core.drop('null_id_error')
    const question = client.questions.get(key)
    if (question === undefined) {
      if (client.unwanted.delete(key)) return core.drop('late_answer')
      if (client.servesCalls) this.calls.takeAnswer(client, line)
      if (client.usesAggregate) this.#board.aggregates.takeAnswer(client, line)
      return client.servesCalls || client.usesAggregate ? undefined : core.drop('unasked_answer')
    }
    core.owed.settleQuestion(question)
    if (question.asked !== undefined) this.#board.kept.questions.answered(question, line)
    observation.settled(question, line)
    const { worker } = question
    if (worker.generation !== question.generation || !worker.isAlive) return core.drop('late_answer')
    const edits: Edit[] = worker.dialect === undefined ? [] : this.#board.cuts(line, worker.dialect.table)
    if (question.isAliased) edits.push(replace(line, FIELD.id, question.spelling))
    this.#board.forward(worker, line, edits)
  }

  // ---- from a worker ----

  #fromWorker(worker: Worker, line: Envelope): void {
    if (line.shape !== SHAPE.bad || !worker.hasBatches || !line.isArray) return this.#takeFromWorker(worker, line)
    for (const message of messagesIn(line)) {
      if (worker.isDeaf) return
      this.takeLine(worker, message, 0, message.length - 1)
    }
  }

  #takeFromWorker(worker: Worker, line: Envelope): void {
    const { shape } = line
    this.#board.core.totals.linesFromWorkers++
    if (shape === SHAPE.response) return this.#outbound.deliverAnswer(worker, line)
    if (shape === SHAPE.request || shape === SHAPE.notification) {
      if (this.calls.isOn && !isElsewhere(worker) && this.calls.isNamed(line))
        return this.calls.takeFromWorker(worker, line)
      return this.#outbound.deliverCall(worker, line)
    }
    if (shape === SHAPE.bad && this.calls.isLoose(line) && this.#outbound.deliverLoose(worker, line)) return
    this.#dropJunk(worker, line)
  }

  #dropJunk(worker: Worker, line: Envelope): void {
    const { core } = this.#board
    const isBad = line.shape === SHAPE.bad
    core.drop(isBad ? 'worker_bad_envelope' : 'junk_line')
    core.log('warn', `worker wrote a line that was dropped: ${isBad ? line.problem : 'it is not JSON'}`, about(worker))
    const head = line.bytes.toString('latin1', line.start, Math.min(line.end, line.start + 80))
    core.log('debug', 'first bytes of the dropped line', { ...about(worker), head })
  }

  /** Unanswered requests of clients that are still there. */
  get owedCount(): number {
    let owed = 0
    for (const client of this.#board.core.everyClient()) owed += client.pendingCount
    return owed + this.#board.kept.detachedTurns
  }
}

/** What comes from another node has been judged there: nothing of it is a call of ours. */
function isElsewhere({ pool }: Worker): boolean {
  return pool.spec.placeOf !== undefined
}
