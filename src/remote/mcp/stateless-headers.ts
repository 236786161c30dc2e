/** The headers that a request of the stateless era carries beside its body (contract 11.3). */
import type { Outgoing } from './message.ts'
import { asObject, fieldValue, type ToolHeaders } from './tool-headers.ts'

/** The field that `Mcp-Name` repeats, by method. */
const NAMED_BY: Readonly<Record<string, 'name' | 'uri' | 'taskId'>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

export function statelessHeaders(message: Outgoing, tools: ToolHeaders): Record<string, string> {
  const { method, version } = message
  const by = Object.hasOwn(NAMED_BY, method) ? NAMED_BY[method] : undefined
  const headers: Record<string, string> = {
    'mcp-protocol-version': fieldValue(version!),
    'mcp-method': fieldValue(method),
  }
  if (by === undefined) return headers
  const params = by === 'name' ? paramsOf(message) : { uri: message.uri, taskId: message.taskId }
  const name = params[by]
  if (typeof name === 'string') headers['mcp-name'] = fieldValue(name)
  return method === 'tools/call' ? { ...headers, ...tools.headersFor(name, params['arguments']) } : headers
}

function paramsOf({ body }: Outgoing): Readonly<Record<string, unknown>> {
  const { params } = JSON.parse(body.toString('utf8')) as { params?: unknown }
  return asObject(params)
}
