/**
 * Which pool a message is for that no session of its client binds (contract 6.3).
 *
 * It decides nothing beyond the pool; whoever names none, or none that there is, is told the names. On an addressed bus
 * (`Addressing`) the pool is named by other fields, else implied by what the message refers to.
 */
import { FIELD } from '../wire/fields.ts'
import type { ClientRow } from './dialect.ts'
import type { Client } from './peers.ts'
import type { Pool } from './pools.ts'
import type { Switchboard } from './switchboard.ts'
import type { Addressing, PoolId } from './vocabulary.ts'

export class PoolChoice {
  readonly #board: Switchboard

  constructor(board: Switchboard) {
    this.#board = board
  }

  /** The pool of the message at hand; undefined: it was refused, or answered. */
  choose(client: Client, isRequest: boolean): Pool | undefined {
    const { addressing } = this.#board.core.spec
    return addressing === undefined ? this.#plain(client, isRequest) : this.#addressed(client, isRequest, addressing)
  }

  names(): PoolId[] {
    return [...this.#board.core.pools.keys()]
  }

  #plain(client: Client, isRequest: boolean): Pool | undefined {
    const { core, envelope } = this.#board
    const named = envelope.has(FIELD.pool) ? envelope.text(FIELD.pool) : (client.pool ?? core.spec.defaultPool)
    if (named !== undefined) {
      const pool = core.pools.get(named)
      if (pool === undefined)
        this.#board.refuse(client, isRequest, 'unknown_pool', { pool: named, pools: this.names() })
      return pool
    }
    if (core.pools.size === 1) for (const pool of core.pools.values()) return pool
    this.#board.refuse(client, isRequest, 'pool_required', { pools: this.names() })
    return undefined
  }

  #addressed(client: Client, isRequest: boolean, { fields, welcome }: Addressing): Pool | undefined {
    const { core, envelope, tongues } = this.#board
    const field = fields.find((each) => envelope.typeOf(each) === 'string')
    const agentId = field === undefined ? undefined : envelope.text(field)
    const row = tongues.acp.client.find(envelope)
    const pool = agentId === undefined ? this.#implied(client, row) : core.pools.get(agentId)
    if (pool !== undefined) return pool
    if (agentId !== undefined) this.#board.refuse(client, isRequest, 'unknown_agent', { agentId, known: this.names() })
    else if (row?.cancels !== undefined && !isRequest) core.drop('cancel_for_nothing')
    else if (row?.opens !== undefined && isRequest) this.#board.answer(client, envelope.idSpelling(), welcome)
    else this.#board.refuse(client, isRequest, 'agent_required', { known: this.names() })
    return undefined
  }

  /** The pool of the request that is to be cancelled, or of a session that has been spoken of. */
  #implied(client: Client, row: ClientRow | undefined): Pool | undefined {
    const { core, envelope, tongues } = this.#board
    if (row?.cancels !== undefined) return poolOfRequest(client, envelope.key(row.cancels))
    for (const field of tongues.acp.dialect.sessionFields) {
      const name = envelope.text(field)
      const pool = name === undefined ? undefined : core.sessionNames?.find(name)?.pool
      if (pool !== undefined) return core.pools.get(pool)
    }
    return undefined
  }
}

function poolOfRequest(client: Client, key: unknown): Pool | undefined {
  for (let request = client.newest; request !== undefined; request = request.older)
    if (request.clientKey === key) return request.worker.pool
  return undefined
}
