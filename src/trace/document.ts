/**
 * Stored rows as the documents that people and programs ask for: the seed's fields first, then the superset (spec T3).
 */
import type { CallCaller, CallError } from './call.ts'
import { otelTraceId, spanId } from './otel-ids.ts'
import { promptIn } from './prompt-text.ts'
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
  native_method?: string | undefined
  target?: string | undefined
  worker: string | null
  caller?: CallCaller | undefined
  error?: CallError | undefined
  partial: boolean
  partials: number
  first_partial_at?: string | undefined
  bytes_in: number
  bytes_out: number
  started_at: string
  ended_at: string | null
  duration_ms: number | null
  span_id: string
  /** Which payloads were cut at the limit, and which were given up under load. */
  truncated?: ('input' | 'output')[] | undefined
  lost?: ('input' | 'output')[] | undefined
}

export interface TraceDocument {
  trace_id: string
  status: TraceStatus
  started_at: string
  ended_at: string | null
  otel_trace_id: string
  n_calls: number
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
  /** Of the first call: what was called, and the beginning of what it was asked, where that is text. */
  agent?: string | undefined
  method?: string | undefined
  target?: string | undefined
  prompt?: string | undefined
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
    agent: trace.agent ?? undefined,
    method: trace.method ?? undefined,
    target: trace.target ?? undefined,
    prompt: promptIn(trace.input ?? null),
  }
}

/** What is known of a trace apart from its calls. */
export function describeHead(trace: TraceRow, busInstance: string): Omit<TraceDocument, 'calls'> {
  return {
    trace_id: trace.trace_id,
    status: traceStatus(trace),
    started_at: isoTime(trace.started_at),
    ended_at: endOf(trace),
    otel_trace_id: trace.otel_trace_id ?? otelTraceId(busInstance, trace.trace_id),
    n_calls: trace.n_calls,
    missing: trace.missing,
  }
}

/** One call as a document. */
export function describeCall(row: CallRow, traceId: string, busInstance: string): CallDocument {
  return {
    id: row.id,
    agent: row.agent,
    method: row.method,
    input: parse(row.input),
    output: parse(row.output),
    ...describeFacts(row),
    span_id: spanId(busInstance, traceId, row.id),
    request_id: parse(row.request_id) as string | number | null,
    caller: parseCaller(row.caller),
    error: (parse(row.error) ?? undefined) as CallError | undefined,
  }
}

/** What is known of a call apart from its name, its caller, its payloads and its error. */
export function describeFacts(row: CallRow) {
  return {
    status: STATUS_NAMES[row.status as 0 | 1 | 2],
    protocol: row.protocol,
    type: row.type,
    parent_id: row.parent_id,
    worker: row.worker,
    native_method: row.native_method ?? undefined,
    target: row.target ?? undefined,
    partial: row.partials > 0,
    partials: row.partials,
    first_partial_at: row.first_partial_at === null ? undefined : isoTime(row.first_partial_at),
    bytes_in: row.bytes_in,
    bytes_out: row.bytes_out,
    started_at: isoTime(row.started_at),
    ended_at: row.ended_at === null ? null : isoTime(row.ended_at),
    duration_ms: row.ended_at === null ? null : roundMs(row.ended_at - row.started_at),
    truncated: flagged(row.flags, FLAG.inputCut, FLAG.outputCut),
    lost: flagged(row.flags, FLAG.inputLost, FLAG.outputLost),
  }
}

let lastSecond = Number.NaN
let lastPrefix = ''

/** ISO 8601 in UTC with milliseconds. Times come in order, so the date of the last second is nearly always the right one. */
export function isoTime(ms: number): string {
  const whole = Math.trunc(ms)
  const second = Math.floor(whole / 1000)
  if (second !== lastSecond) {
    lastPrefix = new Date(second * 1000).toISOString().slice(0, -4)
    lastSecond = second
  }
  return `${lastPrefix}${String(whole - second * 1000).padStart(3, '0')}Z`
}

export function roundMs(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

function endOf(trace: TraceRow): string | null {
  return trace.n_open > 0 || trace.ended_at === null ? null : isoTime(trace.ended_at)
}

function flagged(flags: number, input: number, output: number): ('input' | 'output')[] | undefined {
  if ((flags & (input | output)) === 0) return undefined
  return [...(flags & input ? (['input'] as const) : []), ...(flags & output ? (['output'] as const) : [])]
}

export function parseCaller(text: string | null): CallCaller | undefined {
  return (parse(text) ?? undefined) as CallCaller | undefined
}

function parse(text: string | null): unknown {
  return text === null ? null : JSON.parse(text)
}
