/**
 * Who is owed which answer, in both directions (contract 4.2.3, 6.1, 6.5).
 *
 * A request is a client's message at a worker, a question a worker's message at a client. Each is found by the id its
 * receiver knows, so an answer can reach nobody but the one who asked. An id stays taken until its answer has come, even
 * when its client has gone: a late answer must find nobody else. Bus-made ids are never reused.
 */
import type { Envelope, IdKey } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { FIXED } from './limits.ts'
import type { Client, Worker } from './peers.ts'
import type { Timer } from './timers.ts'

export class Request {
  /** Undefined once the client has gone, cancelled or timed out. */
  client: Client | undefined
  readonly worker: Worker
  /** The id at the worker. */
  readonly key: IdKey
  /** The id as the client gave it, by value, and as it spelled it when the worker knows another. */
  readonly clientKey: IdKey
  readonly spelling: Buffer | undefined
  older: Request | undefined
  newer: Request | undefined
  timer: Timer | undefined

  constructor(client: Client, worker: Worker, key: IdKey, clientKey: IdKey, spelling: Buffer | undefined) {
    this.client = client
    this.worker = worker
    this.key = key
    this.clientKey = clientKey
    this.spelling = spelling
  }

  get idSpelling(): string {
    return this.spelling === undefined ? spell(this.clientKey) : this.spelling.toString()
  }
}

export interface Question {
  readonly worker: Worker
  readonly generation: number
  readonly client: Client
  /** The id at the client. */
  readonly key: IdKey
  readonly workerKey: IdKey
  /** The worker's own spelling of its id. */
  readonly spelling: Buffer
  readonly isAliased: boolean
}

/** An id by value as JSON. */
export function spell(key: IdKey): string {
  return typeof key === 'string' ? JSON.stringify(key) : String(key)
}

/** Where bus-made numbers begin: far from where clients count, and still small for workers that count in 32 bits. */
const FIRST_ALIAS = 1_000_000_000

export class Requests {
  #nextAlias = FIRST_ALIAS
  size = 0

  /** Records the request that `envelope` holds; its id is replaced where it must be. */
  open(envelope: Envelope, client: Client, worker: Worker): Request {
    const clientKey = envelope.key(FIELD.id)!
    const mustAlias = worker.aliasesAll || worker.outstanding.has(clientKey) || envelope.isOdd(FIELD.id)
    const request = mustAlias
      ? new Request(
          client,
          worker,
          this.#makeAlias(clientKey, worker.outstanding),
          clientKey,
          envelope.spelling(FIELD.id),
        )
      : new Request(client, worker, clientKey, clientKey, undefined)
    worker.outstanding.set(request.key, request)
    this.#link(request, client)
    this.size++
    return request
  }

  /** The worker has answered: the request is closed and may be delivered, if anybody still wants it. */
  close(worker: Worker, key: IdKey): Request | undefined {
    const request = worker.outstanding.get(key)
    if (request === undefined) return undefined
    worker.outstanding.delete(key)
    if (request.client === undefined) worker.ownerless.delete(request)
    else this.#unlink(request, request.client)
    if (request.timer !== undefined) request.timer.cancelled = true
    this.size--
    return request
  }

  /** The client has gone, cancelled or timed out: the id stays taken, the answer will be nobody's. */
  disown(request: Request): void {
    if (request.client === undefined) return
    this.#unlink(request, request.client)
    request.client = undefined
    if (request.timer !== undefined) request.timer.cancelled = true
    const { worker } = request
    worker.ownerless.add(request)
    if (worker.ownerless.size <= FIXED.maxOwnerlessIds) return
    const [oldest] = worker.ownerless
    worker.ownerless.delete(oldest!)
    worker.outstanding.delete(oldest!.key)
    worker.aliasesAll = true
    this.size--
  }

  /** The client's newest unanswered request with this id at that worker. */
  find(client: Client, worker: Worker, clientKey: IdKey): Request | undefined {
    const aliased = client.aliased.get(clientKey)?.findLast((request) => request.worker === worker)
    if (aliased !== undefined) return aliased
    const direct = worker.outstanding.get(clientKey)
    return direct?.client === client && direct.clientKey === clientKey ? direct : undefined
  }

  /** A bus-made id of the same JSON type that nobody uses in `taken`. */
  #makeAlias(like: IdKey, taken: ReadonlyMap<IdKey, unknown>): IdKey {
    for (;;) {
      const number = this.#nextAlias++
      const alias = typeof like === 'string' ? `b${number}` : number
      if (!taken.has(alias)) return alias
    }
  }

  /** The worker asks a client: its id is kept unless it is taken there or may be respelled. */
  ask(envelope: Envelope, worker: Worker, client: Client): Question {
    const workerKey = envelope.key(FIELD.id)!
    const mustAlias = client.questions.has(workerKey) || envelope.isOdd(FIELD.id)
    const key = mustAlias ? this.#makeAlias(workerKey, client.questions) : workerKey
    const spelling = envelope.spelling(FIELD.id)
    const question: Question = {
      worker,
      generation: worker.generation,
      client,
      key,
      workerKey,
      spelling,
      isAliased: mustAlias,
    }
    client.questions.set(key, question)
    worker.questions.set(workerKey, question)
    return question
  }

  /** The client has answered, or nobody will. */
  settle(question: Question): void {
    if (question.client.questions.get(question.key) === question) question.client.questions.delete(question.key)
    if (question.worker.questions.get(question.workerKey) === question)
      question.worker.questions.delete(question.workerKey)
  }

  #link(request: Request, client: Client): void {
    request.older = client.newest
    if (client.newest !== undefined) client.newest.newer = request
    client.newest = request
    client.pendingCount++
    if (request.spelling === undefined) return
    const aliased = client.aliased.get(request.clientKey)
    if (aliased === undefined) client.aliased.set(request.clientKey, [request])
    else aliased.push(request)
  }

  #unlink(request: Request, client: Client): void {
    if (request.newer === undefined) client.newest = request.older
    else request.newer.older = request.older
    if (request.older !== undefined) request.older.newer = request.newer
    request.older = undefined
    request.newer = undefined
    client.pendingCount--
    if (request.spelling === undefined) return
    const aliased = client.aliased.get(request.clientKey)
    if (aliased === undefined) return
    aliased.splice(aliased.indexOf(request), 1)
    if (aliased.length === 0) client.aliased.delete(request.clientKey)
  }
}
