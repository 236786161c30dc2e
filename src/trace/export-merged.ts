/**
 * A trace of several nodes for other programs (contract 14.10): the same whichever node writes it.
 *
 * In OTLP each node is a resource of its own, known by its name; the spans have the ids that their nodes give them, so a
 * parent is found at whichever node it is.
 */
import { callSpan, type OtlpDocument, type OtlpOptions, rootSpan, wrapSpans } from './export-otlp.ts'
import type { MergedTrace } from './merge-traces.ts'
import { ROOT_CALL, spanId } from './otel-ids.ts'

/** Undefined: there is no such format. */
export function exportMerged(trace: MergedTrace, format: unknown, options: OtlpOptions): object | undefined {
  if (format === undefined || format === 'aio') return trace
  return format === 'otlp-json' ? exportSpans(trace, options) : undefined
}

function exportSpans(trace: MergedTrace, options: OtlpOptions): OtlpDocument {
  // No node's own: whoever writes it writes the same.
  const instance = trace.otel_trace_id
  const rootId = spanId(instance, trace.trace_id, ROOT_CALL)
  const spanIds = new Map(trace.calls.map(({ id, span_id }) => [id, span_id]))
  const nodes = [...new Set(trace.calls.map(({ node }) => node))]
  const resourceSpans = nodes.flatMap((node, index) => {
    const spans = trace.calls
      .filter((call) => call.node === node && call.ended_at !== null)
      .map((call) => callSpan(call, trace, spanIds.get(call.parent_id ?? ROOT_CALL) ?? rootId, options))
    const hasRoot = index === 0 && trace.ended_at !== null
    if (hasRoot) spans.unshift(rootSpan(trace, instance, options))
    return wrapSpans(spans, node, options).resourceSpans
  })
  return { resourceSpans }
}
