/**
 * Who is owed which answer, in both directions (contract 4.2.3, 6.1, 6.5).
 *
 * A request is a client's message at a worker, a question a worker's message at a client. Each is found by the id its
 * receiver knows, so an answer can reach nobody but the one who asked. An id stays taken until its answer has come, even
 * when its client has gone: a late answer must find nobody else. Bus-made ids are never reused.
 */
import type { Envelope, IdKey } from '../wire/envelope.ts'
import { FIELD, type Field } from '../wire/fields.ts'
import type { ClientRow } from './dialect.ts'
import { FIXED } from './limits.ts'
import type { Client, Worker } from './peers.ts'
import type { Timer, Timers } from './timers.ts'
import type { Tongue } from './tongue.ts'
import type { SessionId } from './vocabulary.ts'

export class Request {
  /** Undefined once the client has gone, cancelled or timed out. */
  client: Client | undefined
  /** Whose it was, and until when the worker may still be at work on it. */
  declare formerClient: Client | undefined
  declare strayUntilMs: number
  /** Nothing is owed, but an answer that still comes is for its former client. */
  declare isWaived: boolean
  readonly worker: Worker
  /** Grows from request to request. */
  readonly serial: number
  /** The id at the worker. */
  readonly key: IdKey
  /** The id as the client gave it, by value, and as it spelled it when the worker knows another. */
  readonly clientKey: IdKey
  readonly spelling: string | undefined
  /** The client's request before it with the same id, where the worker knows both under others. */
  declare shadowed: Request | undefined
  older: Request | undefined
  newer: Request | undefined
  declare timer: Timer | undefined
  /** What its dialect says of its method. */
  declare row: ClientRow | undefined
  declare tongue: Tongue | undefined
  /** The task it names. */
  declare taskId: string | undefined
  /** The session it names, as its client and as its worker knows it. */
  declare sessionId: SessionId | undefined
  declare sessionAtWorker: SessionId | undefined
  /** The resource it subscribes to. */
  declare uri: string | undefined
  /** Its progress token at the worker, and as the client spelled it when that is another. */
  declare token: IdKey | undefined
  declare tokenSpelling: string | undefined
  /** It asked for log lines. */
  declare wantsLog: boolean
  /** Its number in the observation of a traced pool; 0: nobody looks. */
  declare observed: number
  /** The bus's own: who is told of the answer. */
  declare onAnswer: ((isResult: boolean) => void) | undefined

  constructor(
    serial: number,
    client: Client | undefined,
    worker: Worker,
    key: IdKey,
    clientKey: IdKey,
    spelling: string | undefined,
  ) {
    this.serial = serial
    this.client = client
    this.worker = worker
    this.key = key
    this.clientKey = clientKey
    this.spelling = spelling
  }

  get idSpelling(): string {
    return this.spelling ?? spell(this.clientKey)
  }
}

/** Most requests never need these: they cost nothing until they are set. */
Object.assign(Request.prototype, {
  formerClient: undefined,
  strayUntilMs: 0,
  isWaived: false,
  shadowed: undefined,
  timer: undefined,
  row: undefined,
  tongue: undefined,
  taskId: undefined,
  sessionId: undefined,
  sessionAtWorker: undefined,
  uri: undefined,
  token: undefined,
  tokenSpelling: undefined,
  wantsLog: false,
  observed: 0,
  onAnswer: undefined,
})

export interface Question {
  readonly worker: Worker
  readonly generation: number
  readonly client: Client
  /** The id at the client. */
  readonly key: IdKey
  readonly workerKey: IdKey
  /** The worker's own spelling of its id. */
  readonly spelling: string
  readonly isAliased: boolean
  /** What the worker is answered when the client goes; undefined: an error. */
  answerWhenGone: string | undefined
  /** The token under which the client may tell its progress. */
  token: IdKey | undefined
  observed: number
}

/** An id by value as JSON. */
export function spell(key: IdKey): string {
  return typeof key === 'string' ? JSON.stringify(key) : String(key)
}

/** Where bus-made numbers begin: far from where clients count, and still small for workers that count in 32 bits. */
const FIRST_ALIAS = 1_000_000_000

/** So long a worker may go on with a request that was cancelled, and say things about it. */
const STRAY_MS = 5_000

export class Requests {
  readonly #nowMs: () => number
  readonly #timers: Timers
  /** Told of every request that its client gives up. */
  onDisowned: (request: Request) => void = () => {}
  #nextAlias = FIRST_ALIAS
  #serial = 0
  size = 0

  constructor(nowMs: () => number, timers: Timers) {
    this.#nowMs = nowMs
    this.#timers = timers
  }

  /** Records the request that `envelope` holds; its id is replaced where it must be. */
  open(envelope: Envelope, client: Client, worker: Worker): Request {
    const clientKey = envelope.key(FIELD.id)!
    const mustAlias = worker.aliasesAll || worker.outstanding.has(clientKey) || envelope.isOdd(FIELD.id)
    const request = mustAlias
      ? new Request(
          this.#serial++,
          client,
          worker,
          this.#makeAlias(clientKey, worker.outstanding),
          clientKey,
          envelope.spelling(FIELD.id),
        )
      : new Request(this.#serial++, client, worker, clientKey, clientKey, undefined)
    worker.outstanding.set(request.key, request)
    this.#link(request, client)
    this.size++
    return request
  }

  /** A request of the bus's own; its answer reaches nobody but `onAnswer`. */
  openOwn(worker: Worker, onAnswer: (isResult: boolean) => void): Request {
    const key = this.#makeAlias('', worker.outstanding)
    const request = new Request(this.#serial++, undefined, worker, key, key, undefined)
    request.onAnswer = onAnswer
    worker.outstanding.set(key, request)
    worker.ownerless.add(request)
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
    if (request.token !== undefined) worker.tokens.delete(request.token)
    if (request.timer !== undefined) this.#timers.cancel(request.timer)
    this.size--
    return request
  }

  /** The client has gone, cancelled or timed out: the id and the token stay taken, the answer will be nobody's. */
  disown(request: Request): void {
    if (request.client === undefined) return
    this.#unlink(request, request.client)
    request.formerClient = request.client
    request.client = undefined
    request.strayUntilMs = request.worker.strayUntilMs = this.#nowMs() + STRAY_MS
    if (request.timer !== undefined) this.#timers.cancel(request.timer)
    const { worker } = request
    worker.ownerless.add(request)
    this.onDisowned(request)
    if (worker.ownerless.size <= FIXED.maxOwnerlessIds) return
    const [oldest] = worker.ownerless
    worker.ownerless.delete(oldest!)
    worker.outstanding.delete(oldest!.key)
    if (oldest!.token !== undefined) worker.tokens.delete(oldest!.token)
    worker.aliasesAll = true
    this.size--
  }

  /** The client wants no answer, or the worker has said there will be none; one that still comes is delivered. */
  waive(request: Request): void {
    request.isWaived = true
    this.disown(request)
  }

  /** The worker may still be at work on a request that is no more this client's, so that what it says may be about that. */
  mayBeAboutAnother(worker: Worker, client: Client, wantsLog: boolean): boolean {
    const nowMs = this.#nowMs()
    if (nowMs >= worker.strayUntilMs) return false
    for (const request of worker.ownerless) {
      if (request.formerClient === undefined || request.formerClient === client) continue
      if (wantsLog && !request.wantsLog) continue
      if (nowMs < request.strayUntilMs) return true
    }
    return false
  }

  /** The client's newest unanswered request with this id at that worker. */
  find(client: Client, worker: Worker, clientKey: IdKey): Request | undefined {
    let aliased = client.aliased.get(clientKey)
    while (aliased !== undefined && aliased.worker !== worker) aliased = aliased.shadowed
    if (aliased !== undefined) return aliased
    const direct = worker.outstanding.get(clientKey)
    return direct?.client === client && direct.clientKey === clientKey ? direct : undefined
  }

  /** Records the progress token of a request; one that is taken or may be respelled is replaced like an id. */
  lendToken(envelope: Envelope, field: Field, request: Request): void {
    const key = envelope.key(field)
    if (key === undefined) return
    const { worker } = request
    const mustAlias = worker.aliasesAll || worker.tokens.has(key) || envelope.isOdd(field)
    request.token = mustAlias ? this.#makeAlias(key, worker.tokens) : key
    request.tokenSpelling = mustAlias ? envelope.spelling(field) : undefined
    worker.tokens.set(request.token, request)
  }

  /** A bus-made id of the same JSON type that nobody uses in `taken`. */
  #makeAlias(like: IdKey, taken: { has(key: IdKey): boolean }): IdKey {
    for (;;) {
      const number = this.#nextAlias++
      const alias = typeof like === 'string' ? `b${number}` : number
      if (!taken.has(alias)) return alias
    }
  }

  /** The worker asks a client: its id is kept unless it is taken there or may be respelled. */
  ask(envelope: Envelope, worker: Worker, client: Client): Question {
    const workerKey = envelope.key(FIELD.id)!
    const isTaken = client.questions.has(workerKey) || client.moot.has(workerKey) || client.aliasesQuestions
    const mustAlias = isTaken || envelope.isOdd(FIELD.id)
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
      answerWhenGone: undefined,
      token: undefined,
      observed: 0,
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

  /** Nobody wants the answer any more; its id stays taken, or a late consent would be one to another question. */
  abandon(question: Question): void {
    this.settle(question)
    const { moot } = question.client
    moot.add(question.key)
    if (moot.size <= FIXED.maxOwnerlessIds) return
    const [oldest] = moot
    moot.delete(oldest!)
    question.client.aliasesQuestions = true
  }

  #link(request: Request, client: Client): void {
    request.older = client.newest
    if (client.newest !== undefined) client.newest.newer = request
    client.newest = request
    client.pendingCount++
    if (request.spelling === undefined) return
    const before = client.aliased.get(request.clientKey)
    if (before !== undefined) request.shadowed = before
    client.aliased.set(request.clientKey, request)
  }

  #unlink(request: Request, client: Client): void {
    if (request.newer === undefined) client.newest = request.older
    else request.newer.older = request.older
    if (request.older !== undefined) request.older.newer = request.newer
    request.older = undefined
    request.newer = undefined
    client.pendingCount--
    if (request.spelling === undefined) return
    this.#unshadow(request, client)
  }

  #unshadow(request: Request, { aliased }: Client): void {
    const { clientKey, shadowed } = request
    let newer = aliased.get(clientKey)
    if (newer === request) {
      if (shadowed === undefined) aliased.delete(clientKey)
      else aliased.set(clientKey, shadowed)
      return
    }
    while (newer !== undefined && newer.shadowed !== request) newer = newer.shadowed
    if (newer !== undefined) newer.shadowed = shadowed
  }
}
