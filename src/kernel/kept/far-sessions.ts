/**
 * What is asked about a kept session that lives at another node (contract 14.6): it is asked there, as the client that asks,
 * and that node judges what the client may see (contract 12.20).
 *
 * Whatever is known here is not asked elsewhere. Where the session lives the directory says; without one it is where its client
 * is served. Invariant: one node at the most is asked, and what it answers is the answer.
 */
import type { Envelope } from '../../wire/envelope.ts'
import type { ClientRow } from '../dialect-table.ts'
import type { BusEvent } from '../events.ts'
import type { Request } from '../owed.ts'
import type { Client } from '../peers.ts'
import type { Pool } from '../pools.ts'
import { Route } from '../route.ts'
import type { Switchboard } from '../switchboard.ts'
import type { BusSpec } from '../vocabulary.ts'
import { paramsOf } from './lines.ts'

type Located = Extract<BusEvent, { type: 'located' }>
export type FarMethod = 'bus::sessions.attach' | 'bus::sessions.detach' | 'bus::sessions.end'

/** What the answer does to the session here: whoever is attached says what it has to say where the session is. */
const ROWS: Readonly<Record<FarMethod, ClientRow>> = {
  'bus::sessions.attach': { session: 'claimed' },
  'bus::sessions.detach': { session: 'ended' },
  'bus::sessions.end': { session: 'ended' },
}

/** Other nodes may have what is asked for: whoever came from one is asked about this one alone. */
export function mayBeFar({ door }: Client, { node }: BusSpec): boolean {
  return node !== undefined && door !== 'cluster'
}

export class FarSessions {
  readonly #board: Switchboard

  constructor(board: Switchboard) {
    this.#board = board
  }

  /** Asks the node of the session; false: there is none to ask. */
  ask(method: FarMethod, request: Request, line: Envelope): boolean {
    const client = request.client!
    const { session, pool, role } = paramsOf(line)
    if (!mayBeFar(client, this.#board.core.spec) || typeof session !== 'string') return false
    const route = new Route(client, line, request)
    route.session = session
    route.row = ROWS[method]
    const worker = client.sessions.get(session)?.worker
    const isObserver = client.owner!.rights.role === 'observer'
    if (isObserver && (method === 'bus::sessions.end' || role === 'drive')) {
      client.owner!.refused++
      this.#board.refuse(route, 'not_allowed')
    } else if (worker?.pool.spec.placeOf !== undefined) this.#go(route, worker.pool)
    else if (method === 'bus::sessions.detach') return false
    else {
      route.homes = this.#homesFor(client, pool)
      if (route.homes.length === 0) return false
      this.#tryNext(route)
    }
    return true
  }

  /** The directory has spoken of the pool at hand. */
  located(route: Route, told: Located): void {
    if ('refusal' in told) {
      const { reason, detail } = told.refusal
      return this.#board.refuse(route, reason, { pool: told.pool, ...detail })
    }
    const place = told.place === undefined ? undefined : this.#board.core.pools.get(told.place)
    if (place?.spec.placeOf === undefined) this.#tryNext(route)
    else this.#go(route, place)
  }

  /** The pools in which the session may be; one that is named, or all that others have too. */
  #homesFor({ owner }: Client, named: unknown): readonly Pool[] {
    const { pools } = this.#board.core
    const { withSessions } = this.#board.dialects
    const only = typeof named === 'string' ? pools.get(named) : undefined
    const all = typeof named === 'string' ? [only].flatMap((pool) => pool ?? []) : [...pools.values()].filter(isHome)
    return all.filter((pool) => {
      const { isPlaced, isSpread, placeOf, protocol } = pool.spec
      const isElsewhere = isPlaced === true || isSpread === true || placeOf !== undefined
      const canKeep = protocol !== 'plain' && (pool.dialect ?? withSessions) === withSessions
      return isElsewhere && canKeep && owner!.mayUse(pool)
    })
  }

  #tryNext(route: Route): void {
    const [home, ...others] = route.homes!
    const { session, client } = route
    if (home === undefined) return this.#board.refuse(route, 'unknown_session', { session })
    // Of one pool at one place nobody need be asked where it is.
    const isSought = home.spec.isSought === true || (others.length > 0 && this.#board.core.spec.hasDirectory === true)
    route.homes = others
    route.pool = home
    if (home.spec.placeOf !== undefined) return this.#go(route, home)
    if (isSought) return this.#board.places.seek(route, session)
    const place = this.#placeOf(client, home)
    if (place === undefined) this.#tryNext(route)
    else this.#go(route, place)
  }

  /** Where its client is served, or could be. */
  #placeOf({ places }: Client, { spec }: Pool): Pool | undefined {
    const { pools } = this.#board.core
    const known = pools.get(places.get(spec.id) ?? '')
    if (known?.spec.placeOf !== undefined) return known
    const all = [...pools.values()].filter(({ spec: { id } }) => id.startsWith(`${spec.id}@`))
    return all.find(({ spec: { refusal } }) => refusal === undefined) ?? all[0]
  }

  #go(route: Route, place: Pool): void {
    const { client } = route
    const { refusal, placeOf } = place.spec
    if (refusal !== undefined) return this.#board.refuse(route, refusal.reason, { pool: placeOf, ...refusal.detail })
    route.introducedBy = introductionOf(client, placeOf!)
    route.pool = this.#board.assignment.poolFor(client, place)
    route.dialect = place.dialect ?? this.#board.dialects.withSessions
    route.isLocated = true
    // To end a session it need not be one's own here: its home judges.
    const isOwn = client.sessions.has(route.session!)
    if (route.row!.session === 'ended' && !isOwn) route.session = undefined
    this.#board.router.proceed(route)
  }
}

function introductionOf({ introductions, places }: Client, home: string): Route['introducedBy'] {
  return introductions.get(home) ?? introductions.get(places.get(home) ?? '')
}

/** It is no place of another. */
function isHome({ spec }: Pool): boolean {
  return spec.placeOf === undefined
}

export function isFarMethod(method: string): method is FarMethod {
  return Object.hasOwn(ROWS, method)
}

/** Of a client that came from another node only the sessions of its pool are seen (contract 14.2). */
export function poolSeenBy({ door, pool }: Client, named: string | undefined): string | undefined {
  return door === 'cluster' ? pool : named
}
