/**
 * A bus from start to end: arguments and configuration are read, workers start, doors open, `ready` is logged, and at the
 * end everything that is ours is gone (contract 3.1, 7.4).
 */

import type { Duplex } from 'node:stream'
import { asksForCredentials } from '../../config/admission.ts'
import type { AccessConfig, BusConfig, Listen } from '../../config/bus-config.ts'
import { readConfig } from '../../config/read.ts'
import { formatProblems } from '../../config/report.ts'
import { ControlError, type ControlMethods, serveControl } from '../../console/control-server.ts'
import { defaultControlPath, ensureRunDirectory, removeRecord, sweepStale, writeRecord } from '../../console/running.ts'
import type { Status, WorkerStatus } from '../../console/status-view.ts'
import type { Action, CallerId } from '../../kernel/events.ts'
import { mayUsePool, type Rights } from '../../kernel/rights.ts'
import type { WorkerSnapshot } from '../../kernel/snapshot.ts'
import type { PoolId } from '../../kernel/vocabulary.ts'
import { Warden } from '../../process/warden.ts'
import type { ConnectionInfo, Listener } from '../../transports/listener.ts'
import { openStdio } from '../../transports/stdio.ts'
import { listenTcp } from '../../transports/tcp.ts'
import { listenUnix } from '../../transports/unix.ts'
import { CODE } from '../../wire/jsonrpc.ts'
import { VERSION } from '../version.ts'
import type { Admissions } from './admissions.ts'
import { Daemon, type DaemonOptions } from './daemon.ts'
import { Edges } from './edges.ts'
import type { GatewayRoom } from './gateway-room.ts'
import { InTurn } from './in-turn.ts'
import { busSpecOf, Launches, type ResolveAgent } from './launches.ts'
import type { Log } from './log.ts'
import { OpenDoors, type Reception } from './open-doors.ts'

const refuseTraces = (): never => {
  throw new ControlError(
    'this bus keeps no traces: give its configuration an "aio" section, agents, or a pool with "trace": true',
  )
}
const NO_TRACES: ControlMethods = Object.fromEntries(
  ['list', 'get', 'stats', 'export', 'tail'].map((method) => [`traces.${method}`, refuseTraces]),
)

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
}

interface Reloaded {
  readonly reloaded: true
  readonly pools: readonly PoolId[]
}

/** Runs until the bus has ended; resolves with the exit code. */
export async function runBus(options: RunOptions): Promise<number> {
  const run = new Run(options)
  return run.untilEnd()
}

class Run {
  readonly #options: RunOptions
  readonly #warden: Warden
  readonly #launches: Launches
  readonly #daemon: Daemon
  /** Who receives those that come; whether it asks who they are, the configuration says. */
  #reception: Reception = new OpenDoors()
  #admissions: Admissions | undefined
  readonly #edges: Edges
  /** Connections that came before the workers were started. */
  #early: (() => void)[] | undefined = []
  readonly #listeners: Listener[] = []
  readonly #startedAtMs = performance.now()
  readonly #reloads = new InTurn(() => this.#reload())
  readonly #ended: Promise<number>
  #end: (code: number) => void = () => {}
  #control: Listener | undefined
  #room: GatewayRoom | undefined
  #config: BusConfig
  #signals = 0

  constructor(options: RunOptions) {
    this.#options = options
    this.#config = options.config
    this.#edges = new Edges(options.log)
    this.#ended = new Promise((resolve) => {
      this.#end = resolve
    })
    this.#warden = new Warden({ onTrouble: (message) => options.log.write('warn', message) })
    this.#launches = new Launches(this.#warden, options.resolveAgent, options.log)
    this.#daemon = new Daemon(busSpecOf(options.config), {
      log: options.log,
      launch: (pool, revision, principal) =>
        this.#launches.launch(
          revision,
          principal === undefined ? {} : this.#admissions?.environmentOf(principal, pool),
        ),
      framing: (revision) => this.#launches.framing(revision),
      record: options.record,
      administer: (asked) => void this.#administer(asked),
      stopAccepting: () => void this.#closeDoors(),
      finished: () => this.#end(0),
    })
    this.#daemon.attachAdmissions(this.#reception)
  }

  async untilEnd(): Promise<number> {
    await this.#adoptAccess(this.#config.access)
    await Promise.all([this.#launches.learn(this.#config), this.#openRoom(this.#config)])
    // Before anybody can know that the bus is there.
    this.#watchSignals()
    try {
      await this.#openControl()
      await this.#openDoors()
      // Nothing runs before all doors are bound (contract 3.1).
      this.#daemon.start()
      this.#letIn()
    } catch (error) {
      this.#daemon.apply({ type: 'shutdown', at: 'once' })
      await this.#leave()
      throw error
    }
    const code = await this.#ended
    await this.#leave()
    return code
  }

  /** The gateway and the trace store, for a configuration that has use for them. */
  async #openRoom(config: BusConfig): Promise<void> {
    if (config.bus.gateway === undefined || config.bus.gateway === 'off' || this.#room !== undefined) return
    const { openGatewayRoom } = await import('./gateway-room.ts')
    const { log } = this.#options
    this.#room = await openGatewayRoom({
      daemon: this.#daemon,
      launches: this.#launches,
      config,
      log,
      edges: this.#edges,
      rightsOf: (from) => this.#rightsOf(from),
    })
    this.#daemon.attach(this.#room)
  }

  #rightsOf(from: CallerId): Rights | undefined {
    if (this.#config.access === undefined || from.kind !== 'client') return undefined
    return this.#daemon.rightsOf(from.client)
  }

  /** What the bus itself is asked over the wire, by somebody who may (contract 9.6). */
  async #administer(asked: Extract<Action, { do: 'administer' }>): Promise<void> {
    const { client, method } = asked
    try {
      const result =
        method === 'bus::reload' ? await this.#reloads.ask() : statusFor(this.#status(), this.#daemon.rightsOf(client))
      this.#daemon.reply(asked, `"result":${JSON.stringify(result)}`)
    } catch (error) {
      const message = error instanceof ControlError ? error.message : 'the bus could not do this; its log says why'
      if (!(error instanceof ControlError)) this.#edges.report('a method of the bus', error)
      this.#daemon.reply(asked, `"error":${JSON.stringify({ code: CODE.internalError, message })}`)
    }
  }

  async #openDoors(): Promise<void> {
    const { doors, log } = this.#options
    const door = { onTrouble: (message: string) => log.write('warn', message) }
    for (const { path, pool } of doors.unix) this.#listeners.push(await listenUnix(path, this.#acceptFor(pool), door))
    // Who proves who it is may come from anywhere (contract 9.1).
    const tcp = { ...door, allowUnauthenticated: doors.allowUnauthenticated || asksForCredentials(this.#config.access) }
    for (const { host, port, pool } of doors.tcp) {
      this.#listeners.push(await listenTcp({ host, port }, tcp, this.#acceptFor(pool)))
    }
    const onExchanged = (message: string): void => log.write('info', message)
    for (const { host, port, pool, ...files } of doors.tls) {
      const { listenTls } = await import('../../transports/tls.ts')
      const tls = { ...tcp, ...files, onExchanged }
      this.#listeners.push(await listenTls({ host, port }, tls, this.#acceptFor(pool)))
    }
  }

  /** The workers have been started: whoever has come meanwhile is taken, and the bus is ready. */
  #letIn(): void {
    const { stdio } = this.#options.doors
    const early = this.#early ?? []
    this.#early = undefined
    for (const take of early) take()
    this.#announce([...this.#listeners.map(({ address }) => address), ...(stdio ? ['stdio'] : [])])
    if (stdio) this.#listeners.push(openStdio(this.#acceptFor(undefined)))
  }

  #announce(addresses: readonly string[]): void {
    const control = this.#control?.address.replace(/^unix:/, '')
    if (control !== undefined) writeRecord({ pid: process.pid, control, addresses, config: this.#config.file })
    this.#options.log.write('info', 'ready', {
      addresses,
      pid: process.pid,
      ...(control === undefined ? {} : { control }),
    })
  }

  #acceptFor(pool: PoolId | undefined): (socket: Duplex, info: ConnectionInfo) => void {
    return (socket, info) => {
      const take = (): void => {
        const isTaken = this.#edges.guard('a door', () => this.#take(socket, info, pool), false)
        if (!isTaken) socket.destroy()
      }
      if (this.#early === undefined) return take()
      // Until it is taken nobody listens to what goes wrong with it.
      socket.on('error', () => socket.destroy())
      this.#early.push(take)
    }
  }

  #take(socket: Duplex, info: ConnectionInfo, pool: PoolId | undefined): true {
    const { door, isLocal } = info
    const entrance = { door, isLocal, ...this.#reception.receive(info) }
    this.#daemon.accept(socket, entrance, pool, (client) => this.#reception.opened(client, info))
    return true
  }

  /** A control socket that was asked for must open; the default one may fail, and the bus serves without. */
  async #openControl(): Promise<void> {
    const asked = this.#options.control ?? this.#config.control
    const told = (error: unknown): void => this.#edges.report('the control socket', error)
    const accept = (socket: Duplex) => serveControl(socket, this.#methods(), told)
    if (asked !== undefined) {
      this.#control = await listenUnix(asked, accept)
      return
    }
    try {
      ensureRunDirectory()
      await sweepStale()
      this.#control = await listenUnix(defaultControlPath(process.pid), accept)
    } catch (error) {
      this.#options.log.write('warn', `no control socket: ${(error as Error).message}`)
    }
  }

  #methods(): ControlMethods {
    return {
      status: () => this.#status(),
      reload: () => this.#reloads.ask(),
      ...(this.#room?.controlMethods() ?? NO_TRACES),
    }
  }

  #status(): Status {
    const { workers, ...bus } = this.#daemon.snapshot()
    return {
      ...bus,
      workers: workers.map(statusOf),
      ...this.#shellStatus(),
      pid: process.pid,
      version: VERSION,
      uptime_sec: Math.round(performance.now() - this.#startedAtMs) / 1000,
      rss_bytes: process.memoryUsage.rss(),
      addresses: this.#listeners.map(({ address }) => address),
      config: this.#config.file,
    }
  }

  /** What is counted outside the kernel. */
  #shellStatus(): Partial<Status> {
    const { failures } = this.#edges
    const refused = {
      ...this.#daemon.snapshot().refused,
      ...Object.fromEntries(this.#room?.refused ?? []),
      ...(failures === 0 ? {} : { internal_error: failures }),
    }
    const access = this.#admissions === undefined ? {} : { access: this.#admissions.status }
    return { refused, ...access, ...(this.#room === undefined ? {} : { traces: this.#room.status() }) }
  }

  /** Contract 7.5: all or nothing; what cannot change while the bus runs is refused. One at a time. */
  async #reload(): Promise<Reloaded> {
    // Whoever has put the old file aside wants that too where the configuration is refused (contract 9.23).
    this.#admissions?.reopenAudit()
    const reading = await readConfig(this.#config.file)
    if (!reading.ok) {
      this.#options.log.write('error', 'reload refused: the configuration has problems, the old one stays')
      throw new ControlError(`the configuration has problems, the old one stays:\n${formatProblems(reading.problems)}`)
    }
    const { config } = reading
    if (JSON.stringify(config.listen) !== JSON.stringify(this.#config.listen)) {
      this.#options.log.write('error', 'reload refused: listen has changed, which needs a restart')
      throw new ControlError('listen has changed: restart the bus for that; the old configuration stays')
    }
    if (config.access !== undefined && this.#options.recordsPayloads) {
      this.#options.log.write('error', 'reload refused: access and --record-payloads exclude each other')
      throw new ControlError('this bus records payloads, and with "access" credentials would be among them')
    }
    await this.#learn(config)
    await this.#openRoom(config)
    await this.#reloadAccess(config.access)
    this.#config = config
    this.#room?.adopt(config)
    this.#daemon.apply({ type: 'reload', spec: busSpecOf(config) })
    this.#options.log.write('info', 'configuration reloaded', { config: config.file })
    return { reloaded: true, pools: config.bus.pools.map(({ id }) => id) }
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
      tell: (event) => this.#daemon.apply(event),
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
      throw new ControlError((error as Error).message)
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
    if (this.#signals === 1) {
      this.#options.log.write('info', `${signal}: a second one ends everything at once`)
      return this.#daemon.apply({ type: 'shutdown', at: 'leisure' })
    }
    this.#end(1)
  }

  async #closeDoors(): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => listener.close()))
  }

  /** Nothing of ours stays: no process, no socket file, no record. */
  async #leave(): Promise<void> {
    await this.#daemon.killAll()
    await this.#closeDoors()
    await this.#room?.close()
    await this.#admissions?.close()
    await this.#control?.close()
    removeRecord(process.pid)
    await this.#daemon.close()
    this.#warden.close()
  }
}

/** An observer sees its pools, and nothing of other callers or of this machine. */
function statusFor(status: Status, rights: Rights | undefined): Partial<Status> {
  if (rights === undefined || rights.role === 'admin') return status
  const { config: _config, principals: _principals, access: _access, pid: _pid, ...shown } = status
  const workers = status.workers
    .filter(({ pool }) => mayUsePool(rights, pool))
    .map((worker) => ({ ...worker, pid: null }))
  return { ...shown, workers }
}

/** Only a worker that is a process has a pid. */
function statusOf({ facts, ...worker }: WorkerSnapshot): WorkerStatus {
  return { ...worker, pid: typeof facts['pid'] === 'number' ? facts['pid'] : null }
}
