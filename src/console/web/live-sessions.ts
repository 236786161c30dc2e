/** The sessions that live, as they are now, wherever one is in the console: what waits in them is said everywhere (contract 15.8). */
import { computed, signal } from '@preact/signals'
import { followTopic } from './feed.ts'

export interface Waiting {
  readonly question: number
  readonly since: string
  readonly method: string
  readonly title: string
}

export interface Session {
  readonly session: string
  readonly pool: string
  readonly principal: string
  readonly state: 'attached' | 'detached' | 'stored' | 'lost'
  readonly turn: 'idle' | 'running' | 'waiting'
  readonly questions: number
  readonly title: string
  readonly cwd: string
  readonly clients: readonly { readonly name: string; readonly role: string; readonly driver: boolean }[]
  readonly created_at: string
  readonly updated_at: string
  readonly ends_at: string | null
  readonly seq: number
  readonly first_seq: number
  readonly bytes: number
  readonly waiting: readonly Waiting[]
}

/** One that goes with its client, and the key that would keep it. */
export interface NotKept {
  readonly session: string
  readonly pool: string
  readonly principal: string
  readonly state: 'not_kept'
  readonly key: string
}

export interface SessionList {
  readonly items: readonly Session[]
  readonly not_kept: readonly NotKept[]
  readonly next_cursor?: string
}

export const liveSessions = signal<SessionList | undefined>(undefined)
export const waitingCount = computed(() =>
  (liveSessions.value?.items ?? []).reduce((count, { waiting }) => count + waiting.length, 0),
)

export function followSessions(): () => void {
  const leave = followTopic('sessions', (data) => {
    liveSessions.value = data as SessionList
  })
  return () => {
    leave()
    liveSessions.value = undefined
  }
}

/** Sessions of several principals may have one id. */
export function keyOf({ pool, principal, session }: Session | NotKept): string {
  return JSON.stringify([pool, principal, session])
}

/** What was listed, with what has changed since; what lives no more is as it was last seen. */
export function withLive(listed: SessionList, live: SessionList | undefined): (Session | NotKept)[] {
  if (live === undefined) return [...listed.items, ...listed.not_kept]
  const now = new Map(live.items.map((row) => [keyOf(row), row]))
  const fresh = live.items.filter((row) => !listed.items.some((each) => keyOf(each) === keyOf(row)))
  const known = listed.items.map((row) => now.get(keyOf(row)) ?? ended(row))
  return [...[...fresh, ...known].sort(byNeed), ...live.not_kept]
}

function ended(row: Session): Session {
  if (row.state !== 'attached' && row.state !== 'detached') return row
  return { ...row, state: 'stored', turn: 'idle', questions: 0, waiting: [], clients: [], ends_at: null }
}

const RANKS = { waiting: 0, running: 1, idle: 2 }

/** What waits for somebody first, then what was used last. */
function byNeed(one: Session, other: Session): number {
  const rank = ({ turn }: Session): number => (RANKS[turn] === 0 ? 0 : 1)
  return rank(one) - rank(other) || other.updated_at.localeCompare(one.updated_at)
}
