/**
 * A bus that runs in this program: the daemon, told and asked by method calls.
 *
 * Invariant: once `ended` has resolved, no process, socket, file or timer of this bus is left.
 */
import { EventEmitter } from 'node:events'
import { join } from 'node:path'
import type { BusNews, RunningBus } from '../cli/daemon/embedding.ts'
import { Log } from '../cli/daemon/log.ts'
import { resolveRegistryAgent } from '../cli/daemon/registry-agents.ts'
import { runBus } from '../cli/daemon/run.ts'
import { mistakesInAccess } from '../cli/mistakes-in-access.ts'
import { BusConnection } from '../client/connection.ts'
import { BusUnavailable } from '../client/errors.ts'
import type { BusConfig } from '../config/bus-config.ts'
import { parseConfig, type Reading, readConfig } from '../config/read.ts'
import { formatProblems } from '../config/report.ts'
import type { ConfigObject } from './config-object.ts'
import { BusConfigError } from './errors.ts'
import { streamPair } from './pair.ts'
import type { BusEvents, BusStatus, ClientNews, EmbeddedBus, StartOptions, WorkerNews } from './types.ts'

/** The name of an object's text where its mistakes are told. */
const OBJECT = 'configuration'

export class Bus extends EventEmitter<BusEvents> implements EmbeddedBus {
  readonly ended: Promise<void>
  #tellEnded: () => void = () => {}
  #hasEnded = false
  #running!: RunningBus
  #config: StartOptions['config']
  readonly #options: StartOptions

  /** Resolves when the bus serves. */
  static async start(options: StartOptions): Promise<Bus> {
    const bus = new Bus(options)
    const config = await bus.#readChecked()
    await bus.#run(config)
    return bus
  }

  private constructor(options: StartOptions) {
    super()
    this.#options = options
    this.#config = options.config
    this.ended = new Promise((resolve) => {
      this.#tellEnded = resolve
    })
  }

  get addresses(): readonly string[] {
    return this.#running.addresses
  }

  status(): BusStatus {
    return this.#running.status() as unknown as BusStatus
  }

  async connect({ pool }: { readonly pool?: string } = {}): Promise<BusConnection> {
    if (this.#hasEnded) throw new BusUnavailable('this bus has ended')
    const dial = async () => {
      const [ours, theirs] = streamPair()
      // The pool is named in the greeting, as it is by whoever comes through a door.
      this.#running.accept(theirs, undefined)
      return ours
    }
    const connection = new BusConnection({ dial, pool, reconnectTimeoutMs: 0 }, {})
    await connection.open()
    return connection
  }

  async reload(config?: ConfigObject): Promise<void> {
    const before = this.#config
    this.#config = config ?? before
    try {
      await this.#running.reload()
    } catch (error) {
      this.#config = before
      throw error
    }
  }

  async stop({ atOnce = false }: { readonly atOnce?: boolean } = {}): Promise<void> {
    if (!this.#hasEnded) this.#running.stop(atOnce ? 'at-once' : 'gently')
    await this.ended
  }

  #read(): Promise<Reading> {
    const { cwd = process.cwd() } = this.#options
    if (typeof this.#config === 'string') return readConfig(this.#config, { cwd })
    return Promise.resolve(parseConfig(join(cwd, OBJECT), JSON.stringify(this.#config, null, 2), { cwd }))
  }

  async #readChecked(): Promise<BusConfig> {
    const reading = await this.#read()
    const problems = reading.ok ? await mistakesInAccess(reading) : reading.problems
    if (!reading.ok || problems.length > 0) throw new BusConfigError(formatProblems(problems).trimEnd(), problems)
    return reading.config
  }

  async #run(config: BusConfig): Promise<void> {
    const { logLevel: level = 'info', allowUnauthenticated = false } = this.#options
    const log = new Log({ level, to: (line) => this.#logged(line) })
    await new Promise<void>((resolve, reject) => {
      const ready = (running: RunningBus): void => {
        this.#running = running
        resolve()
      }
      runBus({
        config,
        doors: { ...config.listen, stdio: false, allowUnauthenticated },
        control: undefined,
        log,
        resolveAgent: resolveRegistryAgent,
        record: undefined,
        recordsPayloads: false,
        embedding: { read: () => this.#read(), ready, tell: (news) => this.#tell(news) },
      }).then(() => this.#leave(), reject)
    })
  }

  #logged(line: string): void {
    if (this.listenerCount('log') > 0) this.#emitSoon('log', JSON.parse(line))
  }

  #tell({ type, ...news }: BusNews): void {
    this.#emitSoon(type, news as WorkerNews & ClientNews)
  }

  /** A listener that throws is its program's affair: it must not end in the middle of the bus's. */
  #emitSoon<Name extends 'log' | 'worker' | 'client'>(name: Name, what: BusEvents[Name][0]): void {
    process.nextTick(() => this.emit<'log' | 'worker' | 'client'>(name, what as never))
  }

  #leave(): void {
    this.#hasEnded = true
    this.#tellEnded()
    this.emit('ended')
  }
}
