/**
 * Which worker of a pool takes a client's message, by the pool's way of sharing (contract 6.7).
 *
 * shared: the worker the client is bonded to, else the next. isolated: the client's own; `instances` spares are kept warm.
 * lease: a worker is one client's while it has requests in flight; waiters are served first in, first out.
 */
import type { Reason } from './faults.ts'
import { FIXED } from './limits.ts'
import type { Client, Worker } from './peers.ts'
import type { LeaseWaiter, Pool } from './pools.ts'
import type { Switchboard } from './switchboard.ts'
import type { WaitingRoom } from './waiting-room.ts'

const SPARE: ReadonlySet<string> = new Set(['starting', 'ready', 'backing_off', 'dying', 'stopping'])

/** It is nobody's, and there or coming. */
function isSpare({ holder, isDismissed, state }: Worker): boolean {
  return holder === undefined && !isDismissed && SPARE.has(state)
}

export class Assignment {
  readonly #board: Switchboard
  readonly #waitingRoom: WaitingRoom
  readonly #route: (client: Client, isRequest: boolean) => void
  /** The worker whose new holder is being served. */
  #granted: Worker | undefined

  constructor(board: Switchboard, waitingRoom: WaitingRoom, route: (client: Client, isRequest: boolean) => void) {
    this.#board = board
    this.#waitingRoom = waitingRoom
    this.#route = route
  }

  /** The worker for the message at hand; undefined: the message waits, or was refused. `wanted` is bound by a session. */
  choose(client: Client, pool: Pool, isRequest: boolean, wanted?: Worker): Worker | undefined {
    if (pool.spec.sharing === 'lease') return this.#lease(client, pool, isRequest, wanted)
    if (wanted !== undefined) return wanted
    const worker = pool.spec.sharing === 'isolated' ? this.#own(client, pool) : this.#shared(client, pool)
    if (worker === undefined) this.#waitingRoom.enter(client, pool, isRequest)
    return worker
  }

  /** A worker for what the bus answers itself, which waits for nobody's lease: one whose welcome is known. */
  hostOf(client: Client, pool: Pool): Worker | undefined {
    if (pool.spec.sharing !== 'lease') return undefined
    const bond = client.bonds.get(pool.spec.id)
    if (bond?.isCurrent) return bond.worker
    return pool.workers.find((worker) => worker.isReady && worker.greeting === 'done')
  }

  #shared(client: Client, pool: Pool): Worker | undefined {
    const bond = client.bonds.get(pool.spec.id)
    if (bond === undefined) return preferredOf(client, pool) ?? pool.next()
    if (bond.isCurrent) return bond.worker
    return bond.worker.isReady ? bond.worker : pool.next()
  }

  // ---- isolated ----

  #own(client: Client, pool: Pool): Worker | undefined {
    const held = client.holdings.get(pool.spec.id)
    if (held?.isReady && held.holder === client) return held
    const spare = pool.next()
    if (spare === undefined) {
      this.keepSpares(pool, client)
      return undefined
    }
    spare.holder = client
    client.holdings.set(pool.spec.id, spare)
    this.keepSpares(pool)
    return spare
  }

  /** As many workers as `instances` says, or as clients wait, are there or coming, as far as `max_instances` allows. */
  keepSpares(pool: Pool, newcomer?: Client): void {
    if (pool.spec.sharing !== 'isolated' || pool.isRetired || this.#board.core.phase !== 'running') return
    const { instances, maxInstances } = pool.spec
    const spares = pool.workers.filter(isSpare).length
    const waiting = new Set(pool.waiting.map(({ client }) => client))
    if (newcomer !== undefined) waiting.add(newcomer)
    const wanted = Math.max(instances, waiting.size) - spares
    for (let i = 0; i < wanted && pool.workers.length < maxInstances; i++) {
      this.#board.supervisor.step(this.#board.supervisor.addWorker(pool), 'retry')
    }
  }

  /** The client has gone: its own workers end with it. */
  giveBack(client: Client): void {
    // Not only its holdings: a worker of a pool that retires may have been succeeded by another of the same name.
    for (const worker of [...this.#board.core.workers.values()]) {
      if (worker.holder !== client || worker.pool.spec.sharing !== 'isolated') continue
      worker.isDismissed = true
      worker.holder = undefined
      this.#board.supervisor.step(worker, 'stop')
    }
    client.holdings.clear()
    for (const pool of this.#board.core.everyPool) {
      if (pool.spec.sharing === 'lease') this.#leave(client, pool)
    }
  }

  /** A worker has ended: whoever it belonged to takes another with its next message. */
  workerEnded(worker: Worker): void {
    const { holder, pool } = worker
    if (holder === undefined) return
    worker.holder = undefined
    if (holder.holdings.get(pool.spec.id) === worker) holder.holdings.delete(pool.spec.id)
    if (pool.spec.sharing !== 'isolated') return
    const spares = pool.workers.filter((other) => other !== worker && isSpare(other))
    if (spares.length >= pool.spec.instances) worker.isDismissed = true
  }

  // ---- lease ----

  #lease(client: Client, pool: Pool, isRequest: boolean, wanted: Worker | undefined): Worker | undefined {
    const own = this.#ownAt(client, pool, wanted)
    // Notifications (a cancel, say) belong to what is in flight: they never wait behind others.
    if (own !== undefined && (!isRequest || pool.leaseWaiters.length === 0)) return own
    if (!isRequest && wanted !== undefined) return wanted
    const free = pool.leaseWaiters.length > 0 || own !== undefined ? undefined : this.#free(client, pool, wanted)
    if (free !== undefined) {
      if (isRequest) free.holder = client
      return free
    }
    this.#queue(client, pool, isRequest, wanted)
    return undefined
  }

  /** Of several workers that it holds, the one just granted: its earlier messages may still wait for another. */
  #ownAt(client: Client, pool: Pool, wanted: Worker | undefined): Worker | undefined {
    const granted = this.#granted
    if (granted?.holder === client && granted.pool === pool && (wanted ?? granted) === granted) return granted
    return pool.workers.find((worker) => worker.isAlive && worker.holder === client && (wanted ?? worker) === worker)
  }

  /** The worker the client had last, if it may choose: cursors and the like are of use there only. */
  #free(client: Client, pool: Pool, wanted: Worker | undefined): Worker | undefined {
    const preferred = wanted ?? client.bonds.get(pool.spec.id)?.worker ?? preferredOf(client, pool)
    if (preferred?.isReady && preferred.holder === undefined && preferred.pool === pool) return preferred
    return wanted === undefined ? pool.next() : undefined
  }

  #queue(client: Client, pool: Pool, isRequest: boolean, wanted: Worker | undefined): void {
    const { core } = this.#board
    if (!pool.workers.some((worker) => worker.isReady)) return this.#waitingRoom.enter(client, pool, isRequest)
    if (pool.leaseWaiters.length >= FIXED.maxLeaseWaiters) {
      return this.#board.refuse(client, isRequest, 'overloaded', { pool: pool.spec.id })
    }
    const waiter: LeaseWaiter = {
      client,
      line: this.#board.copyLine(),
      isRequest,
      untilMs: core.nowMs + FIXED.leaseWaitMs,
      worker: wanted,
    }
    pool.leaseWaiters.push(waiter)
    if (isRequest) client.pendingCount++
    core.timers.set(waiter.untilMs, () => this.#giveUp(pool, waiter, 'overloaded'))
  }

  /** Nobody will come: those who wait for a lease are told at once. */
  dismiss(pool: Pool): void {
    const reason = this.#board.core.phase === 'running' ? 'no_worker' : 'shutting_down'
    for (const waiter of [...pool.leaseWaiters]) this.#giveUp(pool, waiter, reason)
  }

  #giveUp(pool: Pool, waiter: LeaseWaiter, reason: Reason): void {
    const index = pool.leaseWaiters.indexOf(waiter)
    if (index === -1) return
    pool.leaseWaiters.splice(index, 1)
    const { envelope, core } = this.#board
    if (!waiter.isRequest) return core.drop(reason)
    waiter.client.pendingCount--
    envelope.read(waiter.line, 0, waiter.line.length - 1)
    this.#board.fail(waiter.client, envelope.idSpelling(), reason, { pool: pool.spec.id })
  }

  /** The holder may have got its last answer: the lease goes to whoever has waited longest. */
  maybeRelease(worker: Worker): void {
    const { holder, pool } = worker
    if (pool.spec.sharing !== 'lease') return
    if (holder !== undefined && hasRequestsAt(holder, worker)) return
    worker.holder = undefined
    this.grant(pool)
  }

  grant(pool: Pool): void {
    for (const worker of pool.workers) {
      // Again, when all that the last one wanted was answered at once.
      while (worker.isReady && worker.holder === undefined) {
        const next = pool.leaseWaiters.find((waiter) => waiter.worker === undefined || waiter.worker === worker)
        if (next === undefined) break
        worker.holder = next.client
        this.#admit(pool, next.client, worker)
        // Nothing came of it there: its session was lost, say, or another worker that it holds took it.
        if (worker.holder === next.client && !hasRequestsAt(next.client, worker)) worker.holder = undefined
      }
    }
  }

  /** All that the new holder has waiting goes at once; what others have stays in its order. */
  #admit(pool: Pool, client: Client, worker: Worker): void {
    const mine = pool.leaseWaiters.filter((waiter) => waiter.client === client && (waiter.worker ?? worker) === worker)
    const others = pool.leaseWaiters.filter((waiter) => !mine.includes(waiter))
    pool.leaseWaiters = []
    this.#granted = worker
    for (const { line, isRequest } of mine) {
      if (isRequest) client.pendingCount--
      this.#board.envelope.read(line, 0, line.length - 1)
      this.#route(client, isRequest)
    }
    this.#granted = undefined
    pool.leaseWaiters.push(...others)
  }

  #leave(client: Client, pool: Pool): void {
    pool.leaseWaiters = pool.leaseWaiters.filter((waiter) => waiter.client !== client)
    for (const worker of pool.workers) {
      if (worker.holder !== client) continue
      worker.holder = undefined
    }
    this.grant(pool)
  }
}

function preferredOf({ prefer }: Client, pool: Pool): Worker | undefined {
  if (prefer === undefined) return undefined
  return pool.workers.find((worker) => worker.id === prefer && worker.isReady && worker.holder === undefined)
}

function hasRequestsAt(client: Client, worker: Worker): boolean {
  const bond = client.bonds.get(worker.pool.spec.id)
  if (bond?.isParking && bond.worker === worker) return true
  for (let request = client.newest; request !== undefined; request = request.older)
    if (request.worker === worker) return true
  return false
}
