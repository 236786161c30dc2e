/**
 * A world with one bus in it: a clock that jumps, a network that cuts, processes that die. It drives the kernel exactly as
 * the shell does (`src/cli/daemon/daemon.ts`) and lets chance decide who does what next.
 *
 * Every step draws from its own seed, so a run is a list of step numbers: leaving some out leaves the others as they were.
 */
import { BusClock } from '../../src/cli/daemon/bus-clock.ts'
import { DIALECTS } from '../../src/dialects/index.ts'
import { Bus } from '../../src/kernel/bus.ts'
import type { Core } from '../../src/kernel/core.ts'
import type { Action, BusEvent, Write } from '../../src/kernel/events.ts'
import type { Peer } from '../../src/kernel/peers.ts'
import type { BusSpec, ClientId, PoolSpec, WorkerId } from '../../src/kernel/vocabulary.ts'
import { addAccess } from './access-scenario.ts'
import { Chance } from './chance.ts'
import { Desk } from './desk.ts'
import { Gatehouse } from './gatehouse.ts'
import { Holders } from './holders.ts'
import { demandCounted } from './holdings.ts'
import { inspect } from './invariants.ts'
import type { ClientLine, WorkerLine } from './line.ts'
import { coreSeen } from './look.ts'
import { judgeStalled, judgeStuck, passTime } from './patience.ts'
import { addAgents, addCustoms, drawScenario, isAioSeed, redrawSpec, type Scenario } from './scenario.ts'
import { SimClient } from './sim-client.ts'
import { SimWorker } from './sim-worker.ts'
import { demand, Violation } from './violation.ts'
import type { Visit } from './visit.ts'

const MAX_CLIENTS = 400
const MAX_FLUSHES = 2_000
const SLEEP_MS = 60_000
/** So often what the bus holds is counted from outside. */
const COUNTED_EVERY = 8
/** While something is due the shell looks at its clock at least this often. */
const WATCH_MS = 1_000
const OVERWRITTEN = 0x23
/** The longest chain of promises in the gateway is shorter. */
const PROMISED_TICKS = 16

/** Somebody who writes down what the kernel is told and decides; see `src/cli/daemon/recorder.ts`. */
export interface Witness {
  readonly chance: () => number
  started(nowMs: number, actions: readonly Action[]): void
  applied(event: BusEvent, nowMs: number, actions: readonly Action[]): void
  writesTaken(): void
  writing(write: Write): void
  wrote(write: Write, pendingBytes: number, nowMs: number, actions: readonly Action[]): void
}

export interface Looking {
  readonly isTold?: boolean
  readonly witness?: (spec: BusSpec) => Witness
}

export class World {
  readonly seed: number
  readonly chance: Chance
  readonly scenario: Scenario
  readonly bus: Bus
  readonly lines: (ClientLine | WorkerLine)[] = []
  /** Clients that are there, or whose last bytes are. */
  clients: SimClient[] = []
  readonly #clientsById = new Map<ClientId, SimClient>()
  workers: SimWorker[] = []
  /** Also those that have ended. */
  readonly everyWorker: SimWorker[] = []
  /** Every edition of every pool. */
  readonly #editions: PoolSpec[] = []
  readonly #timeoutsMs = new Map<string, number>()
  /** Who has ever used the name of a session. */
  readonly namers = new Map<string, Set<SimClient>>()
  readonly #slots = new Map<WorkerId, SimWorker>()
  readonly #specs = new Map<string, PoolSpec>()
  readonly #restartsMs = new Map<WorkerId, number[]>()
  /** The generation of each worker that has stopped last. */
  readonly #stopped = new Map<WorkerId, number>()
  readonly aliases = new Set<string>()
  /** The worker of every session of a plain client. */
  readonly homes = new Map<string, SimWorker>()
  /** Names of sessions that somebody else has tried to use. */
  readonly contested = new Set<string>()
  readonly reasons = new Map<string, number>()
  /** The bus may retain so much in all that nobody is closed for it. */
  readonly isRoomy: boolean
  spec: BusSpec
  nowMs = 1_000
  events = 0
  /** Events, and what happens without one. */
  moves = 0
  isStopping = false
  isFinished = false
  /** All that was queued has been handed over. */
  isFlushed = true
  hasReloaded = false
  story: string[] | undefined
  /** Where calls of agents go; undefined: there are no agents in this world. */
  readonly desk: Desk | undefined
  /** Where it is judged who the clients are; undefined: nobody asks. */
  readonly gatehouse: Gatehouse | undefined
  /** What went wrong where nobody could be told at once. */
  failure: unknown
  readonly #holders = new Holders()
  #depth = 0
  readonly #clock = new BusClock()
  #sleptMs = 0
  #flushes = 0
  /** What has happened since the bus fell asleep; undefined: it is awake. */
  #missed: BusEvent[] | undefined
  readonly #witness: Witness | undefined
  #core: Core | undefined
  #nextClient = 1
  #openedClients = 0
  /** So many clients and exchanges have gone. */
  #gone = 0

  constructor(seed: number, { isTold, witness }: Looking = {}) {
    this.seed = seed
    this.chance = new Chance(seed, -1)
    const scenario = drawScenario(this.chance)
    const customary = addCustoms(seed, isAioSeed(seed) ? addAgents(this.chance, scenario) : scenario)
    this.scenario = addAccess(seed, customary)
    this.spec = this.scenario.spec
    this.isRoomy = this.spec.limits.maxTotalBufferBytes > 1_000_000
    if (isTold) this.story = []
    this.#learn(this.spec)
    this.#witness = witness?.(this.spec)
    this.desk = this.scenario.aio === undefined ? undefined : new Desk(this, this.scenario.aio)
    const { access } = this.scenario
    this.gatehouse = access === undefined ? undefined : new Gatehouse(this, access)
    this.bus = new Bus(this.spec, DIALECTS, this.#witness?.chance ?? (() => this.chance.next()))
    const actions = this.bus.start(this.nowMs)
    this.#witness?.started(this.nowMs, actions)
    this.#perform(actions)
    this.#clock.read(this.nowMs, Number.POSITIVE_INFINITY)
  }

  tell(what: () => string): void {
    this.story?.push(what())
  }

  countReason(reason: string): void {
    this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1)
  }

  /** A read is under way when the bus asks for none; what it brings would count against a small total. */
  isLateRead(): boolean {
    return this.isRoomy && this.chance.is(0.05)
  }

  get maxClientLineBytes(): number {
    return Math.max(
      this.spec.limits.maxInputBufferBytes,
      ...this.spec.pools.map(({ limits }) => limits.maxInputBufferBytes),
    )
  }

  /** Every edition of the pools that may serve the line: its client's, and those that serve in its place. */
  poolsFor({ author }: ClientLine): PoolSpec[] {
    const ids = this.#poolsBehind(author.pool)
    return this.#editions.filter(({ id }) => ids.has(id))
  }

  /** Messages for one pool may be served by the other. */
  mayServe(pool: string, other: string): boolean {
    return pool === other || this.#poolsBehind(pool).has(other)
  }

  /** Another pool may serve in the place of this one. */
  hasFallback(pool: string): boolean {
    return this.#poolsBehind(pool).size > 1
  }

  #poolsBehind(pool: string): ReadonlySet<string> {
    const ids = new Set([pool])
    for (const id of ids) {
      for (const pool of this.#editions) if (pool.id === id && pool.fallback !== undefined) ids.add(pool.fallback)
    }
    return ids
  }

  // ---- steps ----

  step(number: number): void {
    const { chance } = this
    chance.reseed(this.seed, number)
    this.#pass()
    const roll = chance.next()
    if (roll < 0.03 || this.clients.length === 0) this.#openClient()
    else if (roll < 0.5) chance.pick(this.clients).act()
    else if (roll < 0.985) this.#actWorker()
    else if (roll < 0.987 && this.scenario.reloads) this.#reload()
    else if (roll > 0.997 && this.scenario.customs.sleeps) this.#sleep()
    else if (roll > 0.99) this.gatehouse?.step()
    if (chance.is(0.75)) this.flush()
  }

  /** Time goes by, mostly little; sometimes until the next deadline. */
  #pass(): void {
    const { chance } = this
    if (chance.is(0.6)) return
    if (chance.is(0.97)) this.#advance(this.nowMs + chance.int(6))
    else this.jump()
    const deadlineMs = this.bus.nextDeadlineMs()
    if (deadlineMs !== undefined && deadlineMs <= this.nowMs && chance.is(0.8)) this.apply({ type: 'tick' })
    this.desk?.alarms.ring(this.nowMs)
    this.gatehouse?.alarms.ring(this.nowMs)
  }

  /** To the next moment at which something is due; false when nothing ever will be. */
  jump(): boolean {
    this.flush()
    let atMs = this.bus.nextDeadlineMs() ?? Number.POSITIVE_INFINITY
    for (const worker of this.workers)
      if (worker.state === 'launching' || (worker.isStopping && worker.isAlive)) atMs = Math.min(atMs, worker.dueMs)
    if (this.desk !== undefined) atMs = Math.min(atMs, this.desk.alarms.nextAtMs)
    if (this.gatehouse !== undefined) atMs = Math.min(atMs, this.gatehouse.alarms.nextAtMs)
    if (atMs === Number.POSITIVE_INFINITY) return false
    this.#advance(Math.max(this.nowMs, atMs))
    this.desk?.alarms.ring(this.nowMs)
    this.gatehouse?.alarms.ring(this.nowMs)
    if ((this.bus.nextDeadlineMs() ?? Number.POSITIVE_INFINITY) <= this.nowMs) this.apply({ type: 'tick' })
    return true
  }

  #advance(toMs: number): void {
    passTime(this, toMs - this.nowMs)
    this.nowMs = toMs
    this.#clock.read(toMs + this.#sleptMs, Number.POSITIVE_INFINITY)
  }

  /**
   * The bus does not run for a minute, and its peers do: what they do meanwhile it hears when it wakes, before anything is
   * due. By its clock it was never away (contract 8.3).
   */
  #sleep(): void {
    const { chance } = this
    if (!this.isRoomy || this.desk !== undefined || this.isStopping) return
    this.flush()
    this.tell(() => `[${this.nowMs}] the bus sleeps`)
    const missed: BusEvent[] = []
    this.#missed = missed
    for (let i = chance.between(5, 40); i > 0 && this.clients.length > 0; i--) {
      if (chance.is(0.5)) chance.pick(this.clients).act()
      else this.#actWorker()
    }
    this.#missed = undefined
    this.#sleptMs += SLEEP_MS
    const dueMs = Math.min(this.bus.nextDeadlineMs() ?? Number.POSITIVE_INFINITY, this.nowMs + WATCH_MS)
    const wokenMs = this.#clock.read(this.nowMs + this.#sleptMs, dueMs)
    demand(
      wokenMs === this.nowMs,
      'justified',
      () => `after a sleep ${wokenMs - this.nowMs} ms count against everybody`,
    )
    for (const event of missed) {
      const client = event.type === 'client-received' ? this.#clientsById.get(event.client) : undefined
      if (client !== undefined && event.type === 'client-received') client.unreadBytes -= event.bytes.length
      this.#applyNow(event)
    }
  }

  #actWorker(): void {
    if (this.workers.length > 0) this.chance.pick(this.workers).act()
  }

  #openClient(): void {
    const { chance, scenario } = this
    if (this.clients.length >= scenario.maxClientsAtOnce || this.#openedClients >= MAX_CLIENTS || this.isStopping)
      return
    const isStdio = scenario.isStdio && this.#openedClients === 0
    if (scenario.isStdio && !isStdio) return
    const { id: pool } = chance.pick(this.spec.pools)
    const tongue =
      scenario.isMixed && chance.is(0.4)
        ? chance.pick(['plain', 'acp', 'legacy', 'modern'] as const)
        : scenario.tongues.get(pool)!
    this.#openedClients++
    const visit = this.gatehouse?.drawVisit()
    const isRemote = visit === undefined ? this.desk !== undefined && chance.is(0.2) : visit.manner !== 'local'
    const door = isStdio ? 'stdio' : isRemote ? 'tcp' : 'unix'
    const client = new SimClient(this, this.nextClientId(), door, pool, tongue)
    this.#introduce(client, visit)
  }

  /** Somebody comes who is there and says nothing. */
  openStranger(visit: Visit): void {
    const { id: pool } = this.spec.pools[0]!
    const client = new SimClient(this, this.nextClientId(), 'tcp', pool, this.scenario.tongues.get(pool)!)
    this.#introduce(client, visit)
  }

  #introduce(client: SimClient, visit: Visit | undefined): void {
    client.visit = visit
    this.clients.push(client)
    this.#clientsById.set(client.id, client)
    const { pool, door } = client
    const of = client.addressing === 'door' ? { pool } : {}
    const entrance = visit === undefined ? {} : this.gatehouse!.receive(client)
    const isLocal = door !== 'tcp'
    this.apply({ type: 'client-opened', client: client.id, door, isLocal, ...of, ...entrance })
  }

  /** Numbers of connections and of exchanges are one series. */
  nextClientId(): ClientId {
    return this.#nextClient++ as ClientId
  }

  #reload(): void {
    this.hasReloaded = true
    this.spec = redrawSpec(this.chance, this.scenario, this.spec, this.events)
    this.#learn(this.spec)
    this.desk?.adopt(this.spec.pools)
    const isKept = ({ spec }: SimWorker): boolean => this.spec.pools.some(({ revision }) => revision === spec.revision)
    const kept = this.workers.filter((worker) => isKept(worker) && worker.endedAtMs === Number.POSITIVE_INFINITY)
    const isQuiet = (this.bus.nextDeadlineMs() ?? Number.POSITIVE_INFINITY) > this.nowMs
    const gone = this.#gone
    this.apply({ type: 'reload', spec: this.spec })
    if (!isQuiet) return
    // Contract 7.5: who is the same, or has only got company, stays. Who is one client's alone ends with that (6.7), which the
    // reload may have let go on, and go.
    for (const worker of kept) {
      const mayEnd = worker.spec.sharing === 'isolated' && this.#gone > gone
      demand(
        !worker.isStopping || mayEnd,
        'justified',
        () => `${worker} was ended by a reload that has not changed its pool`,
      )
    }
  }

  #learn(spec: BusSpec): void {
    for (const pool of spec.pools) {
      if (!this.#specs.has(pool.revision)) this.#editions.push(pool)
      const { requestTimeoutMs } = pool.limits
      const before = this.#timeoutsMs.get(pool.id) ?? requestTimeoutMs
      this.#timeoutsMs.set(pool.id, before * requestTimeoutMs === 0 ? 0 : Math.max(before, requestTimeoutMs))
      this.#specs.set(pool.revision, pool)
    }
  }

  shutDown(): void {
    this.isStopping = true
    this.apply({ type: 'shutdown', at: 'leisure' })
  }

  // ---- the shell ----

  apply(event: BusEvent): void {
    if (this.#missed !== undefined) return this.#miss(event, this.#missed)
    this.#applyNow(event)
  }

  /** What the bus will read when it wakes, it has not read yet. */
  #miss(event: BusEvent, missed: BusEvent[]): void {
    missed.push(event)
    if (event.type === 'client-received') this.#clientsById.get(event.client)!.unreadBytes += event.bytes.length
  }

  #applyNow(event: BusEvent): void {
    this.events++
    this.moves++
    this.isFlushed = false
    this.tell(() => `[${this.nowMs}] ${describe(event)}`)
    if (event.type === 'client-closed') this.#gone++
    // What a deadline or the end of the bus does in the same breath is not the doing of whoever sends.
    const isAlone = !this.isStopping && (this.bus.nextDeadlineMs() ?? Number.POSITIVE_INFINITY) > this.nowMs
    const actions = this.#guard(() => this.bus.apply(event, this.nowMs))
    this.#witness?.applied(event, this.nowMs, actions)
    this.#holders.hear(actions, 'bytes' in event ? event.bytes.length : 0)
    this.#act(actions, isAlone && !hasGoneOn(actions, event) ? event : undefined)
    // The shell reads everybody's bytes into the same memory.
    if (event.type === 'client-received' || event.type === 'worker-received') event.bytes.fill(OVERWRITTEN)
  }

  #act(actions: readonly Action[], cause: BusEvent | undefined): void {
    this.#depth++
    this.#perform(actions)
    this.#depth--
    this.#check(cause)
  }

  /** What the gateway has promised itself is kept before the next step; throws what went wrong on the way. */
  async rest(): Promise<void> {
    if (this.desk === undefined) return
    for (let tick = 0; tick < PROMISED_TICKS; tick++) await undefined
    if (this.failure !== undefined) throw this.failure
  }

  #guard<Result>(run: () => Result): Result {
    try {
      return run()
    } catch (error) {
      if (error instanceof Violation) throw error
      throw new Violation('no crash', (error as Error).message, error)
    }
  }

  #check(event: BusEvent | undefined): void {
    this.#core ??= this.clients.length === 0 ? undefined : coreSeen()
    const core = this.#core
    if (core === undefined) return
    let isAnyOver = false
    for (const client of this.clients) {
      const peer = core.clients.get(client.id)
      if (peer !== undefined) client.follow(peer)
      isAnyOver ||= client.isOver
    }
    inspect(core, sourceOf(core, event))
    this.gatehouse?.inspect(core)
    this.#holders.look(core)
    if (this.desk !== undefined && this.#depth === 0) this.#checkDesk(core, this.desk)
    if (isAnyOver)
      this.clients = this.clients.filter((client) => !client.isOver || (client.hasLeft && !client.isLeaveTold))
    if (this.workers.some((worker) => worker.isOver)) this.workers = this.workers.filter((worker) => !worker.isOver)
  }

  #checkDesk(core: Core, desk: Desk): void {
    desk.inspect()
    const [here, there] = [desk.exchanges.size, core.exchanges.size]
    demand(here === there, 'tables tidy', () => `${there} exchanges are known to the bus, ${here} to the gateway`)
  }

  #perform(actions: readonly Action[]): void {
    for (const action of actions) if (action.do === 'log') this.#noteStopped(action.text, action.about)
    for (const action of actions) {
      this.tell(() => `    ${JSON.stringify(action)}`)
      this.#do(action)
    }
  }

  #do(action: Action): void {
    switch (action.do) {
      case 'pause-client':
      case 'resume-client':
        return this.#pause(this.#clientsById.get(action.client), this.bus.isPaused(action.client))
      case 'pause-worker':
      case 'resume-worker':
        return this.#pause(this.#slots.get(action.worker), this.bus.isPaused(action))
      case 'close-client':
        this.#gone++
        this.#clientsById.get(action.client)?.closeBy(action.how)
        this.#clientsById.delete(action.client)
        this.desk?.exchanges.get(action.client)?.close()
        return void this.desk?.exchanges.delete(action.client)
      case 'open-worker':
        return this.#spawn(action)
      case 'close-worker':
        return this.#slots.get(action.worker)?.stop(action.how)
      case 'stop-accepting':
        this.isStopping = true
        return
      case 'log':
        return this.#heed(action.text, action.about)
      case 'finished':
        demand(!this.isFinished, 'actions sensible', 'the bus finished twice')
        this.isFinished = true
        return
    }
    if (this.gatehouse !== undefined) this.#doAtGate(action, this.gatehouse)
    if (this.desk !== undefined) this.#guard(() => this.#doAtDesk(action, this.desk!))
  }

  #doAtGate(action: Action, gatehouse: Gatehouse): void {
    if (action.do !== 'judge' && action.do !== 'admitted' && action.do !== 'turned-away') return
    const client = this.#clientsById.get(action.client)
    demand(client !== undefined, 'actions sensible', () => `${action.do} of client ${action.client}, which has gone`)
    if (action.do === 'judge') gatehouse.judge(client, action.token)
    else if (action.do === 'admitted') gatehouse.admitted(client, action.identity)
    else gatehouse.turnedAway(client, action.reason)
  }

  #doAtDesk(action: Action, desk: Desk): void {
    switch (action.do) {
      case 'call':
        return desk.take(action)
      case 'cancel-call':
        return desk.cancel(action.from, action.id)
      case 'caller-gone':
        return desk.callerGone(action.from)
      case 'list-changed':
        return desk.listChanged(action.pool)
      case 'fail-calls':
        return desk.failCalls()
      case 'routed':
        return desk.exchanges.get(action.client)?.routed(action)
      case 'exchange-failed':
        return desk.exchanges.get(action.client)?.failed(action.error)
    }
  }

  /**
   * Its number is given to the next worker, which has not been restarted: that may be in the midst of what the bus has done,
   * where the gateway asks it for more.
   */
  #noteStopped(text: string, about: Readonly<Record<string, unknown>>): void {
    if (text === 'worker stopped') this.#stopped.set(about['worker'] as WorkerId, about['generation'] as number)
  }

  /** What the bus says of itself must be true. */
  #heed(text: string, about: Readonly<Record<string, unknown>>): void {
    const worker = this.#slots.get(about['worker'] as WorkerId)
    if (text === 'worker is ended' && about['reason'] === 'worker_stalled' && worker !== undefined)
      return judgeStalled(this, worker, String(about['why']))
    if (about['reason'] !== 'backpressure') return
    const client = this.#clientsById.get(about['client'] as ClientId)
    if (client === undefined) return
    if (text.includes('queue stayed full')) judgeStuck(this, client)
    else demand(!this.isRoomy, 'justified', () => `${client} was closed though there is room: ${text}`)
  }

  #pause(peer: SimClient | SimWorker | undefined, isPaused: boolean | undefined): void {
    // Who goes on in the very event that stopped it was read from all the time.
    if (peer === undefined || isPaused === undefined || peer.isPaused === isPaused) return
    peer.isPaused = isPaused
    if (!('slot' in peer)) return
    if (isPaused) peer.pausedAtMs = this.nowMs
    else if (peer.pausedAtMs < this.nowMs) peer.movedAtMs = this.nowMs
  }

  #spawn({ worker, generation, revision }: Extract<Action, { do: 'open-worker' }>): void {
    const before = this.#slots.get(worker)
    const isFree = before === undefined || before.isBuried
    demand(isFree, 'actions sensible', () => `worker ${worker}.${generation} starts while ${before} is not buried`)
    this.#countRestart(worker, generation, this.#specs.get(revision)!)
    const process = new SimWorker(this, worker, generation, this.#specs.get(revision)!)
    this.#slots.set(worker, process)
    this.workers.push(process)
    this.everyWorker.push(process)
  }

  /** Contract 7.2: `max_restarts` in `restart_window_sec`, per worker. */
  #countRestart(worker: WorkerId, generation: number, { limits, idleTimeoutMs }: PoolSpec): void {
    // One that was sent to sleep is woken without being counted.
    const isAnew = this.#stopped.get(worker) === generation - 1
    if (isAnew || generation === 1 || idleTimeoutMs !== undefined) return void this.#restartsMs.delete(worker)
    const recentMs = (this.#restartsMs.get(worker) ?? []).filter((atMs) => atMs > this.nowMs - limits.restartWindowMs)
    recentMs.push(this.nowMs)
    this.#restartsMs.set(worker, recentMs)
    demand(recentMs.length <= limits.maxRestarts, 'bounded', () => `worker ${worker} is restarted too often`)
  }

  /** What is queued is handed to the system, once per turn of the loop. */
  flush(): void {
    if (this.#missed !== undefined) return
    let rounds = 0
    for (let writes = this.bus.takeWrites(); writes.length > 0; writes = this.bus.takeWrites()) {
      demand(rounds++ < MAX_FLUSHES, 'goes on', 'the bus writes without end')
      this.#witness?.writesTaken()
      for (const write of writes) this.#write(write)
    }
    this.isFlushed = true
    for (const client of this.clients) client.demandTimely()
    this.gatehouse?.inspectTimes()
    if (this.#core === undefined || this.#flushes++ % COUNTED_EVERY !== 0) return
    demandCounted(this, this.#core)
    this.gatehouse?.inspectRates()
  }

  /** Within how many milliseconds every request for the pool is answered; 0: whenever it pleases. */
  timeoutMsOf(pool: string): number {
    return this.#timeoutsMs.get(pool) ?? 0
  }

  #write(write: Write): void {
    this.#witness?.writing(write)
    const exchange = write.kind === 'client' ? this.desk?.exchanges.get(write.id) : undefined
    this.#wrote(write, (exchange ?? this.#pipeOf(write))?.write(write.buffers) ?? 0)
    if (exchange !== undefined) this.#guard(() => exchange.deliver())
  }

  #noteMove(id: WorkerId): void {
    const worker = this.#slots.get(id)
    if (worker !== undefined) worker.movedAtMs = this.nowMs
  }

  #pipeOf(write: Write): { write(buffers: readonly Buffer[]): number } | undefined {
    if (write.kind === 'client') return this.#clientsById.get(write.id)?.pipe
    return this.#slots.get(write.id)
  }

  #wrote(write: Write, pendingBytes: number): void {
    this.moves++
    if (write.kind === 'worker') this.#noteMove(write.id)
    this.tell(() => `[${this.nowMs}] wrote to ${write.kind} ${write.id}, ${pendingBytes} bytes pending`)
    const actions = this.#guard(() => this.bus.wrote(write, pendingBytes, this.nowMs))
    this.#witness?.wrote(write, pendingBytes, this.nowMs, actions)
    this.#holders.hear(actions, 0)
    this.#act(actions, undefined)
  }

  get core(): Core | undefined {
    return this.#core
  }
}

/** Whoever sent was stopped, and let go on by the end of whoever it was stopped for: its next line stops it again. */
function hasGoneOn(actions: readonly Action[], event: BusEvent): boolean {
  return actions.some(
    (action) =>
      (action.do === 'resume-client' && event.type === 'client-received' && action.client === event.client) ||
      (action.do === 'resume-worker' && event.type === 'worker-received' && action.worker === event.worker),
  )
}

function sourceOf(core: Core, event: BusEvent | undefined): Peer | undefined {
  if (event?.type === 'client-received') return core.clients.get(event.client)
  if (event?.type !== 'worker-received') return undefined
  const worker = core.workers.get(event.worker)
  // Its last words may have ended it, and the slot has a new process that has said nothing.
  return worker?.generation === event.generation ? worker : undefined
}

function describe(event: BusEvent): string {
  if ('bytes' in event) return JSON.stringify({ ...event, bytes: event.bytes.latin1Slice() })
  return JSON.stringify(event.type === 'reload' ? { type: event.type } : event)
}
