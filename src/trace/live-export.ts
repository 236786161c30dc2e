/**
 * Turns calls into spans as they end, and a trace into its root span once it has been quiet for a while.
 *
 * A trace has no last call that anybody could know of, so quiet is the only sign; should more calls come, the root is sent
 * again with the same id and a later end. Bounded: beyond the bound the oldest traces get their root at once.
 */
import { describeCall, isoTime } from './document.ts'
import { callSpan, type OtlpOptions, type OtlpSpan, rootSpan } from './export-otlp.ts'
import { ROOT_CALL } from './otel-ids.ts'
import { type PayloadPolicy, payloadKeeper } from './payload.ts'
import type { CallRow } from './row.ts'
import { type Keep, keepPayloads } from './row-payloads.ts'
import { STATUS } from './schema.ts'
import type { CallEvent } from './store.ts'
import type { TraceIds } from './trace-ids.ts'

interface LiveTrace {
  readonly traceId: string
  readonly otelTraceId: string
  readonly startedAtMs: number
  endedAtMs: number
  open: number
  errors: number
  quiet: NodeJS.Timeout | undefined
  /** The root that was sent says all there is to say. */
  isSent: boolean
}

export interface LiveExportOptions extends OtlpOptions, PayloadPolicy {
  readonly quietMs?: number
}

const MAX_TRACES = 10_000

export class LiveExport {
  readonly #ids: TraceIds
  readonly #add: (span: OtlpSpan) => void
  readonly #options: LiveExportOptions
  readonly #keep: Keep
  readonly #traces = new Map<string, LiveTrace>()

  constructor(ids: TraceIds, add: (span: OtlpSpan) => void, options: LiveExportOptions) {
    this.#ids = ids
    this.#add = add
    this.#options = options
    this.#keep = payloadKeeper(options)
  }

  /** To be given to `store.follow`. */
  readonly take = (event: CallEvent): void => {
    const trace = this.#traces.get(event.traceId) ?? this.#start(event)
    clearTimeout(trace.quiet)
    trace.isSent = false
    if (event.event === 'started') trace.open += 1
    else this.#end(trace, event.row)
    if (trace.open > 0) return
    trace.quiet = setTimeout(() => this.#finish(trace), this.#options.quietMs ?? 5_000).unref()
  }

  /** Sends the roots that have not been sent. */
  close(): void {
    for (const trace of this.#traces.values()) this.#finish(trace)
  }

  #start({ traceId, otelTraceId, row }: CallEvent): LiveTrace {
    const [oldest] = this.#traces.values()
    if (oldest !== undefined && this.#traces.size >= MAX_TRACES) this.#evict(oldest)
    const trace: LiveTrace = {
      traceId,
      otelTraceId: otelTraceId ?? this.#ids.otelTraceId(traceId),
      startedAtMs: row.started_at,
      endedAtMs: row.started_at,
      open: 0,
      errors: 0,
      quiet: undefined,
      isSent: false,
    }
    this.#traces.set(traceId, trace)
    return trace
  }

  #end(trace: LiveTrace, row: CallRow): void {
    trace.open = Math.max(0, trace.open - 1)
    trace.errors += row.status === STATUS.error ? 1 : 0
    trace.endedAtMs = Math.max(trace.endedAtMs, row.ended_at ?? row.started_at)
    const kept = {
      ...row,
      ...keepPayloads(this.#options.payloads ? row : { ...row, input: null, output: null }, this.#keep),
    }
    const call = describeCall(kept, trace.traceId, this.#ids.busInstance)
    const parent = this.#ids.spanId(trace.traceId, row.parent_id ?? ROOT_CALL)
    this.#add(callSpan(call, contextOf(trace), parent, this.#options))
  }

  #evict(trace: LiveTrace): void {
    this.#finish(trace)
    this.#traces.delete(trace.traceId)
  }

  #finish(trace: LiveTrace): void {
    clearTimeout(trace.quiet)
    if (trace.isSent) return
    trace.isSent = true
    const root = {
      ...contextOf(trace),
      started_at: isoTime(trace.startedAtMs),
      ended_at: isoTime(trace.endedAtMs),
      status: trace.errors > 0 ? ('error' as const) : ('completed' as const),
      missing: 0,
    }
    this.#add(rootSpan(root, this.#ids.busInstance, this.#options))
  }
}

function contextOf(trace: LiveTrace): { trace_id: string; otel_trace_id: string } {
  return { trace_id: trace.traceId, otel_trace_id: trace.otelTraceId }
}
