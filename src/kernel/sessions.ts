/**
 * Who owns which session at which worker (contract 3.4, 6.4).
 *
 * A session is found by (client, id) on the way to a worker and by (worker, id) on the way to a client; both entries
 * are made and removed together. The third table knows every owner of an id, so that a stranger who names it is refused.
 */
import type { Core } from './core.ts'
import type { Client, Worker } from './peers.ts'
import type { SessionId } from './vocabulary.ts'

export interface Session {
  /** As its client knows it. */
  readonly id: SessionId
  /** As its worker knows it: the same, but where names are made different (`session-names.ts`). */
  readonly idAtWorker: SessionId
  readonly client: Client
  readonly worker: Worker
}

export class Sessions {
  readonly #byId = new Map<SessionId, Set<Session>>()
  size = 0

  bind(id: SessionId, client: Client, worker: Worker, idAtWorker: SessionId = id): Session {
    const session: Session = { id, idAtWorker, client, worker }
    client.sessions.set(id, session)
    client.lost.delete(id)
    worker.sessions.set(idAtWorker, session)
    const owners = this.#byId.get(id)
    if (owners === undefined) this.#byId.set(id, new Set([session]))
    else owners.add(session)
    this.size++
    return session
  }

  /** Some other client holds this id. */
  isForeign(id: SessionId, client: Client): boolean {
    const owners = this.#byId.get(id)
    if (owners === undefined) return false
    for (const session of owners) if (session.client !== client) return true
    return false
  }

  end(session: Session): void {
    if (session.client.sessions.get(session.id) === session) session.client.sessions.delete(session.id)
    const { sessions } = session.worker
    if (sessions.get(session.idAtWorker) === session) sessions.delete(session.idAtWorker)
    const owners = this.#byId.get(session.id)
    if (owners === undefined || !owners.delete(session)) return
    if (owners.size === 0) this.#byId.delete(session.id)
    this.size--
  }

  /** The client has gone. */
  endAllOf(client: Client): void {
    for (const session of [...client.sessions.values()]) this.end(session)
    client.lost.clear()
  }

  /** The worker has ended: whoever names one of its sessions is told so for the rest of the connection (7.1). */
  loseAllOf(worker: Worker): void {
    for (const session of [...worker.sessions.values()]) {
      this.end(session)
      session.client.lost.add(session.id)
    }
  }
}

/** Whether the client may have one more session beside those that are coming. */
export function hasRoomForSession({ spec }: Core, client: Client, coming: number): boolean {
  return client.sessions.size + client.lost.size + coming < spec.limits.maxSessionsPerClient
}
