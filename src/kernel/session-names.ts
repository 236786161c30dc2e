/**
 * By which name clients know a session of an addressed bus (`Addressing`), and whose it is.
 *
 * Agents choose ids without knowing of each other, and one that starts anew may begin again with its first. An id that is
 * taken gets a name of the bus's own, the session counterpart of the aliases in contract 4.2.3. A name means one session
 * as long as it is remembered, also when that session has ended; the oldest are forgotten.
 */
import { FIXED } from './limits.ts'
import type { PoolId, SessionId } from './vocabulary.ts'

export interface SessionName {
  readonly name: SessionId
  readonly pool: PoolId
  /** As the pool's worker knows it. */
  readonly id: SessionId
}

export class SessionNames {
  readonly #byName = new Map<SessionId, SessionName>()
  readonly #byPool = new Map<PoolId, Map<SessionId, SessionName>>()
  readonly #chance: () => number
  readonly #maxNames: number
  #made = 0

  constructor(chance: () => number, maxNames: number = FIXED.maxSessionNames) {
    this.#chance = chance
    this.#maxNames = maxNames
  }

  find(name: SessionId): SessionName | undefined {
    return this.#byName.get(name)
  }

  /** The name of a session that a worker speaks of. */
  nameOf(pool: PoolId, id: SessionId): SessionId {
    return (this.#byPool.get(pool)?.get(id) ?? this.#record(this.#free(id), pool, id)).name
  }

  /** The name of a session that a worker has made just now: who knew the id before does not reach it. */
  announce(pool: PoolId, id: SessionId): SessionId {
    return this.#record(this.#free(id), pool, id).name
  }

  /** A client asks the pool for a session by this name; gives the id of it there. */
  claim(pool: PoolId, name: SessionId): SessionId {
    const known = this.#byName.get(name)
    return known?.pool === pool ? known.id : this.#record(name, pool, name).id
  }

  #free(id: SessionId): SessionId {
    let name = id
    while (this.#byName.has(name)) name = `session-${this.#chance().toString(36).slice(2, 12)}-${++this.#made}`
    return name
  }

  #record(name: SessionId, pool: PoolId, id: SessionId): SessionName {
    const entry: SessionName = { name, pool, id }
    const before = this.#byName.get(name)
    if (before !== undefined) this.#forget(before)
    this.#byName.set(name, entry)
    const ids = this.#byPool.get(pool) ?? new Map<SessionId, SessionName>()
    this.#byPool.set(pool, ids.set(id, entry))
    if (this.#byName.size > this.#maxNames) this.#forget(this.#oldest())
    return entry
  }

  #oldest(): SessionName {
    const [oldest] = this.#byName.values()
    return oldest!
  }

  #forget(entry: SessionName): void {
    this.#byName.delete(entry.name)
    const ids = this.#byPool.get(entry.pool)
    if (ids?.get(entry.id) === entry) ids.delete(entry.id)
  }
}
