/**
 * A pool of workers and the line of those who wait for one.
 *
 * It knows whose turn it is; whether a worker lives is decided in `supervisor.ts`. Invariant: messages wait only while no
 * worker of the pool is ready, so nobody is overtaken. A principal whose workers have an environment of their own has a
 * branch of the pool: a pool like it, with a line and workers that nobody else gets (contract 9.22).
 */
import type { Dialect, Dialects } from './dialects.ts'
import type { Client, Worker } from './peers.ts'
import type { PrincipalRow } from './principals.ts'
import type { Via } from './via.ts'
import type { PoolSpec } from './vocabulary.ts'
import { WaitingLine } from './waiting.ts'

export class Pool {
  spec: PoolSpec
  readonly workers: Worker[] = []
  /** Whose workers these are; undefined: anybody's. */
  readonly owner: PrincipalRow | undefined
  /** The pool of which this is a branch; itself, if it is none. */
  readonly trunk: Pool
  /** Those that serve, and those whose workers are still ending. */
  readonly branches = new Set<Pool>()
  /** Who uses a branch: it ends with the last of them. */
  readonly clients = new Set<Client>()
  /** Clients that came through other buses, where the workers lead on (contract 11.6). */
  readonly guests = new Map<Client, readonly Via[]>()
  /** Messages for which no worker was ready, and those that wait for a lease. */
  readonly waiting: WaitingLine
  readonly leases: WaitingLine
  /** Those that wait to be told their place. */
  readonly seekers: WaitingLine
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

  constructor(spec: PoolSpec, { list }: Dialects, branch?: { readonly trunk: Pool; readonly owner: PrincipalRow }) {
    this.spec = spec
    this.owner = branch?.owner
    this.trunk = branch?.trunk ?? this
    const candidates = list.filter(({ table }) => table.protocol === spec.protocol)
    this.isFixed = candidates.length === 1
    this.dialect = this.isFixed ? candidates[0] : candidates.find(({ table }) => table.era === spec.era)
    this.waiting = new WaitingLine(spec.limits.maxOutputQueueBytes)
    this.leases = new WaitingLine(spec.limits.maxOutputQueueBytes)
    this.seekers = new WaitingLine(spec.limits.maxOutputQueueBytes)
  }

  /** The next ready worker that is nobody's own, round-robin (contract 6.1). */
  next(mayServe: (worker: Worker) => boolean = isAnyones): Worker | undefined {
    const { workers } = this
    for (let tried = 0; tried < workers.length; tried++) {
      const worker = workers[this.#turn++ % workers.length]!
      if (isFree(worker) && mayServe(worker)) return worker
    }
    return undefined
  }

  /** How many workers could be somebody's own now. */
  get freeCount(): number {
    return this.workers.filter(isFree).length
  }

  /** Some worker will be ready without anybody's doing: it starts, its back-off ends, or another leaves it room. */
  get isExpectingWorker(): boolean {
    if (this.workers.some(isExpected)) return true
    if (!this.isStaffedOnDemand) return false
    return this.family.some((pool) => pool.workers.some((worker) => worker.isDismissed && isExpected(worker)))
  }

  /** Its workers are started for those who come, as far as `max_instances` allows. */
  get isStaffedOnDemand(): boolean {
    return this.owner !== undefined || this.spec.sharing === 'isolated'
  }

  /** How many workers could take one more client now, started for it or not (contract 14.3). */
  get openings(): number {
    const { isAggregate, isLazy, sharing, maxInstances } = this.spec
    if (isAggregate === true) return 1
    let count = sharing === 'isolated' ? Math.max(0, maxInstances - this.workers.length) : 0
    for (const { isReady, holder, isKept, state } of this.workers) {
      if (isReady && !isKept && (holder === undefined || sharing === 'lease')) count++
      else if (isLazy === true && state === 'stopped') count++
    }
    return count
  }

  /** The pool with all its branches: their workers are counted together. */
  get family(): readonly Pool[] {
    return [this.trunk, ...this.trunk.branches]
  }

  get hasRoom(): boolean {
    let count = 0
    for (const { workers } of this.family) count += workers.length
    return count < this.spec.maxInstances
  }
}

const isFree = ({ isReady, holder, isKept }: Worker): boolean => isReady && holder === undefined && !isKept

const isAnyones = (): boolean => true

const isExpected = ({ state }: Worker): boolean => EXPECTED.has(state)

const EXPECTED: ReadonlySet<string> = new Set(['starting', 'backing_off', 'dying', 'stopping'])
