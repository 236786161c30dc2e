/**
 * Whether a message of a principal with bounds may go where it wants (contract 9.6, 9.18 to 9.21).
 *
 * What it may not is refused here, once, before anything else is done with it. A tool is judged by the value of its name; a
 * name that is missing, stands twice or is no string is nobody's. What belongs to messages that were taken already (a
 * cancel, a ping, the end of a handshake) costs nothing of a rate.
 */
import { type Envelope, SHAPE } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import type { Client } from './peers.ts'
import type { PrincipalRow } from './principals.ts'
import type { Route } from './route.ts'
import type { Switchboard } from './switchboard.ts'

export class Permission {
  readonly #board: Switchboard

  constructor(board: Switchboard) {
    this.#board = board
  }

  /** The message may go to its pool; false: it was refused. */
  mayPass(route: Route): boolean {
    const { client, pool } = route
    const row = client.owner!
    if (row.rights.role === 'observer' || !row.mayUse(pool)) return this.#deny(route, { pool: pool.spec.id })
    return this.#mayUseTool(route, row) && this.#isInRate(route, row)
  }

  /** The same for a call of an agent, whose name and tool the gateway judges. */
  mayCall(client: Client, line: Envelope): boolean {
    const waitMs = client.owner!.spend(this.#board.core.nowMs)
    if (waitMs === 0) return true
    client.owner!.refused++
    if (line.shape !== SHAPE.request) this.#board.core.drop('rate_limited')
    else this.#board.fail(client, line.idSpelling(), 'rate_limited', { retry_after_ms: waitMs })
    return false
  }

  #mayUseTool(route: Route, row: PrincipalRow): boolean {
    if (row.rights.tools === undefined) return true
    const { line, pool, request } = route
    // What it shows, and under which names, an aggregate knows alone (contract 13.6).
    if (pool.spec.isAggregate) return true
    const use = this.#board.dialects.toolUseOf(line)
    if (use === 'listed' && request !== undefined) request.hidesTools = true
    if (use !== 'called') return true
    const tool = toolNamedBy(line)
    if (tool !== undefined && row.mayCall(pool, tool)) return true
    return this.#deny(route, { pool: pool.spec.id, ...(tool === undefined ? {} : { tool }) })
  }

  #isInRate(route: Route, row: PrincipalRow): boolean {
    const { core, dialects } = this.#board
    if (row.rights.rate === undefined || dialects.isFree(route.line)) return true
    const waitMs = row.spend(core.nowMs)
    if (waitMs === 0) return true
    row.refused++
    this.#board.refuse(route, 'rate_limited', { retry_after_ms: waitMs })
    return false
  }

  #deny(route: Route, detail: Record<string, unknown>): false {
    this.#board.deny(route, detail)
    return false
  }
}

/** Undefined: it names none, or nobody can tell which. */
export function toolNamedBy(line: Envelope): string | undefined {
  return line.isRepeated(FIELD.name) ? undefined : line.text(FIELD.name)
}
