/** The workers on the page of `status`: a row each, and for those in trouble why, since when, and what they said last. */
import { printable } from '../wire/printable.ts'
import type { WorkerStatus } from './status.ts'
import { type Colors, formatTable } from './table.ts'
import { formatBytes, formatDuration } from './units.ts'

const COLUMNS = [
  ...['worker', 'state', 'up', 'pid', 'cpu', 'memory', 'req/s'],
  ...['sessions', 'pending', 'queue', 'restarts'],
] as const
const STATE = COLUMNS.indexOf('state')
const MAX_LINE_CHARS = 200
const WELL: ReadonlySet<string> = new Set(['ready', 'retiring'])

export function formatWorkers(workers: readonly WorkerStatus[], colors: Colors): string[] {
  if (workers.length === 0) return []
  const paint: Readonly<Record<string, (text: string) => string>> = {
    ready: colors.green,
    parked: colors.red,
    backing_off: colors.yellow,
    stopped: colors.dim,
  }
  const table = formatTable(COLUMNS, workers.map(cellsOf), colors, (text, column, row) =>
    column === STATE ? (paint[workers[row]!.state] ?? colors.cyan)(text) : text,
  )
  return [...table, ...workers.flatMap((worker) => formatTrouble(worker, colors))]
}

function cellsOf(worker: WorkerStatus): readonly string[] {
  return [
    nameOf(worker),
    worker.state,
    worker.uptime_sec === undefined ? '-' : formatDuration(worker.uptime_sec),
    worker.address === undefined ? shown(worker.pid) : printable(worker.address),
    worker.cpu_percent === undefined ? '-' : `${worker.cpu_percent} %`,
    worker.memory_bytes === undefined ? '-' : formatBytes(worker.memory_bytes),
    shown(worker.requests_per_sec),
    String(worker.sessions),
    String(worker.outstanding),
    formatBytes(worker.queue_bytes),
    String(worker.restarts),
  ]
}

/** One that is well has nothing to explain, unless its last process ended a moment ago. */
function formatTrouble(worker: WorkerStatus, colors: Colors): string[] {
  const { last_error, last_exit, retry_in_sec, last_stderr, state } = worker
  if (last_exit === undefined && last_error === undefined) return []
  if (WELL.has(state) && worker.restarts === 0) return []
  const why = last_error === undefined ? [] : [`${state}: ${printable(last_error)}`]
  const retry = retry_in_sec === undefined ? [] : [`next try in ${formatDuration(retry_in_sec)}`]
  const how = last_exit === undefined || last_error?.includes(last_exit.how) ? '' : `: ${printable(last_exit.how)}`
  const ended = last_exit === undefined ? [] : [`last exit ${formatDuration(last_exit.ago_sec)} ago${how}`]
  const paint = WELL.has(state) ? colors.dim : colors.red
  const said = last_stderr === undefined ? [] : [colors.dim(`  | ${printable(last_stderr).slice(0, MAX_LINE_CHARS)}`)]
  return [paint(`${nameOf(worker)}  ${[...why, ...retry, ...ended].join('; ')}`), ...said]
}

function nameOf({ pool, id }: WorkerStatus): string {
  return `${printable(pool)}/${id}`
}

function shown(value: number | null | undefined): string {
  return value === null || value === undefined ? '-' : String(value)
}
