/**
 * Stored rows as the documents that people and programs ask for: the seed's fields first, then the superset (aio.md 1.6, 5).
 *
 * Payloads are spliced in as the text they are stored as: a trace of ten thousand calls is written without parsing one.
 */
import type { CallError } from './call.ts'
import { spanId } from './otel-ids.ts'
import type { CallRow, TraceRow } from './row.ts'
import { FLAG, STATUS } from './schema.ts'

export interface CallDocument {
  id: number
  agent: string
  method: string
  input: unknown
  output: unknown
  status: 'pending' | 'ok' | 'error'
  protocol: string
  type: string
  inputs?: unknown[]
  outputs?: unknown[]
  parent_id: number | null
  request_id: string | number | null
  native_method?: string
  target?: string
  worker: string | null
  error?: CallError
  partial: boolean
  partials: number
  first_partial_at?: string
  bytes_in: number
  bytes_out: number
  started_at: string
  ended_at: string | null
  duration_ms: number | null
  span_id: string
  /** Which payloads were cut at the limit, and which were given up under load. */
  truncated?: ('input' | 'output')[]
  lost?: ('input' | 'output')[]
}

export interface TraceDocument {
  trace_id: string
  status: TraceStatus
  started_at: string
  ended_at: string | null
  otel_trace_id: string
  /** Calls of which something could not be kept. */
  missing: number
  calls: CallDocument[]
}

export type TraceStatus = 'active' | 'error' | 'completed'

export interface TraceSummary {
  trace_id: string
  status: TraceStatus
  started_at: string
  ended_at: string | null
  n_calls: number
  n_errors: number
  agents: string[]
}

const STATUS_NAMES = { [STATUS.pending]: 'pending', [STATUS.ok]: 'ok', [STATUS.error]: 'error' } as const

export function traceStatus(trace: Pick<TraceRow, 'n_open' | 'n_errors'>): TraceStatus {
  if (trace.n_open > 0) return 'active'
  return trace.n_errors > 0 ? 'error' : 'completed'
}

export function summarize(trace: TraceRow): TraceSummary {
  return {
    trace_id: trace.trace_id,
    status: traceStatus(trace),
    started_at: isoTime(trace.started_at),
    ended_at: endOf(trace),
    n_calls: trace.n_calls,
    n_errors: trace.n_errors,
    agents: [...trace.agents],
  }
}

/** The whole trace as JSON text. */
export function writeTrace(trace: TraceRow, calls: readonly CallRow[], otelTraceId: string, instance: string): string {
  const head = JSON.stringify({
    trace_id: trace.trace_id,
    status: traceStatus(trace),
    started_at: isoTime(trace.started_at),
    ended_at: endOf(trace),
    otel_trace_id: otelTraceId,
    missing: trace.missing,
  })
  const bodies = calls.map((call) => writeCall(call, trace.trace_id, instance))
  return `${head.slice(0, -1)},"calls":[${bodies.join(',')}]}`
}

/** One call as JSON text. */
export function writeCall(row: CallRow, traceId: string, instance: string): string {
  const head = JSON.stringify({ id: row.id, agent: row.agent, method: row.method })
  const tail = JSON.stringify({ ...describeCall(row), span_id: spanId(instance, traceId, row.id) })
  const lists = listOf(row.input, 'inputs', 'input') + listOf(row.output, 'outputs', 'output')
  const request = `"request_id":${row.request_id ?? 'null'}`
  const error = row.error === null ? '' : `,"error":${row.error}`
  const payloads = `"input":${row.input ?? 'null'},"output":${row.output ?? 'null'}`
  return `${head.slice(0, -1)},${payloads},${tail.slice(1, -1)},${request}${lists}${error}}`
}

/** What is known of a call apart from its name, its payloads and its error. */
export function describeCall(row: CallRow) {
  return {
    status: STATUS_NAMES[row.status as 0 | 1 | 2],
    protocol: row.protocol,
    type: row.type,
    parent_id: row.parent_id,
    worker: row.worker,
    ...(row.native_method === null ? {} : { native_method: row.native_method }),
    ...(row.target === null ? {} : { target: row.target }),
    partial: row.partials > 0,
    partials: row.partials,
    ...(row.first_partial_at === null ? {} : { first_partial_at: isoTime(row.first_partial_at) }),
    bytes_in: row.bytes_in,
    bytes_out: row.bytes_out,
    started_at: isoTime(row.started_at),
    ended_at: row.ended_at === null ? null : isoTime(row.ended_at),
    duration_ms: row.ended_at === null ? null : roundMs(row.ended_at - row.started_at),
    ...flagged('truncated', row.flags, FLAG.inputCut, FLAG.outputCut),
    ...flagged('lost', row.flags, FLAG.inputLost, FLAG.outputLost),
  }
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}

export function roundMs(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

function endOf(trace: TraceRow): string | null {
  return trace.n_open > 0 || trace.ended_at === null ? null : isoTime(trace.ended_at)
}

function flagged(name: 'truncated' | 'lost', flags: number, input: number, output: number) {
  const which = [...(flags & input ? ['input'] : []), ...(flags & output ? ['output'] : [])]
  return which.length === 0 ? {} : { [name]: which }
}

/** The second text of the protocol has arrays beside the objects; only generic payloads have them, so few are parsed. */
function listOf(payload: string | null, plural: string, singular: string): string {
  if (payload === null || !payload.includes(`"${singular}`)) return ''
  const value: unknown = JSON.parse(payload)
  if (typeof value !== 'object' || value === null) return ''
  const fields = value as Record<string, unknown>
  const items = Array.isArray(fields[plural])
    ? fields[plural]
    : isItem(fields[singular])
      ? [fields[singular]]
      : undefined
  return items === undefined ? '' : `,"${plural}":${JSON.stringify(items)}`
}

function isItem(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && 'value' in value
}
