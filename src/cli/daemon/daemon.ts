/**
 * Carries bytes and news between the kernel and the world, and decides nothing.
 *
 * Everything that happens becomes an event; every action is performed in order. What comes alone, or is much, is written
 * at once; what comes in one turn of the loop with something else, or as a part of more, leaves together with it at the end
 * of the turn: groups of lines that were parted would travel apart from then on. All of it runs in one thread.
 */
import type { Duplex } from 'node:stream'
import { DIALECTS } from '../../dialects/index.ts'
import { Bus, type Guest, type PoolLoad } from '../../kernel/bus.ts'
import type { Action, BusEvent, WorkerGeneration, Write } from '../../kernel/events.ts'
import type { Rights } from '../../kernel/rights.ts'
import type { Roll } from '../../kernel/roll.ts'
import type { BusSnapshot } from '../../kernel/snapshot.ts'
import type { SpanCounts } from '../../kernel/traffic.ts'
import type { BusSpec, ClientId, PoolId, WorkerId } from '../../kernel/vocabulary.ts'
import type { MessageClient, MessageEntrance, MessageListener } from '../../transports/messages.ts'
import { IdTable } from '../../wire/id-table.ts'
import { BusClock } from './bus-clock.ts'
import { ClientLink, type Tell } from './client-link.ts'
import { DelegateClient, type DelegateEar } from './delegate-client.ts'
import type { AdmissionDesk, AggregateDesk, CallDesk, JournalDesk } from './desks.ts'
import { KernelMistake } from './edges.ts'
import type { ClientPeer, Entrance, Launcher, Spawn, WorkerPeer } from './ends.ts'
import { InternalClient, type InternalListener, type Wishes } from './internal-client.ts'
import type { Log } from './log.ts'
import { MessageLink } from './message-link.ts'
import { PendingWorker } from './pending-worker.ts'
import type { Recorder } from './recorder.ts'
import { logRequest } from './request-log.ts'
import type { WorkerEnd } from './worker-end.ts'
import { type Framing, WorkerLink } from './worker-link.ts'

export interface DaemonOptions {
  readonly log: Log
  readonly launch: Launcher
  /** Makes lines of the output of workers that do not write lines; undefined: they do. */
  readonly framing?: (revision: string) => Framing | undefined
  /** Writes down what the kernel is told and decides. */
  readonly record?: ((spec: BusSpec) => Recorder) | undefined
  /** Answers what the bus itself is asked, by `reply`. */
  readonly administer?: (asked: Extract<Action, { do: 'administer' }>) => void
  /** Says where a client, or a session, has its place, by `located`. */
  readonly locate?: (asked: Extract<Action, { do: 'locate' }>) => void
  /** Asks all nodes, and tells what they have said by `gathered`. */
  readonly gather?: (asked: Extract<Action, { do: 'gather' }>) => void
  /** A worker of this bus has that session. */
  readonly sessionOpened?: (session: Extract<Action, { do: 'session-opened' }>) => void
  /** A worker has written a line to stderr. */
  readonly diagnosed?: (worker: WorkerId, line: string) => void
  readonly stopAccepting: () => void
  readonly finished: () => void
}

/** While something is due later the clock is read this often: an absence is noticed whatever it covered. */
const LOOK_MS = 500
/** A sleep, or a clock that was set, is told when it is more than this. */
const CALENDAR_DRIFT_MS = 1_000
/** So much is worth a write of its own. */
const AT_ONCE_BYTES = 16 * 1024
/** Between two reads of one turn there is less time than this. */
const TURN_GAP_MS = 0.006

export class Daemon {
  readonly #bus: Bus
  readonly #options: DaemonOptions
  readonly #recorder: Recorder | undefined
  readonly #clients = new Map<ClientId, ClientPeer>()
  readonly #exchanges = new IdTable<InternalClient | DelegateClient>(1)
  readonly #workers = new Map<WorkerId, WorkerPeer>()
  readonly #tell: Tell = (event, hasMore) => this.apply(event, hasMore)
  readonly #flushSoon = (): void => this.#flush()
  #nextClient = 1
  #desk: CallDesk | undefined
  #aggregates: AggregateDesk | undefined
  #admissions: AdmissionDesk | undefined
  #journal: JournalDesk | undefined
  /** Undefined: nobody asks what time it is. */
  #calendarOffsetMs: number | undefined
  /** Those who wait for room in the queue towards a caller. */
  readonly #roomWaiters = new Set<{ readonly caller: ClientId | WorkerGeneration; readonly admit: () => void }>()
  #isFlushDue = false
  /** An event is being applied, or its bytes are being written: what happens meanwhile is a part of that. */
  #isBusy = false
  /** The time of the event at hand. */
  #atMs = 0
  /** Since when no peer has sent anything. */
  #quietSinceMs = 0
  readonly #clock = new BusClock()
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = Number.POSITIVE_INFINITY

  constructor(spec: BusSpec, options: DaemonOptions) {
    this.#options = options
    this.#recorder = options.record?.(spec)
    this.#bus = new Bus(spec, DIALECTS, this.#recorder?.chance ?? Math.random)
  }

  start(): void {
    this.#readClock()
    const actions = this.#bus.start(this.#atMs)
    this.#recorder?.started(this.#atMs, actions)
    for (const action of actions) this.#do(action)
    this.#flushInTime()
  }

  apply(event: BusEvent, hasMore = false): void {
    if (this.#isBusy) return this.#apply(event)
    const timeMs = this.#readClock()
    const bringsBytes = event.type === 'client-received' || event.type === 'worker-received'
    const isAlone =
      bringsBytes &&
      (event.bytes.length >= AT_ONCE_BYTES ||
        (!hasMore && !this.#isFlushDue && timeMs - this.#quietSinceMs > TURN_GAP_MS))
    this.#isBusy = true
    try {
      this.#apply(event)
      if (isAlone) this.#writeAll()
    } finally {
      this.#isBusy = false
    }
    if (isAlone) this.#armTimer()
    else this.#flushInTime()
    if (bringsBytes) this.#quietSinceMs = performance.now()
  }

  #apply(event: BusEvent): void {
    if (event.type === 'client-closed') this.#forget(event.client)
    const actions = this.#decide(event, this.#atMs)
    this.#recorder?.applied(event, this.#atMs, actions)
    for (const action of actions) this.#do(action)
    if (this.#roomWaiters.size > 0) this.#admitWaiters()
  }

  #decide(event: BusEvent, atMs: number): readonly Action[] {
    try {
      return this.#bus.apply(event, atMs)
    } catch (cause) {
      throw new KernelMistake(cause)
    }
  }

  /** From now on calls of agents go here; before the bus starts, or by a reload. */
  attach(desk: CallDesk): void {
    this.#desk = desk
  }

  /** What is for pools that are made of others goes here. */
  attachAggregates(desk: AggregateDesk): void {
    this.#aggregates = desk
  }

  /** A client of the pool that speaks for this connection, or for the bus itself. */
  openDelegate(pool: PoolId, behalfOf: ClientId | undefined, received: DelegateEar): DelegateClient {
    const client = this.#nextClient++ as ClientId
    const delegate = new DelegateClient(client, received, this.#tell)
    this.#exchanges.set(client, delegate)
    const whose = behalfOf === undefined ? {} : { behalfOf }
    this.apply({ type: 'client-opened', client, door: 'internal', pool, isDelegate: true, ...whose })
    return delegate
  }

  /** The states of a pool's workers. */
  workerStates(pool: PoolId): ReturnType<Bus['workersOf']> {
    return this.#bus.workersOf(pool)
  }

  /** Whoever comes is judged here. */
  attachAdmissions(admissions: AdmissionDesk): void {
    this.#admissions = admissions
  }

  /** What is said in kept sessions is written down there. */
  attachJournal(journal: JournalDesk): void {
    this.#journal = journal
  }

  /** The time of the events is that of the process: the kernel is told what a calendar says. */
  tellCalendar(): void {
    this.#readClock()
    this.#calendarOffsetMs = Date.now() - this.#atMs
    this.apply({ type: 'calendar', offsetMs: this.#calendarOffsetMs })
  }

  openInternal(pool: PoolId, wishes: Wishes, listener: InternalListener): InternalClient {
    const client = this.#nextClient++ as ClientId
    const internal = new InternalClient(client, listener, this.#tell)
    this.#exchanges.set(client, internal)
    this.apply({ type: 'client-opened', client, door: 'internal', pool, ...wishes })
    return internal
  }

  /** Settles when the queue towards the caller has room again, or the caller has gone; undefined: it has room. */
  room(caller: ClientId | WorkerGeneration): Promise<void> | undefined {
    if (!this.#bus.isFull(caller)) return undefined
    return new Promise((admit) => this.#roomWaiters.add({ caller, admit }))
  }

  /** How many ends of peers it holds: those of the living, once what has ended is put away. */
  get links(): {
    readonly clients: number
    readonly exchanges: number
    readonly workers: number
    readonly waiting: number
  } {
    const { size: exchanges } = this.#exchanges
    return { clients: this.#clients.size, exchanges, workers: this.#workers.size, waiting: this.#roomWaiters.size }
  }

  refusing(client: ClientId, answer: Buffer, reason: string): void {
    this.#messageLink(client)?.refusing(answer, reason)
  }

  workersOf(pool: PoolId): number {
    const { workers } = this.#bus.snapshot()
    // There is something to tell of those that live.
    return workers.filter((worker) => worker.pool === pool && Object.keys(worker.facts).length > 0).length
  }

  accept(socket: Duplex, entrance: Entrance, pool?: PoolId, opened?: (client: ClientId) => void): void {
    const client = this.#nextClient++ as ClientId
    const link = new ClientLink(client, socket, this.#tell)
    this.#clients.set(client, link)
    opened?.(client)
    this.apply({ type: 'client-opened', client, ...entrance, ...(pool === undefined ? {} : { pool }) })
    link.open()
  }

  /** A client whose door carries messages. */
  openMessages(
    entrance: MessageEntrance,
    listener: MessageListener,
    opened?: (client: ClientId) => void,
  ): MessageClient {
    const client = this.#nextClient++ as ClientId
    const link = new MessageLink(client, listener, this.#tell)
    this.#clients.set(client, link)
    opened?.(client)
    const { pool, prefer, via, ...known } = entrance
    const wishes = { ...(pool && { pool }), ...(prefer === undefined ? {} : { prefer }), ...(via && { via }) }
    this.apply({ type: 'client-opened', client, ...known, ...wishes, carriesMessages: true })
    return link
  }

  /** A client that is no connection of this machine; `make` joins it. */
  openPeer<Peer extends ClientPeer>(
    { pool, ...entrance }: Entrance & { readonly pool: PoolId },
    make: (client: ClientId, tell: Tell) => Peer,
    opened?: (client: ClientId) => void,
  ): Peer {
    const client = this.#nextClient++ as ClientId
    const peer = make(client, this.#tell)
    this.#clients.set(client, peer)
    opened?.(client)
    this.apply({ type: 'client-opened', client, pool, ...entrance })
    return peer
  }

  /** Whose a worker is, where each client has its own. */
  guestOf(worker: WorkerId): Guest | undefined {
    return this.#bus.guestOf(worker)
  }

  /** A client, as other nodes are told of it. */
  travellerOf(client: ClientId): Guest | undefined {
    return this.#bus.travellerOf(client)
  }

  loadOf(pool: PoolId): PoolLoad {
    return this.#bus.loadOf(pool)
  }

  get isShuttingDown(): boolean {
    return this.#bus.phase !== 'running'
  }

  /** The answer to what the bus itself was asked; `outcome` is a member of JSON. */
  reply({ client, id }: { readonly client: ClientId; readonly id: string }, outcome: string): void {
    const bytes = Buffer.from(`{"jsonrpc":"2.0","id":${id},${outcome}}\n`)
    const key: unknown = JSON.parse(id)
    const isUsual = typeof key === 'string' || typeof key === 'number'
    this.apply({ type: 'client-reply', client, bytes, isFinal: true, ...(isUsual ? { id: key } : {}) })
  }

  /** What the caller may do; undefined: everything. */
  rightsOf(client: ClientId): Rights | undefined {
    return this.#bus.rightsOf(client)
  }

  /** Whose environment it has. */
  nameOf(client: ClientId): string | undefined {
    return this.#bus.nameOf(client)
  }

  /** Without a word. */
  drop(client: ClientId): void {
    const link = this.#clients.get(client)
    link?.close('drop')
    if (link instanceof MessageLink) this.apply({ type: 'client-closed', client })
  }

  /** Of a pool, by the calendar. */
  trafficOf(pool: PoolId): readonly SpanCounts[] {
    if (!this.#isBusy) this.#readClock()
    const offsetMs = Date.now() - this.#atMs
    return this.#bus.trafficOf(pool, this.#atMs).map((span) => ({ ...span, atMs: span.atMs + offsetMs }))
  }

  snapshot(): BusSnapshot {
    if (!this.#isBusy) this.#readClock()
    return this.#bus.snapshot(this.#atMs)
  }

  /** What somebody may see of sessions, and what waits in them. */
  get sessionViews(): Pick<Bus, 'keptSessions' | 'keptSession' | 'liveSessions' | 'openQuestions'> {
    return this.#bus
  }

  /** Its clients, sessions and pools, one by one. */
  roll(): Roll {
    return this.#bus.roll()
  }

  /** Nothing more is to come: no clock keeps the program alive. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timerAtMs = Number.NEGATIVE_INFINITY
    // Whoever is still there when nothing is waited for; a process that goes on would keep them.
    for (const client of this.#clients.values()) client.close('drop')
    await this.#recorder?.close()
  }

  /** A second signal: no more waiting for anybody. */
  async killAll(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((link) => link.kill()))
  }

  /** The workers of the pool that others have replaced go now; what they owe is answered when they have gone. */
  endRetiring(pool: PoolId): void {
    for (const { id, state, ...worker } of this.#bus.snapshot().workers) {
      if (worker.pool === pool && state === 'retiring') void this.#workers.get(id as WorkerId)?.stop('end')
    }
  }

  #do(action: Action): void {
    switch (action.do) {
      case 'pause-client':
      case 'resume-client':
        return steer(this.#clients.get(action.client), this.#bus.isPaused(action.client))
      case 'pause-worker':
      case 'resume-worker':
        return steer(this.#workers.get(action.worker), this.#bus.isPaused(action))
      case 'close-client':
        this.#clients.get(action.client)?.close(action.how)
        this.#exchanges.get(action.client)?.close()
        return this.#forget(action.client)
      case 'open-worker':
        return this.#spawn(action)
      case 'pass-on':
        return this.#workers.get(action.worker)?.passOn(action.via)
      case 'close-worker':
        return this.#stopWorker(action.worker, action.how)
      case 'stop-accepting':
        this.#aggregates?.drain()
        return this.#options.stopAccepting()
      case 'log':
        return this.#options.log.write(action.level, action.text, action.about)
      case 'finished':
        return this.#options.finished()
      case 'administer':
        return this.#options.administer?.(action)
      case 'locate':
        return this.#options.locate?.(action)
      case 'gather':
        return this.#options.gather?.(action)
      case 'session-opened':
        return this.#options.sessionOpened?.(action)
      case 'judge':
        return this.#admissions?.judge(action.client, action.token)
      case 'admitted':
        return this.#admissions?.admitted(action.client, action.identity)
      case 'turned-away':
        return this.#admissions?.turnedAway(action.client, action.reason)
      case 'audit':
        logRequest(this.#options.log, action)
        return this.#admissions?.done(action, this.#traceOf(action))
      case 'call':
        return this.#desk?.take(action)
      case 'cancel-call':
        return this.#desk?.cancel(action.from, action.id)
      case 'caller-gone':
        if (action.from.kind === 'client') this.#aggregates?.gone(action.from.client)
        return this.#desk?.callerGone(action.from)
      case 'list-changed':
        return this.#desk?.listChanged(action.pool)
      case 'fail-calls':
        this.#aggregates?.failCalls()
        return this.#desk?.failCalls()
      case 'aggregate':
        return this.#aggregates?.take(action)
      case 'said': {
        const delegate = this.#exchanges.get(action.client)
        if (delegate instanceof DelegateClient) delegate.hear(action.bytes, action.source)
        return
      }
      case 'aggregate-waived':
        return this.#aggregates?.waived(action.client, action.row)
      case 'observed':
        return this.#desk?.observed(action.what)
      case 'journal':
        return this.#journal?.take(action.what)
      case 'routed':
        return (this.#exchangeOf(action.client) ?? this.#messageLink(action.client))?.routed(action)
      case 'faulted':
        return this.#messageLink(action.client)?.faulted(action.id, action.reason)
      case 'exchange-failed':
        return this.#exchangeOf(action.client)?.failed(action.error)
    }
  }

  #traceOf({ traceId, observed }: Extract<Action, { do: 'audit' }>): string | undefined {
    return traceId ?? (observed === undefined ? undefined : this.#desk?.traceOf(observed))
  }

  /** What was buried, or never lived, leaves no link behind: isolated clients bring a worker each. */
  #stopWorker(worker: WorkerId, how: 'end' | 'kill' | 'clear'): void {
    const link = this.#workers.get(worker)
    const stopped = link?.stop(how)
    if (link !== undefined && how === 'clear') void stopped?.then(() => this.#unlink(worker, link))
  }

  /** Unless its successor is there already. */
  #unlink(worker: WorkerId, link: WorkerPeer): void {
    if (this.#workers.get(worker) === link) this.#workers.delete(worker)
  }

  #forget(client: ClientId): void {
    if (this.#clients.delete(client)) this.#admissions?.closed(client)
    else this.#exchanges.delete(client)
  }

  #admitWaiters(): void {
    for (const waiter of this.#roomWaiters) {
      if (this.#bus.isFull(waiter.caller)) continue
      this.#roomWaiters.delete(waiter)
      waiter.admit()
    }
  }

  #spawn(spawn: Spawn): void {
    const { worker, generation } = spawn
    const launched = this.#options.launch(spawn)
    if ('join' in launched) return void this.#workers.set(worker, launched.join({ worker, generation }, this.#tell))
    if (!(launched instanceof Promise)) return this.#join(spawn, launched)
    const pending = new PendingWorker(worker, generation, this.#tell)
    this.#workers.set(worker, pending)
    launched.then(
      (start) => {
        if (pending.finish()) this.#join(spawn, start())
      },
      (error) => {
        this.#unlink(worker, pending)
        pending.fail(error instanceof Error ? error.message : String(error))
      },
    )
  }

  #join({ worker, generation, pool, revision }: Spawn, end: WorkerEnd): void {
    const framing = this.#options.framing?.(revision)
    end.on('diagnostic', (line, stream = 'stderr') => {
      this.#options.diagnosed?.(worker, line)
      this.#options.log.write('info', line, { pool, worker, stream })
    })
    const link = new WorkerLink({ worker, generation }, end, this.#tell, framing)
    this.#workers.set(worker, link)
    end.on('failed', () => this.#unlink(worker, link))
  }

  #flushInTime(): void {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    setImmediate(this.#flushSoon)
  }

  #flush(): void {
    this.#readClock()
    this.#isBusy = true
    try {
      this.#writeAll()
    } finally {
      this.#isBusy = false
      this.#isFlushDue = false
    }
    this.#armTimer()
  }

  /** What is queued while we write leaves too. */
  #writeAll(): void {
    for (let writes = this.#bus.takeWrites(); writes.length > 0; writes = this.#bus.takeWrites()) {
      this.#recorder?.writesTaken()
      for (const write of writes) this.#write(write)
    }
  }

  #write(write: Write): void {
    const link = this.#linkOf(write)
    this.#recorder?.writing(write)
    // Who is gone takes everything and holds nothing.
    const pendingBytes = link?.write(write.buffers) ?? 0
    const actions = this.#bus.wrote(write, pendingBytes, this.#atMs)
    this.#recorder?.wrote(write, pendingBytes, this.#atMs, actions)
    for (const action of actions) this.#do(action)
    if (this.#roomWaiters.size > 0) this.#admitWaiters()
    if (link instanceof InternalClient || link instanceof MessageLink) link.deliver()
  }

  #exchangeOf(client: ClientId): InternalClient | undefined {
    const exchange = this.#exchanges.get(client)
    return exchange instanceof InternalClient ? exchange : undefined
  }

  #messageLink(client: ClientId): MessageLink | undefined {
    const link = this.#clients.get(client)
    return link instanceof MessageLink ? link : undefined
  }

  #linkOf(write: Write): ClientPeer | InternalClient | WorkerPeer | undefined {
    if (write.kind === 'worker') return this.#workers.get(write.id)
    return write.isInternal ? this.#exchangeOf(write.id) : this.#clients.get(write.id)
  }

  /** A tick that comes too early finds nothing and arms the next one: that costs less than to move it every time. */
  #armTimer(): void {
    const dueMs = this.#bus.nextDeadlineMs() ?? Number.POSITIVE_INFINITY
    if (dueMs >= this.#timerAtMs) return
    const atMs = Math.min(dueMs, this.#atMs + LOOK_MS)
    if (atMs >= this.#timerAtMs) return
    clearTimeout(this.#timer)
    this.#timerAtMs = atMs
    // What has come is read before anything is judged to be late.
    this.#timer = setTimeout(() => setImmediate(() => this.#tick()), Math.max(1, Math.ceil(atMs - this.#atMs)))
  }

  #tick(): void {
    if (this.#timerAtMs === Number.NEGATIVE_INFINITY) return
    // Before it is forgotten when this was due.
    this.#readClock()
    this.#timerAtMs = Number.POSITIVE_INFINITY
    const driftMs = Date.now() - this.#atMs - (this.#calendarOffsetMs ?? 0)
    if (this.#calendarOffsetMs !== undefined && Math.abs(driftMs) > CALENDAR_DRIFT_MS) this.tellCalendar()
    this.apply({ type: 'tick' })
  }

  #readClock(): number {
    const timeMs = performance.now()
    this.#atMs = Math.floor(this.#clock.read(timeMs, this.#timerAtMs))
    return timeMs
  }
}

/** What one action brings about may pause or resume a peer before an older action is performed that says the contrary. */
function steer(end: ClientPeer | WorkerPeer | undefined, isPaused: boolean | undefined): void {
  if (isPaused === undefined) return
  if (isPaused) end?.pause()
  else end?.resume()
}
