/** The state of the bus as a page for the terminal. */
import { createColors } from 'picocolors'
import type { ClientRow, PoolRow, SessionRow } from '../kernel/roll.ts'
import type { PrincipalSnapshot } from '../kernel/snapshot.ts'
import { printable } from '../wire/printable.ts'
import type { KeptStatus, Status } from './status.ts'
import { type Colors, formatTable } from './table.ts'
import { formatBytes, formatDuration } from './units.ts'
import { formatWorkers } from './worker-view.ts'

const PRINCIPAL_COLUMNS = ['principal', 'connections', 'pending', 'refused'] as const
const CLIENT_COLUMNS = ['client', 'door', 'principal', 'pool', 'sessions', 'pending', 'queue'] as const
const SESSION_COLUMNS = ['session', 'worker', 'client', 'principal'] as const
/** A page is read by people; the rest is in `--json`. */
const MAX_ROWS = 20
const MAX_NAME_CHARS = 48

export function formatStatus(status: Status, { color }: { readonly color: boolean }): string {
  const colors = createColors(color)
  const head = [
    `${colors.bold('stdio-bus')} ${status.version}  pid ${status.pid}  up ${formatDuration(status.uptime_sec)}  ${formatBytes(status.rss_bytes)}  ${status.phase}`,
    `${colors.dim('listening')} ${status.addresses.join(', ')}   ${colors.dim('config')} ${status.config}`,
    `${colors.dim('clients')} ${status.clients}   ${colors.dim('sessions')} ${status.sessions}   ${colors.dim('outstanding')} ${status.outstanding}   ${colors.dim('queued')} ${formatBytes(status.queue_bytes)}   ${colors.dim('paused')} ${status.paused}`,
    ...(status.traces === undefined ? [] : [formatTraces(status.traces, colors)]),
    ...(status.kept_sessions === undefined ? [] : [formatKept(status.kept_sessions, colors)]),
    ...(status.access === undefined ? [] : formatAccess(status.access, colors)),
    '',
  ]
  return `${[
    ...head,
    ...formatWorkers(status.workers, colors),
    ...formatEmptyPools(status.pools ?? [], colors),
    ...(status.aggregates ?? []).flatMap((each) => formatAggregate(each, colors)),
    ...formatClients(status, colors),
    ...formatSessions(status, colors),
    ...formatPrincipals(status.principals ?? [], colors),
    ...formatCounts('dropped', status.dropped),
    ...formatCounts('refused', status.refused),
  ].join('\n')}\n`
}

/** Those that no row of the workers speaks of. */
function formatEmptyPools(pools: readonly PoolRow[], colors: Colors): string[] {
  return pools
    .filter(({ workers }) => workers === 0)
    .map(({ id, sharing, waiting }) => {
      const why = sharing === 'isolated' ? 'a client brings one' : 'they start on demand'
      return `${printable(id)}  ${colors.dim(`no workers: ${why}${waiting === 0 ? '' : `, ${waiting} waiting`}`)}`
    })
}

function formatClients({ client_list: list = [], clients }: Status, colors: Colors): string[] {
  const rows = list
    .slice(0, MAX_ROWS)
    .map((row: ClientRow) => [
      String(row.id),
      row.door,
      name(row.principal),
      name(row.pool ?? '-'),
      ...[row.sessions, row.pending].map(String),
      formatBytes(row.queue_bytes),
    ])
  return section(CLIENT_COLUMNS, rows, clients, colors)
}

function formatSessions({ session_list: list = [], sessions }: Status, colors: Colors): string[] {
  const rows = list
    .slice(0, MAX_ROWS)
    .map((row: SessionRow) => [
      name(row.id),
      `${name(row.pool)}/${row.worker}`,
      String(row.client ?? '-'),
      name(row.principal),
    ])
  return section(SESSION_COLUMNS, rows, sessions, colors)
}

/** A table with a blank line before it, and how many more there are. */
function section(columns: readonly string[], rows: readonly string[][], total: number, colors: Colors): string[] {
  if (rows.length === 0) return []
  const more = total > rows.length ? [`and ${total - rows.length} more`] : []
  return ['', ...formatTable(columns, rows, colors), ...more]
}

/** Peers choose names; a table is not torn by a long one. */
function name(text: string): string {
  const shown = printable(text)
  return shown.length > MAX_NAME_CHARS ? `${shown.slice(0, MAX_NAME_CHARS - 1)}…` : shown
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
  const shown = [...principals].sort((one, other) => other.connections - one.connections).slice(0, MAX_ROWS)
  const rows = shown.map((row) => [name(row.name), ...[row.connections, row.pending, row.refused].map(String)])
  return section(PRINCIPAL_COLUMNS, rows, principals.length, colors)
}

function formatAggregate(
  { pool, clients, tools, missing, conflicts }: NonNullable<Status['aggregates']>[number],
  colors: Colors,
): string[] {
  const away = missing.length === 0 ? '' : `   ${colors.red(`not listed: ${missing.map(printable).join(', ')}`)}`
  return [
    '',
    `${colors.dim('aggregate')} ${printable(pool)}   ${colors.dim('clients')} ${clients}   ${colors.dim('tools')} ${tools}${away}`,
    ...conflicts.map(({ pool: whose, own, name, kept_by: keptBy, listed }) =>
      printable(`  ${whose}: ${own} is listed as ${listed || 'nothing'}, for ${keptBy} has ${name}`),
    ),
  ]
}

function formatKept({ state, kept, detached, bytes, dropped }: KeptStatus, colors: Colors): string {
  const place = state === 'failed' ? colors.red('in memory: the store fails') : state === 'ok' ? 'on disk' : 'in memory'
  const lost = dropped === 0 ? '' : `   ${colors.yellow(`${dropped} lines not written`)}`
  return `${colors.dim('kept sessions')} ${kept}   ${colors.dim('detached')} ${detached}   ${colors.dim('said')} ${formatBytes(bytes)} ${place}${lost}`
}

function formatTraces({ state, dropped }: NonNullable<Status['traces']>, colors: Colors): string {
  const shown = state === 'ok' ? colors.green(state) : colors.red(`${state}, the log says why`)
  return `${colors.dim('traces')} ${shown}   ${colors.dim('not kept')} ${dropped}`
}

function formatCounts(title: string, counts: Readonly<Record<string, number>>): string[] {
  const entries = Object.entries(counts)
  return entries.length === 0
    ? []
    : ['', `${title}: ${entries.map(([reason, count]) => `${reason} ${count}`).join(', ')}`]
}
