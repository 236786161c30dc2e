/** The state of the bus as a page for the terminal. */
import { createColors } from 'picocolors'
import type { BusSnapshot, WorkerSnapshot } from '../kernel/snapshot.ts'

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

export function formatStatus(status: Status, { color }: { readonly color: boolean }): string {
  const colors = createColors(color)
  const paint = { ready: colors.green, parked: colors.red, backing_off: colors.yellow, stopped: colors.dim } as Record<
    string,
    (text: string) => string
  >
  const rows = status.workers.map(cellsOf)
  const widths = COLUMNS.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]!.length)))
  const line = (cells: readonly string[], decorate: (text: string, column: number) => string) =>
    cells
      .map((cell, column) => decorate(cell.padEnd(widths[column]!), column))
      .join('  ')
      .trimEnd()
  const head = [
    `${colors.bold('stdio-bus')} ${status.version}  pid ${status.pid}  up ${formatDuration(status.uptime_sec)}  ${formatBytes(status.rss_bytes)}  ${status.phase}`,
    `${colors.dim('listening')} ${status.addresses.join(', ')}   ${colors.dim('config')} ${status.config}`,
    `${colors.dim('clients')} ${status.clients}   ${colors.dim('sessions')} ${status.sessions}   ${colors.dim('outstanding')} ${status.outstanding}   ${colors.dim('queued')} ${formatBytes(status.queue_bytes)}   ${colors.dim('paused')} ${status.paused}`,
    ...(status.traces === undefined ? [] : [formatTraces(status.traces, colors)]),
    '',
    line(COLUMNS, (text) => colors.dim(text)),
  ]
  const body = rows.map((row, index) =>
    line(row, (text, column) => (column === 1 ? (paint[status.workers[index]!.state] ?? colors.cyan)(text) : text)),
  )
  const errors = status.workers
    .filter((worker) => worker.last_error !== undefined && worker.state !== 'ready')
    .map((worker) => colors.red(`${worker.pool}/${worker.id}: ${worker.last_error}`))
  return `${[...head, ...body, ...errors, ...formatCounts('dropped', status.dropped), ...formatCounts('refused', status.refused)].join('\n')}\n`
}

function formatTraces(
  { state, dropped }: NonNullable<Status['traces']>,
  colors: ReturnType<typeof createColors>,
): string {
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
