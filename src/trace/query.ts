/**
 * The questions that can be put to traces, wherever they are kept: list, get, stats, export (spec T4, N21).
 *
 * Answers are JSON text, because most of a trace is payload text that nobody here needs to understand, and they are short:
 * what does not fit says where it goes on (`next_cursor`). A question never changes anything.
 */
import { summarize } from './document.ts'
import { exportAio } from './export-aio.ts'
import { exportOtlp, type OtlpOptions } from './export-otlp.ts'
import type { CallPage } from './page.ts'
import {
  badCursor,
  badParam,
  type ListFilter,
  type QueryFault,
  type Read,
  readListFilter,
  readTimeRange,
  readTracePart,
  type TimeRange,
  type TracePart,
  unknownCall,
  unknownTrace,
} from './query-params.ts'
import type { TraceRow } from './row.ts'

/** Where traces are kept: the database, or the memory of recent ones. */
export interface TraceSource {
  /** Part of every derived id, so two buses never export the same one. */
  readonly busInstance: string
  /** Newest first, one more than the limit when there are more. */
  listTraces(filter: ListFilter): TraceRow[]
  /** With some of its calls, in order of start; `bare` ones have no payloads. */
  findTrace(part: TracePart, detail: Detail): FoundTrace | 'no such call' | undefined
  sumAgents(range: TimeRange): AgentSum[]
}

export type Detail = 'bare' | 'whole'

export interface FoundTrace extends CallPage {
  readonly trace: TraceRow
  /** The trace begins with these calls. */
  readonly isFirst: boolean
  /** The trace has a call of that id, among these or not. */
  hasCall(id: number): boolean
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
  const isBare = (params as { payloads?: unknown } | null | undefined)?.payloads === false
  const found = find(source, params, isBare ? 'bare' : 'whole')
  return 'fault' in found ? found : paged(exportAio(found.value, source.busInstance), found.value)
}

function find(source: TraceSource, params: unknown, detail: Detail): Read<FoundTrace> {
  const part = readTracePart(params)
  if ('fault' in part) return part
  const value = source.findTrace(part.value, detail)
  if (value === 'no such call') return part.value.call === undefined ? badCursor() : unknownCall(part.value.call)
  return value === undefined ? unknownTrace(part.value.traceId) : { value }
}

/** The text of a document, with the way to the rest of it. */
function paged(text: string, { next }: FoundTrace): Answer {
  return { text: next === undefined ? text : `${text.slice(0, -1)},"next_cursor":"${next}"}` }
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

/** AIO's own form is the document itself; the other is written from it, without payloads unless they are wanted. */
const EXPORTS: Record<string, Ask> = {
  aio: get,
  'otlp-json': (source, params, otlp) => {
    const found = find(source, params, otlp.payloads ? 'whole' : 'bare')
    return 'fault' in found ? found : paged(exportOtlp(found.value, source.busInstance, otlp), found.value)
  },
}

function exportTrace(source: TraceSource, params: unknown, otlp: OtlpOptions): Answer {
  const format = (params as { format?: unknown } | null | undefined)?.format ?? 'aio'
  const write = typeof format === 'string' && Object.hasOwn(EXPORTS, format) ? EXPORTS[format] : undefined
  return write === undefined ? badParam('format', 'aio or otlp-json') : write(source, params, otlp)
}
