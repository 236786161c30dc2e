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
import type { Addressing, PoolId } from './vocabulary.ts'

export class PoolChoice {
  readonly #board: Switchboard

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
    if (owner!.isUnbound) return [...pools.keys()]
    return [...pools.values()].filter((pool) => owner!.mayUse(pool)).map(({ spec }) => spec.id)
  }

  #plain(route: Route): Pool | undefined {
    const { core } = this.#board
    const { client, line } = route
    const named = line.has(FIELD.pool) ? line.text(FIELD.pool) : (client.pool ?? this.#defaultFor(client))
    if (named !== undefined) {
      if (!client.owner!.isUnbound && !this.#mayName(route, named)) return undefined
      const pool = core.pools.get(named)
      if (pool === undefined) this.#board.refuse(route, 'unknown_pool', { pool: named, pools: this.namesFor(client) })
      return pool
    }
    if (core.pools.size === 1) for (const pool of core.pools.values()) return pool
    const only = this.unnamedFor(client)
    if (only !== undefined) return core.pools.get(only)
    this.#board.refuse(route, 'pool_required', { pools: this.namesFor(client) })
    return undefined
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
