/**
 * What is owed when a peer goes (contract 7.1, 7.3, 7.4): a vanished client's duties are done by the bus, a vanished
 * worker's debts are paid with errors, exactly once.
 */
import { callerOf } from './calls.ts'
import type { Dialect } from './dialects.ts'
import { faultOf, type Reason } from './faults.ts'
import type { Bond } from './introductions.ts'
import type { Question, Request } from './owed.ts'
import type { Client, Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import type { Session } from './sessions.ts'
import type { Switchboard } from './switchboard.ts'
import { forgetTasksOf } from './tasks.ts'
import type { SessionId } from './vocabulary.ts'

export class Departures {
  readonly #board: Switchboard

  constructor(board: Switchboard) {
    this.#board = board
  }

  /** The client answers no more: what it was asked is answered for it, never with consent. */
  refuseQuestionsOf(client: Client): void {
    const { kept } = this.#board
    if (client.seats.size > 0) kept.participants.closing(client)
    for (const question of [...client.questions.values()]) {
      if (question.asked === undefined) this.#settleFor(question)
      else kept.questions.release(question)
    }
  }

  #settleFor(question: Question): void {
    this.#board.core.owed.settleQuestion(question)
    this.#board.observation.settled(question)
    const { worker } = question
    if (worker.generation !== question.generation || !worker.isAlive) return
    if (question.putElsewhere?.() === true) return
    const id = question.spelling
    if (question.answerWhenGone === undefined) this.#board.refuseQuestion(worker, id, 'client_gone')
    else this.#board.answerQuestion(worker, id, question.answerWhenGone)
  }

  /** The client is gone: nothing of it stays but the ids that are still taken. `isSettled`: it was answered in full. */
  clientGone(client: Client, isSettled = false): void {
    const { core, assignment, supervisor, waiting } = this.#board
    const workers = new Set<Worker>()
    if (!isSettled) this.#cancelTurns(client)
    for (const { kept } of client.seats) if (kept.worker !== undefined) workers.add(kept.worker)
    if (client.seats.size > 0) this.#board.kept.clientGone(client)
    this.refuseQuestionsOf(client)
    for (let request = client.newest; request !== undefined; request = client.newest) {
      if (request.worker !== undefined) workers.add(request.worker)
      this.#giveUp(request, isSettled)
    }
    this.#closeSessions(client)
    for (const session of client.sessions.values()) workers.add(session.worker)
    core.sessions.endAllOf(client)
    for (const introduction of client.introductions.values()) {
      for (const worker of introduction.bonds.keys()) workers.add(worker)
      this.#forgetHeld(client, introduction.bonds.values())
      introduction.end()
    }
    client.introductions.clear()
    assignment.giveBack(client)
    // A lease or a reload may have led it to other workers before.
    for (const worker of core.workers.values()) {
      if (knowsNobody(worker)) continue
      this.#unsubscribe(client, worker)
      this.#forgetIn(worker, client)
      if (!worker.lobby.isEmpty) waiting.forget(client, worker.lobby)
    }
    for (const worker of workers) supervisor.maybeDismiss(worker)
  }

  #giveUp(request: Request, isSettled: boolean): void {
    const { core, waiting } = this.#board
    if (request.route !== undefined) waiting.withdraw(request.route)
    if (isSettled) return core.owed.settle(request)
    request.outcome = 'client_gone'
    core.owed.disown(request)
    if (request.worker === undefined) this.#board.giveUpKept(request, 'client_gone')
    // Where sessions outlive their clients the agent hears nothing of it (contract 12.3).
    if (!isKeptQuiet(request)) this.#board.tellCancelled(request)
    this.#board.observation.failed(request, faultOf('client_gone'))
  }

  #forgetHeld(client: Client, bonds: Iterable<Bond>): void {
    for (const bond of bonds) {
      if (bond.held !== undefined) this.#board.waiting.forget(client, bond.held)
      bond.held = undefined
    }
  }

  /** What it had begun is cancelled; where a prompt is answered at once, in every session that had one (contract 7.3). */
  #cancelTurns(client: Client): void {
    const told = new Set<SessionId>()
    for (let request = client.newest; request !== undefined; request = request.older) {
      const { row, dialect, sessionAtWorker, worker } = request
      if (!row?.isTurn || sessionAtWorker === undefined || worker === undefined || request.kept) continue
      this.#cancelTurn(worker, dialect, sessionAtWorker)
      told.add(sessionAtWorker)
    }
    for (const { hadTurn, idAtWorker, worker, kept } of client.sessions.values())
      if (hadTurn && kept === undefined && worker.takesOneHandshake && !told.has(idAtWorker))
        this.#cancelTurn(worker, worker.dialect, idAtWorker)
  }

  #cancelTurn(worker: Worker, dialect: Dialect | undefined, sessionId: SessionId): void {
    const departure = dialect?.table.departure
    if (departure === undefined || !worker.isAlive) return
    this.#board.tell(worker, { jsonrpc: '2.0', method: departure.cancelTurn, params: { sessionId } })
  }

  #closeSessions(client: Client): void {
    for (const session of client.sessions.values()) {
      const { holder, pool } = session.worker
      if (holder === undefined || pool.spec.sharing !== 'isolated') this.#closeSession(session)
    }
  }

  #closeSession({ idAtWorker, worker }: Session): void {
    const departure = worker.dialect?.table.departure
    if (departure === undefined || !worker.isToldOfEnds || !worker.isAlive) return
    this.#board.ask(worker, { method: departure.closeSession, params: { sessionId: idAtWorker } })
  }

  #unsubscribe(client: Client, worker: Worker): void {
    for (const [uri, subscribers] of worker.subscriptions) {
      if (!subscribers.delete(client) || subscribers.size > 0) continue
      worker.subscriptions.delete(uri)
      const words = worker.dialect?.table.words
      if (words !== undefined && worker.isAlive) this.#board.ask(worker, { method: words.unsubscribe, params: { uri } })
    }
  }

  #forgetIn(worker: Worker, client: Client): void {
    forgetTasksOf(worker, client)
    for (const table of [worker.elicitations, worker.servers]) {
      for (const [key, owner] of table) if (owner === client) table.delete(key)
    }
  }

  /** The worker is gone: everything it owed is answered, exactly once. */
  workerEnded(worker: Worker): void {
    const { core, assignment, handshakes } = this.#board
    const { reason, detail } = worker.ending ?? { reason: 'worker_exited' as const, detail: {} }
    const cause = core.phase === 'running' ? reason : 'shutting_down'
    for (const request of inOrder(worker.outstanding.values())) {
      if (request.client === undefined) core.owed.settle(request)
      if (request.client === undefined) this.#board.giveUpKept(request, cause)
      else this.#board.settle(request, cause, { pool: worker.pool.spec.id, ...detail })
    }
    for (const question of [...worker.questions.values()]) {
      if (question.asked !== undefined) continue
      core.owed.disownQuestion(question)
      this.#board.observation.settled(question)
    }
    if (core.spec.gateway !== undefined && core.spec.gateway !== 'off')
      core.actions.push({ do: 'caller-gone', from: callerOf(worker) })
    for (const _ of worker.held) core.drop('unknown_session')
    worker.forget()
    if (worker.pool.spec.keeping !== undefined) this.#board.kept.lose(worker)
    core.sessions.loseAllOf(worker)
    assignment.workerEnded(worker)
    // Last, for it lets clients go on: nothing must lead them back here.
    handshakes.workerEnded(worker)
    for (const bond of worker.bonds) if (!bond.isHome) bond.introduction.leave(bond)
  }

  /** The drain is over: what is still outstanding is answered. */
  failOutstanding(): void {
    const { core, assignment, handshakes } = this.#board
    for (const client of core.everyClient())
      for (const request of owedTo(client)) if (request.worker !== undefined) this.#fail(request, 'shutting_down')
    handshakes.dismiss()
    for (const pool of core.everyPool) assignment.dismiss(pool)
  }

  /** All that the client is owed is refused; what was begun for it is cancelled (contract 9.5). */
  failAll(client: Client, reason: Reason, detail?: Record<string, unknown>): void {
    const { core } = this.#board
    this.#cancelTurns(client)
    for (const request of owedTo(client)) {
      if (request.isAtAggregate) core.actions.push({ do: 'aggregate-waived', client: client.id, row: request.serial })
      if (request.isAtGateway) core.actions.push({ do: 'cancel-call', from: callerOf(client), id: callIdOf(request) })
      if (request.worker === undefined) this.#board.settle(request, reason, detail)
      else {
        this.#board.tellCancelled(request)
        this.#fail(request, reason, detail)
      }
    }
  }

  #fail(request: Request, reason: Reason, detail?: Record<string, unknown>): void {
    const { client, worker } = request
    request.outcome = reason
    this.#board.core.owed.disown(request)
    this.#board.observation.failed(request, faultOf(reason))
    this.#board.fail(client!, request.idSpelling, reason, detail ?? { pool: worker!.pool.spec.id })
  }

  /** The client may use the pool no more: its sessions and subscriptions there end (contract 9.10). */
  leavePool(client: Client, pool: Pool): void {
    const { core, supervisor } = this.#board
    for (const session of [...client.sessions.values()]) {
      if (session.worker.pool !== pool || session.kept !== undefined) continue
      this.#closeSession(session)
      core.sessions.end(session)
    }
    for (const worker of pool.workers) {
      this.#unsubscribe(client, worker)
      supervisor.maybeDismiss(worker)
    }
  }
}

/** The request is of a protocol and a pool whose sessions outlive their clients. */
function isKeptQuiet({ worker, dialect, sessionId }: Request): boolean {
  return worker?.pool.spec.keeping !== undefined && dialect?.table.keeping !== undefined && sessionId !== undefined
}

function owedTo(client: Client): Request[] {
  const owed: Request[] = []
  for (let request = client.newest; request !== undefined; request = request.older) owed.unshift(request)
  return owed
}

/** Nothing of any client is in the tables that a departure looks through: so it is with most workers of those who have their own. */
function knowsNobody({ subscriptions, tasks, elicitations, servers, lobby }: Worker): boolean {
  return subscriptions.size + tasks.size + elicitations.size + servers.size + lobby.routes.size === 0
}

/** As the gateway knows it. */
function callIdOf({ clientKey }: Request): string | number {
  return typeof clientKey === 'bigint' ? String(clientKey) : clientKey
}

function inOrder(requests: Iterable<Request>): Request[] {
  return [...requests].sort((a, b) => a.serial - b.serial)
}
