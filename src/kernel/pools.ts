/**
 * A pool of workers and the line of those who wait for one.
 *
 * It knows whose turn it is; whether a worker lives is decided in `supervisor.ts`. Invariant: messages wait only while no
 * worker of the pool is ready, so nobody is overtaken.
 */
import type { Dialect, Dialects } from './dialects.ts'
import type { Worker } from './peers.ts'
import type { PoolSpec } from './vocabulary.ts'
import { WaitingLine } from './waiting.ts'

export class Pool {
  spec: PoolSpec
  readonly workers: Worker[] = []
  /** Messages for which no worker was ready, and those that wait for a lease. */
  readonly waiting: WaitingLine
  readonly leases: WaitingLine
  /** Its configuration is gone or has changed: only what is bound to its workers still reaches them. */
  isRetired = false
  /** What its workers speak: said by the configuration, or proved by one of them; never mixed. */
  dialect: Dialect | undefined
  /** The configuration names a protocol that has one dialect: whoever comes is taken to speak it. */
  readonly isFixed: boolean
  /** The newest version its workers know, once one has answered a handshake with less than it was asked for. */
  newestVersion = Number.POSITIVE_INFINITY
  /** A worker ended over the handshake: the next one is first asked for its era. */
  probesFirst = false
  /** How many workers ended over that question. */
  fatalProbes = 0
  #turn = 0

  constructor(spec: PoolSpec, { list }: Dialects) {
    this.spec = spec
    const candidates = list.filter(({ table }) => table.protocol === spec.protocol)
    this.isFixed = candidates.length === 1
    this.dialect = this.isFixed ? candidates[0] : candidates.find(({ table }) => table.era === spec.era)
    this.waiting = new WaitingLine(spec.limits.maxOutputQueueBytes)
    this.leases = new WaitingLine(spec.limits.maxOutputQueueBytes)
  }

  /** The next ready worker that is nobody's own, round-robin (contract 6.1). */
  next(mayServe: (worker: Worker) => boolean = isAnyones): Worker | undefined {
    const { workers } = this
    for (let tried = 0; tried < workers.length; tried++) {
      const worker = workers[this.#turn++ % workers.length]!
      if (worker.isReady && worker.holder === undefined && mayServe(worker)) return worker
    }
    return undefined
  }

  /** Some worker will be ready without anybody's doing: it starts, or its back-off ends. */
  get isExpectingWorker(): boolean {
    return this.workers.some((worker) => EXPECTED.has(worker.state))
  }
}

const isAnyones = (): boolean => true

const EXPECTED: ReadonlySet<string> = new Set(['starting', 'backing_off', 'dying', 'stopping'])
