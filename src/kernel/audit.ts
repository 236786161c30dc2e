/**
 * Tells, of every request of a client, what it was and how it ended, where that is to be known (contract 9.23).
 *
 * It holds nothing up and changes nothing. No payload is told: the method, and the name of a tool that was called.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import type { Core } from './core.ts'
import type { Dialects } from './dialects.ts'
import type { Request } from './owed.ts'
import type { Client } from './peers.ts'
import { toolNamedBy } from './permission.ts'
import type { Route } from './route.ts'

export class Audit {
  readonly #core: Core
  readonly #dialects: Dialects

  constructor(core: Core, dialects: Dialects) {
    this.#core = core
    this.#dialects = dialects
    core.owed.onEnded = (request, client) => this.#end(request, client)
  }

  /** The pool of the message is known. */
  begin({ request, line, pool }: Route): void {
    if (request === undefined) return
    request.deed = this.#deedOf(line)
    request.poolId = pool.spec.id
  }

  /** A call of an agent. */
  beginCall(request: Request, line: Envelope): void {
    request.deed = this.#deedOf(line)
  }

  denied({ client, line, pool }: Route): void {
    if (!this.#core.spec.hasAudit) return
    const { method, tool } = this.#deedOf(line)
    const deed = { method, tool, pool: pool?.spec.id, outcome: 'not_allowed', durationMs: 0 }
    this.#core.actions.push({ do: 'audit', event: 'denied', client: client.id, ...deed })
  }

  #deedOf(line: Envelope): NonNullable<Request['deed']> {
    const tool = this.#dialects.toolUseOf(line) === 'called' ? toolNamedBy(line) : undefined
    return { method: line.text(FIELD.method)!, tool, sinceMs: this.#core.nowMs }
  }

  #end({ deed, poolId, outcome, observed }: Request, client: Client): void {
    const { method, tool, sinceMs, traceId } = deed!
    const durationMs = this.#core.nowMs - sinceMs
    this.#core.actions.push({
      do: 'audit',
      event: 'call',
      client: client.id,
      pool: poolId,
      method,
      tool,
      outcome,
      durationMs,
      ...(traceId === undefined ? {} : { traceId }),
      ...(observed === 0 ? {} : { observed }),
    })
  }
}
