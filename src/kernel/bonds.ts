/**
 * What a client that speaks a stateful protocol has with one worker of a pool (contract 6.6).
 *
 * A bond outlives the worker: when the worker is restarted, the client goes on with the next one, and the bus repeats its
 * `initialize` there, the only message that is ever sent twice.
 */
import type { Client, Worker } from './peers.ts'
import type { Tongue } from './tongue.ts'

export class Bond {
  readonly client: Client
  /** Fixed, but for a client that has a worker of its own and finds out what it speaks. */
  tongue: Tongue
  worker: Worker
  generation: number
  /** The client's own `initialize`, where it reached the worker. */
  initialize: Buffer | undefined
  /** The processes that have had it, by their generation: a lease may lead back to one of them. */
  readonly introduced = new WeakMap<Worker, number>()
  /** The client's messages wait until the worker has answered the repeated `initialize`; the bond does not move meanwhile. */
  isParking = false
  /** The worker can close sessions. */
  canClose = false
  /** The least severe log line the client wants, as a rank; undefined: it has not said. */
  level: number | undefined
  /** What it subscribed to. */
  readonly uris = new Set<string>()

  constructor(client: Client, tongue: Tongue, worker: Worker) {
    this.client = client
    this.tongue = tongue
    this.worker = worker
    this.generation = worker.generation
    worker.bonds.add(this)
  }

  get isCurrent(): boolean {
    return (
      this.worker.generation === this.generation && (this.worker.state === 'ready' || this.worker.state === 'retiring')
    )
  }

  moveTo(worker: Worker): void {
    this.worker.bonds.delete(this)
    this.worker = worker
    this.generation = worker.generation
    worker.bonds.add(this)
  }

  end(): void {
    this.worker.bonds.delete(this)
  }
}

/** Severities of MCP log lines, least first. */
export const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const

export function rankOf(level: string | undefined): number {
  return LEVELS.indexOf(level as (typeof LEVELS)[number])
}
