/**
 * From a client to a worker (contract 6.1, 6.3, 6.4): which pool, which tongue, and the seed's own plain way.
 *
 * A client that shares a protocol with the pool's workers goes on in `spoken.ts`. Every request is recorded before it is sent.
 */
import { FIELD } from '../wire/fields.ts'
import type { Reason } from './faults.ts'
import type { Ledger } from './ledger.ts'
import type { Links } from './links.ts'
import type { Client, Worker } from './peers.ts'
import { PoolChoice } from './pool-choice.ts'
import type { Pool } from './pools.ts'
import { hasRoomForSession } from './sessions.ts'
import type { Spoken } from './spoken.ts'
import type { Switchboard } from './switchboard.ts'
import type { Tongue } from './tongue.ts'
import type { SessionId } from './vocabulary.ts'

export class Inbound {
  readonly #board: Switchboard
  readonly #links: Links
  readonly #ledger: Ledger
  readonly #spoken: Spoken
  readonly poolChoice: PoolChoice

  constructor(board: Switchboard, links: Links, ledger: Ledger, spoken: Spoken) {
    this.#board = board
    this.#links = links
    this.#ledger = ledger
    this.#spoken = spoken
    this.poolChoice = new PoolChoice(board)
  }

  /** The request or notification at hand. */
  route(client: Client, isRequest: boolean): void {
    const { core, envelope } = this.#board
    // It waited, and its client has gone meanwhile.
    if (client.state === 'closed') return
    if (isRequest && !this.#mayAsk(client)) return this.#board.refuse(client, true, 'shutting_down')
    const limit = core.spec.limits.maxPendingPerClient
    if (isRequest && client.pendingCount >= limit)
      return this.#board.refuse(client, true, 'too_many_pending', { limit })
    const hasSessions = !client.isInternal
    const top = hasSessions && envelope.has(FIELD.sessionId) ? envelope.text(FIELD.sessionId) : undefined
    const inner = hasSessions && envelope.has(FIELD.paramsSessionId) ? envelope.text(FIELD.paramsSessionId) : undefined
    const known = this.#knownSession(client, top, inner)
    const pool = known?.pool ?? this.poolChoice.choose(client, isRequest)
    if (pool === undefined) return
    if (pool.spec.isAioOnly) return this.#board.refuse(client, isRequest, 'aio_only', { pool: pool.spec.id })
    const tongue = this.#tongueOf(client, pool)
    if (tongue !== undefined) return this.#spoken.route(client, pool, tongue, isRequest, top, inner)
    if (top === undefined && inner === undefined) return this.#routeFree(client, pool, isRequest)
    this.#routeSession(client, pool, isRequest, top, inner === top ? undefined : inner)
  }

  /** In the drain nothing new is begun, but the calls under way may still need a worker (contract 7.4). */
  #mayAsk(client: Client): boolean {
    const { phase } = this.#board.core
    return phase === 'running' || (client.isInternal && phase === 'draining')
  }

  #knownSession(client: Client, top: SessionId | undefined, inner: SessionId | undefined): Worker | undefined {
    const session =
      (top === undefined ? undefined : client.sessions.get(top)) ??
      (inner === undefined ? undefined : client.sessions.get(inner))
    return session?.worker
  }

  /** What this client speaks with the pool: what it has shown, or what the pool's workers are known to speak. */
  #tongueOf(client: Client, pool: Pool): Tongue | undefined {
    const { protocol, era } = pool.spec
    const { tongues, envelope } = this.#board
    if (protocol === 'plain') return undefined
    if (protocol === 'acp') return tongues.acp
    const bond = client.bonds.size === 0 ? undefined : client.bonds.get(pool.spec.id)
    if (bond !== undefined && pool.spec.sharing !== 'isolated') return bond.tongue
    const shown = tongues.recognise(envelope)
    if (shown !== undefined) client.shown.set(pool.spec.id, shown)
    const known = shown ?? bond?.tongue ?? client.shown.get(pool.spec.id) ?? pool.tongue
    if (known !== undefined) return known
    return protocol === 'mcp' ? (era === 'modern' ? tongues.mcpModern : tongues.mcpLegacy) : undefined
  }

  // ---- plain: the seed's own contract ----

  #routeFree(client: Client, pool: Pool, isRequest: boolean): void {
    const worker = this.#links.assignment.choose(client, pool, isRequest)
    if (worker !== undefined) this.#sendPlain(client, worker, isRequest)
  }

  /** Sessions are named, at the top or in params or both: each must be the client's own or new (contract 4.2.2, 6.4). */
  #routeSession(
    client: Client,
    pool: Pool,
    isRequest: boolean,
    top: SessionId | undefined,
    inner: SessionId | undefined,
  ): void {
    const { core } = this.#board
    const names = [top, inner].filter((name) => name !== undefined)
    let coming = 0
    for (const name of names) {
      const reason = this.#sessionFault(client, name, coming)
      if (reason !== undefined) return this.#board.refuse(client, isRequest, reason, { sessionId: name })
      if (!client.sessions.has(name)) coming++
    }
    const known = this.#knownSession(client, top, inner)
    const worker = this.#links.assignment.choose(client, pool, isRequest, known)
    if (worker === undefined) return
    for (const name of names) {
      const session = client.sessions.get(name)
      if (session === undefined || session.worker === worker) continue
      this.#board.refuse(client, isRequest, 'session_id_conflict', { sessionId: name })
      return this.#links.assignment.maybeRelease(worker)
    }
    for (const name of names) if (!client.sessions.has(name)) core.sessions.bind(name, client, worker)
    this.#sendPlain(client, worker, isRequest)
  }

  #sessionFault(client: Client, name: SessionId, coming: number): Reason | undefined {
    if (client.sessions.has(name)) return undefined
    if (client.lost.has(name)) return 'session_lost'
    if (this.#board.core.sessions.isForeign(name, client)) return 'session_not_owned'
    return hasRoomForSession(this.#board.core, client, coming) ? undefined : 'too_many_sessions'
  }

  #sendPlain(client: Client, worker: Worker, isRequest: boolean): void {
    if (client.isInternal && !this.#ledger.isTold(client, worker, isRequest)) return
    if (!isRequest) return this.#board.forward(worker, undefined)
    const request = this.#ledger.open(client, worker)
    this.#board.forward(worker, request.spelling === undefined ? undefined : [this.#ledger.idEdit(request)])
  }
}
