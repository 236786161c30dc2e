/**
 * Checks the envelope of a call and gives it one shape; what is inside `params` is not looked at.
 *
 * A missing `jsonrpc` is accepted, as the seed's own examples leave it out. The three refusals made here are counted
 * and not traced, since there is no name or no trace to put them under (spec N3).
 */
import { type Refusal, refuse } from './faults.ts'
import { isObject, type JsonObject, objectOr } from './json-object.ts'
import { BUS, HELP, splitName } from './names.ts'
import type { TraceIds } from './port.ts'

export type RequestId = string | number

export interface Envelope {
  readonly agent: string
  readonly method: string
  readonly params: unknown
  /** undefined: a notification. */
  readonly id: RequestId | undefined
  readonly traceId: string | undefined
  readonly sessionId: string | undefined
  /** `params._meta`, or nothing. */
  readonly meta: JsonObject
}

export function readEnvelope(message: JsonObject, ids: TraceIds): Envelope | Refusal {
  const jsonrpc = message['jsonrpc']
  if (jsonrpc !== undefined && jsonrpc !== '2.0') return refuse('bad_jsonrpc', { found: jsonrpc })
  const method = String(message['method'])
  const name = method === HELP ? { agent: BUS, method: HELP } : splitName(method)
  if (name === undefined) return refuse('bad_name', { method })
  const traceId = message['trace_id']
  if (traceId !== undefined && (typeof traceId !== 'string' || !ids.isValid(traceId))) return refuse('bad_trace_id')
  const params = readParams(message)
  return {
    agent: name.agent,
    method: name.method,
    params,
    id: requestId(message),
    traceId,
    sessionId: typeof message['sessionId'] === 'string' ? message['sessionId'] : undefined,
    meta: isObject(params) ? objectOr(params['_meta']) : {},
  }
}

export function requestId(message: JsonObject): RequestId | undefined {
  const id = message['id']
  return typeof id === 'string' || typeof id === 'number' ? id : undefined
}

/** Some AIO clients put `inputs` beside `params` or instead of it. */
function readParams(message: JsonObject): unknown {
  const params = message['params']
  const inputs = message['inputs']
  if (inputs === undefined) return params
  if (params === undefined) return { inputs }
  return isObject(params) && params['inputs'] === undefined ? { ...params, inputs } : params
}
