/**
 * The traces of the last while, in memory, bounded: what questions are answered from when there is no working database.
 *
 * It holds the same records as the queue and makes no copies. Payloads are cleaned when somebody asks, not before.
 */

import { parseCaller, roundMs, traceStatus } from './document.ts'
import { takePage } from './page.ts'
import type { AgentSum, Detail, TraceSource } from './query.ts'
import type { ListFilter, TimeRange, TracePart, TraceScope } from './query-params.ts'
import { type CallRecord, payloadLength } from './record.ts'
import type { CallRow, TraceRow } from './row.ts'
import { type Keep, keepPayloads } from './row-payloads.ts'
import { STATUS } from './schema.ts'

export interface RecentBounds {
  readonly maxCalls: number
  readonly maxPayloadBytes: number
}

interface RecentTrace {
  readonly seq: number
  readonly traceId: string
  readonly otelTraceId: string | null
  records: CallRecord[]
  missing: number
}

const COMPACT_AT = 1_024
/** What is also in the database need not be remembered for long. */
const BACKED_SHARE = 0.02

export class RecentTraces implements TraceSource {
  busInstance: string
  /** A database has it all: memory is only for the moment in which that fails. */
  isBacked = false
  readonly #bounds: RecentBounds
  readonly #keep: Keep
  readonly #traces = new Map<string, RecentTrace>()
  /** In order of their start, from `#oldest` on; a Map finds its first key slowly. */
  #order: (RecentTrace | undefined)[] = []
  #oldest = 0
  #seq = 0
  #calls = 0
  #payloadBytes = 0

  constructor(busInstance: string, bounds: RecentBounds, keep: Keep) {
    this.busInstance = busInstance
    this.#bounds = bounds
    this.#keep = keep
  }

  add(record: CallRecord): void {
    const trace = this.#traces.get(record.traceId) ?? this.#start(record)
    trace.records.push(record)
    this.#calls += 1
    record.rememberedBytes = 0
    this.weigh(record)
  }

  /** To be called whenever a payload of a record came or went. */
  weigh(record: CallRecord): void {
    if (record.rememberedBytes === undefined) return
    const bytes = payloadLength(record)
    this.#payloadBytes += bytes - record.rememberedBytes
    record.rememberedBytes = bytes
    while (this.#isFull() && this.#calls > 1) this.#evict()
  }

  charge(traceId: string): void {
    const trace = this.#traces.get(traceId)
    if (trace) trace.missing += 1
  }

  has(traceId: string): boolean {
    return this.#traces.has(traceId)
  }

  listTraces(filter: ListFilter): TraceRow[] {
    const found: TraceRow[] = []
    for (const trace of [...this.#traces.values()].reverse()) {
      if (found.length > filter.limit) break
      if (!isInScope(trace, filter)) continue
      const row = toTraceRow(trace)
      if (
        !matchesTrace(row, filter) ||
        !hasText(trace, filter.text) ||
        !trace.records.some(({ row: call }) => matchesCall(call, filter))
      )
        continue
      found.push({ ...row, ...this.#firstCallOf(trace) })
    }
    return found
  }

  #firstCallOf({ records: [first] }: RecentTrace): Pick<TraceRow, 'agent' | 'method' | 'target' | 'input'> {
    if (first === undefined) return {}
    const { agent, method, target, input } = this.#toCallRow(first)
    return { agent, method, target, input }
  }

  findTrace(
    { traceId, after, limit, call, ...scope }: TracePart,
    detail: Detail,
  ): ReturnType<TraceSource['findTrace']> {
    const trace = this.#traces.get(traceId)
    if (trace === undefined || !isInScope(trace, scope)) return undefined
    const records = inOrderOfStart(trace.records)
    const from = after === undefined ? 0 : records.findIndex(({ row }) => row.id === after) + 1
    if (after !== undefined && from === 0) return 'no such call'
    const only = call === undefined ? undefined : records.filter(({ row }) => row.id === call)
    if (only?.length === 0) return 'no such call'
    const page = takePage(only ?? records.slice(from, from + limit + 1), limit, (record) =>
      this.#toCallRow(record, detail),
    )
    let known: ReadonlySet<number> | undefined
    const hasCall = (id: number): boolean => (known ??= new Set(records.map(({ row }) => row.id))).has(id)
    return { trace: toTraceRow(trace), isFirst: after === undefined, hasCall, ...page }
  }

  sumAgents({ sinceMs = 0, untilMs = Number.POSITIVE_INFINITY, ...scope }: TimeRange): AgentSum[] {
    const sums = new Map<string, AgentSum>()
    for (const trace of this.#traces.values()) {
      if (!isInScope(trace, scope)) continue
      for (const { row } of trace.records) {
        if (row.started_at < sinceMs || row.started_at >= untilMs) continue
        sums.set(row.agent, plus(sums.get(row.agent), row))
      }
    }
    return [...sums.values()].sort((a, b) => (a.agent < b.agent ? -1 : 1))
  }

  #start(record: CallRecord): RecentTrace {
    const { traceId, otelTraceId } = record
    const trace = { seq: ++this.#seq, traceId, otelTraceId, records: [], missing: 0 }
    this.#traces.set(traceId, trace)
    this.#order.push(trace)
    return trace
  }

  #isFull(): boolean {
    const share = this.isBacked ? BACKED_SHARE : 1
    return this.#calls > this.#bounds.maxCalls * share || this.#payloadBytes > this.#bounds.maxPayloadBytes * share
  }

  /** The oldest trace goes whole; the last one there is loses its older half instead. */
  #evict(): void {
    const oldest = this.#order[this.#oldest]
    if (oldest === undefined) return
    const isOnly = this.#traces.size === 1
    const gone = isOnly ? oldest.records.splice(0, Math.ceil(oldest.records.length / 2)) : oldest.records
    if (isOnly) oldest.missing += gone.length
    else this.#drop(oldest)
    this.#calls -= gone.length
    for (const record of gone) {
      this.#payloadBytes -= record.rememberedBytes ?? 0
      record.rememberedBytes = undefined
    }
  }

  #drop(oldest: RecentTrace): void {
    this.#traces.delete(oldest.traceId)
    this.#order[this.#oldest] = undefined
    this.#oldest += 1
    if (this.#oldest < COMPACT_AT) return
    this.#order = this.#order.slice(this.#oldest)
    this.#oldest = 0
  }

  #toCallRow(record: CallRecord, detail: Detail = 'whole'): CallRow {
    const row = { ...record.row, flags: record.row.flags | record.forgotten }
    const kept = { ...row, ...keepPayloads(row, this.#keep) }
    return detail === 'whole' ? kept : { ...kept, input: null, output: null }
  }
}

/** They came in that order, unless the clock was set back. */
function inOrderOfStart(records: readonly CallRecord[]): readonly CallRecord[] {
  const isSorted = records.every(({ row }, at) => at === 0 || records[at - 1]!.row.started_at <= row.started_at)
  return isSorted ? records : [...records].sort((a, b) => a.row.started_at - b.row.started_at)
}

function toTraceRow(trace: RecentTrace): TraceRow {
  const rows = trace.records.map((record) => record.row)
  const ends = rows.map((row) => row.ended_at ?? row.started_at)
  return {
    trace: trace.seq,
    trace_id: trace.traceId,
    otel_trace_id: trace.otelTraceId,
    started_at: rows.reduce((first, row) => Math.min(first, row.started_at), rows[0]?.started_at ?? 0),
    ended_at: ends.length === 0 ? null : ends.reduce((last, end) => Math.max(last, end)),
    n_calls: rows.length,
    n_errors: rows.filter((row) => row.status === STATUS.error).length,
    n_open: rows.filter((row) => row.status === STATUS.pending).length,
    missing: trace.missing,
    agents: [...new Set(rows.map((row) => row.agent))].sort(),
  }
}

function isInScope({ records }: RecentTrace, { onlyCaller, onlyAgents }: TraceScope): boolean {
  if (onlyAgents !== undefined && !records.every(({ row }) => onlyAgents.includes(row.agent))) return false
  return onlyCaller === undefined || records.every(({ row }) => parseCaller(row.caller)?.principal === onlyCaller)
}

function matchesTrace(row: TraceRow, filter: ListFilter): boolean {
  if (row.trace >= (filter.before ?? Number.POSITIVE_INFINITY)) return false
  if (filter.status !== undefined && traceStatus(row) !== filter.status) return false
  if (!row.trace_id.startsWith(filter.prefix ?? '')) return false
  const endMs = row.n_open > 0 || row.ended_at === null ? Date.now() : row.ended_at
  if (endMs - row.started_at < (filter.minMs ?? 0)) return false
  return row.started_at >= (filter.sinceMs ?? 0) && row.started_at < (filter.untilMs ?? Number.POSITIVE_INFINITY)
}

function hasText({ traceId, records }: RecentTrace, text = ''): boolean {
  const wanted = text.toLowerCase()
  const has = (name: string | null): boolean => name?.toLowerCase().includes(wanted) === true
  return has(traceId) || records.some(({ row }) => has(row.agent) || has(row.method) || has(row.target))
}

function matchesCall(row: CallRow, { agent, method, protocol, caller }: ListFilter): boolean {
  if (agent !== undefined && row.agent !== agent) return false
  if (method !== undefined && row.method !== method && row.native_method !== method) return false
  if (caller !== undefined && parseCaller(row.caller)?.principal !== caller) return false
  return protocol === undefined || row.protocol === protocol
}

function plus(sum: AgentSum | undefined, row: CallRow): AgentSum {
  return {
    agent: row.agent,
    calls: (sum?.calls ?? 0) + 1,
    ok: (sum?.ok ?? 0) + (row.status === STATUS.ok ? 1 : 0),
    errors: (sum?.errors ?? 0) + (row.status === STATUS.error ? 1 : 0),
    bytes_in: (sum?.bytes_in ?? 0) + row.bytes_in,
    bytes_out: (sum?.bytes_out ?? 0) + row.bytes_out,
    busy_ms: roundMs((sum?.busy_ms ?? 0) + (row.ended_at === null ? 0 : row.ended_at - row.started_at)),
  }
}
