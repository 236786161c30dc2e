/**
 * Tells what happens to the requests and questions of pools whose traffic is traced (spec T9).
 *
 * It changes nothing: lines are copied, and each request or question that was told of is told to end, once. Where a pool is
 * not traced nothing is done.
 */
import { FIELD, type Field } from '../wire/fields.ts'
import type { ErrorObject } from '../wire/jsonrpc.ts'
import type { WorkerProcessId } from './events.ts'
import type { Client, Worker } from './peers.ts'
import type { Question, Request } from './requests.ts'
import type { Switchboard } from './switchboard.ts'
import type { PoolId } from './vocabulary.ts'

export type Observed =
  | ({
      readonly kind: 'opened'
      readonly request: number
      readonly pool: PoolId
      readonly protocol: 'acp' | 'mcp'
      readonly method: string
      readonly id: string | number
      readonly session: string | undefined
      readonly line: Buffer
      /** The bytes of `params` in the line. */
      readonly body: Buffer | undefined
    } & WorkerProcessId)
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
    } & WorkerProcessId)
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

  /** The request at hand has been recorded and is about to be sent. */
  opened(request: Request, client: Client, worker: Worker): void {
    const { tongue, row } = request
    if (tongue === undefined || client.isInternal) return
    // Of a protocol with sessions the turns are traced, of others every request.
    if (tongue.dialect.hasSessions && !row?.isTurn) return
    const { envelope } = this.#board
    const id = envelope.key(FIELD.id)!
    const line = this.#line()
    request.observed = ++this.#last
    this.#tell({
      kind: 'opened',
      request: request.observed,
      ...processOf(worker),
      pool: worker.pool.spec.id,
      protocol: tongue.dialect.hasSessions ? 'acp' : 'mcp',
      method: envelope.text(FIELD.method)!,
      id: typeof id === 'bigint' ? String(id) : id,
      session: envelope.text(FIELD.paramsSessionId),
      line,
      body: this.#part(line, FIELD.params),
    })
  }

  /** The answer at hand belongs to it. */
  answered(request: Request): void {
    if (request.observed === 0) return
    const line = this.#line()
    this.#tell({ kind: 'answered', request: request.observed, line, body: this.#part(line, FIELD.result) })
    request.observed = 0
  }

  failed(request: Request, error: ErrorObject = CANCELLED): void {
    if (request.observed === 0) return
    this.#tell({ kind: 'failed', request: request.observed, error })
    request.observed = 0
  }

  /** The message at hand goes from a worker to a client. */
  said(worker: Worker, about: Request | Question | undefined, question: Question | undefined): void {
    if (question !== undefined) question.observed = ++this.#last
    this.#tell({
      kind: 'said',
      ...processOf(worker),
      pool: worker.pool.spec.id,
      request: about?.observed || undefined,
      session: this.#board.sessionNamed(),
      question: question?.observed,
      line: this.#line(),
    })
  }

  /** `isAnswered`: the answer is at hand. */
  settled(question: Question, isAnswered: boolean): void {
    if (question.observed === 0) return
    this.#tell({ kind: 'settled', question: question.observed, line: isAnswered ? this.#line() : undefined })
    question.observed = 0
  }

  #line(): Buffer {
    const { bytes, start, end } = this.#board.envelope
    return Buffer.from(bytes.subarray(start, end))
  }

  #part(line: Buffer, field: Field): Buffer | undefined {
    const { envelope } = this.#board
    if (!envelope.has(field)) return undefined
    return line.subarray(envelope.startOf(field) - envelope.start, envelope.endOf(field) - envelope.start)
  }

  #tell(what: Observed): void {
    this.#board.core.actions.push({ do: 'observed', what })
  }
}

function processOf({ id, generation }: Worker): WorkerProcessId {
  return { worker: id, generation }
}
