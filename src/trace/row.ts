/**
 * A call and a trace as the store's tables have them, and the batch in which they travel to the store's thread.
 *
 * Plain data: it crosses a thread. Payloads, errors and request ids are JSON text here, so nothing is parsed on the way.
 */
import type { SqlValue } from '../host/sqlite.ts'

export interface CallRow {
  readonly id: number
  readonly parent_id: number | null
  /** JSON text, because `5` and `"5"` differ. */
  readonly request_id: string | null
  readonly protocol: string
  readonly type: string
  readonly agent: string
  readonly worker: string | null
  readonly method: string
  readonly native_method: string | null
  readonly target: string | null
  readonly status: number
  readonly error: string | null
  readonly partials: number
  readonly first_partial_at: number | null
  readonly bytes_in: number
  readonly bytes_out: number
  readonly started_at: number
  readonly ended_at: number | null
  readonly flags: number
  /** JSON text; of calls that an earlier version has stored nobody knows. */
  readonly caller: string | null
  readonly input: string | null
  readonly output: string | null
}

export interface TraceRow {
  /** Grows in the order of first sight; also the cursor of a list. */
  readonly trace: number
  readonly trace_id: string
  readonly otel_trace_id: string | null
  readonly started_at: number
  readonly ended_at: number | null
  readonly n_calls: number
  readonly n_errors: number
  readonly n_open: number
  readonly missing: number
  readonly agents: readonly string[]
  /** Of its first call, where they are asked for. */
  readonly agent?: string | null
  readonly method?: string | null
  readonly target?: string | null
  /** The beginning of what may be kept of its input. */
  readonly input?: string | null
}

/**
 * `new`: the first the store hears of a call, open or finished. `end`: the rest of one it has heard of. `touch`: partials
 * of an open one.
 */
export type ChangeKind = 'new' | 'end' | 'touch'

export interface Change {
  readonly kind: ChangeKind
  readonly traceId: string
  readonly otelTraceId: string | null
  readonly row: CallRow
}

export interface Batch {
  readonly changes: readonly Change[]
  /** Calls of which something was lost before it came here, per trace. */
  readonly missing: readonly (readonly [traceId: string, calls: number])[]
  readonly atMs: number
}

/** The columns of `calls` that belong to a row, in the order of the statements that write them. */
export const CALL_COLUMNS = [
  'id',
  'parent_id',
  'request_id',
  'protocol',
  'type',
  'agent',
  'worker',
  'method',
  'native_method',
  'target',
  'status',
  'error',
  'partials',
  'first_partial_at',
  'bytes_in',
  'bytes_out',
  'started_at',
  'ended_at',
  'flags',
  'caller',
] as const satisfies readonly (keyof CallRow)[]

export function columnValues(row: CallRow): SqlValue[] {
  return CALL_COLUMNS.map((column) => row[column])
}

/** The row whose column values these are, in the order of CALL_COLUMNS. */
export function rowFromColumns(values: readonly SqlValue[], input: string | null, output: string | null): CallRow {
  const row: Record<string, SqlValue | undefined> = {}
  for (const [index, column] of CALL_COLUMNS.entries()) row[column] = values[index]
  row['input'] = input
  row['output'] = output
  return row as unknown as CallRow
}

/** A batch as it crosses the thread: bare values cost half of what objects with names cost. */
export interface PackedBatch extends Omit<Batch, 'changes'> {
  readonly changes: readonly SqlValue[][]
}

const PACKED_COLUMNS = [...CALL_COLUMNS, 'input', 'output'] as const

export function packChange({ kind, traceId, otelTraceId, row }: Change): SqlValue[] {
  const packed: SqlValue[] = [kind, traceId, otelTraceId]
  for (const column of PACKED_COLUMNS) packed.push(row[column])
  return packed
}

export function unpackBatch({ changes, ...rest }: PackedBatch): Batch {
  return { ...rest, changes: changes.map(unpackChange) }
}

function unpackChange(packed: SqlValue[]): Change {
  const row: Record<string, SqlValue | undefined> = {}
  for (let index = 0; index < PACKED_COLUMNS.length; index++) row[PACKED_COLUMNS[index]!] = packed[index + 3]
  return { kind: packed[0], traceId: packed[1], otelTraceId: packed[2], row } as unknown as Change
}

/** Ids above this are never continued from, so one absurd id does not end the numbering of a trace. */
export const MAX_CONTINUED_ID = 2 ** 52
