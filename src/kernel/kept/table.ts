/**
 * All sessions that may outlive their clients, those that live and those that are only remembered (contract 12.4, 12.7,
 * 12.11, 12.17).
 *
 * A session is known by its principal and its id. Whose it is is remembered longer than what was said; both are bounded,
 * and what has ended goes before what lives.
 */
import type { StoredSession } from '../events.ts'
import { FIXED } from '../limits.ts'
import type { Switchboard } from '../switchboard.ts'
import type { PoolId, Principal, SessionId } from '../vocabulary.ts'
import type { History } from './history.ts'
import { type KeptIdentity, KeptSession, keyOf } from './kept-session.ts'

export class KeptTable {
  readonly #board: Switchboard
  readonly #history: History
  /** Oldest first. */
  readonly #byKey = new Map<string, KeptSession>()
  readonly #byId = new Map<SessionId, readonly KeptSession[]>()
  #lives = 0
  /** The bytes of all that was said, as last counted. */
  bytes = 0

  constructor(board: Switchboard, history: History) {
    this.#board = board
    this.#history = history
  }

  get all(): Iterable<KeptSession> {
    return this.#byKey.values()
  }

  get size(): number {
    return this.#byKey.size
  }

  find(principal: Principal, id: SessionId): KeptSession | undefined {
    return this.#byKey.get(keyOf(principal, id))
  }

  byKey(key: string): KeptSession | undefined {
    return this.#byKey.get(key)
  }

  /** All that have this id, whosever they are. */
  named(id: SessionId): readonly KeptSession[] {
    return this.#byId.get(id) ?? []
  }

  /** Somebody else has a session of this name in the pool, and this principal has none. */
  isForeign(principal: Principal, id: SessionId, pool: PoolId): boolean {
    const named = this.named(id)
    return named.some((kept) => kept.pool === pool) && !named.some((kept) => kept.principal === principal)
  }

  /** One principal has an id once (contract 12.7): it lives, or is just being brought back. */
  isHeld(principal: Principal, id: SessionId): boolean {
    const kept = this.find(principal, id)
    return kept !== undefined && (kept.isLive || kept.claim !== undefined)
  }

  /** To the agent the name now means a session of somebody else: it is not asked for it (contract 12.20). */
  isTaken(kept: KeptSession): boolean {
    const others = this.named(kept.id).filter((each) => each !== kept && each.pool === kept.pool)
    return others.some(({ isLive, claim }) => isLive || claim !== undefined)
  }

  /** A session of this name begins: one that had it before is gone. */
  add(identity: KeptIdentity): KeptSession {
    const kept = new KeptSession(identity, ++this.#lives)
    const before = this.#byKey.get(kept.key)
    if (before !== undefined) this.remove(before)
    this.#byKey.set(kept.key, kept)
    this.#byId.set(kept.id, [...this.named(kept.id), kept])
    if (this.#byKey.size > FIXED.maxKnownSessions) this.#forgetOldest()
    return kept
  }

  remove(kept: KeptSession): void {
    // Another may have begun under its name.
    if (this.#byKey.get(kept.key) !== kept) return
    this.#byKey.delete(kept.key)
    kept.isForgotten = true
    this.bytes -= kept.journal.bytes
    const others = this.named(kept.id).filter((each) => each !== kept)
    if (others.length === 0) this.#byId.delete(kept.id)
    else this.#byId.set(kept.id, others)
  }

  /** What an earlier run has written down. */
  restore(stored: readonly StoredSession[]): void {
    for (const each of stored) {
      const { session: id, pool, principal } = each
      if (this.find(principal, id) !== undefined) continue
      const kept = this.add({ id, pool, principal })
      kept.journal.adopt(each.seq, each.firstSeq, each.bytes)
      kept.cwd = each.cwd
      kept.title = each.title
      kept.createdAtMs = each.createdAtMs
      kept.updatedAtMs = each.updatedAtMs
      kept.isLost = each.isLost
      kept.isRecalled = false
      kept.isWritten = true
      kept.keeping = this.#board.core.spec.pools.find((each) => each.id === pool)?.keeping ?? STORED
      kept.dialect = this.#board.dialects.withSessions
      this.bytes += each.bytes
    }
    this.makeRoom()
  }

  /** The session says more or less than before. */
  count(kept: KeptSession, bytesBefore: number): void {
    this.bytes += kept.journal.bytes - bytesBefore
    if (this.bytes > this.#board.core.spec.limits.maxJournalBytes) this.makeRoom()
  }

  /** What was said in ended sessions goes first, oldest first; then the oldest turns of those that live. */
  makeRoom(): void {
    const { maxJournalBytes } = this.#board.core.spec.limits
    if (this.bytes <= maxJournalBytes) return
    const inOrder = [...this.#byKey.values()]
      .filter(({ journal }) => journal.bytes > 0)
      .sort((a, b) => Number(a.isLive) - Number(b.isLive) || a.updatedAtMs - b.updatedAtMs)
    for (const kept of inOrder) {
      if (this.bytes <= maxJournalBytes) return
      const { journal, key } = kept
      const before = journal.bytes
      if (kept.isLive) journal.trim(Math.max(0, before - (this.bytes - maxJournalBytes)))
      else journal.restart()
      this.bytes += journal.bytes - before
      this.#history.order(kept, { order: 'trim', key, before: journal.firstSeq })
    }
  }

  /** What was said in them is gone; whose they are is still known. */
  swept(keys: readonly string[]): void {
    for (const key of keys) {
      const kept = this.#byKey.get(key)
      if (kept === undefined || kept.isLive) continue
      this.bytes -= kept.journal.bytes
      kept.journal.restart()
    }
  }

  /** Nothing is known of it any more but whose it is (contract 12.17). */
  forget(kept: KeptSession): void {
    if (this.#byKey.get(kept.key) !== kept) return
    this.bytes -= kept.journal.bytes
    kept.journal.restart()
    Object.assign(kept, { createdAtMs: 0, answer: undefined, cwd: '', title: '', isLost: false })
  }

  #forgetOldest(): void {
    for (const kept of this.#byKey.values()) {
      if (kept.isLive || kept.seats.length > 0) continue
      this.#history.order(kept, { order: 'delete', key: kept.key })
      return this.remove(kept)
    }
  }
}

/** Of a session whose pool keeps none any more: what was said can still be read. */
const STORED = { keepMs: 0, isJournaled: true, questionMs: 0, maxBytes: Number.POSITIVE_INFINITY, maxKept: 0 }
