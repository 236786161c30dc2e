/** The state of the bus as a page for the terminal. */
import { createColors } from 'picocolors'
import type { BusSnapshot, PrincipalSnapshot, WorkerSnapshot } from '../kernel/snapshot.ts'
import { printable } from '../wire/printable.ts'

/** A worker as it is shown: what its source tells of it, told as the kind of source has it. */
export type WorkerStatus = Omit<WorkerSnapshot, 'facts'> & { readonly pid: number | null }

export type Status = Omit<BusSnapshot, 'workers'> & {
  readonly workers: readonly WorkerStatus[]
  readonly pid: number
  readonly version: string
  readonly uptime_sec: number
  readonly rss_bytes: number
  readonly addresses: readonly string[]
  readonly config: string
  /** The audit log, and what is wrong with the access file, where there are such. */
  readonly access?: {
    readonly audit?: { readonly state: 'ok' | 'failed'; readonly lost: number }
    readonly problem?: string
  }
  /** The trace store, where there is one. */
  readonly traces?: { readonly state: 'ok' | 'failed'; readonly dropped: number }
}

const COLUMNS = ['worker', 'state', 'gen', 'restarts', 'pid', 'sessions', 'pending', 'queue'] as const
const PRINCIPAL_COLUMNS = ['principal', 'connections', 'pending', 'refused'] as const
/** A page is read by people; the rest is in `--json`. */
const MAX_PRINCIPALS = 20

type Colors = ReturnType<typeof createColors>
type Decorate = (text: string, column: number, row: number) => string

export function formatStatus(status: Status, { color }: { readonly color: boolean }): string {
  const colors = createColors(color)
  const paint = { ready: colors.green, parked: colors.red, backing_off: colors.yellow, stopped: colors.dim } as Record<
    string,
    (text: string) => string
  >
  const head = [
    `${colors.bold('stdio-bus')} ${status.version}  pid ${status.pid}  up ${formatDuration(status.uptime_sec)}  ${formatBytes(status.rss_bytes)}  ${status.phase}`,
    `${colors.dim('listening')} ${status.addresses.join(', ')}   ${colors.dim('config')} ${status.config}`,
    `${colors.dim('clients')} ${status.clients}   ${colors.dim('sessions')} ${status.sessions}   ${colors.dim('outstanding')} ${status.outstanding}   ${colors.dim('queued')} ${formatBytes(status.queue_bytes)}   ${colors.dim('paused')} ${status.paused}`,
    ...(status.traces === undefined ? [] : [formatTraces(status.traces, colors)]),
    ...(status.access === undefined ? [] : formatAccess(status.access, colors)),
    '',
  ]
  const painted: Decorate = (text, column, row) =>
    column === 1 ? (paint[status.workers[row]!.state] ?? colors.cyan)(text) : text
  const body = formatTable(COLUMNS, status.workers.map(cellsOf), colors, painted)
  const errors = status.workers
    .filter((worker) => worker.last_error !== undefined && worker.state !== 'ready')
    .map((worker) => colors.red(`${worker.pool}/${worker.id}: ${worker.last_error}`))
  const principals = formatPrincipals(status.principals ?? [], colors)
  return `${[...head, ...body, ...errors, ...principals, ...formatCounts('dropped', status.dropped), ...formatCounts('refused', status.refused)].join('\n')}\n`
}

function formatTable(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  colors: Colors,
  decorate: Decorate = (text) => text,
): string[] {
  const widths = columns.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]!.length)))
  const line = (cells: readonly string[], paint: (text: string, column: number) => string): string =>
    cells
      .map((cell, column) => paint(cell.padEnd(widths[column]!), column))
      .join('  ')
      .trimEnd()
  const body = rows.map((cells, row) => line(cells, (text, column) => decorate(text, column, row)))
  return [line(columns, (text) => colors.dim(text)), ...body]
}

function formatAccess({ audit, problem }: NonNullable<Status['access']>, colors: Colors): string[] {
  const lines: string[] = []
  if (audit !== undefined) {
    const shown = audit.state === 'ok' ? colors.green(audit.state) : colors.red(`${audit.state}, the log says why`)
    lines.push(`${colors.dim('audit')} ${shown}   ${colors.dim('lost')} ${audit.lost}`)
  }
  if (problem !== undefined)
    lines.push(`${colors.dim('access')} ${colors.red('the file has problems, the old rights stay')}`, problem)
  return lines
}

function formatPrincipals(principals: readonly PrincipalSnapshot[], colors: Colors): string[] {
  if (principals.length === 0) return []
  const shown = [...principals].sort((one, other) => other.connections - one.connections).slice(0, MAX_PRINCIPALS)
  const rows = shown.map(({ name, ...counts }) => [
    printable(name),
    ...[counts.connections, counts.pending, counts.refused].map(String),
  ])
  const more = principals.length - shown.length
  return ['', ...formatTable(PRINCIPAL_COLUMNS, rows, colors), ...(more === 0 ? [] : [`and ${more} more`])]
}

function formatTraces({ state, dropped }: NonNullable<Status['traces']>, colors: Colors): string {
  const shown = state === 'ok' ? colors.green(state) : colors.red(`${state}, the log says why`)
  return `${colors.dim('traces')} ${shown}   ${colors.dim('not kept')} ${dropped}`
}

function cellsOf(worker: WorkerStatus): readonly string[] {
  return [
    `${worker.pool}/${worker.id}`,
    worker.state,
    String(worker.generation),
    String(worker.restarts),
    worker.pid === null ? '-' : String(worker.pid),
    String(worker.sessions),
    String(worker.outstanding),
    formatBytes(worker.queue_bytes),
  ]
}

function formatCounts(title: string, counts: Readonly<Record<string, number>>): string[] {
  const entries = Object.entries(counts)
  return entries.length === 0
    ? []
    : ['', `${title}: ${entries.map(([reason, count]) => `${reason} ${count}`).join(', ')}`]
}

function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const units = ['KiB', 'MiB', 'GiB']
  let value = bytes / 1024
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value.toFixed(1)} ${units[unit]}`
}

function formatDuration(seconds: number): string {
  const s = Math.floor(seconds)
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
}
