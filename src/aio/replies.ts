/**
 * The lines a caller gets: the one answer, and the partials before it, each with the trace they belong to.
 *
 * To a strict peer (an MCP worker that calls) nothing stands beside the JSON-RPC fields: there the trace is in `_meta`
 * of a result, in `data` of an error.
 */
import type { Answer } from './answers.ts'
import type { Envelope, RequestId } from './envelope.ts'
import { isObject, type JsonObject } from './json-object.ts'
import { joinName } from './names.ts'

interface Place {
  readonly traceId: string
  readonly callId: number
}

export function composeAnswer(id: RequestId, answer: Answer, place: Place, strict: boolean): Record<string, unknown> {
  if (!strict) return { jsonrpc: '2.0', id, ...answer, trace_id: place.traceId, call_id: place.callId }
  const meta = { 'stdio-bus/trace_id': place.traceId, 'stdio-bus/call_id': `${place.traceId}#${place.callId}` }
  if ('result' in answer) return { jsonrpc: '2.0', id, result: withMeta(answer.result, meta) }
  const { error } = answer
  const data = error.data === undefined || isObject(error.data) ? { ...error.data, ...meta } : error.data
  return { jsonrpc: '2.0', id, error: { ...error, data } }
}

/** undefined: nobody can say which call a partial of a notification belongs to. */
export function composePartial(
  envelope: Envelope,
  traceId: string,
  params: JsonObject,
  strict: boolean,
): Record<string, unknown> | undefined {
  const { id, agent, sessionId } = envelope
  if (id === undefined) return undefined
  const message = { jsonrpc: '2.0', method: joinName(agent, 'partial'), params: { id, ...params } }
  if (strict) return message
  return { ...message, trace_id: traceId, ...(sessionId === undefined ? {} : { sessionId }) }
}

/** An MCP result is an object; anything else becomes one. */
function withMeta(result: unknown, meta: JsonObject): JsonObject {
  if (!isObject(result)) return { value: result, _meta: meta }
  return { ...result, _meta: { ...(isObject(result['_meta']) ? result['_meta'] : {}), ...meta } }
}
