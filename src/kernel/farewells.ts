/**
 * What is owed when a peer goes (contract 7.1, 7.3, 7.4): a vanished client's duties are done by the bus, a vanished
 * worker's debts are paid with errors, exactly once.
 */
import type { Assignment } from './assignment.ts'
import { callerOf } from './calls.ts'
import { faultOf, type Reason } from './faults.ts'
import type { Handshakes } from './handshakes.ts'
import type { Client, Worker } from './peers.ts'
import type { Question, Request } from './requests.ts'
import type { Switchboard } from './switchboard.ts'
import { forgetTasksOf } from './tasks.ts'
import type { WaitingRoom } from './waiting-room.ts'

export class Farewells {
  readonly #board: Switchboard
  readonly #waitingRoom: WaitingRoom
  readonly #assignment: Assignment
  readonly #handshakes: Handshakes

  constructor(board: Switchboard, waitingRoom: WaitingRoom, assignment: Assignment, handshakes: Handshakes) {
    this.#board = board
    this.#waitingRoom = waitingRoom
    this.#assignment = assignment
    this.#handshakes = handshakes
  }

  /** The client answers no more: what it was asked is answered for it, never with consent. */
  refuseQuestionsOf(client: Client): void {
    for (const question of [...client.questions.values()]) this.#settleFor(question)
  }

  #settleFor(question: Question): void {
    this.#board.core.requests.settle(question)
    this.#board.observation.settled(question, false)
    const { worker } = question
    if (worker.generation !== question.generation || !worker.isAlive) return
    const id = question.spelling
    if (question.answerWhenGone === undefined) this.#board.refuseQuestion(worker, id, 'client_gone')
    else this.#board.answer(worker, id, question.answerWhenGone)
  }

  /** The client is gone: nothing of it stays but the ids that are still taken. `isSettled`: it was answered in full. */
  clientGone(client: Client, isSettled = false): void {
    const { core, supervisor } = this.#board
    const workers = new Set<Worker>()
    if (!isSettled) this.#cancelTurns(client)
    this.refuseQuestionsOf(client)
    for (let request = client.newest; request !== undefined; request = client.newest) {
      workers.add(request.worker)
      if (isSettled) core.requests.close(request.worker, request.key)
      else {
        core.requests.disown(request)
        this.#board.tellCancelled(request)
        this.#board.observation.failed(request, faultOf('client_gone'))
      }
    }
    this.#closeSessions(client)
    for (const session of client.sessions.values()) workers.add(session.worker)
    core.sessions.endAllOf(client)
    for (const bond of client.bonds.values()) {
      workers.add(bond.worker)
      bond.end()
    }
    client.bonds.clear()
    this.#waitingRoom.forget(client)
    this.#handshakes.clientGone(client)
    this.#assignment.giveBack(client)
    // A lease or a reload may have led it to other workers before.
    for (const worker of core.workers.values()) {
      this.#unsubscribe(client, worker)
      this.#forgetIn(worker, client)
    }
    for (const worker of workers) supervisor.maybeDismiss(worker)
  }

  #cancelTurns(client: Client): void {
    for (let request = client.newest; request !== undefined; request = request.older) {
      const { row, tongue, sessionAtWorker: sessionId, worker } = request
      if (!row?.isTurn || sessionId === undefined || !worker.isAlive) continue
      this.#board.tell(worker, { jsonrpc: '2.0', method: tongue!.dialect.farewell!.cancelTurn, params: { sessionId } })
    }
  }

  #closeSessions(client: Client): void {
    for (const { idAtWorker, worker } of client.sessions.values()) {
      const farewell = worker.tongue?.dialect.farewell
      if (farewell === undefined || !worker.isToldOfEnds || !worker.isAlive) continue
      if (worker.holder !== undefined && worker.pool.spec.sharing === 'isolated') continue
      this.#board.ask(worker, farewell.closeSession, { sessionId: idAtWorker }, () => {})
    }
  }

  #unsubscribe(client: Client, worker: Worker): void {
    for (const [uri, subscribers] of worker.subscriptions) {
      if (!subscribers.delete(client) || subscribers.size > 0) continue
      worker.subscriptions.delete(uri)
      const words = worker.tongue?.dialect.words
      if (words !== undefined && worker.isAlive) this.#board.ask(worker, words.unsubscribe, { uri }, () => {})
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
    const { core } = this.#board
    const { reason, detail } = worker.ending ?? { reason: 'worker_exited' as const, detail: {} }
    for (const request of inOrder(worker.outstanding.values())) {
      const { client } = request
      core.requests.close(worker, request.key)
      if (client !== undefined) this.#payFor(request, client, reason, detail)
    }
    for (const question of [...worker.questions.values()]) {
      core.requests.abandon(question)
      this.#board.observation.settled(question, false)
    }
    if (core.spec.gateway !== undefined && core.spec.gateway !== 'off')
      core.actions.push({ do: 'caller-gone', from: callerOf(worker) })
    for (const _ of worker.held) core.drop('unknown_session')
    worker.forget()
    core.sessions.loseAllOf(worker)
    this.#assignment.workerEnded(worker)
    // Last, for it lets clients go on: nothing must lead them back here.
    this.#handshakes.workerEnded(worker)
  }

  #payFor(request: Request, client: Client, reason: Reason, detail: Record<string, unknown>): void {
    const cause = this.#board.core.phase === 'running' ? reason : 'shutting_down'
    const told = { pool: request.worker.pool.spec.id, ...detail }
    this.#board.observation.failed(request, faultOf(cause, told))
    this.#board.fail(client, request.idSpelling, cause, told)
  }

  /** The drain is over: what is still outstanding is answered. */
  failOutstanding(): void {
    const { core } = this.#board
    for (const client of core.everyClient()) {
      const owed: Request[] = []
      for (let request = client.newest; request !== undefined; request = request.older) owed.unshift(request)
      for (const request of owed) {
        core.requests.disown(request)
        this.#payFor(request, client, 'shutting_down', {})
      }
    }
    this.#handshakes.dismiss()
    for (const pool of core.everyPool) {
      this.#waitingRoom.dismiss(pool)
      this.#assignment.dismiss(pool)
    }
  }
}

function inOrder(requests: Iterable<Request>): Request[] {
  return [...requests].sort((a, b) => a.serial - b.serial)
}
