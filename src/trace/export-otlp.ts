/**
 * A trace as OTLP/JSON with the GenAI and MCP conventions: what a collector takes at `/v1/traces`.
 *
 * Ids are derived, so a second export of the same trace replaces the first instead of doubling it. An open call has no end
 * and therefore no span yet. Payloads stay out unless they are asked for.
 */
import { type CallDocument, describeCall, describeHead, type TraceDocument } from './document.ts'
import { ROOT_CALL, spanId } from './otel-ids.ts'
import {
  ATTRIBUTE,
  COMPAT,
  OPERATION,
  OTHER_ERROR,
  SCOPE_NAME,
  SERVICE_NAME,
  SPAN_KIND,
  SPAN_STATUS,
} from './otlp-names.ts'
import type { FoundTrace } from './query.ts'

export interface OtlpOptions {
  /** Put inputs and outputs into the spans. */
  readonly payloads?: boolean
  /** Add the attributes that Langfuse and Phoenix look for. */
  readonly compat?: boolean
  /** The version of the program, for the resource. */
  readonly version?: string
}

export type OtlpValue = { stringValue: string } | { intValue: string } | { boolValue: boolean }

export interface OtlpSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: { key: string; value: OtlpValue }[]
  status: { code: number; message?: string }
}

export interface OtlpDocument {
  resourceSpans: {
    resource: { attributes: { key: string; value: OtlpValue }[] }
    scopeSpans: { scope: { name: string; version?: string }; spans: OtlpSpan[] }[]
  }[]
}

/** What a span needs to know of the trace around it. */
export type TraceContext = Pick<TraceDocument, 'trace_id' | 'otel_trace_id'>

type Attributes = Record<string, string | number | boolean | undefined>

/** A trace as JSON text, its root with the first of its calls. Each span is written as it is made: all of them at once would be a heap of small objects. */
export function exportOtlp(found: FoundTrace, busInstance: string, options: OtlpOptions = {}): string {
  const { trace, calls } = found
  const head = describeHead(trace, busInstance)
  const rootId = spanId(busInstance, head.trace_id, ROOT_CALL)
  const hasRoot = head.ended_at !== null && found.isFirst
  const spans = hasRoot ? [JSON.stringify(rootSpan(head, busInstance, options))] : []
  for (const row of calls) {
    if (row.ended_at === null) continue
    const hasParent = row.parent_id !== null && found.hasCall(row.parent_id)
    const parent = hasParent ? spanId(busInstance, head.trace_id, row.parent_id ?? ROOT_CALL) : rootId
    spans.push(JSON.stringify(callSpan(describeCall(row, head.trace_id, busInstance), head, parent, options)))
  }
  return JSON.stringify(wrapSpans([], busInstance, options)).replace('"spans":[]', () => `"spans":[${spans.join(',')}]`)
}

/** The envelope that a collector expects around spans. */
export function wrapSpans(spans: OtlpSpan[], busInstance: string, options: OtlpOptions = {}): OtlpDocument {
  const version = options.version === undefined ? {} : { version: options.version }
  const resource = toAttributes({
    [ATTRIBUTE.serviceName]: SERVICE_NAME,
    [ATTRIBUTE.serviceVersion]: options.version,
    [ATTRIBUTE.serviceInstance]: busInstance,
  })
  const scopeSpans = [{ scope: { name: SCOPE_NAME, ...version }, spans }]
  return { resourceSpans: [{ resource: { attributes: resource }, scopeSpans }] }
}

/** The span of the whole trace; every call at the top has it as its parent. */
export function rootSpan(
  trace: TraceContext & Pick<TraceDocument, 'started_at' | 'ended_at' | 'status' | 'missing'>,
  busInstance: string,
  options: OtlpOptions = {},
): OtlpSpan {
  const compat = options.compat ? { [COMPAT.langfuseType]: 'chain', [COMPAT.openInferenceKind]: 'CHAIN' } : {}
  return {
    traceId: trace.otel_trace_id,
    spanId: spanId(busInstance, trace.trace_id, ROOT_CALL),
    name: OPERATION.workflow,
    kind: SPAN_KIND.internal,
    startTimeUnixNano: toNanos(trace.started_at),
    endTimeUnixNano: toNanos(trace.ended_at ?? trace.started_at),
    attributes: toAttributes({
      [ATTRIBUTE.operation]: OPERATION.workflow,
      [ATTRIBUTE.aioTrace]: trace.trace_id,
      [ATTRIBUTE.aioMissing]: trace.missing > 0 ? trace.missing : undefined,
      ...compat,
    }),
    status: { code: trace.status === 'error' ? SPAN_STATUS.error : SPAN_STATUS.unset },
  }
}

export function callSpan(
  call: CallDocument,
  trace: TraceContext,
  parentSpanId: string,
  options: OtlpOptions = {},
): OtlpSpan {
  const shape = shapeOf(call)
  return {
    traceId: trace.otel_trace_id,
    spanId: call.span_id,
    parentSpanId,
    name: shape.name,
    kind: SPAN_KIND.client,
    startTimeUnixNano: toNanos(call.started_at),
    endTimeUnixNano: toNanos(call.started_at, call.duration_ms ?? 0),
    attributes: toAttributes({
      ...shape.attributes,
      ...commonAttributes(call, trace.trace_id),
      ...errorAttributes(call),
      ...(options.payloads ? payloadAttributes(call, shape.isTool, options) : {}),
      ...(options.compat ? compatAttributes(shape) : {}),
    }),
    status: statusOf(call),
  }
}

interface Shape {
  readonly name: string
  readonly isTool: boolean
  readonly isRetriever: boolean
  readonly attributes: Attributes
}

/** Which attribute holds the target of a native MCP method; a URI never becomes part of a span's name. */
const MCP_TARGETS = new Map([
  ['tools/call', { attribute: ATTRIBUTE.tool, inName: true }],
  ['prompts/get', { attribute: ATTRIBUTE.prompt, inName: true }],
  ['resources/read', { attribute: ATTRIBUTE.resource, inName: false }],
])

/** The two AIO names whose native form is not just another spelling: a refused call has only the AIO name. */
const NATIVE = new Map([
  ['resources.get', 'resources/read'],
  ['sampling.start', 'sampling/createMessage'],
  ['sampling.step', 'sampling/createMessage'],
])

function shapeOf(call: CallDocument): Shape {
  const native = call.native_method ?? call.method
  if (call.type === 'mcp' || call.protocol === 'mcp') return mcpShape(native, call.target)
  if (native === 'tool_call') return toolShape(call.target)
  const attributes = { [ATTRIBUTE.operation]: OPERATION.agent }
  return { name: `${OPERATION.agent} ${call.agent}`, isTool: false, isRetriever: false, attributes }
}

function mcpShape(native: string, target: string | undefined): Shape {
  const method = NATIVE.get(native) ?? native.replace('.', '/')
  const named = MCP_TARGETS.get(method)
  const isTool = method === 'tools/call'
  return {
    name: named?.inName && target !== undefined ? `${method} ${target}` : method,
    isTool,
    isRetriever: method.startsWith('resources/'),
    attributes: {
      [ATTRIBUTE.mcpMethod]: method,
      ...(isTool ? { [ATTRIBUTE.operation]: OPERATION.tool } : {}),
      ...(named === undefined ? {} : { [named.attribute]: target }),
    },
  }
}

/** A tool that an ACP agent reports about itself. */
function toolShape(target: string | undefined): Shape {
  return {
    name: target === undefined ? OPERATION.tool : `${OPERATION.tool} ${target}`,
    isTool: true,
    isRetriever: false,
    attributes: { [ATTRIBUTE.operation]: OPERATION.tool, [ATTRIBUTE.tool]: target },
  }
}

function commonAttributes(call: CallDocument, traceId: string): Attributes {
  return {
    [ATTRIBUTE.agent]: call.agent,
    [ATTRIBUTE.requestId]: call.request_id === null ? undefined : String(call.request_id),
    [ATTRIBUTE.principal]: call.caller?.principal,
    [ATTRIBUTE.transport]: call.type === 'http' ? 'tcp' : 'pipe',
    [ATTRIBUTE.aioTrace]: traceId,
    [ATTRIBUTE.aioCall]: `${traceId}#${call.id}`,
    [ATTRIBUTE.aioMethod]: call.method,
    [ATTRIBUTE.aioProtocol]: call.protocol,
    [ATTRIBUTE.aioCaller]: call.caller?.kind,
    [ATTRIBUTE.aioCallerAgent]: call.caller?.agent,
    [ATTRIBUTE.aioPartials]: call.partials > 0 ? call.partials : undefined,
    [ATTRIBUTE.bytesIn]: call.bytes_in,
    [ATTRIBUTE.bytesOut]: call.bytes_out,
    [ATTRIBUTE.worker]: call.worker ?? undefined,
  }
}

function errorAttributes(call: CallDocument): Attributes {
  if (call.status !== 'error') return {}
  const code = call.error?.code === undefined ? undefined : String(call.error.code)
  const reason = (call.error?.data as { reason?: unknown } | null | undefined)?.reason
  return {
    [ATTRIBUTE.errorType]: call.error?.type ?? code ?? OTHER_ERROR,
    [ATTRIBUTE.responseStatus]: code,
    [ATTRIBUTE.aioReason]: typeof reason === 'string' ? reason : undefined,
  }
}

function payloadAttributes(call: CallDocument, isTool: boolean, options: OtlpOptions): Attributes {
  const input = JSON.stringify(call.input)
  const output = JSON.stringify(call.output)
  const names = isTool
    ? { input: ATTRIBUTE.toolArguments, output: ATTRIBUTE.toolResult }
    : { input: ATTRIBUTE.aioInput, output: ATTRIBUTE.aioOutput }
  const compat = options.compat ? { [COMPAT.input]: input, [COMPAT.output]: output } : {}
  return { [names.input]: input, [names.output]: output, ...compat }
}

function compatAttributes(shape: Shape): Attributes {
  const kind = shape.isTool ? 'tool' : shape.isRetriever ? 'retriever' : 'agent'
  return { [COMPAT.langfuseType]: kind, [COMPAT.openInferenceKind]: kind.toUpperCase() }
}

function statusOf(call: CallDocument): OtlpSpan['status'] {
  if (call.status !== 'error') return { code: SPAN_STATUS.unset }
  return { code: SPAN_STATUS.error, message: call.error?.message ?? '' }
}

function toAttributes(attributes: Attributes): { key: string; value: OtlpValue }[] {
  const list: { key: string; value: OtlpValue }[] = []
  for (const key in attributes) {
    const value = attributes[key]
    if (value !== undefined) list.push({ key, value: toValue(value) })
  }
  return list
}

function toValue(value: string | number | boolean): OtlpValue {
  if (typeof value === 'string') return { stringValue: value }
  return typeof value === 'boolean' ? { boolValue: value } : { intValue: String(Math.trunc(value)) }
}

/** Nanoseconds as a decimal string: they do not fit a JSON number. */
function toNanos(iso: string, plusMs = 0): string {
  return String(BigInt(Math.round((Date.parse(iso) + plusMs) * 1000)) * 1000n)
}
