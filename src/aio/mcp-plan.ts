/**
 * What to ask an MCP server for a call of one of the seed's methods, and what to make of its result.
 *
 * Decided from the configuration and the call alone, before any worker is looked at; a plan says which module it needs.
 */
import type { Invocation } from './adapter.ts'
import type { McpAgent, UrlAgent } from './agent-spec.ts'
import { type Refusal, refuse } from './faults.ts'
import { type JsonObject, objectOr } from './json-object.ts'
import { readContent } from './mcp-content.ts'
import { MCP_METHODS, type NativeRequest, toolError, translationOf } from './mcp-translate.ts'
import type { Samplings } from './sampling.ts'

export interface Plan {
  readonly module: string
  readonly request: NativeRequest
  readonly finish: (result: JsonObject) => JsonObject
  /** The request is a guess: method-not-found means that the agent does no sampling. */
  readonly guess: boolean
}

export function planCall(agent: McpAgent | UrlAgent, invocation: Invocation, samplings: Samplings): Plan | Refusal {
  const { method } = invocation
  const methods = [...MCP_METHODS, 'help']
  if (method === 'input') return refuse('input_not_available_on_mcp', { agent: agent.name, methods })
  if (!MCP_METHODS.includes(method)) return refuse('unknown_method', { agent: agent.name, method, methods })
  const params = objectOr(invocation.params)
  const translation = translationOf(method)
  if (translation === undefined) return planSampling(agent, invocation, params, samplings)
  const request = translation.request(params)
  if ('fault' in request) return request
  return { module: translation.module, request, finish: translation.result, guess: false }
}

function planSampling(
  agent: McpAgent | UrlAgent,
  invocation: Invocation,
  params: JsonObject,
  samplings: Samplings,
): Plan | Refusal {
  const turn = samplings.turn(invocation.callerKey, agent, invocation.method, params)
  if ('fault' in turn) return turn
  const finish = (result: JsonObject): JsonObject => {
    const outputs = readContent(result['content'])
    if (toolError(result) !== undefined) return { ...result, outputs }
    turn.keep(result)
    return { ...result, sampling_id: turn.id, outputs }
  }
  const byTool = agent.sampling?.tool !== undefined
  return { module: byTool ? 'tools' : 'sampling', request: turn.request, finish, guess: !byTool }
}

/** What the trace calls the native request; empty where there is none. */
export function nativeNames(
  agent: McpAgent | UrlAgent,
  method: string,
  params: unknown,
): { nativeMethod?: string; target?: string } {
  if (method.startsWith('sampling.')) {
    const tool = agent.sampling?.tool
    return tool === undefined
      ? { nativeMethod: 'sampling/createMessage' }
      : { nativeMethod: 'tools/call', target: tool }
  }
  const request = translationOf(method)?.request(objectOr(params))
  if (request === undefined || 'fault' in request) return {}
  return { nativeMethod: request.method, ...(request.target === undefined ? {} : { target: request.target }) }
}
