/**
 * From what the configuration says of a pool to the command line of its workers.
 *
 * Agents that ship with the bus run under the same Node as the bus. Agents of the registry are resolved before the workers
 * start; one that cannot be had leaves its pool parked, with the reason, and the bus running.
 */
import { fileURLToPath } from 'node:url'
import type { BusConfig, Launch } from '../../config/bus-config.ts'
import { workerEnvironment } from '../../config/environment.ts'
import type { PoolId } from '../../kernel/vocabulary.ts'
import type { Launch as ProcessLaunch } from '../../process/launch.ts'
import { spawnWorker } from '../../process/spawn.ts'
import { type GroupWatch, WorkerProcess } from '../../process/worker-process.ts'
import type { Framing } from './worker-link.ts'

/** How an agent of the registry is to be started, or why it cannot be. */
export interface ResolvedAgent {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}
export type ResolveAgent = (
  pool: PoolId,
  launch: Extract<Launch, { registry: string }>,
  config: BusConfig,
) => Promise<ResolvedAgent>

const AGENTS = new URL('../../agents/', import.meta.url)

type Resolved = ProcessLaunch | { readonly unavailable: string }

export class Launches {
  readonly #byRevision = new Map<string, Resolved>()
  readonly #framings = new Map<string, () => Framing>()
  readonly #watch: GroupWatch
  readonly #resolveAgent: ResolveAgent

  constructor(watch: GroupWatch, resolveAgent: ResolveAgent) {
    this.#watch = watch
    this.#resolveAgent = resolveAgent
  }

  /** Learns the command lines of a configuration; call it before the kernel is told of its pools. */
  async learn(config: BusConfig): Promise<void> {
    await this.#learnFramings(config)
    await Promise.all(
      config.bus.pools.map(async ({ id, revision }) => {
        if (this.#byRevision.has(revision)) return
        this.#byRevision.set(revision, await this.#resolve(id, config.launches.get(id)!, config))
      }),
    )
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

  start(revision: string): WorkerProcess {
    const launch = this.#byRevision.get(revision)
    if (launch === undefined) throw new Error(`no command line is known for revision ${revision}`)
    if (!('unavailable' in launch)) return spawnWorker(launch, { watch: this.#watch })
    const absent = new WorkerProcess(undefined)
    process.nextTick(() => absent.emit('failed', { code: UNAVAILABLE, reason: launch.unavailable }))
    return absent
  }

  async #resolve(id: PoolId, launch: Launch, config: BusConfig): Promise<Resolved> {
    const { cwd } = launch
    if ('command' in launch) {
      return { command: launch.command, args: launch.args, env: workerEnvironment(launch, process.env), cwd }
    }
    if ('agent' in launch) {
      const program = fileURLToPath(new URL(`${launch.agent}/main.js`, AGENTS))
      return {
        command: process.execPath,
        args: [program, ...launch.args],
        env: workerEnvironment(launch, process.env),
        cwd,
      }
    }
    try {
      const agent = await this.#resolveAgent(id, launch, config)
      const env = workerEnvironment({ ...launch, env: agent.env }, process.env)
      return { command: agent.command, args: agent.args, env, cwd }
    } catch (error) {
      return { unavailable: error instanceof Error ? error.message : String(error) }
    }
  }
}

/** The code of a failure that trying again will not mend. */
export const UNAVAILABLE = 'UNAVAILABLE'
