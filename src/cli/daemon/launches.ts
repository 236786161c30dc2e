/**
 * From what the configuration says of a pool to its workers: the command line of a process, or the upstream that one is.
 *
 * Agents that ship with the bus run under the same Node as the bus. Agents of the registry are brought in the background,
 * while the others serve; one that cannot be had leaves its pool parked, with the reason, and the bus running.
 */
import { fileURLToPath } from 'node:url'
import type {
  AgentLaunch,
  BusConfig,
  CommandLaunch,
  Launch,
  RegistryLaunch,
  RemoteLaunch,
} from '../../config/bus-config.ts'
import { workerEnvironment } from '../../config/environment.ts'
import type { BusSpec, PoolId, PoolSpec } from '../../kernel/vocabulary.ts'
import type { Launch as ProcessLaunch, SpawnFailure } from '../../process/launch.ts'
import { spawnWorker } from '../../process/spawn.ts'
import { type GroupWatch, WorkerProcess } from '../../process/worker-process.ts'
import type { Upstream } from '../../remote/upstream.ts'
import type { Spawn, Start } from './ends.ts'
import type { Log } from './log.ts'
import type { WorkerEnd } from './worker-end.ts'
import type { Framing } from './worker-link.ts'

/** What the kernel is told of the pools, the little that the programs in them tell included. */
/** `isTold`: what becomes of each request is to be known beside the audit log. */
export function busSpecOf({ bus, launches, access }: BusConfig, isTold: boolean): BusSpec {
  const pools = bus.pools.map((pool) => ({ ...pool, ...traitsOf(pool, launches.get(pool.id)) }))
  return { ...bus, pools, hasAccess: access !== undefined, hasAudit: isTold || access?.audit !== undefined }
}

function traitsOf({ startTimeoutMs }: PoolSpec, launch: Launch | undefined): Partial<PoolSpec> {
  if (launch === undefined) return {}
  if ('agent' in launch && launch.agent === 'registry') return { closesSessions: true }
  // Its key is in its environment: whoever brings one has a worker for it.
  if ('agent' in launch && launch.agent === 'openai') return { hasOwnWorkers: true }
  // Bringing the program belongs to the start, and 0 is for ever.
  if ('registry' in launch && startTimeoutMs > 0) return { startTimeoutMs: startTimeoutMs + INSTALL_MS }
  return {}
}

/** How an agent of the registry is to be started, or why it cannot be. */
export interface ResolvedAgent {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}
export type ResolveAgent = (pool: PoolId, launch: RegistryLaunch, config: BusConfig, log: Log) => Promise<ResolvedAgent>

/** An installation has a bound of its own; this one is above it. */
const INSTALL_MS = 15 * 60_000
const AGENTS = new URL('../../agents/', import.meta.url)

type Resolved = ProcessLaunch | { readonly unavailable: string }
type Upstreams = typeof import('./upstreams.ts')

export class Launches {
  readonly #byRevision = new Map<string, Resolved | Promise<Resolved>>()
  readonly #framings = new Map<string, () => Framing>()
  readonly #upstreams = new Map<string, Upstream>()
  /** Loaded where a pool is a URL. */
  #remote: Upstreams | undefined
  #lastLearnt: ReadonlySet<string> = new Set()
  readonly #watch: GroupWatch
  readonly #resolveAgent: ResolveAgent
  readonly #log: Log
  readonly #busId: string

  constructor(watch: GroupWatch, resolveAgent: ResolveAgent, log: Log, busId: string) {
    this.#busId = busId
    this.#watch = watch
    this.#resolveAgent = resolveAgent
    this.#log = log
  }

  /** Learns the command lines of a configuration; call it before the kernel is told of its pools. */
  async learn(config: BusConfig): Promise<void> {
    await this.#learnFramings(config)
    await requireCredentials(config)
    this.#forgetAllBut(config)
    for (const { id, revision, limits } of config.bus.pools) {
      const launch = config.launches.get(id)
      if (launch === undefined || this.#byRevision.has(revision) || this.#upstreams.has(revision)) continue
      if ('url' in launch) await this.#learnUpstream(revision, launch, limits.maxInputBufferBytes)
      else if ('registry' in launch) this.#bring(revision, this.#resolve(id, launch, config))
      else this.#byRevision.set(revision, await commandOf(id, launch, config))
    }
  }

  async #learnUpstream(revision: string, launch: RemoteLaunch, maxMessageBytes: number): Promise<void> {
    this.#remote ??= await import('./upstreams.ts')
    this.#upstreams.set(revision, this.#remote.upstreamOf(launch, maxMessageBytes, this.#busId))
  }

  /** What runs belongs to the last configuration; what it is to become, to this one. Nothing older is started again. */
  #forgetAllBut({ bus }: BusConfig): void {
    const current = new Set(bus.pools.map(({ revision }) => revision))
    for (const known of [this.#byRevision, this.#framings, this.#upstreams]) {
      for (const revision of known.keys()) {
        if (!current.has(revision) && !this.#lastLearnt.has(revision)) known.delete(revision)
      }
    }
    this.#lastLearnt = current
  }

  #bring(revision: string, coming: Promise<Resolved>): void {
    this.#byRevision.set(revision, coming)
    void coming.then((resolved) => {
      if (this.#byRevision.get(revision) === coming) this.#byRevision.set(revision, resolved)
    })
  }

  /** A splitter of its own for a process of this revision; undefined: it writes lines. */
  framing(revision: string): Framing | undefined {
    return this.#framings.get(revision)?.()
  }

  async #learnFramings({ agents, bus }: BusConfig): Promise<void> {
    const printers = agents.filter((agent) => agent.type === 'stdio' && agent.mode === 'json')
    if (printers.length === 0) return
    const { jsonFraming } = await import('./json-output.ts')
    for (const { name, maxReplyBytes } of printers) {
      const revision = bus.pools.find(({ id }) => id === name)!.revision
      this.#framings.set(revision, () => jsonFraming(maxReplyBytes))
    }
  }

  /** A worker of the pool, as soon as its program is there; what is `own` goes over the environment of the pool. */
  launch({ revision, vias }: Spawn, own: Readonly<Record<string, string>> = {}): WorkerEnd | Promise<Start> {
    const upstream = this.#upstreams.get(revision)
    if (upstream !== undefined) return this.#remote!.openUpstream(upstream, vias)
    const launch = this.#launchOf(revision)
    if (launch instanceof Promise) return launch.then((resolved) => () => this.#spawn(resolved, own))
    return this.#spawn(launch, own)
  }

  /** A process of the pool now; without its program it fails. */
  start(revision: string, own: Readonly<Record<string, string>> = {}): WorkerProcess {
    const launch = this.#launchOf(revision)
    if (!(launch instanceof Promise)) return this.#spawn(launch, own)
    return absent({ code: 'COMING', reason: 'its program is still being installed' })
  }

  #launchOf(revision: string): Resolved | Promise<Resolved> {
    const launch = this.#byRevision.get(revision)
    if (launch === undefined) throw new Error(`no command line is known for revision ${revision}`)
    return launch
  }

  #spawn(launch: Resolved, own: Readonly<Record<string, string>>): WorkerProcess {
    if ('unavailable' in launch) return absent({ code: 'UNAVAILABLE', reason: launch.unavailable, again: 'never' })
    return spawnWorker({ ...launch, env: { ...launch.env, ...own } }, { watch: this.#watch })
  }

  async #resolve(id: PoolId, launch: RegistryLaunch, config: BusConfig): Promise<Resolved> {
    try {
      const agent = await this.#resolveAgent(id, launch, config, this.#log)
      const env = workerEnvironment({ ...launch, env: agent.env }, process.env)
      return { command: agent.command, args: agent.args, env, cwd: launch.cwd, pipes: launch.pipes }
    } catch (error) {
      return { unavailable: error instanceof Error ? error.message : String(error) }
    }
  }
}

/** A process that could not be started. */
export function absent(failure: SpawnFailure): WorkerProcess {
  const nobody = new WorkerProcess(undefined)
  process.nextTick(() => nobody.emit('failed', failure))
  return nobody
}

async function commandOf(id: PoolId, launch: CommandLaunch | AgentLaunch, config: BusConfig): Promise<ProcessLaunch> {
  const env = workerEnvironment(launch, process.env)
  const { cwd, args, pipes } = launch
  if ('command' in launch) return { command: launch.command, args, env, cwd, pipes }
  const program = fileURLToPath(new URL(`${launch.agent}/main.js`, AGENTS))
  const settings = launch.agent === 'registry' ? await launcherSettings(id, config) : { args: [], env: {} }
  return {
    command: process.execPath,
    args: [program, ...settings.args, ...args],
    env: { ...settings.env, ...env },
    cwd,
    pipes,
  }
}

/** Secrets that others can read are a mistake to be corrected before anything starts; nothing is fetched for this. */
async function requireCredentials(config: BusConfig): Promise<void> {
  if (![...config.launches.values()].some((launch) => 'registry' in launch)) return
  const { checkCredentials } = await import('./registry-agents.ts')
  await checkCredentials(config)
}

async function launcherSettings(id: PoolId, config: BusConfig): Promise<Pick<ProcessLaunch, 'args' | 'env'>> {
  const { settingsForLauncher } = await import('./registry-agents.ts')
  return settingsForLauncher(id, config)
}
