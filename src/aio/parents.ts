/**
 * Finds the place of a call in the execution graph: its trace, its parent, its depth.
 *
 * The rules, in order (spec N16): a W3C `traceparent` that the bus gave out, an explicit `stdio-bus/parent`, the only
 * open call of the worker that asks. A parent is always an older call that is remembered here, so a graph has no loops.
 * Memory is bounded: the oldest calls are forgotten and can then be nobody's parent.
 */
import type { JsonObject } from './json-object.ts'
import type { Caller, TraceIds } from './port.ts'
import { Recent } from './recent.ts'

export const MAX_DEPTH = 32
const REMEMBERED_CALLS = 10_000
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-|$)/
const PARENT_KEY = 'stdio-bus/parent'

/** A call as later calls may refer to it. */
export interface Ancestor {
  readonly traceId: string
  readonly callId: number
  readonly depth: number
  /** Set when the caller is part of an OpenTelemetry trace of its own. */
  readonly otelTraceId: string | undefined
}

export interface Placement {
  /** undefined: one must be issued. */
  readonly traceId: string | undefined
  readonly parentId: number | null
  readonly depth: number
  readonly otelTraceId: string | undefined
}

export function callKey(call: { readonly traceId: string; readonly callId: number }): string {
  return `${call.traceId}#${call.callId}`
}

export class Parents {
  readonly #ids: TraceIds
  readonly #calls = new Recent<Ancestor>(REMEMBERED_CALLS)
  readonly #spans = new Recent<Ancestor>(REMEMBERED_CALLS)
  readonly #openAtWorker = new Map<string, Set<Ancestor>>()

  constructor(ids: TraceIds) {
    this.#ids = ids
  }

  place(caller: Caller, traceId: string | undefined, meta: JsonObject): Placement {
    const inbound = readTraceparent(meta['traceparent'])
    const open = this.#openCalls(caller, traceId)
    const fits = (call: Ancestor | undefined): boolean =>
      call !== undefined && (traceId === undefined || call.traceId === traceId)
    const candidates = [
      inbound && this.#spans.get(inbound.spanId),
      this.#calls.get(String(meta[PARENT_KEY])),
      open.length === 1 ? open[0] : undefined,
    ]
    const parent = candidates.find(fits)
    // With several open calls the parent is unknown; the shallowest of them never accuses an innocent chain.
    const above = parent?.depth ?? Math.min(...open.map((call) => call.depth), Number.POSITIVE_INFINITY)
    return {
      traceId: traceId ?? parent?.traceId,
      parentId: parent?.callId ?? null,
      depth: Number.isFinite(above) ? above + 1 : 1,
      otelTraceId: inbound?.otelTraceId ?? parent?.otelTraceId,
    }
  }

  remember(call: Ancestor): void {
    this.#calls.set(callKey(call), call)
  }

  opened(worker: string, call: Ancestor): void {
    const open = this.#openAtWorker.get(worker)
    if (open === undefined) this.#openAtWorker.set(worker, new Set([call]))
    else open.add(call)
  }

  closed(worker: string, call: Ancestor): void {
    const open = this.#openAtWorker.get(worker)
    if (open?.delete(call) && open.size === 0) this.#openAtWorker.delete(worker)
  }

  forgetWorker(worker: string): void {
    this.#openAtWorker.delete(worker)
  }

  /** The `traceparent` an agent gets, by which its own calls find their parent. */
  traceparent(call: Ancestor): string {
    const spanId = this.#ids.spanId(call.traceId, call.callId)
    this.#spans.set(spanId, call)
    return `00-${call.otelTraceId ?? this.#ids.otelTraceId(call.traceId)}-${spanId}-01`
  }

  #openCalls(caller: Caller, traceId: string | undefined): readonly Ancestor[] {
    if (caller.kind !== 'worker') return []
    const open = [...(this.#openAtWorker.get(caller.key) ?? [])]
    return traceId === undefined ? open : open.filter((call) => call.traceId === traceId)
  }
}

function readTraceparent(text: unknown): { otelTraceId: string; spanId: string } | undefined {
  const parts = typeof text === 'string' ? TRACEPARENT.exec(text) : null
  return parts === null ? undefined : { otelTraceId: parts[1]!, spanId: parts[2]! }
}
