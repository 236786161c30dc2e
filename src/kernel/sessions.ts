/**
 * Who owns which session at which worker (contract 3.4, 6.4).
 *
 * A session is found by (client, id) on the way to a worker and by (worker, id) on the way to a client; both entries
 * are made and removed together. The third table knows every owner of an id, so that a stranger who names it is refused;
 * mostly there is one, and what one client can make a hundred thousand times is as small as can be.
 */
import type { Core } from './core.ts'
import { ownMap, ownSet } from './empty.ts'
import type { KeptSession } from './kept/kept-session.ts'
import type { Request } from './owed.ts'
import type { Client, Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import type { Principal, SessionId } from './vocabulary.ts'

export interface Session {
  /** As its client knows it. */
  readonly id: SessionId
  /** As its worker knows it: the same, but where names are made different (`session-names.ts`). */
  readonly idAtWorker: SessionId
  /** Whose it is, and who drives it: nobody, for a while, where sessions outlive their clients. */
  readonly principal: Principal
  driver: Client | undefined
  /** Where it may outlive its clients: what is known of it beyond them. */
  kept: KeptSession | undefined
  readonly worker: Worker
  /** A turn has begun in it; whether it is over, not every protocol tells. */
  hadTurn: boolean
}

export class Sessions {
  readonly #byId = new Map<SessionId, Session | Set<Session>>()
  size = 0

  bind(id: SessionId, client: Client, worker: Worker, idAtWorker: SessionId = id): Session {
    const session: Session = {
      id,
      idAtWorker,
      principal: client.principal,
      driver: client,
      kept: undefined,
      worker,
      hadTurn: false,
    }
    client.sessions = ownMap(client.sessions).set(id, session)
    client.lost.delete(id)
    worker.sessions = ownMap(worker.sessions).set(idAtWorker, session)
    const known = this.#byId.get(id)
    if (known === undefined) this.#byId.set(id, session)
    else if (known instanceof Set) known.add(session)
    else this.#byId.set(id, new Set([known, session]))
    this.size++
    return session
  }

  /** Some other client holds this id. */
  isForeign(id: SessionId, client: Client): boolean {
    const known = this.#byId.get(id)
    if (known === undefined) return false
    if (!(known instanceof Set)) return known.driver !== client
    for (const session of known) if (session.driver !== client) return true
    return false
  }

  /** A worker of the pool has it, whosever it is. */
  isIn({ trunk }: Pool, id: SessionId): boolean {
    const known = this.#byId.get(id)
    if (known === undefined) return false
    const all = known instanceof Set ? [...known] : [known]
    return all.some(({ worker }) => worker.pool.trunk === trunk)
  }

  end(session: Session): void {
    const { driver, id } = session
    if (driver?.sessions.get(id) === session) driver.sessions.delete(id)
    this.#forget(session)
  }

  #forget(session: Session): void {
    const { sessions } = session.worker
    if (sessions.get(session.idAtWorker) === session) sessions.delete(session.idAtWorker)
    if (this.#disown(session)) this.size--
  }

  #disown(session: Session): boolean {
    const known = this.#byId.get(session.id)
    if (known === session) return this.#byId.delete(session.id)
    if (!(known instanceof Set) || !known.delete(session)) return false
    if (known.size === 0) this.#byId.delete(session.id)
    return true
  }

  /** The client has gone. */
  endAllOf(client: Client): void {
    for (const session of client.sessions.values()) this.#forget(session)
    client.sessions.clear()
    client.lost.clear()
  }

  /** The worker has ended: whoever names one of its sessions is told so (7.1). */
  loseAllOf(worker: Worker): void {
    for (const session of [...worker.sessions.values()]) {
      this.end(session)
      const { driver } = session
      if (driver !== undefined) driver.lost = ownSet(driver.lost).add(session.id)
    }
  }
}

/** Whether the client may have one more session beside those that are coming. */
export function hasRoomForSession({ spec }: Core, client: Client, coming: number): boolean {
  return client.sessions.size + client.lost.size + coming < spec.limits.maxSessionsPerClient
}

/** Sessions that answers under way may bring, beside that of the request itself. */
export function comingSessions(client: Client, beside?: Request): number {
  let coming = 0
  for (let request = client.newest; request !== undefined; request = request.older) {
    const session = request === beside ? undefined : (request.row ?? request.route?.row)?.session
    if (session === 'announced' || session === 'claimed') coming++
  }
  return coming
}
