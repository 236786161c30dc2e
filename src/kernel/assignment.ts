/**
 * Which worker of a pool takes a client's message, by the pool's way of sharing (contract 6.6, 6.7).
 *
 * shared: the worker that knows the client, else the next that can serve its version. isolated: the client's own; `instances`
 * spares are kept warm. lease: a worker is one client's while it has requests in flight; waiters are served first in,
 * first out. A principal with an environment for the pool has workers of its own (contract 9.22): a branch, in which all of
 * this holds, and which never has a spare. It chooses; whoever cannot be served now waits (`waiting.ts`) or is refused here, and nowhere else.
 */
import { FIELD } from '../wire/fields.ts'
import { ownSet } from './empty.ts'
import { sayEnd } from './last-end.ts'
import { FIXED } from './limits.ts'
import type { Client, Worker } from './peers.ts'
import { toolNamedBy } from './permission.ts'
import type { Pool } from './pools.ts'
import type { Route } from './route.ts'
import type { Switchboard } from './switchboard.ts'
import { passOn } from './via.ts'
import type { SessionId } from './vocabulary.ts'

const SPARE: ReadonlySet<string> = new Set(['starting', 'ready', 'backing_off', 'dying', 'stopping'])

/** It is nobody's, and there or coming. */
function isSpare({ holder, isDismissed, isKept, state }: Worker): boolean {
  return holder === undefined && !isDismissed && !isKept && SPARE.has(state)
}

function sparesOf({ workers }: Pool): Worker[] {
  return workers.filter(isSpare)
}

function clientsWaiting({ waiting }: Pool, newcomer?: Client): number {
  const isNew = newcomer !== undefined && !waiting.clients.has(newcomer)
  return waiting.clients.size + (isNew ? 1 : 0)
}

/** Where everybody gets a worker of its own, so many go on as workers are free: the others stay where they are, in order. */
function servedFirst(pool: Pool): (route: Route) => boolean {
  let free = pool.freeCount
  const served = new Set<Client>()
  return ({ client }) => {
    if (served.has(client)) return true
    if (ownWorkerOf(client, pool) === undefined && free-- <= 0) return false
    served.add(client)
    return true
  }
}

/** The one that it has got. */
function ownWorkerOf(client: Client, pool: Pool): Worker | undefined {
  for (const worker of client.holdings) if (worker.pool === pool && worker.isReady) return worker
  return undefined
}

/** Why there is no worker for a message now. */
type Lack = 'no-worker' | 'no-lease' | 'no-version'

export class Assignment {
  readonly #board: Switchboard
  /** The worker whose new holder is being served. */
  #granted: Worker | undefined

  constructor(board: Switchboard) {
    this.#board = board
  }

  /** The worker for the message; undefined: the message has been put to wait, or refused. `bound` is bound by a session. */
  place(route: Route, bound: Worker | undefined): Worker | undefined {
    if (route.pool.spec.isRemote) passOn(this.#board.core, route.client, route.pool)
    const choice = this.#choose(route, bound)
    if (typeof choice === 'object') return choice
    if (choice === 'no-version') this.#board.refuse(route, 'protocol_mismatch', { pool: route.pool.spec.id })
    else if (choice === 'no-lease') this.#waitForLease(route, bound)
    else this.#waitForWorker(route)
    return undefined
  }

  #choose(route: Route, bound: Worker | undefined): Worker | Lack {
    const { sharing } = route.pool.spec
    if (sharing === 'lease') return this.#lease(route, bound)
    if (bound !== undefined) return bound
    return sharing === 'isolated' ? this.#own(route) : this.#shared(route)
  }

  /** A worker for what the bus answers itself, which waits for nobody's lease: one whose welcome is known. */
  hostOf(client: Client, pool: Pool): Worker | undefined {
    if (pool.spec.sharing !== 'lease') return undefined
    const home = client.introductions.get(pool.spec.id)?.home
    if (home?.isCurrent) return home.worker
    return pool.workers.find((worker) => worker.isReady && worker.greeting === 'done')
  }

  #shared(route: Route): Worker | Lack {
    const { client, pool } = route
    const home = client.introductions.size === 0 ? undefined : client.introductions.get(pool.spec.id)?.home
    if (home === undefined && route.dialect === undefined)
      return preferredOf(client, pool) ?? pool.next() ?? 'no-worker'
    const version = versionOf(route)
    if (home !== undefined && (home.isCurrent || home.worker.isReady) && !isSpread(route))
      if (servesVersion(home.worker, version)) return home.worker
    const serves = (worker: Worker): boolean => servesVersion(worker, version)
    const next = preferredOf(client, pool) ?? pool.next(serves)
    if (next !== undefined) return next
    return pool.workers.some((worker) => worker.isReady) && !pool.isExpectingWorker ? 'no-version' : 'no-worker'
  }

  // ---- waiting for a worker ----

  /** Contract 7.2: while one is starting or backing off; else the pool that serves in its place, or nobody. */
  #waitForWorker(route: Route): void {
    const { core, supervisor, waiting } = this.#board
    const { pool } = route
    const { isLazy, startTimeoutMs } = pool.spec
    if (core.phase === 'running') supervisor.wake(pool)
    this.#staff(pool, route.client)
    if (!pool.isExpectingWorker || core.phase !== 'running') return this.#fallBack(route)
    const untilMs = core.nowMs + (isLazy ? startTimeoutMs : FIXED.workerWaitMs)
    waiting.enter(route, pool.waiting, { untilMs, giveUp: (late) => this.#fallBack(late) })
  }

  #fallBack(route: Route): void {
    const other = this.#fallbackOf(route)
    if (other === undefined) this.#board.refuse(route, 'no_worker', detailOf(route.pool))
    else this.#serveInPlace(route, other)
  }

  /** The pool that may serve the message in place of its own. */
  #fallbackOf(route: Route): Pool | undefined {
    const { core } = this.#board
    const { fallback } = route.pool.spec
    const other = fallback === undefined || core.phase !== 'running' ? undefined : core.pools.get(fallback)
    return other !== undefined && isFree(route) && this.#mayServe(route, other) ? other : undefined
  }

  #serveInPlace(route: Route, other: Pool): void {
    const { client, pool } = route
    route.introducedBy = client.introductions.get(pool.spec.id) ?? route.introducedBy
    route.pool = this.poolFor(client, other)
    route.passed = [...route.passed, pool]
    this.#board.router.proceed(route)
  }

  /** A message that names a session goes where an earlier one that names it waits, and for the same worker; false: there is none. */
  follow(route: Route, names: readonly SessionId[]): boolean {
    const { heldBytes, sessions } = route.client
    // One that has its worker is served there: what waits elsewhere does so for another session.
    const open = heldBytes === 0 ? [] : names.filter((name) => !sessions.has(name))
    const ahead = open.length === 0 ? undefined : this.#aheadOf(route, open)
    if (ahead === undefined || !(ahead.pool === route.pool || this.#mayServe(route, ahead.pool))) return false
    route.pool = ahead.pool
    route.passed = ahead.passed
    route.worker = ahead.worker
    route.generation = ahead.generation
    return true
  }

  #aheadOf({ client, cameBefore }: Route, names: readonly SessionId[]): Route | undefined {
    for (const { waiting, leases } of this.#board.core.everyPool)
      for (const { clients, routes } of [waiting, leases]) {
        if (!clients.has(client)) continue
        for (const route of routes)
          if (route.client === client && route.cameBefore <= cameBefore && namesOneOf(route, names)) return route
      }
    return undefined
  }

  /** In another's place a pool serves nothing that its caller may not ask of it (contract 9.18, 9.19). */
  #mayServe({ client, line }: Route, pool: Pool): boolean {
    const row = client.owner!
    if (!row.mayUse(pool)) return false
    if (row.rights.tools === undefined || this.#board.dialects.toolUseOf(line) !== 'called') return true
    const tool = toolNamedBy(line)
    return tool !== undefined && row.mayCall(pool, tool)
  }

  /** A worker of the pool is there: those who waited go first, in order. */
  serve(pool: Pool): void {
    const { waiting, router } = this.#board
    const line = pool.waiting
    if (line.isEmpty) return
    const isIsolated = pool.spec.sharing === 'isolated'
    let before: number
    do {
      before = line.routes.size
      const isMeant = isIsolated ? servedFirst(pool) : undefined
      for (const route of waiting.take(line, isMeant)) router.proceed(route)
      // Whoever was refused has left its worker to the next.
    } while (isIsolated && !line.isEmpty && line.routes.size < before && pool.freeCount > 0)
    waiting.reopen(line)
    // The last that could come is somebody's: the others are told so, or served elsewhere (contract 6.7.2).
    if (isIsolated && !line.isEmpty && !pool.isExpectingWorker) this.dismiss(pool)
  }

  /** Nobody will come: those who wait are told at once, or served elsewhere. */
  dismiss(pool: Pool): void {
    const { core, waiting } = this.#board
    const isRunning = core.phase === 'running'
    // One that retires still serves what waits for it.
    const leaves = (route: Route): boolean => !isRunning || (route.promised ?? boundSince(route))?.isAlive !== true
    for (const route of [...waiting.take(pool.waiting), ...waiting.take(pool.leases, leaves)]) {
      if (isRunning) this.#fallBack(route)
      else this.#board.refuse(route, 'shutting_down', detailOf(pool))
    }
    waiting.reopen(pool.waiting)
    waiting.reopen(pool.leases)
  }

  /** A reload has put another pool in the place of this one: who waits, waits there, unless for a certain worker of this. */
  moveWaiting(from: Pool, to: Pool): void {
    const { waiting, router } = this.#board
    // Nothing of what waits in a lobby has reached its worker.
    for (const line of [from.waiting, from.leases, ...from.workers.map(({ lobby }) => lobby)]) {
      for (const route of waiting.take(line, ({ promised }) => promised === undefined)) {
        const introduction = route.client.introductions.get(from.spec.id)
        // Its home is among the new; a worker that has heard its handshake does not forget it.
        if (introduction?.isWelcomed === false) introduction.home = undefined
        route.pool = this.poolFor(route.client, to)
        route.worker = undefined
        router.proceed(route)
      }
      waiting.reopen(line)
    }
  }

  // ---- workers of a principal's own ----

  /** Where the client's messages for the pool go: its principal's branch, if it has an environment for it. */
  poolFor(client: Client, { trunk }: Pool): Pool {
    const { spec } = trunk
    if (spec.sharing !== 'isolated' && spec.hasOwnWorkers !== true) return trunk
    const connection = client.behalf ?? client
    const owner = connection.owner!
    const isOwn = !owner.isUnbound && connection.state !== 'closed' && owner.hasEnvironmentIn(spec.id)
    if (!isOwn) return trunk
    const branch = owner.branches.get(trunk) ?? this.#board.supervisor.addBranch(trunk, owner)
    branch.clients.add(connection)
    return branch
  }

  /** The client has gone: a branch ends with its last client, and what was started for this one is nobody's. */
  #leaveBranches(client: Client): void {
    const { owner } = client.behalf ?? client
    for (const branch of [...(owner?.branches.values() ?? [])]) {
      branch.clients.delete(client)
      if (branch.clients.size === 0) this.#board.supervisor.retirePool(branch)
      else if (branch.spec.sharing === 'isolated')
        this.#dismissSpares(branch, sparesOf(branch).length - clientsWaiting(branch))
    }
  }

  #dismissSpares(pool: Pool, count: number): void {
    for (const worker of sparesOf(pool).slice(0, Math.max(count, 0))) this.#dismissWorker(worker)
  }

  #dismissWorker(worker: Worker): void {
    worker.isDismissed = true
    worker.isKept = false
    worker.holder = undefined
    this.#board.supervisor.step(worker, 'stop')
  }

  // ---- isolated ----

  #own({ client, pool }: Route): Worker | Lack {
    const held = ownWorkerOf(client, pool)
    if (held !== undefined) return held
    const spare = pool.next()
    if (spare === undefined) return 'no-worker'
    spare.holder = client
    client.holdings = ownSet(client.holdings).add(spare)
    this.#staff(pool)
    return spare
  }

  /** A worker has left its place: those who wait for one of their own come first. */
  workerLeft({ trunk }: Pool): void {
    for (const pool of [...trunk.branches, trunk]) this.#staff(pool)
  }

  /** As many workers as `instances` says, or as clients wait, are there or coming, as far as `max_instances` allows. */
  #staff(pool: Pool, newcomer?: Client): void {
    const { core, supervisor } = this.#board
    if (!pool.isStaffedOnDemand || pool.isRetired || core.phase !== 'running') return
    const isIsolated = pool.spec.sharing === 'isolated'
    const wanted = clientsWaiting(pool, newcomer)
    const there = isIsolated ? sparesOf(pool).length : pool.workers.length
    let missing = (isIsolated ? Math.max(pool.spec.instances, wanted) : Math.min(wanted, 1)) - there
    for (; missing > 0 && pool.hasRoom; missing--) supervisor.step(supervisor.addWorker(pool), 'retry')
    if (isIsolated && pool.owner !== undefined) this.#makeRoom(pool.trunk, missing)
    // What is kept for nobody in particular gives way to those who wait (contract 12.6).
    if (isIsolated && pool.spec.keeping !== undefined && !pool.hasRoom) this.#evict(pool, wanted)
  }

  /** As many kept sessions end as clients wait for whom no worker is there or coming. */
  #evict(pool: Pool, wanted: number): void {
    const leaving = pool.family.flatMap(({ workers }) => workers).filter(({ isDismissed }) => isDismissed).length
    for (let missing = wanted - sparesOf(pool).length - leaving; missing > 0; missing--)
      if (!this.#board.kept.giveWay(pool)) return
  }

  /** Nothing keeps the worker of a client that has gone any more. */
  maybeDismissKept(worker: Worker): void {
    if (worker.isKept && !hasKeptSession(worker)) this.#dismissWorker(worker)
  }

  /** Spares that nobody waits for give way to those who need a worker of their own. */
  #makeRoom(trunk: Pool, missing: number): void {
    const leaving = trunk.family.flatMap(({ workers }) => workers).filter(({ isDismissed }) => isDismissed).length
    const idle = sparesOf(trunk).length - clientsWaiting(trunk)
    this.#dismissSpares(trunk, Math.min(missing - leaving, idle))
  }

  /** The client has gone: its own workers end with it. */
  giveBack(client: Client): void {
    for (const worker of [...client.holdings]) {
      if (worker.holder !== client) continue
      worker.isKept = hasKeptSession(worker) && worker.isAlive
      if (worker.isKept) worker.holder = undefined
      else this.#dismissWorker(worker)
    }
    client.holdings.clear()
    for (const pool of this.#board.core.everyPool) {
      this.#board.waiting.forget(client, pool.waiting)
      if (!pool.seekers.isEmpty) this.#board.waiting.forget(client, pool.seekers)
      if (pool.spec.sharing === 'lease') this.#leave(client, pool)
    }
    this.#leaveBranches(client)
  }

  /** A worker has ended: whoever it belonged to takes another with its next message. */
  workerEnded(worker: Worker): void {
    const { waiting, router } = this.#board
    const { holder, pool } = worker
    for (const route of waiting.take(pool.leases, ({ worker: bound }) => bound === worker)) {
      route.worker = undefined
      router.proceed(route)
    }
    waiting.reopen(pool.leases)
    if (holder === undefined && !worker.isKept) return
    worker.holder = undefined
    worker.isKept = false
    holder?.holdings.delete(worker)
    if (pool.spec.sharing !== 'isolated') return
    const spares = sparesOf(pool).filter((other) => other !== worker)
    if (spares.length >= pool.spec.instances) worker.isDismissed = true
  }

  // ---- lease ----

  #lease(route: Route, bound: Worker | undefined): Worker | Lack {
    const { client, pool, isRequest } = route
    const own = this.#ownAt(route, bound)
    // Notifications (a cancel, say) belong to what is in flight: they never wait behind others.
    if (own !== undefined && (!isRequest || pool.leases.isEmpty || own === this.#granted)) return own
    if (!isRequest && bound !== undefined) return bound
    const free = !pool.leases.isEmpty || own !== undefined ? undefined : this.#free(route, bound)
    if (free !== undefined) {
      if (isRequest) free.holder = client
      return free
    }
    if (bound !== undefined && isOpenTo(bound, bound)) return 'no-lease'
    const ready = pool.workers.filter((worker) => worker.isReady)
    if (ready.length === 0) return 'no-worker'
    const isServed = bound !== undefined || ready.some((worker) => servesVersion(worker, versionOf(route)))
    return pool.isExpectingWorker || isServed ? 'no-lease' : 'no-version'
  }

  /** Of several workers that it holds, the one just granted: its earlier messages may still wait for another. */
  #ownAt(route: Route, bound: Worker | undefined): Worker | undefined {
    const { client, pool } = route
    const granted = this.#granted
    // What it speaks may have shown since the client got it.
    const isOwn = (worker: Worker): boolean =>
      worker.holder === client && (bound === undefined ? isFor(route, worker) : bound === worker)
    if (granted?.pool === pool && isOwn(granted)) return granted
    return pool.workers.find((worker) => worker.isAlive && isOwn(worker))
  }

  /** The worker the client had last, if it may choose: cursors and the like are of use there only. */
  #free(route: Route, bound: Worker | undefined): Worker | undefined {
    const { client, pool } = route
    const preferred = bound ?? client.introductions.get(pool.spec.id)?.home?.worker ?? preferredOf(client, pool)
    const isFree = preferred?.holder === undefined && preferred?.pool === pool && isOpenTo(preferred, bound)
    if (isFree && (bound !== undefined || isFor(route, preferred))) return preferred
    return bound === undefined ? pool.next((worker) => isFor(route, worker)) : undefined
  }

  #waitForLease(route: Route, bound: Worker | undefined): void {
    const { core, waiting } = this.#board
    const { pool } = route
    if (pool.leases.routes.size >= FIXED.maxLeaseWaiters)
      return this.#board.refuse(route, 'overloaded', { pool: pool.spec.id })
    if (bound !== undefined) route.promise(bound)
    const untilMs = core.nowMs + FIXED.leaseWaitMs
    const giveUp = (late: Route): void => this.#board.refuse(late, 'overloaded', { pool: pool.spec.id })
    waiting.enter(route, pool.leases, { untilMs, giveUp })
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
      while (isOpenTo(worker, worker) && worker.holder === undefined) {
        const next = firstFor(pool, worker)
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
    const { waiting, router } = this.#board
    const before = this.#granted
    this.#granted = worker
    for (const route of waiting.take(pool.leases, (each) => each.client === client && isFor(each, worker)))
      router.proceed(route)
    this.#granted = before
    waiting.reopen(pool.leases)
  }

  #leave(client: Client, pool: Pool): void {
    this.#board.waiting.forget(client, pool.leases)
    for (const worker of pool.workers) if (worker.holder === client) worker.holder = undefined
    this.grant(pool)
  }
}

/** It works for a session that outlives its client. */
function hasKeptSession({ sessions }: Worker): boolean {
  for (const { kept } of sessions.values()) if (kept !== undefined) return true
  return false
}

function firstFor({ leases }: Pool, worker: Worker): Route | undefined {
  for (const route of leases.routes) if (isFor(route, worker)) return route
  return undefined
}

/** The worker that the message waits for, or any that is open to all and speaks its version. */
function isFor(route: Route, worker: Worker): boolean {
  const bound = route.worker ?? boundSince(route)
  if (bound !== undefined) return bound === worker
  return worker.isReady && servesVersion(worker, versionOf(route))
}

/** A notification, which waits for nobody, may have bound its session while it waited. */
function boundSince({ client, pool, session, innerSession }: Route): Worker | undefined {
  for (const name of [session, innerSession]) {
    const bound = name === undefined ? undefined : client.sessions.get(name)?.worker
    if (bound?.pool === pool) return bound
  }
  return undefined
}

/** One that retires takes only what is bound to it (contract 7.5). */
function isOpenTo(worker: Worker, bound: Worker | undefined): boolean {
  return worker.isReady || (worker === bound && worker.state === 'retiring')
}

function preferredOf({ prefer }: Client, pool: Pool): Worker | undefined {
  if (prefer === undefined) return undefined
  return pool.workers.find((worker) => worker.id === prefer && worker.isReady && worker.holder === undefined)
}

/** A new session, where they are spread over the workers of the pool. */
export function isSpread({ pool, row, session }: Route): boolean {
  return pool.spec.balance === 'session' && row?.session === 'announced' && session === undefined
}

function namesOneOf({ session, innerSession }: Route, names: readonly SessionId[]): boolean {
  return names.some((name) => name === session || name === innerSession)
}

/** Nothing binds the message to its pool. */
function isFree({ client, session, row }: Route): boolean {
  return (session === undefined || !client.sessions.has(session)) && row?.task === undefined
}

/** The protocol version of a message: the one it asks for, as far as the pool knows it, or that of its client. */
export function versionOf({ client, pool, dialect, row, line, introducedBy }: Route): number | undefined {
  if (dialect?.table.singleHandshakeFrom === undefined) return undefined
  const introduction = client.introductions.get(pool.spec.id) ?? introducedBy
  if (row?.opens === undefined) return introduction?.version
  const asked = line.key(FIELD.protocolVersion)
  return typeof asked === 'number' ? Math.min(asked, pool.newestVersion) : undefined
}

function servesVersion({ welcome }: Worker, version: number | undefined): boolean {
  return welcome?.version === undefined || version === undefined || welcome.version === version
}

function hasRequestsAt(client: Client, worker: Worker): boolean {
  const bond = client.introductions.get(worker.pool.spec.id)?.bonds.get(worker)
  if (bond?.held !== undefined) return true
  for (let request = client.newest; request !== undefined; request = request.older)
    if (request.worker === worker || request.route?.place === worker.lobby) return true
  return false
}

function detailOf(pool: Pool): Record<string, unknown> {
  const why =
    pool.workers.find((worker) => worker.lastError !== undefined)?.lastError ?? endingOf(pool) ?? crowdingOf(pool)
  return { pool: pool.spec.id, ...(why === undefined ? {} : { why }) }
}

/** None of its workers lives, and this is how one of them ended. */
function endingOf({ workers }: Pool): string | undefined {
  const ended = workers.find(({ lastEnd }) => lastEnd !== undefined)?.lastEnd
  return ended === undefined || workers.some(({ isReady }) => isReady)
    ? undefined
    : `its last worker ended: ${sayEnd(ended)}`
}

function crowdingOf({ spec, isStaffedOnDemand, hasRoom }: Pool): string | undefined {
  if (!isStaffedOnDemand || hasRoom) return undefined
  return `all ${spec.maxInstances} workers that max_instances allows are in use`
}
