/**
 * One worker that offers all agents of the registry: the kernel once more, behind the stdio door (spec R7).
 *
 * Every agent is a pool that starts on demand and is ended when idle; messages name it by `agentId`. It reads no
 * configuration and opens no socket. Secrets are in the environment of the agent they belong to and nowhere else. It ends
 * itself and its agents within a second of the end of its input or of SIGTERM (contract 3.3).
 */
import { workerEnvironment } from '../../config/environment.ts'
import { spawnWorker } from '../../process/spawn.ts'
import { STOP_TIMING } from '../../process/stop.ts'
import { Warden } from '../../process/warden.ts'
import { openRegistry, type Registry } from '../../registry/resolve.ts'
import type { RegistrySources } from '../../registry/sources.ts'
import { openStdio } from '../../transports/stdio.ts'
import { Daemon } from './daemon.ts'
import type { Start } from './ends.ts'
import { launcherSpec } from './launcher-spec.ts'
import type { Log } from './log.ts'
import { reportTo } from './registry-agents.ts'

export interface LauncherOptions {
  readonly sources: RegistrySources
  /** 0: never. */
  readonly idleTimeoutMs: number
  /** The longest line of an agent. */
  readonly maxLineBytes: number
  /** Agents get the whole environment of the launcher, its secrets included. */
  readonly inheritEnv: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
}

/** What is owed may still be answered for so long after the end of the input. */
const GRACE_MS = 300
/** Whoever is not gone then is ended at once. */
const DEADLINE_MS = 800
const HURRIED_STEP_MS = 150

/** Serves stdin and stdout until the input ends or a signal comes; resolves with the exit code. */
export async function runLauncher(options: LauncherOptions): Promise<number> {
  const installs = new AbortController()
  const { sources, log } = options
  const registry = await openRegistry({ sources, signal: installs.signal, ...reportTo(log) })
  return new Launcher(registry, options, installs).untilEnd()
}

class Launcher {
  readonly #registry: Registry
  readonly #options: LauncherOptions
  readonly #installs: AbortController
  readonly #warden: Warden
  readonly #daemon: Daemon
  readonly #ended: Promise<number>
  readonly #timers: NodeJS.Timeout[] = []
  /** How agents are ended: with patience, until the launcher itself has to end. */
  readonly #timing = { ...STOP_TIMING }
  #end: (code: number) => void = () => {}

  constructor(registry: Registry, options: LauncherOptions, installs: AbortController) {
    this.#registry = registry
    this.#options = options
    this.#installs = installs
    this.#ended = new Promise((resolve) => {
      this.#end = resolve
    })
    this.#warden = new Warden({ onTrouble: (message) => options.log.write('warn', message) })
    this.#daemon = new Daemon(launcherSpec(registry.catalogue, options), {
      log: options.log,
      launch: ({ pool }) => this.#launch(pool),
      stopAccepting: () => {},
      finished: () => this.#end(0),
    })
  }

  async untilEnd(): Promise<number> {
    const stop = (): void => this.#stop(0)
    const leave = (): void => this.#stop(GRACE_MS)
    process.on('SIGTERM', stop).on('SIGINT', stop)
    process.stdin.once('end', leave).once('close', leave)
    this.#daemon.start()
    openStdio((socket, { door, isLocal }) => this.#daemon.accept(socket, { door, isLocal }))
    const code = await this.#ended
    await this.#leave()
    process.off('SIGTERM', stop).off('SIGINT', stop)
    return code
  }

  /** Brings the agent if need be; a failure is told to whoever asked, and the next one who asks tries again. */
  async #launch(id: string): Promise<Start> {
    const agent = await this.#registry.resolve(id)
    const { env, inheritEnv } = this.#options
    const launch = {
      command: agent.command,
      args: agent.args,
      env: workerEnvironment({ env: agent.env, inheritEnv }, env),
      cwd: process.cwd(),
    }
    return () => spawnWorker(launch, { watch: this.#warden, timing: this.#timing })
  }

  #stop(graceMs: number): void {
    if (this.#timers.length > 0) return
    this.#installs.abort()
    this.#timing.stepMs = HURRIED_STEP_MS
    const shutDown = (): void => this.#daemon.apply({ type: 'shutdown', at: 'leisure' })
    this.#timers.push(
      setTimeout(shutDown, graceMs),
      setTimeout(() => this.#end(0), DEADLINE_MS),
    )
  }

  /** Nothing of ours stays, and nothing keeps the program alive. */
  async #leave(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#installs.abort()
    await this.#daemon.killAll()
    void this.#daemon.close()
    this.#warden.close()
    process.stdin.destroy()
  }
}
