/**
 * Which pool a message is for that no session of its client binds (contract 6.3).
 *
 * It decides nothing beyond the pool; whoever names none, or none that there is, is told the names. On an addressed bus
 * (`Addressing`) the pool is named by other fields, else implied by what the message refers to.
 */
import { FIELD } from '../wire/fields.ts'
import type { ClientRow } from './dialect-table.ts'
import type { Client } from './peers.ts'
import type { Pool } from './pools.ts'
import type { Route } from './route.ts'
import type { Switchboard } from './switchboard.ts'
import type { Addressing, BusSpec, PoolId } from './vocabulary.ts'

export class PoolChoice {
  readonly #board: Switchboard
  /** The only pool that lists name, as long as the configuration is this one. */
  #soleOf: { readonly spec: BusSpec | undefined; readonly pool: Pool | undefined } = {
    spec: undefined,
    pool: undefined,
  }

  constructor(board: Switchboard) {
    this.#board = board
  }

  /** The pool of the message; undefined: it was refused, or answered. */
  choose(route: Route): Pool | undefined {
    const { addressing } = this.#board.core.spec
    return addressing === undefined ? this.#plain(route) : this.#addressed(route, addressing)
  }

  /** The pools that the client may know of. */
  namesFor({ owner }: Client): PoolId[] {
    const { pools } = this.#board.core
    return [...pools.values()].filter((pool) => isListed(pool) && owner!.mayUse(pool)).map(({ spec }) => spec.id)
  }

  #plain(route: Route): Pool | undefined {
    const { core } = this.#board
    const { client, line } = route
    const said = line.has(FIELD.pool) ? line.text(FIELD.pool) : (client.pool ?? this.#defaultFor(client))
    const named = said === undefined || core.spec.node === undefined ? said : this.#withoutOwnNode(said)
    // Whoever names this node means its own workers.
    if (named !== said) route.isLocated = true
    if (named !== undefined) {
      const pool = this.#find(client, named)
      if (!client.owner!.isUnbound && !this.#mayName(route, pool?.spec.placeOf ?? named)) return undefined
      // Whoever names a place means it.
      if (pool?.spec.placeOf !== undefined) route.isLocated = true
      if (pool === undefined) this.#board.refuse(route, 'unknown_pool', { pool: named, pools: this.namesFor(client) })
      return pool
    }
    const sole = this.#solePool
    if (sole !== undefined) return sole
    const only = this.unnamedFor(client)
    if (only !== undefined) return core.pools.get(only)
    this.#board.refuse(route, 'pool_required', { pools: this.namesFor(client) })
    return undefined
  }

  /** What was brought here from another node goes no further (contract 14.2). */
  #find(client: Client, name: PoolId): Pool | undefined {
    const pool = this.#board.core.pools.get(name)
    if (client.door !== 'cluster' || pool === undefined) return pool
    return name === client.pool && !isImported(pool) ? pool : undefined
  }

  #withoutOwnNode(name: string): string {
    const { spec, pools } = this.#board.core
    const suffix = `@${spec.node}`
    if (!name.endsWith(suffix)) return name
    const own = pools.get(name.slice(0, -suffix.length))
    return own === undefined || isImported(own) ? name : own.spec.id
  }

  get #solePool(): Pool | undefined {
    const { pools, spec } = this.#board.core
    if (this.#soleOf.spec === spec) return this.#soleOf.pool
    const listed = [...pools.values()].filter(isListed)
    this.#soleOf = { spec, pool: listed.length === 1 ? listed[0] : undefined }
    return this.#soleOf.pool
  }

  /** Where its messages go that name no pool, if there is no doubt. */
  unnamedFor(client: Client): PoolId | undefined {
    const names = this.namesFor(client)
    return this.#defaultFor(client) ?? (names.length === 1 ? names[0] : undefined)
  }

  /** What a caller may not use it is not told of, existing or not (contract 9.18). */
  #mayName(route: Route, pool: PoolId): boolean {
    if (route.client.owner!.mayName(pool)) return true
    this.#board.deny(route, { pool })
    return false
  }

  #defaultFor({ owner }: Client): PoolId | undefined {
    const { defaultPool } = this.#board.core.spec
    return defaultPool === undefined || owner!.isUnbound || owner!.mayName(defaultPool) ? defaultPool : undefined
  }

  #addressed(route: Route, { fields, welcome }: Addressing): Pool | undefined {
    const { core, dialects } = this.#board
    const { line, request, client } = route
    const field = fields.find((each) => line.typeOf(each) === 'string')
    const agentId = field === undefined ? undefined : line.text(field)
    if (agentId !== undefined && !client.owner!.isUnbound && !this.#mayName(route, agentId)) return undefined
    const row = dialects.withSessions?.client.find(line)
    const pool = agentId === undefined ? this.#implied(route, row) : core.pools.get(agentId)
    if (pool !== undefined) return pool
    if (agentId !== undefined) this.#board.refuse(route, 'unknown_agent', { agentId, known: this.namesFor(client) })
    else if (row?.cancels !== undefined && request === undefined) core.drop('cancel_for_nothing')
    else if (row?.opens !== undefined && request !== undefined)
      this.#board.answerRequest(request, `"result":${welcome}`)
    else this.#board.refuse(route, 'agent_required', { known: this.namesFor(client) })
    return undefined
  }

  /** The pool of the request that is to be cancelled, or of a session that has been spoken of. */
  #implied({ client, line }: Route, row: ClientRow | undefined): Pool | undefined {
    const { core, dialects } = this.#board
    if (row?.cancels !== undefined) {
      const key = line.key(row.cancels)
      const request = key === undefined ? undefined : core.owed.find(client, key, () => true)
      return request?.worker?.pool ?? request?.route?.pool
    }
    for (const field of dialects.withSessions?.table.sessionFields ?? []) {
      const name = line.text(field)
      const pool = name === undefined ? undefined : core.sessionNames?.find(name)?.pool
      if (pool !== undefined) return core.pools.get(pool)
    }
    return undefined
  }
}

function isListed({ spec }: Pool): boolean {
  return spec.placeOf === undefined
}

/** All its workers are elsewhere. */
function isImported({ spec }: Pool): boolean {
  return spec.placeOf !== undefined || (spec.isPlaced === true && spec.maxInstances === 0 && spec.isAggregate !== true)
}
