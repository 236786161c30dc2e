/**
 * The two kinds of peer, client and worker, as the kernel sees them: their queues and what hangs on them.
 *
 * State only; `flow.ts` moves bytes between peers, `router.ts` decides, `supervisor.ts` lets workers live and die.
 */

import type { Batches } from '../wire/batches.ts'
import type { Envelope, IdKey } from '../wire/envelope.ts'
import { LineSplitter } from '../wire/frame.ts'
import { IdTable } from '../wire/id-table.ts'
import { Outbox } from '../wire/outbox.ts'
import type { Dialect } from './dialects.ts'
import { emptyMap, emptySet } from './empty.ts'
import type { Again, BusEvent, Facts } from './events.ts'
import type { Reason } from './faults.ts'
import { Gate } from './gate.ts'
import type { Bond, Introduction } from './introductions.ts'
import type { Seat } from './kept/seat.ts'
import type { LastEnd } from './last-end.ts'
import type { WorkerState } from './lifecycle.ts'
import type { Question, Request } from './owed.ts'
import type { Pool } from './pools.ts'
import type { PrincipalRow } from './principals.ts'
import { Restarts } from './restarts.ts'
import type { Identity } from './rights.ts'
import type { Session } from './sessions.ts'
import type { Timer } from './timers.ts'
import type { Via } from './via.ts'
import {
  type CallCause,
  type ClientId,
  type Door,
  LOCAL,
  type PoolId,
  type Principal,
  type SessionId,
  type WorkerId,
} from './vocabulary.ts'
import { WaitingLine } from './waiting.ts'

abstract class PeerBase {
  readonly splitter: LineSplitter
  outbox: Outbox
  readonly gate: Gate
  /** What it waits for; while set, the bus does not read from it. */
  blockedOn: Gate | undefined
  /** Others whose queues it has filled meanwhile: it waits for them as well. */
  filled = emptySet<Peer>()
  isPaused = false
  isDirty = false
  /** It may send several messages in one array (contract 4.3). */
  hasBatches = false
  /** Answers that are kept until all of an array have come; undefined: none are. */
  batches: Batches | undefined
  /** No more lines are taken from it. */
  isDeaf = false
  /** It has ended its writing side; once all its lines are taken it is finished. */
  hasEnded = false
  isFinished = false
  /** A chunk of which a part has not been looked at. */
  backlog: Buffer[] = []
  backlogFrom = 0
  backlogBytes = 0
  /** Of its lines that wait for something (`waiting.ts`, `announcements.ts`). */
  heldBytes = 0
  /** The share of this peer in what the bus retains, as last counted. */
  countedBytes = 0
  /** How long its queue has been full while its clock ran. */
  stuckMs = 0

  constructor(maxLineBytes: number, maxQueueBytes: number) {
    this.splitter = new LineSplitter(maxLineBytes, true)
    this.outbox = new Outbox(maxQueueBytes)
    this.gate = new Gate(this as unknown as Peer)
  }

  /** What the shell has been given to write. */
  get buffers(): readonly Buffer[] {
    return this.outbox.handed
  }

  get retainedBytes(): number {
    const { outbox, splitter, batches, backlogBytes, heldBytes } = this
    return outbox.retainedBytes + splitter.retainedBytes + backlogBytes + heldBytes + (batches?.bytes ?? 0)
  }
}

/** What the event says that opens a client. */
type Opening = Extract<BusEvent, { type: 'client-opened' }>

export class Client extends PeerBase {
  readonly kind = 'client'
  readonly id: ClientId
  readonly door: Door
  /** Who it is, and with whom that counts; undefined: it has not proved it yet (contract 9.3). */
  identity: Identity | undefined
  owner: PrincipalRow | undefined
  /** Whether it is of this machine: its door says so (contract 3.2). */
  readonly isLocal: boolean
  /** The pool this connection was opened for (contract 6.3). */
  pool: PoolId | undefined
  /** The chains of buses by which it has come; undefined: it is no bus, or says nothing of it (contract 11.6). */
  vias: readonly Via[] | undefined
  state: 'open' | 'half-closed' | 'closing' | 'closed' = 'open'
  /** How long it is kept for what it is owed once it sends no more. */
  patience: Timer | undefined
  /** Its sessions, whatever their worker. */
  sessions = emptyMap<SessionId, Session>()
  /** Its places in sessions that outlive their clients. */
  seats = emptySet<Seat>()
  /** Sessions whose worker has ended. */
  lost = emptySet<SessionId>()
  /** Its unanswered requests, newest first. */
  newest: Request | undefined
  pendingCount = 0
  /** What workers asked it, by the id it was asked with. */
  questions = emptyMap<IdKey, Question>()
  /** Ids it was asked with by workers that no longer want to know: it may still answer, and must not answer anything else. */
  unwanted = emptySet<IdKey>()
  /** Such ids have been forgotten: from now on it is asked with no worker's own id. */
  aliasesQuestions = false
  /** What it has said to pools whose protocol has a state (contract 6.6). */
  introductions = emptyMap<PoolId, Introduction>()
  /** What it has shown that it speaks, by pool, whether or not a worker has answered. */
  shown = emptyMap<PoolId, Dialect>()
  /** The workers that are its own, those that end or whose pool retires among them (contract 6.7: isolated). */
  holdings = emptySet<Worker>()
  /** Where it is served, by the pool whose workers are in several places (contract 14.3). */
  places = emptyMap<PoolId, PoolId>()
  hasSpoken = false
  /** It has called the gateway. */
  isCaller = false
  /** It answers calls: it is an agent itself. */
  servesCalls = false
  /** It uses an aggregate. */
  usesAggregate = false
  /** The ids of its last calls that have ended. */
  endedCalls = emptySet<IdKey>()
  /** The worker that shall have its message, if it is ready. */
  prefer: WorkerId | undefined
  /** An exchange's: the connection for which it is. */
  behalf: Client | undefined
  /** The call of an agent for which it calls another. */
  readonly cause: CallCause | undefined
  /** An internal client that speaks for its connection to one pool, and is told of faults as connections are. */
  readonly isDelegate: boolean

  /** Its door is told who has its messages, and which answers are the bus's own. */
  readonly carriesMessages: boolean
  /** A task that it begins belongs to its principal. */
  readonly isBrief: boolean
  /** Where it only looks on, nobody is told. */
  readonly isQuiet: boolean

  constructor(opening: Opening, maxLineBytes: number, maxQueueBytes: number) {
    super(maxLineBytes, maxQueueBytes)
    const { client, door, pool, isLocal, prefer } = opening
    this.carriesMessages = opening.carriesMessages === true
    this.isBrief = opening.isBrief === true
    this.isQuiet = opening.isQuiet === true
    this.prefer = prefer
    this.cause = opening.cause
    this.id = client
    this.door = door
    this.pool = pool
    this.isLocal = isLocal === true
    this.isDelegate = opening.isDelegate === true
  }

  /** Whose it is; what it does before that is proved is nobody's. */
  get principal(): Principal {
    return this.owner?.id ?? LOCAL
  }

  get isToldOfRoutes(): boolean {
    return this.carriesMessages || this.isExchange
  }

  /** No connection: it has no sessions and is not counted. */
  get isInternal(): boolean {
    return this.door === 'internal'
  }

  /** One exchange of the gateway's with a worker. */
  get isExchange(): boolean {
    return this.door === 'internal' && !this.isDelegate
  }
}

/** Whoever may ask for a task: the client that began it, or its principal, where that client goes with its answer. */
export type TaskOwner = Client | Principal

export class Worker extends PeerBase {
  readonly kind = 'worker'
  readonly id: WorkerId
  readonly pool: Pool
  readonly restarts = new Restarts()
  state: WorkerState = 'stopped'
  generation = 0
  /** What its source tells of it while it lives; only shown. */
  facts: Facts | undefined
  /** Its source has had it in this generation. */
  hasOpened = false
  spawnedAtMs = 0
  /** Why it had to go, the first reason wins. */
  ending: { readonly reason: Reason; readonly detail: Record<string, unknown> } | undefined
  endedCleanly = false
  /** How the process before this one ended. */
  lastEnd: LastEnd | undefined
  /** When one that is parked is tried again; undefined: not by itself. */
  retryAtMs: number | undefined
  /** Requests that it was ever sent. */
  requestCount = 0
  readonly outstanding: IdTable<Request>
  /** Requests whose client has gone, cancelled or timed out, and the bus's own, oldest first. */
  ownerless = emptySet<Request>()
  /** Of the bus's own, those for whose answer somebody waits. */
  awaitedCount = 0
  /** Until then it may still be at work on one of them. */
  strayUntilMs = 0
  /** Ids have been forgotten: from now on no client's id is used as it is. */
  aliasesAll = false
  sessions = emptyMap<SessionId, Session>()
  /** Its questions that no client has answered, by its own id. */
  questions = emptyMap<IdKey, Question>()
  bonds = emptySet<Bond>()
  /** What it speaks: certain when it has welcomed somebody, until then what it was last addressed in. */
  dialect: Dialect | undefined
  isProven = false
  /** The client it belongs to: its only one, or the one that has the lease. */
  holder: Client | undefined
  /** Its client has gone, and sessions of it are kept: it is nobody's, and not to be had (contract 12.6). */
  isKept = false
  /** How far the bus's own handshake has come, and what the worker said to its first one. */
  greeting: 'none' | 'asked' | 'done' = 'none'
  welcome: Welcome | undefined
  /** The version that a handshake under way asks for. */
  askedVersion: number | undefined
  /** Messages that are held until it has been welcomed or proved. */
  readonly lobby: WaitingLine
  /** What it says once per process, by method. */
  remembered = emptyMap<string, Buffer>()
  /** Sessions that a client is loading or resuming, and the request that does. */
  claims = emptyMap<SessionId, Request>()
  /** Requests under way whose answer may announce a session. */
  announcing = 0
  /** Lines for sessions that are not announced yet, in order. */
  held: { readonly sessionId: SessionId; readonly line: Envelope }[] = []
  /** Progress tokens of outstanding requests, as the worker knows them. */
  tokens = emptyMap<IdKey, Request>()
  /** Who started a task, was asked something, or lent a server; bounded, the oldest are forgotten. */
  tasks = emptyMap<string, TaskOwner>()
  /** Tasks that are not over, and the request whose progress token they go on using. */
  taskTokens = emptyMap<string, Request>()
  elicitations = emptyMap<string, Client>()
  servers = emptyMap<string, Client>()
  /** Who wants to hear of a resource. */
  subscriptions = emptyMap<string, Set<Client>>()
  /** It can close sessions. */
  canClose = false
  /** The level it was last told to log at. */
  level = -1
  /** It was ended because nobody needed it. */
  isAsleep = false
  /** It ends because it is to start anew, whatever `restart` says. */
  isWantedAnew = false
  /** It leaves its pool when it ends. */
  isDismissed = false
  lastActivityMs = 0
  lastError: string | undefined
  /** When it is worth starting it again; undefined: soon. */
  again: Again | undefined

  constructor(id: WorkerId, pool: Pool, seed: number) {
    super(pool.spec.limits.maxInputBufferBytes, pool.spec.limits.maxOutputQueueBytes)
    this.id = id
    this.pool = pool
    this.outstanding = new IdTable(seed)
    this.lobby = new WaitingLine(pool.spec.limits.maxOutputQueueBytes)
  }

  /** Somebody waits for an answer of this worker. */
  get owesAnswer(): boolean {
    return this.outstanding.size > this.ownerless.size || this.awaitedCount > 0
  }

  /** It takes the end of a session. */
  get isToldOfEnds(): boolean {
    return this.canClose || this.pool.spec.closesSessions === true || this.takesOneHandshake
  }

  /** Its protocol version has one handshake per process. */
  get takesOneHandshake(): boolean {
    const from = this.dialect?.table.singleHandshakeFrom
    return from !== undefined && (this.welcome?.version ?? 0) >= from
  }

  /** Takes messages that are not bound to it yet. */
  get isReady(): boolean {
    return this.state === 'ready'
  }

  get isAlive(): boolean {
    return this.state === 'ready' || this.state === 'retiring' || this.state === 'starting'
  }

  /** A new process in the slot: nothing of the old one is left. */
  renew(): void {
    this.generation++
    this.outbox = new Outbox(this.pool.spec.limits.maxOutputQueueBytes)
    this.backlog = []
    this.backlogFrom = 0
    this.backlogBytes = 0
    this.isPaused = false
    this.isDeaf = false
    this.hasEnded = false
    this.isFinished = false
    this.endedCleanly = false
    this.hasOpened = false
    this.ending = undefined
    this.facts = undefined
    this.again = undefined
    this.stuckMs = 0
    this.aliasesAll = false
    this.strayUntilMs = 0
    this.hasBatches = false
    this.greeting = 'none'
    this.welcome = undefined
    this.askedVersion = undefined
    this.isProven = false
    this.dialect = undefined
    this.awaitedCount = 0
    this.level = -1
    this.isKept = false
    this.forget()
  }

  /** The process is of no use any more: what it knew of clients goes with it. */
  forget(): void {
    this.claims = emptyMap()
    this.announcing = 0
    this.held = []
    this.heldBytes = 0
    this.tokens = emptyMap()
    this.tasks = emptyMap()
    this.taskTokens = emptyMap()
    this.elicitations = emptyMap()
    this.servers = emptyMap()
    this.subscriptions = emptyMap()
    this.remembered = emptyMap()
  }
}

/** What a worker said to the first handshake. */
export interface Welcome {
  /** Its result, as it was spelled. */
  readonly result: Buffer
  /** The revision it named, and its number where versions are numbers; undefined: nobody has asked for one. */
  readonly revision: string
  readonly version: number | undefined
}

export type Peer = Client | Worker
