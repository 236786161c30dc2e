/** The buses of a user as rows for the terminal. */
import { createColors } from 'picocolors'
import { formatTable } from './table.ts'
import { formatDuration } from './units.ts'

export interface BusRow {
  readonly pid: number
  readonly control: string
  readonly addresses: readonly string[]
  readonly config: string
  readonly log?: string
  /** What it says itself; one that is ending may not. */
  readonly version?: string
  readonly uptime_sec?: number
  readonly clients?: number
  readonly workers?: number
  readonly workers_ready?: number
}

const COLUMNS = ['pid', 'up', 'workers', 'clients', 'listening', 'config']

export function formatBuses(rows: readonly BusRow[], { color }: { readonly color: boolean }): string {
  const cells = rows.map((row) => [
    String(row.pid),
    row.uptime_sec === undefined ? 'ending' : formatDuration(row.uptime_sec),
    row.workers === undefined ? '-' : `${row.workers_ready}/${row.workers} ready`,
    String(row.clients ?? '-'),
    row.addresses.join(', ') || '-',
    row.config,
  ])
  return `${formatTable(COLUMNS, cells, createColors(color)).join('\n')}\n`
}
