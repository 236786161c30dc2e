/**
 * Reads traces from the database. Never writes, so it also serves a command that looks at the file of a stopped bus.
 */

import type { Database, SqlValue } from '../host/sqlite.ts'
import { takePage } from './page.ts'
import { PROMPT_HEAD_CHARS } from './prompt-text.ts'
import type { AgentSum, Detail, TraceSource } from './query.ts'
import type { ListFilter, TimeRange, TracePart, TraceScope } from './query-params.ts'
import { CALL_COLUMNS, type CallRow, rowFromColumns, type TraceRow } from './row.ts'
import { readMeta } from './schema.ts'

const TRACE_COLUMNS = `t.trace, t.trace_id, t.otel_trace_id, t.started_at, t.ended_at, t.n_calls, t.n_errors, t.n_open, t.missing,
  (SELECT json_group_array(agent) FROM trace_agents a WHERE a.trace = t.trace) AS agents`

/** Of the call that began it, whatever number its caller gave it; what it was asked is at the beginning of its input. */
const FIRST_CALL = `(SELECT json_array(c.agent, c.method, c.target, substr(p.input, 1, ${PROMPT_HEAD_CHARS}))
  FROM calls c LEFT JOIN payloads p ON p.call = c.call
  WHERE c.call = (SELECT min(call) FROM calls WHERE trace = t.trace)) AS first_call`

const FIND_TRACE = `SELECT ${TRACE_COLUMNS} FROM traces t WHERE t.trace_id = ? AND `
/** The columns as one JSON array: a value at a time, the border between SQLite and JavaScript costs more than the query. */
const CALL = `json_array(${CALL_COLUMNS.map((name) => `c.${name}`).join(', ')}) AS columns`
const FIND_CALL = 'SELECT started_at, call FROM calls WHERE trace = ? AND id = ?'
/** Keys first, payloads only of what is handed out: sorting whole rows would read all of them for every page. */
const FIND_KEYS = `SELECT call FROM calls WHERE trace = ? AND (started_at, call) > (?, ?)
  ORDER BY started_at, call LIMIT ?`
const READ_CALL = {
  bare: `SELECT ${CALL}, NULL AS input, NULL AS output FROM calls c WHERE c.call = ?`,
  whole: `SELECT ${CALL}, p.input, p.output FROM calls c LEFT JOIN payloads p ON p.call = c.call WHERE c.call = ?`,
}
const SUM_AGENTS = `SELECT agent, count(*) AS calls, sum(status = 1) AS ok, sum(status = 2) AS errors,
  sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out, round(coalesce(sum(ended_at - started_at), 0), 3) AS busy_ms
  FROM calls WHERE started_at >= ? AND started_at < ?`

const CALL_WITH_TEXT = `SELECT 1 FROM calls c WHERE c.trace = t.trace
  AND (instr(lower(c.agent), ?) > 0 OR instr(lower(c.method), ?) > 0 OR instr(lower(c.target), ?) > 0)`

/** Of a call `c`. */
const PRINCIPAL = "json_extract(c.caller, '$.principal')"

const STATUS_CONDITION = {
  active: 't.n_open > 0',
  error: 't.n_open = 0 AND t.n_errors > 0',
  completed: 't.n_open = 0 AND t.n_errors = 0',
} as const

export function sqlSource(db: Database): TraceSource {
  return {
    busInstance: readMeta(db, 'bus_instance') ?? '',
    listTraces: (filter) => listTraces(db, filter),
    findTrace: (part, detail) => findTrace(db, part, detail),
    sumAgents: (range) => sumAgents(db, range),
  }
}

function findTrace(db: Database, part: TracePart, detail: Detail): ReturnType<TraceSource['findTrace']> {
  const scope = scopeConditions(part)
  const found = db.prepare(FIND_TRACE + scope.conditions.join(' AND ')).get(part.traceId, ...scope.values)
  const trace = found as StoredTrace | undefined
  if (trace === undefined) return undefined
  const find = db.prepare(FIND_CALL)
  const after = part.after === undefined ? BEFORE_ALL : (find.get(trace.trace, part.after) as CallKey | undefined)
  if (after === undefined) return 'no such call'
  const only = part.call === undefined ? undefined : (find.get(trace.trace, part.call) as CallKey | undefined)
  if (part.call !== undefined && only === undefined) return 'no such call'
  const keys =
    only === undefined
      ? (db.prepare(FIND_KEYS).all(trace.trace, after.started_at, after.call, part.limit + 1) as CallKey[])
      : [only]
  const read = db.prepare(READ_CALL[detail])
  const page = takePage(keys, part.limit, ({ call }) => toRow(read.get(call) as StoredCall))
  const hasCall = (id: number): boolean => find.get(trace.trace, id) !== undefined
  return { trace: withAgents(trace), isFirst: part.after === undefined, hasCall, ...page }
}

function toRow({ columns, input, output }: StoredCall): CallRow {
  return rowFromColumns(JSON.parse(columns), input, output)
}

function listTraces(db: Database, filter: ListFilter): TraceRow[] {
  const { conditions, values } = traceConditions(filter)
  // The agent's own index leads when one is named: a rare agent is found without a walk over everybody's traces.
  const from =
    filter.agent === undefined ? 'traces t' : 'trace_agents f CROSS JOIN traces t ON t.trace = f.trace AND f.agent = ?'
  const newest = filter.agent === undefined ? 't.trace' : 'f.trace'
  const sql = `SELECT ${TRACE_COLUMNS}, ${FIRST_CALL} FROM ${from} WHERE ${conditions.join(' AND ')} ORDER BY ${newest} DESC LIMIT ?`
  const lead = filter.agent === undefined ? [] : [filter.agent]
  const rows = db.prepare(sql).all(...lead, ...values, filter.limit + 1) as StoredTrace[]
  return rows.map((row) => ({ ...withAgents(row), ...firstCallOf(row) }))
}

function firstCallOf({ first_call }: StoredTrace): Pick<TraceRow, 'agent' | 'method' | 'target' | 'input'> {
  const [agent, method, target, input] = JSON.parse(first_call ?? '[]')
  return { agent, method, target, input }
}

interface Conditions {
  readonly conditions: string[]
  readonly values: SqlValue[]
}

/** Of a trace `t`; there is always one. */
function scopeConditions({ onlyCaller, onlyAgents }: TraceScope): Conditions {
  const conditions = ['1']
  const values: SqlValue[] = []
  if (onlyCaller !== undefined) {
    conditions.push(`NOT EXISTS (SELECT 1 FROM calls c WHERE c.trace = t.trace AND ${PRINCIPAL} IS NOT ?)`)
    values.push(onlyCaller)
  }
  if (onlyAgents !== undefined) {
    conditions.push(`NOT EXISTS (SELECT 1 FROM trace_agents a WHERE a.trace = t.trace
      AND a.agent NOT IN (SELECT value FROM json_each(?)))`)
    values.push(JSON.stringify(onlyAgents))
  }
  return { conditions, values }
}

function traceConditions(filter: ListFilter): Conditions {
  const newest = filter.agent === undefined ? 't.trace' : 'f.trace'
  const scope = scopeConditions(filter)
  const conditions = [...scope.conditions, `${newest} < ?`, 't.started_at >= ?', 't.started_at < ?']
  const values: SqlValue[] = [
    ...scope.values,
    filter.before ?? Number.MAX_SAFE_INTEGER,
    filter.sinceMs ?? 0,
    filter.untilMs ?? Number.MAX_SAFE_INTEGER,
  ]
  if (filter.status !== undefined) conditions.push(STATUS_CONDITION[filter.status])
  if (filter.prefix !== undefined) {
    conditions.push('t.trace_id >= ?', 't.trace_id < ?')
    values.push(filter.prefix, `${filter.prefix}\u{10ffff}`)
  }
  if (filter.text !== undefined) {
    conditions.push(`(instr(lower(t.trace_id), ?) > 0 OR EXISTS (${CALL_WITH_TEXT}))`)
    const text = filter.text.toLowerCase()
    values.push(text, text, text, text)
  }
  if (filter.minMs !== undefined) {
    conditions.push('CASE WHEN t.n_open > 0 OR t.ended_at IS NULL THEN ? ELSE t.ended_at END - t.started_at >= ?')
    values.push(Date.now(), filter.minMs)
  }
  if (filter.method !== undefined || filter.protocol !== undefined || filter.caller !== undefined) {
    const call = callConditions(filter)
    conditions.push(`EXISTS (SELECT 1 FROM calls c WHERE ${call.conditions.join(' AND ')})`)
    values.push(...call.values)
  }
  return { conditions, values }
}

/** One call must satisfy all of them: "reader::tools.call" is not a trace with some reader and some tools.call. */
function callConditions(filter: ListFilter): Conditions {
  const conditions = ['c.trace = t.trace']
  const values: SqlValue[] = []
  if (filter.agent !== undefined) conditions.push('c.agent = ?')
  if (filter.agent !== undefined) values.push(filter.agent)
  if (filter.method !== undefined) conditions.push('(c.method = ? OR c.native_method = ?)')
  if (filter.method !== undefined) values.push(filter.method, filter.method)
  if (filter.protocol !== undefined) conditions.push('c.protocol = ?')
  if (filter.protocol !== undefined) values.push(filter.protocol)
  if (filter.caller !== undefined) conditions.push(`${PRINCIPAL} = ?`)
  if (filter.caller !== undefined) values.push(filter.caller)
  return { conditions, values }
}

function sumAgents(db: Database, range: TimeRange): AgentSum[] {
  const { conditions, values } = scopeConditions(range)
  const isScoped = values.length > 0
  const seen = `AND EXISTS (SELECT 1 FROM traces t WHERE t.trace = calls.trace AND ${conditions.join(' AND ')})`
  return db
    .prepare(`${SUM_AGENTS} ${isScoped ? seen : ''} GROUP BY agent ORDER BY agent`)
    .all(range.sinceMs ?? 0, range.untilMs ?? Number.MAX_SAFE_INTEGER, ...values) as unknown as AgentSum[]
}

interface CallKey {
  readonly started_at: number
  readonly call: number
}

const BEFORE_ALL: CallKey = { started_at: Number.MIN_SAFE_INTEGER, call: 0 }

type StoredCall = { readonly columns: string; readonly input: string | null; readonly output: string | null }
type StoredTrace = Omit<TraceRow, 'agents'> & { agents: string; first_call?: string | null }

function withAgents({ first_call: _, ...row }: StoredTrace): TraceRow {
  return { ...row, agents: JSON.parse(row.agents) }
}
