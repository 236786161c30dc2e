/**
 * Sessions as somebody may see them, one row each (contract 12.19, 12.20, 15.8): a copy, for people and programs that look on.
 *
 * A principal sees its own; an administrator all, when it says so; an observer those of its pools.
 */
import { spellTime } from '../../wire/calendar.ts'
import { FIELD } from '../../wire/fields.ts'
import { FIXED } from '../limits.ts'
import { mayUsePool, type Rights } from '../rights.ts'
import type { Session } from '../sessions.ts'
import type { Switchboard } from '../switchboard.ts'
import type { Principal } from '../vocabulary.ts'
import type { KeptSession, KeptState } from './kept-session.ts'
import { isUnseen, nameOf } from './participants.ts'
import { pageOf } from './session-page.ts'

export interface Viewer {
  readonly rights: Rights
  readonly principal: Principal
}

export interface KeptWish {
  readonly pool?: string | undefined
  readonly state?: KeptState | undefined
  /** An administrator wants those of others too. */
  readonly wantsAll: boolean
  readonly limit: number
  readonly cursor?: unknown
}

/** A session that may outlive its clients, as it is told. */
export interface KeptRow {
  readonly session: string
  readonly pool: string
  readonly principal: string
  readonly state: KeptState
  readonly turn: 'idle' | 'running' | 'waiting'
  readonly questions: number
  readonly title: string
  readonly cwd: string
  readonly clients: readonly {
    readonly name: string
    readonly role: 'drive' | 'observe'
    readonly driver: boolean
    readonly since: string
  }[]
  readonly created_at: string
  readonly updated_at: string
  readonly ends_at: string | null
  readonly seq: number
  readonly first_seq: number
  readonly bytes: number
}

/** One that goes with its client. */
export interface PassingRow {
  readonly session: string
  readonly pool: string
  readonly principal: string
}

/** What an agent has asked and nobody has answered. */
export interface OpenQuestion {
  readonly session: string
  readonly pool: string
  readonly principal: Principal
  /** The number of its event in the session. */
  readonly seq: number
  readonly sinceMs: number
  readonly method: string
  /** JSON. */
  readonly params: string
}

/** Newest first; undefined: the cursor is none of ours. */
export function listKept(
  board: Switchboard,
  viewer: Viewer,
  { pool, state, wantsAll, limit, cursor }: KeptWish,
): { readonly sessions: readonly KeptRow[]; readonly next: string | undefined } | undefined {
  const shown = [...board.kept.table.all]
    .filter((kept) => isVisible(viewer, kept, wantsAll))
    .filter((kept) => (pool ?? kept.pool) === kept.pool && (state ?? kept.state) === kept.state)
    .map((kept) => ({ id: kept.key, atMs: kept.updatedAtMs, kept }))
  const page = pageOf(shown, limit, cursor)
  if (page === undefined) return undefined
  return { sessions: page.items.map(({ kept }) => describeKept(board, kept)), next: page.next }
}

/** One that the viewer may see: its own first, then one that lives. */
export function findKept(
  { kept: { table } }: Switchboard,
  viewer: Viewer,
  session: string,
  pool: string | undefined,
): KeptSession | undefined {
  const rank = (kept: KeptSession): number => 2 * Number(kept.principal === viewer.principal) + Number(kept.isLive)
  const [found] = table
    .named(session)
    .filter((kept) => (pool ?? kept.pool) === kept.pool && isVisible(viewer, kept, true))
    .sort((a, b) => rank(b) - rank(a))
  return found
}

/** Those that live, whether they are kept or not; as many of each as anybody reads. */
export function liveSessions(
  board: Switchboard,
  viewer: Viewer,
): { readonly kept: readonly KeptRow[]; readonly passing: readonly PassingRow[] } {
  const kept = new Set<KeptSession>()
  const passing: PassingRow[] = []
  for (const session of sessionsOf(board)) {
    if (session.kept !== undefined) {
      if (kept.size < FIXED.maxRollRows && isVisible(viewer, session.kept, true)) kept.add(session.kept)
    } else if (passing.length < FIXED.maxRollRows) {
      const row = describePassing(session)
      if (mayLookAt(viewer, row, true)) passing.push(row)
    }
  }
  return { kept: [...kept].map((each) => describeKept(board, each)), passing }
}

/** The oldest first. */
export function openQuestions({ kept }: Switchboard): OpenQuestion[] {
  return [...kept.questions.open].map(({ kept: { id: session, pool, principal }, seq, sinceMs, line }) => ({
    session,
    pool,
    principal,
    seq,
    sinceMs,
    method: line.text(FIELD.method)!,
    params: line.has(FIELD.params) ? line.spelling(FIELD.params) : '{}',
  }))
}

function* sessionsOf({ core }: Switchboard): Generator<Session> {
  for (const { sessions } of core.workers.values()) yield* sessions.values()
}

function describePassing({ id, worker, principal }: Session): PassingRow & { readonly principal: Principal } {
  return { session: id, pool: worker.pool.spec.id, principal }
}

export function describeKept({ core, kept: table }: Switchboard, kept: KeptSession): KeptRow {
  const { id, pool, principal, state, title, cwd, journal, seats } = kept
  const endsAtMs = kept.isDetached ? table.endsAtMs(kept) + core.calendarOffsetMs : undefined
  return {
    session: id,
    pool,
    principal,
    state,
    turn: kept.turnState,
    questions: kept.asked.length,
    title,
    cwd,
    clients: seats
      .filter((seat) => !isUnseen(seat))
      .map((seat) => ({
        name: nameOf(seat),
        role: seat.isParticipant ? 'drive' : 'observe',
        driver: seat === kept.driver,
        since: spellTime(seat.sinceMs),
      })),
    created_at: spellTime(kept.createdAtMs),
    updated_at: spellTime(kept.updatedAtMs),
    ends_at: endsAtMs === undefined ? null : spellTime(endsAtMs),
    seq: journal.seq,
    first_seq: journal.firstSeq,
    bytes: journal.bytes,
  }
}

/** What somebody is about to bring back is not known yet. */
function isVisible(viewer: Viewer, kept: KeptSession, wantsAll: boolean): boolean {
  return kept.createdAtMs > 0 && mayLookAt(viewer, kept, wantsAll)
}

function mayLookAt(
  { rights, principal }: Viewer,
  whose: { readonly principal: Principal; readonly pool: string },
  wantsAll: boolean,
): boolean {
  if (whose.principal === principal) return true
  if (rights.role === 'admin') return wantsAll
  return rights.role === 'observer' && mayUsePool(rights, whose.pool)
}
