/**
 * The questions that can be put to traces, wherever they are kept: list, get, stats, export (aio.md 5, "Trace methods").
 *
 * Answers are JSON text, because most of a trace is payload text that nobody here needs to understand. A question never
 * changes anything.
 */
import { summarize, type TraceDocument, writeTrace } from './document.ts'
import { exportAio } from './export-aio.ts'
import { exportOtlp, type OtlpOptions } from './export-otlp.ts'
import { otelTraceId } from './otel-ids.ts'
import {
  badParam,
  type ListFilter,
  type QueryFault,
  readListFilter,
  readTimeRange,
  readTraceId,
  type TimeRange,
  unknownTrace,
} from './query-params.ts'
import type { CallRow, TraceRow } from './row.ts'

/** Where traces are kept: the database, or the memory of recent ones. */
export interface TraceSource {
  /** Part of every derived id, so two buses never export the same one. */
  readonly busInstance: string
  /** Newest first, one more than the limit when there are more. */
  listTraces(filter: ListFilter): TraceRow[]
  /** With its calls in order of start. */
  findTrace(traceId: string): { trace: TraceRow; calls: CallRow[] } | undefined
  sumAgents(range: TimeRange): AgentSum[]
}

export interface AgentSum {
  readonly agent: string
  readonly calls: number
  readonly ok: number
  readonly errors: number
  readonly bytes_in: number
  readonly bytes_out: number
  readonly busy_ms: number
}

export type QueryMethod = 'list' | 'get' | 'stats' | 'export'
export type Answer = { readonly text: string } | { readonly fault: QueryFault }

type Ask = (source: TraceSource, params: unknown, otlp: OtlpOptions) => Answer

const QUESTIONS: Record<QueryMethod, Ask> = { list, get, stats, export: exportTrace }

export function answerQuery(source: TraceSource, method: QueryMethod, params: unknown, otlp: OtlpOptions): Answer {
  return QUESTIONS[method](source, params, otlp)
}

function list(source: TraceSource, params: unknown): Answer {
  const filter = readListFilter(params)
  if ('fault' in filter) return filter
  const found = source.listTraces(filter.value)
  const page = found.slice(0, filter.value.limit)
  const last = page.at(-1)
  const more = found.length > page.length && last !== undefined ? { next_cursor: String(last.trace) } : {}
  return { text: JSON.stringify({ traces: page.map(summarize), ...more }) }
}

function get(source: TraceSource, params: unknown): Answer {
  const traceId = readTraceId(params)
  if ('fault' in traceId) return traceId
  const found = source.findTrace(traceId.value)
  if (found === undefined) return unknownTrace(traceId.value)
  const otel = found.trace.otel_trace_id ?? otelTraceId(source.busInstance, traceId.value)
  return { text: writeTrace(found.trace, found.calls, otel, source.busInstance) }
}

function stats(source: TraceSource, params: unknown): Answer {
  const range = readTimeRange(params)
  if ('fault' in range) return range
  const totals = { total: 0, success: 0, error: 0 }
  const agents: [string, object][] = []
  for (const { agent, ok, ...sum } of source.sumAgents(range.value)) {
    totals.total += sum.calls
    totals.success += ok
    totals.error += sum.errors
    agents.push([agent, sum])
  }
  return { text: JSON.stringify({ ...totals, agents: Object.fromEntries(agents) }) }
}

const EXPORTS: Record<string, (trace: TraceDocument, busInstance: string, otlp: OtlpOptions) => unknown> = {
  aio: exportAio,
  'otlp-json': exportOtlp,
}

function exportTrace(source: TraceSource, params: unknown, otlp: OtlpOptions): Answer {
  const format = (params as { format?: unknown } | null | undefined)?.format ?? 'aio'
  const write = typeof format === 'string' && Object.hasOwn(EXPORTS, format) ? EXPORTS[format] : undefined
  if (write === undefined) return badParam('format', 'aio or otlp-json')
  const trace = get(source, params)
  if ('fault' in trace) return trace
  return { text: JSON.stringify(write(JSON.parse(trace.text), source.busInstance, otlp)) }
}
