/**
 * A pool of workers and the line of those who wait for one.
 *
 * It knows whose turn it is; whether a worker lives is decided in `supervisor.ts`. Invariant: messages wait only while no
 * worker of the pool is ready, so nobody is overtaken.
 */
import { type Client, Gate, type Worker } from './peers.ts'
import type { Tongue } from './tongue.ts'
import type { PoolSpec } from './vocabulary.ts'

/** A message of a client for which no worker was ready. */
export interface Waiting {
  readonly client: Client
  readonly line: Buffer
  readonly isRequest: boolean
  readonly untilMs: number
}

/** A message that waits until its client has the lease of a worker. */
export interface LeaseWaiter extends Waiting {
  /** Only this worker will do. */
  readonly worker: Worker | undefined
}

export class Pool {
  readonly spec: PoolSpec
  readonly workers: Worker[] = []
  waiting: Waiting[] = []
  waitingBytes = 0
  readonly gate = new Gate()
  /** Its configuration is gone or has changed: only what is bound to its workers still reaches them. */
  isRetired = false
  /** What its workers speak, once one of them has shown it; never mixed on one worker. */
  tongue: Tongue | undefined
  /** A worker ended over the handshake: the next one is first asked for its era. */
  probesFirst = false
  /** How many workers ended over that question. */
  fatalProbes = 0
  /** Clients that wait for a lease, in order. */
  leaseWaiters: LeaseWaiter[] = []
  #turn = 0

  constructor(spec: PoolSpec) {
    this.spec = spec
  }

  /** The next ready worker that is nobody's own, round-robin (contract 6.1). */
  next(): Worker | undefined {
    const { workers } = this
    for (let tried = 0; tried < workers.length; tried++) {
      const worker = workers[this.#turn++ % workers.length]!
      if (worker.isReady && worker.holder === undefined) return worker
    }
    return undefined
  }

  /** Some worker will be ready without anybody's doing: it starts, or its back-off ends. */
  get isExpectingWorker(): boolean {
    return this.workers.some((worker) => EXPECTED.has(worker.state))
  }
}

const EXPECTED: ReadonlySet<string> = new Set(['starting', 'backing_off', 'dying', 'stopping'])
