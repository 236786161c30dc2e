/**
 * Where a client is served whose pool has workers in several places, and where a session lives that it claims (contract
 * 14.3, 14.6).
 *
 * It knows no place but by the name of a pool: who knows more is asked (`locate`) and answers (`located`), and until then the
 * message waits. A client stays where it was placed as long as somebody is there; then it is placed anew, and its
 * handshake with it.
 */
import type { Envelope } from '../wire/envelope.ts'
import { ownMap } from './empty.ts'
import type { BusEvent } from './events.ts'
import { FIXED } from './limits.ts'
import type { Request } from './owed.ts'
import type { Client } from './peers.ts'
import type { Pool } from './pools.ts'
import type { Route } from './route.ts'
import type { Switchboard } from './switchboard.ts'
import type { PoolId, SessionId } from './vocabulary.ts'

type Located = Extract<BusEvent, { type: 'located' }>
type Gathered = Extract<BusEvent, { type: 'gathered' }>

export class Places {
  readonly #board: Switchboard

  constructor(board: Switchboard) {
    this.#board = board
  }

  /** The pool of the message is where it goes; false: it waits to be told, or was refused. */
  settle(route: Route): boolean {
    const { client, pool } = route
    const { isPlaced, refusal } = pool.spec
    if (isPlaced === undefined && refusal === undefined) return true
    if (isPlaced && (client.door === 'cluster' || route.isLocated)) return true
    if (isPlaced && this.#stays(route)) return true
    if (refusal !== undefined) this.#board.refuse(route, refusal.reason, { pool: pool.spec.id, ...refusal.detail })
    else this.seek(route, undefined)
    return false
  }

  /** A claim waits to be told where its session lives; where a worker of this node has it, that is known. */
  mustSeek(route: Route): boolean {
    const { client, session, request, isLocated } = route
    if (isLocated || session === undefined || request === undefined || client.door === 'cluster') return false
    const pool = this.#homeOf(route)
    if (pool?.spec.isSought === undefined || client.sessions.has(session)) return false
    if (!this.#board.core.sessions.isIn(pool, session)) this.seek(route, session)
    else this.#proceedAt(route, pool)
    return true
  }

  located(client: Client, told: Located): void {
    const { waiting } = this.#board
    const pool = this.#board.core.pools.get(told.pool)
    if (pool === undefined) return
    const isMeant = (route: Route): boolean => route.client === client && seeks(route) === told.session
    for (const route of waiting.take(pool.seekers, isMeant)) this.#goOn(route, told)
    waiting.reopen(pool.seekers)
  }

  /** A list of sessions is asked of all nodes that have the pool, unless its client has named one. */
  gathers(route: Route): boolean {
    const { client, request, line } = route
    const home = this.#homeOf(route)
    if (home?.spec.isSpread === undefined || request === undefined || client.door === 'cluster') return false
    if (client.isInternal || (route.pool !== home && !route.isPlaced)) return false
    const { initialize } = client.introductions.get(route.pool.spec.id) ?? route.introducedBy ?? {}
    this.gather(request, line, home.spec.id, initialize)
    return true
  }

  gather(request: Request, line: Envelope, pool: PoolId | undefined, initialize?: Buffer): void {
    const { id: client } = request.client!
    request.isAtAggregate = true
    const { actions } = this.#board.core
    actions.push({ do: 'gather', client, pool, row: request.serial, bytes: line.copy(), initialize })
  }

  gathered(client: Client, told: Gathered): void {
    for (let request = client.newest; request !== undefined; request = request.older) {
      if (request.serial !== told.row) continue
      if ('refusal' in told) return this.#board.settle(request, told.refusal.reason, told.refusal.detail)
      return this.#board.answerRequest(request, told.outcome)
    }
  }

  #goOn(route: Route, told: Located): void {
    if (route.homes !== undefined) return this.#board.farSessions.located(route, told)
    if ('refusal' in told) {
      const { reason, detail } = told.refusal
      return this.#board.refuse(route, reason, { pool: told.pool, ...detail })
    }
    const place = told.place === undefined ? route.pool : this.#board.core.pools.get(told.place)
    if (place === undefined) return this.#board.refuse(route, 'no_worker', { pool: told.pool })
    if (told.session === undefined) {
      this.#move(route, place)
      return this.#board.router.enter(route)
    }
    this.#proceedAt(route, place)
  }

  /** A session that is claimed lives there. */
  #proceedAt(route: Route, place: Pool): void {
    route.isLocated = true
    if (place.trunk !== route.pool.trunk) {
      route.introducedBy = route.client.introductions.get(route.pool.spec.id) ?? route.introducedBy
      route.pool = this.#board.assignment.poolFor(route.client, place)
    }
    this.#board.router.proceed(route)
  }

  /** It has a place already, or is served here, where there is room. */
  #stays(route: Route): boolean {
    const { client, pool } = route
    const known = client.places.get(pool.spec.id)
    const place = known === undefined ? undefined : this.#board.core.pools.get(known)
    if (place !== undefined && place.spec.refusal === undefined) {
      this.#move(route, place)
      return true
    }
    if (pool.openings === 0) return false
    this.#move(route, pool)
    return true
  }

  /** From a place that is left the handshake goes along. */
  #move(route: Route, place: Pool): void {
    const { client, pool } = route
    const { id } = pool.spec
    const before = client.places.get(id)
    if (before !== place.spec.id) {
      client.places = ownMap(client.places).set(id, place.spec.id)
      if (before !== undefined) route.introducedBy = client.introductions.get(before)
    }
    route.isPlaced = true
    route.pool = place
  }

  /** It waits to be told where it goes: to the session, or where newcomers do. */
  seek(route: Route, session: SessionId | undefined): void {
    const { core, waiting } = this.#board
    const pool = session === undefined ? route.pool : this.#homeOf(route)!
    const { client } = route
    const isAsked = [...pool.seekers.routes].some((other) => other.client === client && seeks(other) === session)
    const untilMs = core.nowMs + FIXED.placeWaitMs
    const giveUp = (late: Route): void => this.#board.refuse(late, 'directory_unavailable', { pool: pool.spec.id })
    if (!waiting.enter(route, pool.seekers, { untilMs, giveUp }) || isAsked) return
    const what = session === undefined ? {} : { session }
    core.actions.push({ do: 'locate', client: client.id, pool: pool.spec.id, ...what })
  }

  /** The pool that has this one for a place. */
  #homeOf({ pool }: Route): Pool | undefined {
    return this.#board.core.pools.get(pool.spec.placeOf ?? pool.spec.id)
  }
}

/** Of a message that waits: the session whose place it wants to know. */
function seeks({ row, session }: Route): SessionId | undefined {
  return row === undefined ? undefined : session
}
