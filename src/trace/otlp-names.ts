/**
 * Every attribute name and constant of the OTLP export, pinned in one place.
 *
 * The GenAI and MCP conventions are still in development and have broken before: when they move, this file moves, and
 * nothing else (spec T7).
 */

export const SERVICE_NAME = 'stdio-bus'
export const SCOPE_NAME = 'stdio-bus/aio'

export const ATTRIBUTE = {
  serviceName: 'service.name',
  serviceVersion: 'service.version',
  serviceInstance: 'service.instance.id',
  operation: 'gen_ai.operation.name',
  agent: 'gen_ai.agent.name',
  tool: 'gen_ai.tool.name',
  prompt: 'gen_ai.prompt.name',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
  mcpMethod: 'mcp.method.name',
  resource: 'mcp.resource.uri',
  requestId: 'jsonrpc.request.id',
  principal: 'enduser.id',
  transport: 'network.transport',
  errorType: 'error.type',
  responseStatus: 'rpc.response.status_code',
  aioTrace: 'aio.trace_id',
  aioCall: 'aio.call_id',
  aioMethod: 'aio.method',
  aioProtocol: 'aio.protocol',
  aioCaller: 'aio.caller.kind',
  aioCallerAgent: 'aio.caller.agent',
  aioPartials: 'aio.partials',
  aioReason: 'aio.error.reason',
  aioMissing: 'aio.missing',
  aioInput: 'aio.input',
  aioOutput: 'aio.output',
  bytesIn: 'aio.bytes_in',
  bytesOut: 'aio.bytes_out',
  worker: 'aio.worker',
} as const

export const OPERATION = {
  workflow: 'invoke_workflow',
  agent: 'invoke_agent',
  tool: 'execute_tool',
} as const

/** Read by viewers that draw a graph only from attributes of their own. */
export const COMPAT = {
  langfuseType: 'langfuse.observation.type',
  openInferenceKind: 'openinference.span.kind',
  input: 'input.value',
  output: 'output.value',
} as const

export const TOOL_ERROR = 'tool_error'
export const OTHER_ERROR = '_OTHER'

export const SPAN_KIND = { internal: 1, client: 3 } as const
export const SPAN_STATUS = { unset: 0, error: 2 } as const
