/**
 * From a client to a worker (contract 6.1, 6.3, 6.4): which pool, which dialect, and the seed's own plain way.
 *
 * A client that shares a protocol with the pool's workers goes on in `dialect-inbound.ts`. A request is a row from its
 * arrival (`owed.ts`); `proceed` takes a message up again where it stopped to wait.
 */
import { type Envelope, SHAPE } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { cut, replace } from '../wire/splice.ts'
import type { Core } from './core.ts'
import { DialectInbound } from './dialect-inbound.ts'
import type { Dialect } from './dialects.ts'
import { ownMap } from './empty.ts'
import { faultOf, type Reason } from './faults.ts'
import { type Request, spell } from './owed.ts'
import type { Client, Worker } from './peers.ts'
import { Permission } from './permission.ts'
import { PoolChoice } from './pool-choice.ts'
import type { Pool } from './pools.ts'
import { Route } from './route.ts'
import { hasRoomForSession } from './sessions.ts'
import type { SharedDuties } from './shared-duties.ts'
import type { Switchboard } from './switchboard.ts'
import type { SessionId } from './vocabulary.ts'

export class Inbound {
  readonly #board: Switchboard
  readonly #dialectInbound: DialectInbound
  readonly poolChoice: PoolChoice
  readonly permission: Permission

  constructor(board: Switchboard, duties: SharedDuties) {
    this.#board = board
    this.#dialectInbound = new DialectInbound(board, duties)
    this.poolChoice = new PoolChoice(board)
    this.permission = new Permission(board)
  }

  /** A request or notification has come; for this pool, whatever it names, if there is one. */
  take(client: Client, line: Envelope, meant?: Pool): void {
    const { core } = this.#board
    const isRequest = line.shape === SHAPE.request
    if (isRequest && !this.mayAsk(client, line)) return
    const route = new Route(client, line, isRequest ? core.owed.accept(line, client) : undefined)
    if (!client.isInternal) {
      if (line.has(FIELD.sessionId)) route.session = line.text(FIELD.sessionId)
      if (line.has(FIELD.paramsSessionId)) route.innerSession = line.text(FIELD.paramsSessionId)
    }
    const known = meant === undefined ? this.#knownWorker(route) : undefined
    const pool = known?.pool ?? meant ?? this.poolChoice.choose(route)
    if (pool === undefined) return
    route.pool = pool
    if (!client.owner!.isUnbound && !this.permission.mayPass(route)) return
    if (core.spec.hasAudit && !client.isInternal) this.#board.audit.begin(route)
    if (core.spec.hasTraffic && route.request !== undefined) this.#count(route.request, pool)
    if (known === undefined && !this.#board.places.settle(route)) return
    this.#enter(route, known)
  }

  /** Its place is known: it goes there. */
  enter(route: Route): void {
    if (route.client.state !== 'closed') this.#enter(route, undefined)
  }

  #enter(route: Route, known: Worker | undefined): void {
    const { client, line } = route
    if (known === undefined) route.pool = this.#board.assignment.poolFor(client, route.pool)
    const { pool } = route
    if (pool.spec.isAggregate) return this.#board.aggregates.take(route)
    if (pool.spec.isAioOnly) return this.#board.refuse(route, 'aio_only', { pool: pool.spec.id })
    this.#limit(route)
    const dialect = this.#dialectOf(route)
    if (dialect === undefined) {
      if (route.innerSession === route.session) route.innerSession = undefined
      return this.#placePlain(route, known)
    }
    route.dialect = dialect
    route.row = dialect.client.find(line)
    route.session = dialect.table.hasSessions ? (route.innerSession ?? route.session) : undefined
    this.#dialectInbound.place(route)
  }

  /** What it waited for has come. */
  proceed(route: Route): void {
    if (route.client.state === 'closed') return
    const { core } = this.#board
    if (route.request !== undefined && !isOpen(core.phase, route.client))
      return this.#board.refuse(route, 'shutting_down')
    if (route.pool.isRetired) {
      const successor = core.pools.get(route.pool.spec.id)
      if (successor !== undefined && route.promised === undefined && this.#knownWorker(route) === undefined)
        route.pool = this.#board.assignment.poolFor(route.client, successor)
    }
    // The pool that serves it now may give it a time, though the one it came to gave it none.
    this.#limit(route)
    if (route.dialect === undefined) this.#placePlain(route, this.#knownWorker(route))
    else this.#dialectInbound.place(route)
  }

  /** Whether the client may ask for one thing more; in the drain nothing new is begun (contract 7.4, 8.1). */
  mayAsk(client: Client, line: Envelope): boolean {
    const { core } = this.#board
    const { maxPendingPerClient } = core.spec.limits
    const { isUnbound, rights } = client.owner!
    const limit = Math.min(maxPendingPerClient, rights.maxPending ?? maxPendingPerClient)
    if (!isOpen(core.phase, client)) this.#board.fail(client, line.idSpelling(), 'shutting_down')
    else if (!core.isAudited && !client.isInternal) this.#board.fail(client, line.idSpelling(), 'audit_unavailable')
    else if (client.pendingCount >= limit || (!isUnbound && hasAllPending(client)))
      this.#board.fail(client, line.idSpelling(), 'too_many_pending', { limit })
    else return true
    return false
  }

  #count(request: Request, { spec }: Pool): void {
    const { core } = this.#board
    request.traffic = core.traffic.of(spec.id)
    request.sinceMs = core.nowMs
  }

  /** Its time runs from its arrival, wherever it waits (contract 8.1). */
  #limit({ request, pool }: Route): void {
    const { requestTimeoutMs } = pool.spec.limits
    if (requestTimeoutMs === 0 || request === undefined || request.timer !== undefined) return
    const { core } = this.#board
    request.timer = core.timers.set(core.nowMs + requestTimeoutMs, () => this.#timeOut(request))
  }

  #timeOut(request: Request): void {
    const { client, worker, row } = request
    // A subscription that the bus keeps for all is answered at once; only one that is the request itself runs on.
    if (client === undefined || (worker !== undefined && row?.isLongLived && row.local === undefined)) return
    if (worker === undefined) return this.#board.settle(request, 'request_timeout')
    request.outcome = 'request_timeout'
    this.#board.core.owed.disown(request)
    this.#board.tellCancelled(request)
    this.#board.observation.failed(request, faultOf('request_timeout'))
    this.#board.fail(client, request.idSpelling, 'request_timeout')
    this.#board.supervisor.maybeDismiss(worker)
    this.#board.assignment.maybeRelease(worker)
  }

  #knownWorker({ client, session, innerSession }: Route): Worker | undefined {
    if (session === undefined && innerSession === undefined) return undefined
    const known =
      (session === undefined ? undefined : client.sessions.get(session)) ??
      (innerSession === undefined ? undefined : client.sessions.get(innerSession))
    return known?.worker
  }

  /** What this client speaks with the pool: what it has shown, or what the pool's workers are known to speak. */
  #dialectOf({ client, pool, line, session, innerSession, introducedBy }: Route): Dialect | undefined {
    const { protocol, sharing, id, keeping } = pool.spec
    // Whoever has a session from others need not have shown anything.
    if (keeping !== undefined) {
      const shared =
        session === undefined && innerSession === undefined
          ? undefined
          : this.#keptDialect(client, innerSession ?? session!)
      if (shared !== undefined) return shared
    }
    if (protocol === 'plain') return undefined
    if (pool.isFixed) return pool.dialect
    const introduction = client.introductions.size === 0 ? undefined : client.introductions.get(id)
    if (introduction?.isWelcomed && sharing !== 'isolated') return introduction.dialect
    const { dialects } = this.#board
    const shown = dialects.recognise(line)
    if (shown !== undefined) client.shown = ownMap(client.shown).set(id, shown)
    const before = client.shown.size === 0 ? undefined : client.shown.get(id)
    const known = shown ?? introduction?.dialect ?? before ?? introducedBy?.dialect ?? pool.dialect
    return known ?? (protocol === 'auto' ? undefined : dialects.greeted)
  }

  #keptDialect(client: Client, name: SessionId): Dialect | undefined {
    return client.sessions.get(name)?.kept?.dialect
  }

  // ---- plain: the seed's own contract ----

  /** Sessions are named, at the top or in params or both: each must be the client's own or new (contract 4.2.2, 6.4). */
  #placePlain(route: Route, known: Worker | undefined): void {
    const { assignment } = this.#board
    const { session, innerSession } = route
    // Most messages name no session, or one that is known.
    const isNew = innerSession !== undefined || (session !== undefined && known === undefined)
    const names = isNew ? namesIn(route) : NO_NAMES
    if (isNew && !this.#mayName(route, names)) return
    const isBehind = isNew && assignment.follow(route, names)
    const worker = assignment.place(route, isBehind ? route.promised : known)
    if (worker === undefined || (isNew && !this.#bind(route, worker, names))) return
    this.#sendPlain(route, worker)
  }

  #mayName(route: Route, names: readonly SessionId[]): boolean {
    let coming = 0
    for (const name of names) {
      const reason = this.#sessionFault(route.client, name, coming)
      if (!route.client.sessions.has(name)) coming++
      if (reason === undefined) continue
      this.#board.refuse(route, reason, { sessionId: name })
      // The loss has been told: the name is new again, for a plain client could not bring its session back (7.1).
      if (reason === 'session_lost' && route.request !== undefined) route.client.lost.delete(name)
      return false
    }
    return true
  }

  #sessionFault(client: Client, name: SessionId, coming: number): Reason | undefined {
    if (client.sessions.has(name)) return undefined
    if (client.lost.has(name)) return 'session_lost'
    if (this.#board.core.sessions.isForeign(name, client)) return 'session_not_owned'
    return hasRoomForSession(this.#board.core, client, coming) ? undefined : 'too_many_sessions'
  }

  #bind(route: Route, worker: Worker, names: readonly SessionId[]): boolean {
    const { core, assignment } = this.#board
    const { client } = route
    for (const name of names) {
      if ((client.sessions.get(name)?.worker ?? worker) === worker) continue
      this.#board.refuse(route, 'session_id_conflict', { sessionId: name })
      assignment.maybeRelease(worker)
      return false
    }
    for (const name of names) if (!client.sessions.has(name)) core.sessions.bind(name, client, worker)
    return true
  }

  #sendPlain({ client, request, line }: Route, worker: Worker): void {
    if (client.isToldOfRoutes && !this.#board.mayTell(client, worker, request)) return
    // The pools of another bus are others: what names one of ours is not for it (contract 11.1).
    const edits = worker.pool.spec.isRemote && line.has(FIELD.pool) ? cut(line, [FIELD.pool]) : undefined
    if (request === undefined) return this.#board.forward(worker, line, edits)
    this.#board.send(request, line, worker)
    const alias = request.isAliased ? [replace(line, FIELD.id, spell(request.key))] : undefined
    this.#board.forward(worker, line, edits === undefined ? alias : [...edits, ...(alias ?? [])])
  }
}

const NO_NAMES: readonly SessionId[] = []

function namesIn({ session, innerSession }: Route): SessionId[] {
  return [session, innerSession].filter((name) => name !== undefined)
}

/** In the drain the calls under way may still need a worker. */
function isOpen(phase: Core['phase'], client: Client): boolean {
  return phase === 'running' || (client.isInternal && phase === 'draining')
}

/** The principal has as many unanswered requests, over all its connections, as it may (contract 9.21). */
function hasAllPending({ owner }: Client): boolean {
  const { maxPending } = owner!.rights
  return maxPending !== undefined && owner!.pendingCount >= maxPending
}
