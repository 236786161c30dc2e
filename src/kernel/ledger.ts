/**
 * Every request of a client is recorded here before it is sent (contract 6.1), with its time limit.
 *
 * Invariant: what is recorded is answered once: by the worker, or by the bus when its time is over.
 */
import { FIELD } from '../wire/fields.ts'
import { faultOf } from './faults.ts'
import type { Links } from './links.ts'
import type { Client, Worker } from './peers.ts'
import { type Request, spell } from './requests.ts'
import { type Edit, replace } from './splice.ts'
import type { Switchboard } from './switchboard.ts'

export class Ledger {
  readonly #board: Switchboard
  readonly #links: Links

  constructor(board: Switchboard, links: Links) {
    this.#board = board
    this.#links = links
  }

  /** Records the request at hand. */
  open(client: Client, worker: Worker): Request {
    const { core, envelope } = this.#board
    if (worker.outstanding.size === worker.ownerless.size) worker.lastActivityMs = core.nowMs
    const request = core.requests.open(envelope, client, worker)
    const { requestTimeoutMs } = worker.pool.spec.limits
    if (requestTimeoutMs > 0) {
      request.timer = core.timers.set(core.nowMs + requestTimeoutMs, () => this.#timeOut(request))
    }
    return request
  }

  /** The edit that gives the request at hand the id under which it was recorded. */
  idEdit(request: Request): Edit {
    return replace(this.#board.envelope, FIELD.id, spell(request.key))
  }

  /** An exchange of the gateway's is on its way; it is not sent to a worker that does not read (spec N14). */
  isTold(client: Client, worker: Worker, isRequest: boolean): boolean {
    const { core } = this.#board
    if (worker.outbox.isFull) {
      this.#board.refuse(client, isRequest, 'overloaded', { pool: worker.pool.spec.id })
      return false
    }
    core.actions.push({ do: 'routed', client: client.id, worker: worker.id, generation: worker.generation })
    return true
  }

  #timeOut(request: Request): void {
    const { client } = request
    if (client === undefined || request.row?.isLongLived) return
    this.#board.core.requests.disown(request)
    this.#board.tellCancelled(request)
    this.#board.observation.failed(request, faultOf('request_timeout'))
    this.#board.fail(client, request.idSpelling, 'request_timeout')
    this.#board.supervisor.maybeDismiss(request.worker)
    this.#links.assignment.maybeRelease(request.worker)
  }
}
