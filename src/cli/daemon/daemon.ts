/**
 * Carries bytes and news between the kernel and the world, and decides nothing.
 *
 * Everything that happens becomes an event; every action is performed in order. What comes alone, or is much, is written
 * at once; what comes in one turn of the loop with something else leaves together with it at the end of the turn. All of
 * it runs in one thread.
 */
import type { Duplex } from 'node:stream'
import { DIALECTS } from '../../dialects/index.ts'
import { Bus } from '../../kernel/bus.ts'
import type { Action, BusEvent, CallerId, WorkerGeneration, Write } from '../../kernel/events.ts'
import type { Observed } from '../../kernel/observation.ts'
import type { Identity, Rights } from '../../kernel/rights.ts'
import type { BusSnapshot } from '../../kernel/snapshot.ts'
import type { BusSpec, ClientId, Door, PoolId, WorkerId } from '../../kernel/vocabulary.ts'
import { WorkerProcess } from '../../process/worker-process.ts'
import { IdTable } from '../../wire/id-table.ts'
import { BusClock } from './bus-clock.ts'
import { ClientLink } from './client-link.ts'
import { KernelMistake } from './edges.ts'
import { InternalClient, type InternalListener, type Wishes } from './internal-client.ts'
import type { Log } from './log.ts'
import { PendingWorker } from './pending-worker.ts'
import type { Recorder } from './recorder.ts'
import { type Framing, WorkerLink } from './worker-link.ts'

/** Starts a process; `failed` on what it returns tells why it could not. */
export type Start = () => WorkerProcess

/**
 * Starts the process of a pool's worker, for this principal if one is named, or brings its program first; a rejection tells
 * why it cannot be had.
 */
export type Launcher = (pool: PoolId, revision: string, principal?: string) => WorkerProcess | Promise<Start>

/** Who takes what is not routed; see `gateway-room.ts`. */
export interface CallDesk {
  take(call: Extract<Action, { do: 'call' }>): void
  cancel(from: CallerId, id: string | number): void
  callerGone(from: CallerId): void
  listChanged(pool: PoolId): void
  failCalls(): void
  observed(what: Observed): void
}

/** Who judges what clients show; see `admissions.ts`. */
export interface AdmissionDesk {
  judge(client: ClientId, token: string | undefined): void
  admitted(client: ClientId, identity: Identity): void
  turnedAway(client: ClientId, reason: string): void
  done(deed: Extract<Action, { do: 'audit' }>): void
  closed(client: ClientId): void
}

/** What is known of a connection that comes: its door, and who it is or that it must prove it. */
export interface Entrance {
  readonly door: Door
  readonly isLocal: boolean
  readonly identity?: Identity
  readonly mustProve?: true
  readonly from?: string
}

type Spawn = Extract<Action, { do: 'open-worker' }>

export interface DaemonOptions {
  readonly log: Log
  readonly launch: Launcher
  /** Makes lines of the output of workers that do not write lines; undefined: they do. */
  readonly framing?: (revision: string) => Framing | undefined
  /** Writes down what the kernel is told and decides. */
  readonly record?: ((spec: BusSpec) => Recorder) | undefined
  /** Answers what the bus itself is asked, by `reply`. */
  readonly administer?: (asked: Extract<Action, { do: 'administer' }>) => void
  readonly stopAccepting: () => void
  readonly finished: () => void
}

/** While something is due later the clock is read this often: an absence is noticed whatever it covered. */
const LOOK_MS = 500
/** So much is worth a write of its own. */
const AT_ONCE_BYTES = 16 * 1024
/** Between two reads of one turn there is less time than this. */
const TURN_GAP_MS = 0.006

export class Daemon {
  readonly #bus: Bus
  readonly #options: DaemonOptions
  readonly #recorder: Recorder | undefined
  readonly #clients = new Map<ClientId, ClientLink>()
  readonly #exchanges = new IdTable<InternalClient>(1)
  readonly #workers = new Map<WorkerId, WorkerLink | PendingWorker>()
  readonly #tell = (event: BusEvent): void => this.apply(event)
  readonly #flushSoon = (): void => this.#flush()
  #nextClient = 1
  #desk: CallDesk | undefined
  #admissions: AdmissionDesk | undefined
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

  apply(event: BusEvent): void {
    if (this.#isBusy) return this.#apply(event)
    const timeMs = this.#readClock()
    const bringsBytes = event.type === 'client-received' || event.type === 'worker-received'
    const isAlone =
      bringsBytes &&
      (event.bytes.length >= AT_ONCE_BYTES || (!this.#isFlushDue && timeMs - this.#quietSinceMs > TURN_GAP_MS))
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

  /** Whoever comes is judged here. */
  attachAdmissions(admissions: AdmissionDesk): void {
    this.#admissions = admissions
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

  workersOf(pool: PoolId): number {
    return this.#bus.snapshot().workers.filter((worker) => worker.pool === pool && worker.facts['pid'] !== undefined)
      .length
  }

  accept(socket: Duplex, entrance: Entrance, pool?: PoolId, opened?: (client: ClientId) => void): void {
    const client = this.#nextClient++ as ClientId
    const link = new ClientLink(client, socket, this.#tell)
    this.#clients.set(client, link)
    opened?.(client)
    this.apply({ type: 'client-opened', client, ...entrance, ...(pool === undefined ? {} : { pool }) })
    link.open()
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

  /** Without a word. */
  drop(client: ClientId): void {
    this.#clients.get(client)?.close('drop')
  }

  snapshot(): BusSnapshot {
    return this.#bus.snapshot()
  }

  /** Nothing more is to come: no clock keeps the program alive. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timerAtMs = Number.NEGATIVE_INFINITY
    await this.#recorder?.close()
  }

  /** A second signal: no more waiting for anybody. */
  async killAll(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((link) => link.kill()))
  }

  #do(action: Action): void {
    switch (action.do) {
      case 'pause-client':
        return this.#clients.get(action.client)?.pause()
      case 'resume-client':
        return this.#clients.get(action.client)?.resume()
      case 'pause-worker':
        return this.#workers.get(action.worker)?.pause()
      case 'resume-worker':
        return this.#workers.get(action.worker)?.resume()
      case 'close-client':
        this.#clients.get(action.client)?.close(action.how)
        this.#exchanges.get(action.client)?.close()
        return this.#forget(action.client)
      case 'open-worker':
        return this.#spawn(action)
      case 'close-worker':
        return this.#stopWorker(action.worker, action.how)
      case 'stop-accepting':
        return this.#options.stopAccepting()
      case 'log':
        return this.#options.log.write(action.level, action.text, action.about)
      case 'finished':
        return this.#options.finished()
      case 'administer':
        return this.#options.administer?.(action)
      case 'judge':
        return this.#admissions?.judge(action.client, action.token)
      case 'admitted':
        return this.#admissions?.admitted(action.client, action.identity)
      case 'turned-away':
        return this.#admissions?.turnedAway(action.client, action.reason)
      case 'audit':
        return this.#admissions?.done(action)
      case 'call':
        return this.#desk?.take(action)
      case 'cancel-call':
        return this.#desk?.cancel(action.from, action.id)
      case 'caller-gone':
        return this.#desk?.callerGone(action.from)
      case 'list-changed':
        return this.#desk?.listChanged(action.pool)
      case 'fail-calls':
        return this.#desk?.failCalls()
      case 'observed':
        return this.#desk?.observed(action.what)
      case 'routed':
        return this.#exchanges.get(action.client)?.routed(action)
      case 'exchange-failed':
        return this.#exchanges.get(action.client)?.failed(action.error)
    }
  }

  /** What was buried, or never lived, leaves no link behind: isolated clients bring a worker each. */
  #stopWorker(worker: WorkerId, how: 'end' | 'kill' | 'clear'): void {
    const link = this.#workers.get(worker)
    const stopped = link?.stop(how)
    if (link !== undefined && how === 'clear') void stopped?.then(() => this.#unlink(worker, link))
  }

  /** Unless its successor is there already. */
  #unlink(worker: WorkerId, link: WorkerLink | PendingWorker): void {
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
    const { worker, generation, pool, revision, principal } = spawn
    const launched = this.#options.launch(pool, revision, principal)
    if (launched instanceof WorkerProcess) return this.#join(spawn, launched)
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

  #join({ worker, generation, pool, revision }: Spawn, process: WorkerProcess): void {
    const framing = this.#options.framing?.(revision)
    process.on('diagnostic', (line) => this.#options.log.write('info', line, { pool, worker, stream: 'stderr' }))
    const link = new WorkerLink(worker, generation, process, this.#tell, framing)
    this.#workers.set(worker, link)
    process.once('failed', () => this.#unlink(worker, link))
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
    if (link instanceof InternalClient) link.deliver()
  }

  #linkOf(write: Write): ClientLink | InternalClient | PendingWorker | WorkerLink | undefined {
    if (write.kind === 'worker') return this.#workers.get(write.id)
    return write.isInternal ? this.#exchanges.get(write.id) : this.#clients.get(write.id)
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
    this.apply({ type: 'tick' })
  }

  #readClock(): number {
    const timeMs = performance.now()
    this.#atMs = Math.floor(this.#clock.read(timeMs, this.#timerAtMs))
    return timeMs
  }
}
