/** The sessions of a bus, and the one that somebody means by the beginning of its id. */
import type { BusLine } from './bus-line.ts'

export interface SessionRow {
  readonly session: string
  readonly pool: string
  readonly principal: string
  readonly state: 'attached' | 'detached' | 'stored' | 'lost'
  readonly turn: 'idle' | 'running' | 'waiting'
  readonly questions: number
  readonly title: string
  readonly cwd: string
  readonly clients: readonly {
    readonly name: string
    readonly role: string
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

export interface Wish {
  readonly pool?: string | undefined
  readonly state?: string | undefined
  readonly all?: boolean | undefined
}

/** No session is meant, or several are. */
export class NoSuchSession extends Error {
  readonly exitCode = 1
}

const PAGE = 1_000
const MAX_NAMED = 5

export async function listSessions(line: BusLine, { pool, state, all }: Wish): Promise<SessionRow[]> {
  const sessions: SessionRow[] = []
  let cursor: string | undefined
  do {
    const page = await line.ask('bus::sessions.list', { pool, state, all, limit: PAGE, cursor })
    sessions.push(...page.sessions)
    cursor = page.next_cursor
  } while (cursor !== undefined)
  return sessions
}

/** Something may still be said in it. */
export function isLive({ state }: SessionRow): boolean {
  return state === 'attached' || state === 'detached'
}

/** The session with this id, or the only one whose id begins so. */
export async function findSession(line: BusLine, beginning: string, pool?: string): Promise<SessionRow> {
  const all = await listSessions(line, { pool, all: true })
  const found = all.filter(({ session }) => session.startsWith(beginning))
  const exact = found.filter(({ session }) => session === beginning)
  const meant = exact.length > 0 ? exact : found
  if (meant.length === 1) return meant[0]!
  const named = JSON.stringify(beginning)
  if (meant.length === 0)
    throw new NoSuchSession(`there is no session ${named}: \`stdio-bus sessions\` shows those there are`)
  const names = meant
    .slice(0, MAX_NAMED)
    .map(({ session, pool: of }) => `${JSON.stringify(session)} in ${JSON.stringify(of)}`)
  const more = meant.length > MAX_NAMED ? ', ...' : ''
  throw new NoSuchSession(`${named} is the beginning of ${meant.length} sessions: ${names.join(', ')}${more}`)
}
