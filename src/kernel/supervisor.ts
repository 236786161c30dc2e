/**
 * Lets workers live and die as `lifecycle.ts` says: start, last words, back-off, parking, retirement (contract 7).
 *
 * It touches no process: it asks for one to be spawned or stopped and is told what became of it. Every way in which a
 * worker can end goes through `settle`, so whatever was owed is answered exactly once.
 */
import type { Core } from './core.ts'
import type { Dialects } from './dialects.ts'
import type { Again, BusEvent, Facts } from './events.ts'
import type { Flow } from './flow.ts'
import { sayParked } from './last-end.ts'
import { type Act, LIFECYCLE, type WorkerEvent } from './lifecycle.ts'
import { FIXED } from './limits.ts'
import { Worker } from './peers.ts'
import { Pool } from './pools.ts'
import type { PrincipalRow } from './principals.ts'
import { viasOf } from './via.ts'
import type { PoolSpec, WorkerId } from './vocabulary.ts'

/** What the rest of the kernel does when a worker comes or goes. */
export interface WorkerNews {
  /** The process runs; `started` follows, at once or after a handshake. */
  workerSpawned(worker: Worker): void
  workerOpened(worker: Worker): void
  workerEnded(worker: Worker): void
  /** A slot is empty for good. */
  workerLeft(pool: Pool): void
  /** None of the pool's workers is to be expected. */
  poolEmptied(pool: Pool): void
}

type Ending = Pick<Extract<BusEvent, { type: 'worker-ended' }>, 'isClean' | 'how' | 'again' | 'reason'>

export class Supervisor {
  readonly #core: Core
  readonly #flow: Flow
  readonly #dialects: Dialects
  readonly #news: WorkerNews
  readonly #acts: Readonly<Record<Act, (worker: Worker) => void>>
  /** Numbers of workers that are gone, with the generation their processes had reached: both are used again (contract 3.3). */
  readonly #vacant = new Map<WorkerId, number>()
  #nextWorker = 0

  constructor(core: Core, flow: Flow, dialects: Dialects, news: WorkerNews) {
    this.#core = core
    this.#flow = flow
    this.#dialects = dialects
    this.#news = news
    this.#acts = {
      spawn: (worker) => this.#spawn(worker),
      open: (worker) => this.#open(worker),
      end: (worker) => this.#stop(worker, 'end'),
      kill: (worker) => this.#stop(worker, 'kill'),
      'hear-out': (worker) => this.#hearOut(worker),
      settle: (worker) => this.#settle(worker),
      wait: (worker) => this.#wait(worker),
      leave: (worker) => this.#leave(worker),
    }
  }

  addPool(spec: PoolSpec): Pool {
    const pool = new Pool(spec, this.#dialects)
    this.#core.pools.set(spec.id, pool)
    this.#addWorkers(pool, spec.instances)
    return pool
  }

  /** The pool for one principal alone, with an environment of its own; its workers are started when they are wanted. */
  addBranch(trunk: Pool, owner: PrincipalRow): Pool {
    const branch = new Pool({ ...trunk.spec, instances: 0 }, this.#dialects, { trunk, owner })
    trunk.branches.add(branch)
    owner.branches.set(trunk, branch)
    return branch
  }

  /** The pool is to have more workers and is the same otherwise: those that run stay (contract 7.5). */
  growPool(pool: Pool, spec: PoolSpec): void {
    const more = spec.instances - pool.spec.instances
    pool.spec = spec
    this.#addWorkers(pool, Math.min(more, spec.maxInstances - pool.workers.length))
  }

  #addWorkers(pool: Pool, count: number): void {
    for (let i = 0; i < count; i++) {
      const worker = this.addWorker(pool)
      if (!pool.spec.isLazy) this.step(worker, 'retry')
    }
  }

  /** Somebody wants a worker of the pool: one that starts on demand does so now. */
  wake(pool: Pool): void {
    if (!pool.spec.isLazy || pool.isRetired || pool.isExpectingWorker || this.#core.phase !== 'running') return
    const worker = pool.workers.find(({ state }) => state === 'stopped')
    if (worker !== undefined) this.#wakeUp(worker)
  }

  #wakeUp(worker: Worker): void {
    // Being ended for idleness is no failure; every other start after the first counts.
    if (worker.generation > 0 && !worker.isAsleep) {
      worker.restarts.record(this.#core.nowMs)
      this.#core.totals.restarts++
    }
    worker.isAsleep = false
    worker.lastError = undefined
    this.step(worker, 'retry')
  }

  addWorker(pool: Pool): Worker {
    const [vacant] = this.#vacant
    const [id, generation] = vacant ?? [this.#nextWorker++ as WorkerId, 0]
    this.#vacant.delete(id)
    const worker = new Worker(id, pool, Math.floor(this.#core.chance() * 2 ** 31))
    worker.generation = generation
    pool.workers.push(worker)
    this.#core.workers.set(worker.id, worker)
    return worker
  }

  step(worker: Worker, event: WorkerEvent): void {
    const { next, act } = LIFECYCLE[worker.state][event]
    worker.state = next
    if (act !== undefined) this.#acts[act](worker)
  }

  /** It can be spoken to. */
  opened(worker: Worker, facts: Facts): void {
    worker.facts = facts
    worker.hasOpened = true
    worker.lastActivityMs = this.#core.nowMs
    this.#core.log('debug', 'worker spawned', { ...about(worker), ...facts })
    this.#news.workerSpawned(worker)
  }

  failed(worker: Worker, why: string, again: Again | undefined): void {
    worker.lastError = why
    worker.again = again
    worker.facts = undefined
    worker.ending ??= { reason: 'worker_exited', detail: { why } }
    this.#core.log('error', `worker cannot be started: ${why}`, about(worker))
    this.step(worker, 'failed')
  }

  ended(worker: Worker, { isClean, how, again, reason = 'worker_exited' }: Ending): void {
    // Whoever was refused is ended by the bus: why is known.
    if (typeof how['why'] === 'string' && worker.again === undefined) worker.lastError = how['why']
    worker.again ??= again
    worker.facts = undefined
    worker.endedCleanly = isClean
    worker.ending ??= { reason, detail: { ...how } }
    const isExpected = this.#core.phase !== 'running' || worker.state === 'stopping' || isElsewhere(worker)
    const level = isExpected ? levelFor(worker) : 'warn'
    this.#core.log(level, 'worker exited', { ...about(worker), ...how })
    this.step(worker, 'exited')
  }

  /** Its stdin is broken: it may be dead already, and its last words are still to come (contract 7.1). */
  stdinBroke(worker: Worker): void {
    if (worker.state === 'stopping' || worker.state === 'dying') return
    worker.ending ??= { reason: 'worker_exited', detail: { why: 'its stdin is broken' } }
    this.step(worker, 'broken')
  }

  /** Its stdout has ended and everything it wrote is delivered: it counts as exited, but how is known in a moment only. */
  finished(worker: Worker): void {
    if (worker.state === 'dying') return this.step(worker, 'broken')
    if (!worker.isAlive) return
    const { generation } = worker
    this.#core.timers.set(this.#core.nowMs + FIXED.exitWaitMs, () => {
      if (worker.generation !== generation || !worker.isAlive) return
      this.endBroken(worker, 'worker_exited', { why: 'its stdout ended' })
    })
  }

  /** It is of no use any more: what it owes is answered at once, then it goes. */
  endBroken(worker: Worker, reason: 'worker_exited' | 'worker_stalled', detail: Record<string, unknown>): void {
    worker.ending ??= { reason, detail }
    this.#core.log('warn', 'worker is ended', { ...about(worker), reason, ...detail })
    const { generation } = worker
    this.step(worker, 'broken')
    // It was dying already and is settled; one that starts on demand may even be there again.
    if (worker.generation !== generation) return
    this.#news.workerEnded(worker)
    this.#flow.forget(worker)
  }

  /** It is to start anew because somebody says so: what it owes is answered once it has gone (contract 15.18). */
  restart(worker: Worker): void {
    if (worker.pool.isRetired || worker.isDismissed || this.#core.phase !== 'running') return
    this.#core.log('info', 'worker restarts, as it was told to', about(worker))
    worker.isWantedAnew = worker.isAlive
    if (worker.isAlive) return this.step(worker, 'stop')
    worker.again = undefined
    worker.lastError = undefined
    this.step(worker, 'retry')
  }

  /** All of a pool's workers end when nothing is bound to them any more (contract 7.5). */
  retirePool(pool: Pool): void {
    pool.isRetired = true
    pool.owner?.branches.delete(pool.trunk)
    for (const worker of [...pool.workers]) {
      // It leaves its place to others.
      if (pool.owner !== undefined) worker.isDismissed = true
      if (worker.state === 'stopped') this.#vacate(worker)
      this.step(worker, 'retire')
      this.maybeDismiss(worker)
    }
    if (pool.workers.length === 0) pool.trunk.branches.delete(pool)
  }

  /** A retiring worker to which nothing is bound goes. */
  maybeDismiss(worker: Worker): void {
    if (worker.state !== 'retiring' || worker.sessions.size > 0) return
    if (worker.outstanding.size > worker.ownerless.size || !worker.lobby.isEmpty) return
    for (const bond of worker.bonds) if (bond.isHome) return
    this.step(worker, 'stop')
  }

  /** An upstream does not want us any more: soon it would be the same. */
  refused(worker: Worker, why: string): void {
    if (!worker.isAlive) return
    worker.again = 'later'
    worker.lastError = why
    this.endBroken(worker, 'worker_exited', { why })
  }

  #spawn(worker: Worker): void {
    const { spec, owner } = worker.pool
    worker.renew()
    worker.spawnedAtMs = this.#core.nowMs
    const { generation } = worker
    this.#core.actions.push({
      do: 'open-worker',
      worker: worker.id,
      generation,
      pool: spec.id,
      revision: spec.revision,
      ...(owner === undefined ? {} : { principal: owner.name }),
      ...(worker.pool.guests.size === 0 ? {} : { vias: viasOf(worker.pool) }),
    })
    // 0: it may take for ever.
    if (spec.startTimeoutMs === 0) return
    this.#core.timers.set(this.#core.nowMs + spec.startTimeoutMs, () => {
      if (worker.generation !== generation || worker.state !== 'starting') return
      this.endBroken(worker, 'worker_exited', { why: 'it was not ready within start_timeout_sec' })
    })
  }

  #open(worker: Worker): void {
    worker.lastError = undefined
    this.#core.log(levelFor(worker), 'worker ready', { ...about(worker), ...worker.facts })
    this.#watchForHang(worker)
    this.#watchForIdleness(worker)
    this.#news.workerOpened(worker)
  }

  /** A worker that owes answers and has neither read nor written for too long is stuck (contract 7.2). */
  #watchForHang(worker: Worker): void {
    const { hangTimeoutMs } = worker.pool.spec
    if (hangTimeoutMs === 0) return
    const { generation } = worker
    const look = (): void => {
      if (worker.generation !== generation || !worker.isAlive) return
      // Who owes nothing, or is not read from, is not silent.
      if (!worker.owesAnswer || worker.blockedOn !== undefined) worker.lastActivityMs = this.#core.nowMs
      const quietMs = this.#core.nowMs - worker.lastActivityMs
      if (quietMs >= hangTimeoutMs) {
        return this.endBroken(worker, 'worker_stalled', { why: 'it owed answers and was silent for hang_timeout_sec' })
      }
      this.#core.timers.set(this.#core.nowMs + Math.max(hangTimeoutMs / 4, 10), look)
    }
    look()
  }

  /** A worker that starts on demand and has had nothing to do for long enough is ended. */
  #watchForIdleness(worker: Worker): void {
    const { isLazy, idleTimeoutMs } = worker.pool.spec
    if (!isLazy || idleTimeoutMs === undefined) return
    const { generation } = worker
    let busyAtMs = this.#core.nowMs
    const look = (): void => {
      if (worker.generation !== generation || !worker.isReady) return
      if (!isIdle(worker)) busyAtMs = this.#core.nowMs
      const endAtMs = Math.max(busyAtMs, worker.lastActivityMs) + idleTimeoutMs
      if (endAtMs <= this.#core.nowMs) return this.#putToSleep(worker)
      this.#core.timers.set(endAtMs, look)
    }
    look()
  }

  #putToSleep(worker: Worker): void {
    this.#core.log('info', 'worker is idle and is ended until it is needed', about(worker))
    worker.isAsleep = true
    this.step(worker, 'stop')
  }

  #stop(worker: Worker, how: 'end' | 'kill'): void {
    this.#core.actions.push({ do: 'close-worker', worker: worker.id, generation: worker.generation, how })
  }

  /** What it wrote before it died is delivered first, for a moment at the most. */
  #hearOut(worker: Worker): void {
    if (worker.isFinished) return this.step(worker, 'broken')
    const { generation } = worker
    this.#core.timers.set(this.#core.nowMs + FIXED.lastWordsMs, () => {
      if (worker.generation === generation && worker.state === 'dying') this.step(worker, 'broken')
    })
  }

  #settle(worker: Worker): void {
    // Its own queue is read by nobody: what it asked in its last words is not to hold up the rest of them.
    const { generation } = worker
    while (worker.blockedOn === worker.gate && !worker.isDeaf) this.#flow.discard(worker)
    // One of them may have been its end.
    if (worker.state !== 'dying' || worker.generation !== generation) return
    // Last words that wait behind a full queue are still owed; the clock of that queue decides how long.
    if (worker.blockedOn !== undefined && !worker.isDeaf && !worker.isFinished) return this.#hearOut(worker)
    this.#core.actions.push({ do: 'close-worker', worker: worker.id, generation: worker.generation, how: 'clear' })
    this.#news.workerEnded(worker)
    this.#flow.forget(worker)
    if (worker.ending !== undefined) worker.lastEnd = { atMs: this.#core.nowMs, ...worker.ending }
    worker.restarts.lived(this.#core.nowMs - worker.spawnedAtMs)
    this.step(worker, this.#fate(worker))
  }

  #fate(worker: Worker): 'revive' | 'park' | 'rest' {
    const { restart, limits, isLazy } = worker.pool.spec
    if (this.#core.phase !== 'running' || worker.pool.isRetired || worker.isDismissed) return 'rest'
    if (worker.isWantedAnew) {
      worker.isWantedAnew = false
      return 'revive'
    }
    const hasRoom = worker.restarts.roomAtMs(limits, this.#core.nowMs) <= this.#core.nowMs
    // At rest it is woken by the next message, so without room it must not rest, whatever `restart` says.
    if (isLazy) return worker.isAsleep || hasRoom ? 'rest' : 'park'
    if (worker.again === 'never') return 'park'
    if (restart === 'never' || (restart === 'on-failure' && worker.endedCleanly)) return 'rest'
    return hasRoom && worker.again === undefined ? 'revive' : 'park'
  }

  #wait(worker: Worker): void {
    const { nowMs } = this.#core
    const isParked = worker.state === 'parked'
    const delayMs = isParked ? this.#parkedMs(worker) : worker.restarts.backoffMs(this.#core.chance())
    if (isParked) {
      const seconds = Math.ceil(delayMs / 1000)
      const until = Number.isFinite(delayMs) ? `, next try in ${seconds} s` : ''
      worker.retryAtMs = Number.isFinite(delayMs) ? nowMs + delayMs : undefined
      if (worker.again === undefined) worker.lastError = sayParked(worker)
      this.#core.log('error', `worker is parked: ${worker.lastError}${until}`, about(worker))
      this.#maybeEmptied(worker.pool)
    } else {
      this.#core.log('info', `worker restarts in ${delayMs} ms`, about(worker))
    }
    if (!Number.isFinite(delayMs)) return
    const { generation } = worker
    this.#core.timers.set(nowMs + delayMs, () => {
      if (worker.generation !== generation) return
      if (worker.state !== 'backing_off' && worker.state !== 'parked') return
      if (worker.pool.spec.isLazy) return this.step(worker, 'rest')
      worker.restarts.record(this.#core.nowMs)
      this.#core.totals.restarts++
      this.step(worker, 'retry')
    })
  }

  #parkedMs(worker: Worker): number {
    const { limits } = worker.pool.spec
    if (worker.again === 'never') return Number.POSITIVE_INFINITY
    const roomMs = worker.restarts.roomAtMs(limits, this.#core.nowMs) - this.#core.nowMs
    return worker.again === 'later' ? Math.max(roomMs, limits.restartWindowMs) : roomMs
  }

  #leave(worker: Worker): void {
    this.#core.log(levelFor(worker), 'worker stopped', about(worker))
    const { pool } = worker
    if (pool.isRetired || worker.isDismissed) {
      this.#vacate(worker)
      this.#news.workerLeft(pool)
    }
    // Whoever came while it was ending waits for the next; who waited for a start that failed is told.
    if (worker.hasOpened && !pool.waiting.isEmpty) this.wake(pool)
    for (const each of pool.family) this.#maybeEmptied(each)
  }

  #vacate(worker: Worker): void {
    const { pool } = worker
    this.#core.workers.delete(worker.id)
    this.#vacant.set(worker.id, worker.generation)
    pool.workers.splice(pool.workers.indexOf(worker), 1)
    if (pool.isRetired && pool.workers.length === 0) pool.trunk.branches.delete(pool)
  }

  #maybeEmptied(pool: Pool): void {
    if (pool.isExpectingWorker || pool.workers.some((worker) => worker.isReady)) return
    this.#news.poolEmptied(pool)
  }
}

/** Nobody has a session there, is owed anything by it, or owes it an answer. */
function isIdle({ sessions, outstanding, ownerless, questions, lobby }: Worker): boolean {
  return sessions.size === 0 && outstanding.size === ownerless.size && questions.size === 0 && lobby.isEmpty
}

/** Its source tells of what becomes of the place where it is. */
function isElsewhere({ pool }: Worker): boolean {
  return pool.spec.placeOf !== undefined
}

/** At other places there is a worker for each client that comes. */
function levelFor(worker: Worker): 'info' | 'debug' {
  return isElsewhere(worker) ? 'debug' : 'info'
}

export function about(worker: Worker): Record<string, unknown> {
  return { pool: worker.pool.spec.id, worker: worker.id, generation: worker.generation }
}
