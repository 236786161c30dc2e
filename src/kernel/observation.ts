/**
 * Tells what happens to the requests and questions of pools whose traffic is traced (spec T9).
 *
 * It changes nothing: lines are copied, and each request or question that was told of is told to end, once. Where a pool is
 * not traced nothing is done.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import type { ErrorObject } from '../wire/jsonrpc.ts'
import type { WorkerGeneration } from './events.ts'
import type { Question, Request } from './owed.ts'
import type { Client, Worker } from './peers.ts'
import { type Switchboard, sessionNamed } from './switchboard.ts'
import type { ClientId, PoolId, Principal } from './vocabulary.ts'

export type Observed =
  | ({
      readonly kind: 'opened'
      readonly request: number
      readonly client: ClientId
      readonly principal: Principal
      readonly pool: PoolId
      readonly protocol: string
      readonly method: string
      readonly id: string | number
      readonly session: string | undefined
      readonly line: Buffer
      /** The bytes of `params` in the line. */
      readonly body: Buffer | undefined
    } & WorkerGeneration)
  /** `body`: the bytes of `result` in the line; undefined: it is an error. */
  | {
      readonly kind: 'answered'
      readonly request: number
      readonly line: Buffer
      readonly body: Buffer | undefined
    }
  | { readonly kind: 'failed'; readonly request: number; readonly error: ErrorObject }
  /** A notification or a question of a worker; `request`: the one it is about, where it says so. */
  | ({
      readonly kind: 'said'
      readonly pool: PoolId
      readonly request: number | undefined
      readonly session: string | undefined
      readonly question: number | undefined
      readonly line: Buffer
    } & WorkerGeneration)
  /** A client has answered a question; without a line: nobody will. */
  | { readonly kind: 'settled'; readonly question: number; readonly line: Buffer | undefined }

const CANCELLED: ErrorObject = {
  code: -32_800,
  message: 'The client cancelled the request.',
  data: { reason: 'cancelled' },
}

export class Observation {
  readonly #board: Switchboard
  #last = 0

  constructor(board: Switchboard) {
    this.#board = board
  }

  /** The request has been recorded and its line is about to be sent. */
  opened(request: Request, client: Client, worker: Worker, message: Envelope): void {
    const { dialect, row } = request
    const asker = client.behalf ?? client
    // What the bus asks for itself nobody has called.
    if (dialect === undefined || client.isExchange || (client.isDelegate && asker === client)) return
    // Of a protocol with sessions the turns are traced, of others every request.
    if (dialect.table.hasSessions && !row?.isTurn) return
    const id = message.key(FIELD.id)!
    const line = message.copy()
    request.observed = ++this.#last
    this.#tell({
      kind: 'opened',
      request: request.observed,
      client: asker.id,
      principal: asker.principal,
      ...processOf(worker),
      pool: worker.pool.spec.id,
      protocol: dialect.table.protocol,
      method: message.text(FIELD.method)!,
      id: typeof id === 'bigint' ? String(id) : id,
      session: message.text(FIELD.paramsSessionId),
      line,
      body: message.partOf(line, FIELD.params),
    })
  }

  answered(request: Request, answer: Envelope): void {
    if (request.observed === 0) return
    const line = answer.copy()
    this.#tell({ kind: 'answered', request: request.observed, line, body: answer.partOf(line, FIELD.result) })
    request.observed = 0
  }

  failed(request: Request, error: ErrorObject = CANCELLED): void {
    if (request.observed === 0) return
    this.#tell({ kind: 'failed', request: request.observed, error })
    request.observed = 0
  }

  /** A message goes from a worker to a client: a question, or about something. */
  said(worker: Worker, line: Envelope, about: Request | Question | undefined, question?: Question): void {
    if (question !== undefined) question.observed = ++this.#last
    this.#tell({
      kind: 'said',
      ...processOf(worker),
      pool: worker.pool.spec.id,
      request: about?.observed || undefined,
      session: sessionNamed(line),
      question: question?.observed,
      line: line.copy(),
    })
  }

  /** Without an answer: nobody will give one. */
  settled(question: Question, answer?: Envelope): void {
    if (question.observed === 0) return
    const line = answer === undefined ? undefined : answer.copy()
    this.#tell({ kind: 'settled', question: question.observed, line })
    question.observed = 0
  }

  #tell(what: Observed): void {
    this.#board.core.actions.push({ do: 'observed', what })
  }
}

function processOf({ id, generation }: Worker): WorkerGeneration {
  return { worker: id, generation }
}
