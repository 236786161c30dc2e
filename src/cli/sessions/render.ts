/** Sessions as a table and as a page for the terminal; nothing of an agent's moves the cursor. */
import pc from 'picocolors'
import { printable } from '../../wire/printable.ts'
import type { SessionRow } from './known-sessions.ts'

export interface Drawing {
  readonly color: boolean
  readonly columns: number
  readonly nowMs: number
}

const HEADINGS = ['session', 'pool', 'state', 'turn', 'clients', 'last', 'title']
const MAX_ID = 20
const MIN_TITLE = 20

export function renderSessions(sessions: readonly SessionRow[], { color, columns, nowMs }: Drawing): string {
  const paint = pc.createColors(color)
  const rows = sessions.map((each) => [
    cut(printable(each.session), MAX_ID),
    printable(each.pool),
    each.state,
    each.questions > 0 ? `${each.turn} (${each.questions}?)` : each.turn,
    String(each.clients.length),
    ago(each.updated_at, nowMs),
    printable(each.title),
  ])
  const widths = HEADINGS.map((heading, column) => Math.max(heading.length, ...rows.map((row) => row[column]!.length)))
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0)
  const titleWidth = Math.max(MIN_TITLE, columns - before)
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (column === cells.length - 1 ? cut(cell, titleWidth) : cell.padEnd(widths[column]!)))
      .join('  ')
      .trimEnd()
  return `${[paint.dim(line(HEADINGS)), ...rows.map((row, index) => shade(line(row), sessions[index]!, paint))].join('\n')}\n`
}

function shade(text: string, { state, turn }: SessionRow, paint: ReturnType<typeof pc.createColors>): string {
  if (turn === 'waiting') return paint.yellow(text)
  if (turn === 'running') return paint.green(text)
  return state === 'stored' || state === 'lost' ? paint.dim(text) : text
}

export function renderSession(each: SessionRow, { color, nowMs }: Drawing): string {
  const paint = pc.createColors(color)
  const ends = each.ends_at === null ? '' : `, ends ${each.ends_at} unless somebody comes`
  const rows: [string, string][] = [
    ['session', printable(each.session)],
    ['title', printable(each.title)],
    ['pool', printable(each.pool)],
    ['principal', printable(each.principal)],
    ['folder', printable(each.cwd)],
    ['state', `${each.state}${ends}`],
    ['turn', each.questions > 0 ? `${each.turn}, ${each.questions} unanswered` : each.turn],
    ['begun', `${each.created_at} (${ago(each.created_at, nowMs)} ago)`],
    ['last', `${each.updated_at} (${ago(each.updated_at, nowMs)} ago)`],
    ['said', `${each.bytes} bytes, numbers ${each.first_seq} to ${each.seq}`],
  ]
  const clients = each.clients.map(
    ({ name, role, driver, since }) => `  ${printable(name)}  ${role}${driver ? ', drives' : ''}  since ${since}`,
  )
  const page = rows.map(([name, value]) => `${paint.dim(name.padEnd(9))}  ${value}`)
  return `${[...page, paint.dim('clients'), ...(clients.length === 0 ? ['  nobody'] : clients)].join('\n')}\n`
}

function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text
}

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'm'],
]

function ago(at: string, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - Date.parse(at)) / 1_000))
  const unit = UNITS.find(([size]) => seconds >= size)
  return unit === undefined ? `${seconds}s` : `${Math.floor(seconds / unit[0])}${unit[1]}`
}
