/**
 * Which pool a message is for that no session of its client binds (contract 6.3).
 *
 * It decides nothing beyond the pool; whoever names none, or none that there is, is told the names. On an addressed bus
 * (`Addressing`) the pool is named by other fields, else implied by what the message refers to.
 */
import { FIELD } from '../wire/fields.ts'
import type { ClientRow } from './dialect-table.ts'
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

  names(): PoolId[] {
    return [...this.#board.core.pools.keys()]
  }

  #plain(route: Route): Pool | undefined {
    const { core } = this.#board
    const { client, line } = route
    const named = line.has(FIELD.pool) ? line.text(FIELD.pool) : (client.pool ?? core.spec.defaultPool)
    if (named !== undefined) {
      const pool = core.pools.get(named)
      if (pool === undefined) this.#board.refuse(route, 'unknown_pool', { pool: named, pools: this.names() })
      return pool
    }
    if (core.pools.size === 1) for (const pool of core.pools.values()) return pool
    this.#board.refuse(route, 'pool_required', { pools: this.names() })
    return undefined
  }

  #addressed(route: Route, { fields, welcome }: Addressing): Pool | undefined {
    const { core, dialects } = this.#board
    const { line, request } = route
    const field = fields.find((each) => line.typeOf(each) === 'string')
    const agentId = field === undefined ? undefined : line.text(field)
    const row = dialects.withSessions?.client.find(line)
    const pool = agentId === undefined ? this.#implied(route, row) : core.pools.get(agentId)
    if (pool !== undefined) return pool
    if (agentId !== undefined) this.#board.refuse(route, 'unknown_agent', { agentId, known: this.names() })
    else if (row?.cancels !== undefined && request === undefined) core.drop('cancel_for_nothing')
    else if (row?.opens !== undefined && request !== undefined)
      this.#board.answerRequest(request, `"result":${welcome}`)
    else this.#board.refuse(route, 'agent_required', { known: this.names() })
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
