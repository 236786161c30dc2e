/**
 * The one table of what is owed, in both directions (contract 4.2.3, 6.1, 6.5, 8.1).
 *
 * A request is a row from its arrival to its end, wherever it is: waiting, at a worker, at the gateway; a question is a
 * worker's message at a client. An answer is found by the id its receiver knows, so it can reach nobody but the one who
 * asked. An id stays taken until its answer has come, even when its client has gone: a late answer must find nobody else.
 * Bus-made ids are never reused. Invariant: a row ends once, by `settle`.
 */
import type { Envelope, IdKey } from '../wire/envelope.ts'
import { FIELD, type Field } from '../wire/fields.ts'
import type { ClientRow } from './dialect-table.ts'
import type { Dialect } from './dialects.ts'
import { ownMap, ownSet } from './empty.ts'
import type { Asked, KeptSession } from './kept/kept-session.ts'
import { FIXED } from './limits.ts'
import type { Client, Worker } from './peers.ts'
import type { Route } from './route.ts'
import type { Timer, Timers } from './timers.ts'
import type { PoolTraffic } from './traffic.ts'
import type { PoolId, SessionId } from './vocabulary.ts'

export class Request {
  /** Undefined once the client has gone, cancelled or timed out, and for the bus's own. */
  declare client: Client | undefined
  /** Whose it was, and until when the worker may still be at work on it. */
  declare formerClient: Client | undefined
  declare strayUntilMs: number
  /** Nothing is owed, but an answer that still comes is for its former client. */
  declare isWaived: boolean
  /** The worker that has it; undefined: it waits, or the gateway has it. */
  declare worker: Worker | undefined
  /** Grows from request to request. */
  declare readonly serial: number
  /** The id at the worker. */
  declare key: IdKey
  /** The id as the client gave it, by value, and as it spelled it where that is another than usual. */
  declare readonly clientKey: IdKey
  declare readonly spelling: string | undefined
  declare older: Request | undefined
  declare newer: Request | undefined
  declare isSettled: boolean
  declare timer: Timer | undefined
  /** Where it waits. */
  declare route: Route | undefined
  /** The gateway has it, and knows it by another id where its own may be respelled. */
  declare isAtGateway: boolean
  /** An aggregate has it. */
  declare isAtAggregate: boolean
  declare isOdd: boolean
  /** What its dialect says of its method. */
  declare row: ClientRow | undefined
  declare dialect: Dialect | undefined
  /** The task it names. */
  declare taskId: string | undefined
  /** The session it names, as its client and as its worker knows it. */
  declare sessionId: SessionId | undefined
  declare sessionAtWorker: SessionId | undefined
  /** The resource it subscribes to. */
  declare uri: string | undefined
  /** The version that a handshake asks for. */
  declare version: number | undefined
  /** Its progress token at the worker, and as the client spelled it when that is another. */
  declare token: IdKey | undefined
  declare tokenSpelling: string | undefined
  /** It asked for log lines. */
  declare wantsLog: boolean
  /** Its number in the observation of a traced pool; 0: nobody looks. */
  declare observed: number
  /** What it is told of as in the audit log, since when, and how it ended. */
  declare deed:
    | { readonly method: string; readonly tool: string | undefined; readonly sinceMs: number; traceId?: string }
    | undefined
  /** Where it counts, and since when; 0: it is not counted. */
  declare traffic: PoolTraffic | undefined
  declare sinceMs: number
  declare poolId: PoolId | undefined
  declare outcome: string
  /** The kept session in which it is a turn; that which it asks for; that which it changes, and how. */
  declare kept: KeptSession | undefined
  declare claimed: KeptSession | undefined
  declare keptFor: KeptSession | undefined
  declare wish: string | undefined
  /** Its answer lists tools, of which its client may see some. */
  declare hidesTools: boolean
  /** The bus's own: who is told of the answer, and whether the worker owes it to somebody who waits. */
  declare onAnswer: ((line: Envelope, isResult: boolean) => void) | undefined
  declare isAwaited: boolean

  constructor(serial: number, client: Client | undefined, clientKey: IdKey, spelling: string | undefined) {
    this.serial = serial
    this.client = client
    this.worker = undefined
    this.key = clientKey
    this.clientKey = clientKey
    this.spelling = spelling
    this.older = undefined
    this.newer = undefined
    this.isSettled = false
  }

  /** The worker knows it by another id. */
  get isAliased(): boolean {
    return this.key !== this.clientKey
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
  timer: undefined,
  route: undefined,
  isAtGateway: false,
  isAtAggregate: false,
  isOdd: false,
  row: undefined,
  dialect: undefined,
  taskId: undefined,
  sessionId: undefined,
  sessionAtWorker: undefined,
  uri: undefined,
  version: undefined,
  token: undefined,
  tokenSpelling: undefined,
  wantsLog: false,
  observed: 0,
  deed: undefined,
  traffic: undefined,
  sinceMs: 0,
  poolId: undefined,
  outcome: 'ok',
  kept: undefined,
  claimed: undefined,
  keptFor: undefined,
  wish: undefined,
  hidesTools: false,
  onAnswer: undefined,
  isAwaited: false,
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
  /** Where it may be put to others: what the agent asked. */
  asked: Asked | undefined
  /** Of what the bus answers itself for any call of the worker: puts it to another one; false: there is none. */
  putElsewhere: (() => boolean) | undefined
}

/** An id by value as JSON. */
export function spell(key: IdKey): string {
  return typeof key === 'string' ? JSON.stringify(key) : String(key)
}

/** Where bus-made numbers begin: far from where clients count, and still small for workers that count in 32 bits. */
const FIRST_ALIAS = 1_000_000_000

export class Owed {
  readonly #nowMs: () => number
  readonly #timers: Timers
  /** Told of every request at a worker that its client gives up. */
  onDisowned: (request: Request) => void = () => {}
  /** Told, with its client, of every request that is owed nothing more. */
  onEnded: ((request: Request, client: Client) => void) | undefined
  #nextAlias = FIRST_ALIAS
  /** What the next request to arrive will have. */
  nextSerial = 0
  /** Requests at workers. */
  size = 0

  constructor(nowMs: () => number, timers: Timers) {
    this.#nowMs = nowMs
    this.#timers = timers
  }

  // ---- requests ----

  /** A request has arrived: from now on its client is owed an answer. */
  accept(line: Envelope, client: Client): Request {
    const request = new Request(this.nextSerial++, client, line.key(FIELD.id)!, line.unusualIdSpelling())
    request.older = client.newest
    if (client.newest !== undefined) client.newest.newer = request
    client.newest = request
    client.pendingCount++
    return request
  }

  /** It goes to the worker; its id is replaced where it must be. */
  send(request: Request, line: Envelope, worker: Worker): void {
    const { clientKey } = request
    if (worker.aliasesAll || worker.outstanding.has(clientKey) || line.isOdd(FIELD.id))
      request.key = this.#makeAlias(clientKey, worker.outstanding)
    request.worker = worker
    worker.outstanding.set(request.key, request)
    worker.requestCount++
    this.size++
  }

  /** A request of the bus's own; its answer reaches nobody but `onAnswer`. */
  openOwn(worker: Worker, onAnswer: (line: Envelope, isResult: boolean) => void): Request {
    const key = this.#makeAlias('', worker.outstanding)
    const request = new Request(this.nextSerial++, undefined, key, undefined)
    request.onAnswer = onAnswer
    request.worker = worker
    worker.outstanding.set(key, request)
    this.size++
    this.#addOwnerless(request, worker)
    return request
  }

  /** The row ends: nothing of it is left but what its answer says. */
  settle(request: Request): void {
    const { worker, client } = request
    if (request.isSettled) return
    request.isSettled = true
    if (request.timer !== undefined) this.#timers.cancel(request.timer)
    if (client !== undefined) this.#unlink(request, client)
    if (worker === undefined) return
    worker.outstanding.delete(request.key)
    if (client === undefined) worker.ownerless.delete(request)
    if (request.isAwaited) worker.awaitedCount--
    if (request.token !== undefined && worker.tokens.get(request.token) === request) worker.tokens.delete(request.token)
    this.size--
  }

  /** The client has gone, cancelled or timed out: the id and the token stay taken, the answer will be nobody's. */
  disown(request: Request): void {
    const { client, worker } = request
    if (client === undefined || request.isSettled) return
    if (worker === undefined) return this.settle(request)
    this.#unlink(request, client)
    request.formerClient = client
    request.client = undefined
    request.strayUntilMs = worker.strayUntilMs = this.#nowMs() + FIXED.strayMs
    if (request.timer !== undefined) this.#timers.cancel(request.timer)
    request.timer = undefined
    this.#addOwnerless(request, worker)
    this.onDisowned(request)
  }

  /** Beyond the bound the oldest are forgotten, and no client's id is used as it is from then on (contract 4.2.3). */
  #addOwnerless(request: Request, worker: Worker): void {
    worker.ownerless = ownSet(worker.ownerless).add(request)
    if (worker.ownerless.size <= FIXED.maxOwnerlessIds) return
    const [oldest] = worker.ownerless
    this.settle(oldest!)
    worker.aliasesAll = true
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

  /** The client's newest unanswered request with this id that `isMeant`. */
  find(client: Client, clientKey: IdKey, isMeant: (request: Request) => boolean): Request | undefined {
    for (let request = client.newest; request !== undefined; request = request.older)
      if (request.clientKey === clientKey && isMeant(request)) return request
    return undefined
  }

  /** The ids under which the client is owed an answer. */
  keysOf(client: Client): Set<IdKey> {
    const keys = new Set<IdKey>()
    for (let request = client.newest; request !== undefined; request = request.older) keys.add(request.clientKey)
    return keys
  }

  /** Records the progress token of a request; one that is taken or may be respelled is replaced like an id. */
  lendToken(line: Envelope, field: Field, request: Request): void {
    const key = line.key(field)
    if (key === undefined) return
    const worker = request.worker!
    const mustAlias = worker.aliasesAll || worker.tokens.has(key) || line.isOdd(field)
    request.token = mustAlias ? this.#makeAlias(key, worker.tokens) : key
    request.tokenSpelling = mustAlias ? line.spelling(field) : undefined
    worker.tokens = ownMap(worker.tokens).set(request.token, request)
  }

  /** A bus-made id of the same JSON type that nobody uses in `taken`. */
  #makeAlias(like: IdKey, taken: { has(key: IdKey): boolean }): IdKey {
    for (;;) {
      const number = this.#nextAlias++
      const alias = typeof like === 'string' ? `b${number}` : number
      if (alias !== like && !taken.has(alias)) return alias
    }
  }

  #unlink(request: Request, client: Client): void {
    if (request.newer === undefined) client.newest = request.older
    else request.newer.older = request.older
    if (request.older !== undefined) request.older.newer = request.newer
    request.older = undefined
    request.newer = undefined
    client.pendingCount--
    if (request.traffic !== undefined) this.#count(request, request.traffic)
    if (request.deed !== undefined) this.onEnded?.(request, client)
  }

  #count({ sinceMs, outcome }: Request, traffic: PoolTraffic): void {
    const nowMs = this.#nowMs()
    traffic.count(nowMs, nowMs - sinceMs, outcome !== 'ok')
  }

  // ---- questions ----

  /** The worker asks a client: its id is kept unless it is taken there or may be respelled. */
  ask(line: Envelope, worker: Worker, client: Client): Question {
    const workerKey = line.key(FIELD.id)!
    const isTaken = client.questions.has(workerKey) || client.unwanted.has(workerKey) || client.aliasesQuestions
    const mustAlias = isTaken || line.isOdd(FIELD.id)
    const key = mustAlias ? this.#makeAlias(workerKey, client.questions) : workerKey
    const question: Question = {
      worker,
      generation: worker.generation,
      client,
      key,
      workerKey,
      spelling: line.spelling(FIELD.id),
      isAliased: mustAlias,
      answerWhenGone: undefined,
      token: undefined,
      observed: 0,
      asked: undefined,
      putElsewhere: undefined,
    }
    client.questions = ownMap(client.questions).set(key, question)
    worker.questions = ownMap(worker.questions).set(workerKey, question)
    return question
  }

  /** The client has answered, or nobody will. */
  settleQuestion(question: Question): void {
    const { client, key, worker, workerKey } = question
    if (client.questions.get(key) === question) client.questions.delete(key)
    if (worker.questions.get(workerKey) === question) worker.questions.delete(workerKey)
  }

  /** Nobody wants the answer any more; its id stays taken, or a late consent would be one to another question. */
  disownQuestion(question: Question): void {
    this.settleQuestion(question)
    const { client } = question
    const unwanted = ownSet(client.unwanted).add(question.key)
    client.unwanted = unwanted
    if (unwanted.size <= FIXED.maxOwnerlessIds) return
    const [oldest] = unwanted
    unwanted.delete(oldest!)
    client.aliasesQuestions = true
  }
}
