/**
 * A bus from start to end: arguments and configuration are read, workers start, doors open, `ready` is logged, and at the
 * end everything that is ours is gone (contract 3.1, 7.4).
 */

import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { asksForCredentials } from '../../config/admission.ts'
import type { AccessConfig, BusConfig, Listen } from '../../config/bus-config.ts'
import { changesBetween, describeChange } from '../../config/changes.ts'
import { readConfig } from '../../config/read.ts'
import { formatProblems } from '../../config/report.ts'
import { ControlError, serveControl } from '../../console/control-server.ts'
import {
  defaultControlPath,
  ensureRunDirectory,
  type RunRecord,
  removeRecord,
  sweepStale,
  writeRecord,
} from '../../console/running.ts'
import type { Status } from '../../console/status.ts'
import type { Action, CallerId } from '../../kernel/events.ts'
import type { Rights } from '../../kernel/rights.ts'
import type { BusSpec, ClientId, PoolId } from '../../kernel/vocabulary.ts'
import { Warden } from '../../process/warden.ts'
import type { Listener } from '../../transports/listener.ts'
import { listenUnix } from '../../transports/unix.ts'
import { CODE } from '../../wire/jsonrpc.ts'
import type { Admissions } from './admissions.ts'
import type { AggregateRoom } from './aggregate-room.ts'
import { type Rooms, statusFor, statusOfBus } from './bus-status.ts'
import type { BusStore } from './bus-store.ts'
import type { ClusterRoom } from './cluster-room.ts'
import { askTraceOfNodes, type Controlled, controlMethods } from './control-methods.ts'
import { Daemon, type DaemonOptions } from './daemon.ts'
import { Edges } from './edges.ts'
import { type Embedding, followWorker, type Reloaded, type RunningBus } from './embedding.ts'
import type { Launcher, Spawn } from './ends.ts'
import type { GatewayRoom } from './gateway-room.ts'
import { InTurn } from './in-turn.ts'
import { busSpecOf, Launches, type ResolveAgent } from './launches.ts'
import { LineDoors } from './line-doors.ts'
import type { Log } from './log.ts'
import { OpenDoors, type Reception } from './open-doors.ts'
import { PoolRestarts } from './pool-restarts.ts'
import { refuseWhatMayNotChange } from './reload-refusals.ts'
import { StatusDetails } from './status-details.ts'
import type { WebRoom } from './web-room.ts'
import type { WorkerEnd } from './worker-end.ts'

/** Said of a refusal over a file of the user, who has to mend it. */
const MISTAKE = { mistake: true }

const NO_FAR_AGENTS: ReadonlyMap<string, PoolId> = new Map()

export interface Doors extends Listen {
  readonly stdio: boolean
  readonly allowUnauthenticated: boolean
}

export interface RunOptions {
  readonly config: BusConfig
  readonly doors: Doors
  readonly control: string | undefined
  readonly log: Log
  readonly resolveAgent: ResolveAgent
  readonly record: DaemonOptions['record']
  readonly recordsPayloads: boolean
  /** How it was put into the background, if it was. */
  readonly background?: RunRecord['started'] | undefined
  /** The program in which it runs, where that is another than ours. */
  readonly embedding?: Embedding
}

/** Runs until the bus has ended; resolves with the exit code. */
export async function runBus(options: RunOptions): Promise<number> {
  const run = new Run(options)
  return run.untilEnd()
}

class Run {
  readonly #options: RunOptions
  /** By which other buses know this one (contract 11.6). */
  readonly #busId = randomUUID()
  readonly #warden: Warden
  readonly #launches: Launches
  readonly #daemon: Daemon
  /** Who receives those that come; whether it asks who they are, the configuration says. */
  #reception: Reception = new OpenDoors()
  #admissions: Admissions | undefined
  readonly #edges: Edges
  readonly #doors: LineDoors
  readonly #startedAtMs = performance.now()
  readonly #reloads = new InTurn(() => this.#reload())
  readonly #ended: Promise<number>
  #end: (code: number) => void = () => {}
  #control: Listener | undefined
  #room: GatewayRoom | undefined
  #aggregates: AggregateRoom | undefined
  #store: BusStore | undefined
  #isKeeping = false
  #cluster: ClusterRoom | undefined
  #web: WebRoom | undefined
  /** As it was read last; `#config` is what the pools have become of it. */
  #readConfig: BusConfig
  /** The same with pools that were told to start anew. */
  #ownConfig: BusConfig
  /** And with what other nodes have. */
  #config: BusConfig
  readonly #restarts = new PoolRestarts()
  readonly #details = new StatusDetails({ status: () => this.#status(), roll: () => this.#daemon.roll() })
  #signals = 0

  constructor(options: RunOptions) {
    this.#options = options
    this.#readConfig = this.#ownConfig = this.#config = options.config
    this.#edges = new Edges(options.log)
    this.#ended = new Promise((resolve) => {
      this.#end = resolve
    })
    this.#warden = new Warden({ onTrouble: (message) => options.log.write('warn', message) })
    this.#launches = new Launches(this.#warden, options.resolveAgent, options.log, this.#busId)
    this.#daemon = new Daemon(this.#specOf(options.config), {
      log: options.log,
      launch: (wanted) => this.#launch(wanted),
      framing: (revision) => this.#launches.framing(revision),
      record: options.record,
      administer: (asked) => void this.#administer(asked),
      sessionOpened: ({ pool, session }) => this.#cluster?.note(pool, session),
      locate: (asked) => this.#cluster?.locate(asked),
      gather: (asked) => this.#cluster?.gather(asked),
      diagnosed: (worker, line) => this.#details.heard(worker, line),
      stopAccepting: () => void this.#closeDoors(),
      finished: () => this.#end(0),
    })
    this.#daemon.attachAdmissions(this.#reception)
    const { log, embedding } = options
    const reception = (): Reception => this.#reception
    this.#doors = new LineDoors({ daemon: this.#daemon, log, edges: this.#edges, reception, embedding })
  }

  /** What is told and counted for those who look on is so only where somebody can (contract 8.5, 15.19). */
  #specOf(config: BusConfig): BusSpec {
    const { doors, log } = this.#options
    const hasTraffic = doors.http.some(({ hasConsole }) => hasConsole)
    return { ...busSpecOf(config, log.isWritten('debug')), hasTraffic, busId: this.#busId }
  }

  async untilEnd(): Promise<number> {
    await this.#adoptAccess(this.#config.access)
    await Promise.all([this.#launches.learn(this.#config), this.#openRoom(this.#config)])
    // Before anybody can know that the bus is there.
    if (this.#options.embedding === undefined) this.#watchSignals()
    try {
      await this.#openControl()
      await this.#openDoors()
      await this.#openCluster(this.#config)
      // Nothing runs before all doors are bound (contract 3.1).
      this.#daemon.start()
      await this.#openSessions(this.#config)
      await this.#adoptAggregates(this.#config)
      this.#letIn()
      this.#cluster?.start()
      this.#options.embedding?.ready(this.#running())
    } catch (error) {
      this.#daemon.apply({ type: 'shutdown', at: 'once' })
      await this.#leave()
      throw error
    }
    const code = await this.#ended
    await this.#leave()
    return code
  }

  #launch(wanted: Spawn): ReturnType<Launcher> {
    const { pool, principal } = wanted
    const elsewhere = this.#cluster?.launch(wanted)
    if (elsewhere !== undefined) return elsewhere
    const own = principal === undefined ? {} : this.#admissions?.environmentOf(principal, pool)
    const launched = this.#launches.launch(wanted, own)
    const { embedding } = this.#options
    if (embedding === undefined) return launched
    const follow = (end: WorkerEnd): WorkerEnd => followWorker(end, pool, embedding.tell)
    return launched instanceof Promise ? launched.then((start) => () => follow(start())) : follow(launched)
  }

  #running(): RunningBus {
    const info = { door: 'unix', isLocal: true, listener: 'embedded', peer: '' } as const
    return {
      addresses: this.#addresses,
      status: () => this.#status(),
      reload: () => this.#reloads.ask(),
      stop: (how) => {
        if (how === 'gently') return this.#shutDown('stop was asked for')
        // Nobody is started again while the last ones are ended.
        this.#daemon.apply({ type: 'shutdown', at: 'once' })
        this.#end(1)
      },
      accept: (stream, pool) => this.#doors.acceptFor(pool)(stream, info),
    }
  }

  /** The gateway and the store, for a configuration that has use for them. */
  async #openRoom(config: BusConfig): Promise<void> {
    await this.#openStore(config)
    if (config.bus.gateway === undefined || config.bus.gateway === 'off' || this.#room !== undefined) return
    const { GatewayRoom } = await import('./gateway-room.ts')
    const { log } = this.#options
    this.#room = new GatewayRoom(
      {
        daemon: this.#daemon,
        launches: this.#launches,
        config,
        log,
        edges: this.#edges,
        askNodes: (method, params) => askTraceOfNodes(this.#controlled, method, params),
        farAgents: () => this.#config.bus.farAgents ?? NO_FAR_AGENTS,
        rightsOf: (from) => this.#rightsOf(from),
        environmentOf: (client, pool) => this.#environmentOf(client, pool),
      },
      this.#store!.tracing,
    )
    this.#daemon.attach(this.#room)
  }

  /** The pools that are made of others; whoever is a member is known to the kernel by now. */
  async #adoptAggregates(config: BusConfig): Promise<void> {
    if (config.aggregates.length > 0 && this.#aggregates === undefined) {
      const { AggregateRoom } = await import('./aggregate-room.ts')
      const { log } = this.#options
      const rightsOf = (client: ClientId): Rights | undefined =>
        this.#config.access === undefined ? undefined : this.#daemon.rightsOf(client)
      this.#aggregates = new AggregateRoom({ daemon: this.#daemon, log, edges: this.#edges, rightsOf })
      this.#daemon.attachAggregates(this.#aggregates)
    }
    this.#aggregates?.adopt(config)
  }

  async #openStore(config: BusConfig): Promise<void> {
    if (this.#store !== undefined || !hasUseForStore(config)) return
    const { openBusStore } = await import('./bus-store.ts')
    this.#store = await openBusStore(config, this.#options.log, (event) => this.#daemon.apply(event))
    if (this.#store.journal !== undefined) this.#daemon.attachJournal(this.#store.journal)
  }

  /** Where sessions are kept: what time it is, and what was said before. */
  async #openSessions({ bus }: BusConfig): Promise<void> {
    if (this.#isKeeping || !bus.pools.some(({ keeping }) => keeping !== undefined)) return
    this.#isKeeping = true
    this.#daemon.tellCalendar()
    await this.#store?.journal?.open()
  }

  #rightsOf(from: CallerId): Rights | undefined {
    if (this.#config.access === undefined || from.kind !== 'client') return undefined
    return this.#daemon.rightsOf(from.client)
  }

  #environmentOf(client: ClientId, pool: PoolId): Readonly<Record<string, string>> {
    const name = this.#daemon.nameOf(client)
    return name === undefined ? {} : (this.#admissions?.environmentOf(name, pool) ?? {})
  }

  /** What the bus itself is asked over the wire, by somebody who may (contract 9.6). */
  async #administer(asked: Extract<Action, { do: 'administer' }>): Promise<void> {
    const { client, method } = asked
    try {
      const result =
        method === 'bus::reload'
          ? await this.#reloads.ask()
          : statusFor(await this.#details.take(), this.#daemon.rightsOf(client))
      this.#daemon.reply(asked, `"result":${JSON.stringify(result)}`)
    } catch (error) {
      const message = error instanceof ControlError ? error.message : 'the bus could not do this; its log says why'
      if (!(error instanceof ControlError)) this.#edges.report('a method of the bus', error)
      this.#daemon.reply(asked, `"error":${JSON.stringify({ code: CODE.internalError, message })}`)
    }
  }

  /** Only a node of many loads what that needs. */
  async #openCluster(config: BusConfig): Promise<void> {
    if (config.cluster === undefined) return
    const { ClusterRoom } = await import('./cluster-room.ts')
    this.#cluster = new ClusterRoom(config, {
      daemon: this.#daemon,
      log: this.#options.log,
      busId: this.#busId,
      reception: () => this.#reception,
      changed: () => this.#adopt(this.#ownConfig),
      tellTrace: async (traceId) => {
        const document = await this.#room?.ownTrace(traceId)
        return document === undefined ? undefined : JSON.stringify(document)
      },
    })
    await this.#cluster.prepare()
  }

  async #openDoors(): Promise<void> {
    const { doors } = this.#options
    // Who proves who it is may come from anywhere (contract 9.1).
    const mayBeOpen = doors.allowUnauthenticated || asksForCredentials(this.#config.access)
    await this.#doors.open(doors, mayBeOpen)
    for (const http of doors.http) await (await this.#openWeb(mayBeOpen)).openDoor(http)
  }

  /** Only a bus with a web door loads what that needs. */
  async #openWeb(allowUnauthenticated: boolean): Promise<WebRoom> {
    if (this.#web !== undefined) return this.#web
    const { WebRoom } = await import('./web-room.ts')
    const { log, doors } = this.#options
    this.#web = new WebRoom({
      busId: this.#busId,
      daemon: this.#daemon,
      log,
      edges: this.#edges,
      allowUnauthenticated,
      inTime: (socket, take) => this.#doors.inTime(socket, take),
      config: () => this.#listedConfig,
      pools: () => this.#config.bus.pools,
      reception: () => this.#reception,
      status: () => this.#details.withLastLines(this.#status()),
      reload: () => this.#reloads.ask(),
      certificates: () => [...doors.tls, ...doors.http].flatMap(({ cert }) => (cert === undefined ? [] : [cert])),
      commandLine: { doors, control: this.#options.control },
      traces: (identity) => this.#room?.tracesFor(identity),
      followTraces: (changed) => this.#room?.followTraces(changed) ?? (() => {}),
    })
    return this.#web
  }

  /** The workers have been started: whoever has come meanwhile is taken, and the bus is ready. */
  #letIn(): void {
    const { stdio } = this.#options.doors
    this.#doors.letIn()
    this.#announce([...this.#addresses, ...(stdio ? ['stdio'] : [])])
    if (stdio) this.#doors.openStdio()
  }

  get #addresses(): readonly string[] {
    return [...this.#doors.addresses, ...(this.#web?.doors ?? []).map(({ address }) => address)]
  }

  #announce(addresses: readonly string[]): void {
    const control = this.#control?.address.replace(/^unix:/, '')
    const { log, background, embedding } = this.#options
    const about = { ...(log.file === undefined ? {} : { log: log.file }), ...(background && { started: background }) }
    // The record bears the number of the process, which may have several buses inside.
    if (control !== undefined && embedding === undefined)
      this.#leaveRecord({ pid: process.pid, control, addresses, config: this.#config.file, ...about })
    this.#options.log.write('info', 'ready', {
      addresses,
      pid: process.pid,
      ...(control === undefined ? {} : { control }),
    })
  }

  /** Without it the bus serves all the same, and is found by whoever says where its control socket is. */
  #leaveRecord(record: RunRecord): void {
    try {
      writeRecord(record)
    } catch (error) {
      const { message } = error as Error
      this.#options.log.write('warn', `other commands need --control ${record.control} to find this bus: ${message}`)
    }
  }

  /** A control socket that was asked for must open; the default one may fail, and the bus serves without. */
  async #openControl(): Promise<void> {
    const asked = this.#options.control ?? this.#config.control
    const told = (error: unknown): void => this.#edges.report('the control socket', error)
    const accept = (socket: Duplex) => serveControl(socket, controlMethods(this.#controlled), told)
    if (asked !== undefined) {
      this.#control = await listenUnix(asked, accept)
      return
    }
    if (this.#options.embedding !== undefined) return
    try {
      ensureRunDirectory()
      await sweepStale()
      this.#control = await listenUnix(defaultControlPath(process.pid), accept)
    } catch (error) {
      this.#options.log.write('warn', `no control socket: ${(error as Error).message}`)
    }
  }

  get #controlled(): Controlled {
    return {
      config: () => this.#config,
      details: this.#details,
      room: () => this.#room,
      cluster: () => this.#cluster,
      web: () => this.#web,
      log: this.#options.log,
      pools: () => this.#config.bus.pools.map(({ id }) => id),
      reload: () => this.#reloads.ask(),
      stop: (isAtOnce) => (isAtOnce ? this.#end(1) : this.#shutDown('stop was asked for')),
      restart: (pool, isAtOnce) => this.#restart(pool, isAtOnce),
    }
  }

  #status(): Status {
    const rooms: Rooms = {
      edges: this.#edges,
      admissions: this.#admissions,
      aggregates: this.#aggregates,
      cluster: this.#cluster,
      gateway: this.#room,
      store: this.#store,
      web: this.#web,
    }
    const uptimeMs = performance.now() - this.#startedAtMs
    const about = { uptimeMs, addresses: this.#addresses, config: this.#config.file }
    return statusOfBus(this.#daemon.snapshot(), rooms, about)
  }

  /** Contract 7.5: all or nothing; what cannot change while the bus runs is refused. One at a time. */
  async #reload(): Promise<Reloaded> {
    // Whoever has put the old file aside wants that too where the configuration is refused (contract 9.23).
    this.#admissions?.reopenAudit()
    const { embedding } = this.#options
    const reading = await (embedding === undefined ? readConfig(this.#config.file) : embedding.read())
    if (!reading.ok) {
      this.#options.log.write('error', 'reload refused: the configuration has problems, the old one stays')
      const problems = formatProblems(reading.problems)
      throw new ControlError(`the configuration has problems, the old one stays:\n${problems}`, MISTAKE)
    }
    const config = this.#restarts.applyTo(reading.config)
    const running = { config: this.#config, recordsPayloads: this.#options.recordsPayloads }
    refuseWhatMayNotChange(config, running, this.#options.log)
    await this.#learn(config)
    await this.#openRoom(config)
    await this.#reloadAccess(config.access)
    const changes = changesBetween(this.#ownConfig, config)
    this.#readConfig = reading.config
    this.#adopt(config)
    await this.#adoptAggregates(config)
    await this.#openSessions(config)
    const changed = [...changes.pools.map(describeChange), ...changes.keys.map((key) => `changed ${key}`)]
    this.#options.log.write('info', 'configuration reloaded', { config: config.file, changed })
    return { reloaded: true, pools: config.bus.pools.map(({ id }) => id), changes }
  }

  /** What was read, with the pools of other nodes; no list names their places (contract 14.2). */
  get #listedConfig(): BusConfig {
    if (this.#cluster === undefined) return this.#readConfig
    const pools = this.#config.bus.pools.filter(({ placeOf }) => placeOf === undefined)
    return { ...this.#readConfig, bus: { ...this.#readConfig.bus, pools } }
  }

  #adopt(own: BusConfig): void {
    this.#ownConfig = own
    this.#cluster?.adopt(own)
    const config = this.#cluster?.withImports(own) ?? own
    this.#config = config
    this.#room?.adopt(own)
    this.#daemon.apply({ type: 'reload', spec: this.#specOf(config) })
  }

  /** What one that has changed gets, a pool gets that is to start anew: new workers, and the old ones retire. */
  async #restart(pool: PoolId, isAtOnce: boolean): Promise<{ workers: number; retiring: number }> {
    this.#restarts.count(pool)
    const config = this.#restarts.applyTo(this.#readConfig)
    await this.#learn(config)
    this.#options.log.write('info', 'pool restarts, as it was told to', { pool })
    this.#adopt(config)
    if (isAtOnce) this.#daemon.endRetiring(pool)
    const own = this.#daemon.snapshot().workers.filter((worker) => worker.pool === pool)
    const retiring = own.filter(({ state }) => state === 'retiring').length
    return { workers: own.filter(({ state }) => state === 'starting' || state === 'ready').length, retiring }
  }

  /** Where nobody has been asked so far nothing of it is loaded; from then on it stays. */
  async #adoptAccess(access: AccessConfig | undefined): Promise<void> {
    if (access === undefined && this.#admissions === undefined) return
    const admissions = this.#admissions ?? (await this.#makeAdmissions())
    admissions.adopt(access)
    if (this.#reception instanceof OpenDoors)
      for (const [client, info] of this.#reception.visitors) admissions.takeOver(client, info)
    this.#admissions = this.#reception = admissions
    this.#daemon.attachAdmissions(admissions)
  }

  async #makeAdmissions(): Promise<Admissions> {
    const { Admissions } = await import('./admissions.ts')
    return new Admissions({
      log: this.#options.log,
      tell: (event) => {
        this.#daemon.apply(event)
        if (event.type === 'rights-changed') this.#aggregates?.rightsChanged()
      },
      drop: (client) => this.#daemon.drop(client),
      allowUnauthenticated: this.#options.doors.allowUnauthenticated,
      isStdoutTaken: this.#options.doors.stdio,
    })
  }

  async #reloadAccess(access: AccessConfig | undefined): Promise<void> {
    try {
      await this.#adoptAccess(access)
    } catch (error) {
      this.#options.log.write('error', 'reload refused: the access file has problems, the old one stays')
      this.#admissions?.reloaded('refused')
      throw new ControlError((error as Error).message, MISTAKE)
    }
    this.#admissions?.reloaded('ok')
  }

  async #learn(config: BusConfig): Promise<void> {
    try {
      await this.#launches.learn(config)
    } catch (error) {
      this.#options.log.write('error', `reload refused: ${(error as Error).message}`)
      throw new ControlError(`${(error as Error).message}; the old configuration stays`)
    }
  }

  #watchSignals(): void {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => this.#signalled(signal))
    process.on('SIGHUP', () => {
      const { stdio } = this.#options.doors
      if (stdio || process.stdin.isTTY || process.stderr.isTTY) return this.#signalled('SIGHUP')
      this.#reloads.ask().catch((error) => this.#options.log.write('error', (error as Error).message))
    })
  }

  #signalled(signal: string): void {
    this.#signals++
    if (this.#signals === 1) return this.#shutDown(`${signal}: a second one ends everything at once`)
    this.#end(1)
  }

  #shutDown(why: string): void {
    this.#options.log.write('info', why)
    this.#cluster?.leave()
    this.#daemon.apply({ type: 'shutdown', at: 'leisure' })
  }

  async #closeDoors(): Promise<void> {
    this.#web?.shutDown()
    await this.#doors.close()
  }

  /** Nothing of ours stays: no process, no socket file, no record. */
  async #leave(): Promise<void> {
    await this.#daemon.killAll()
    await this.#cluster?.close()
    await this.#closeDoors()
    this.#aggregates?.close()
    await this.#web?.close()
    await this.#room?.close()
    await this.#store?.close()
    await this.#admissions?.close()
    await this.#control?.close()
    if (this.#options.embedding === undefined) removeRecord(process.pid)
    await this.#daemon.close()
    this.#warden.close()
  }
}

/** Traces or what is said in sessions are to be kept; what that takes is loaded only then. */
function hasUseForStore({ bus: { gateway, pools } }: BusConfig): boolean {
  return (gateway !== undefined && gateway !== 'off') || pools.some(({ keeping }) => keeping?.isJournaled === true)
}
