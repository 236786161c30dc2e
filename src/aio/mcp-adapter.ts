/**
 * Agents that are MCP servers: the seed's module methods become native requests and their results come back in both
 * forms.
 *
 * A message to an MCP server never has a field beside the JSON-RPC ones: strict servers leave such a message without
 * any answer. The trace travels in `params._meta`. The handshake is the bus's and has happened before a request is sent.
 */
import { CODE } from '../wire/jsonrpc.ts'
import { type Adapter, carefulListener, exchangeOptions, type Invocation, type Outcome } from './adapter.ts'
import type { McpAgent } from './agent-spec.ts'
import { type Answer, readAnswer } from './answers.ts'
import { fault } from './faults.ts'
import { type JsonObject, objectOr } from './json-object.ts'
import { type Plan, planCall } from './mcp-plan.ts'
import { type NativeRequest, offeredMethods, offeredModules, toolError } from './mcp-translate.ts'
import type { ErrorBody, Exchange, GatewayPort } from './port.ts'
import type { Samplings } from './sampling.ts'
import { byteLength } from './stdio-adapter.ts'

const MODERN_PREFIX = 'io.modelcontextprotocol/'
const LIST_TOOLS: NativeRequest = { method: 'tools/list', params: {} }

export function mcpAdapter(agent: McpAgent, port: GatewayPort, samplings: Samplings): Adapter {
  return (invocation, outcome) => {
    const call = new McpCall(agent, port, invocation, outcome)
    const plan = invocation.method === 'help' ? undefined : planCall(agent, invocation, samplings)
    const broke = (error: unknown): void => outcome.broke(error)
    if (plan === undefined) call.describe().catch(broke)
    else if ('fault' in plan) outcome.fail(plan.fault)
    else call.run(plan).catch(broke)
    return () => call.cancel()
  }
}

class McpCall {
  readonly #agent: McpAgent
  readonly #port: GatewayPort
  readonly #invocation: Invocation
  readonly #outcome: Outcome
  #exchange: Exchange | undefined
  #cancelled = false

  constructor(agent: McpAgent, port: GatewayPort, invocation: Invocation, outcome: Outcome) {
    this.#agent = agent
    this.#port = port
    this.#invocation = invocation
    this.#outcome = outcome
  }

  async run(plan: Plan): Promise<void> {
    const handshake = await this.#handshake()
    if (this.#cancelled) return
    const modules = offeredModules(handshake, this.#agent.sampling !== undefined)
    const isOff = handshake !== undefined && modules[plan.module] === false && !plan.guess
    if (isOff) {
      const detail = { agent: this.#agent.name, module: plan.module, methods: offeredMethods(modules) }
      this.#outcome.fail(fault('module_disabled', detail))
      return
    }
    this.#send(plan.request, handshake, (answer, bytes) => this.#settle(plan, answer, bytes))
  }

  /** MCP has no help: it is put together from the handshake and the list of tools. */
  async describe(): Promise<void> {
    const handshake = await this.#handshake()
    if (this.#cancelled) return
    const modules = offeredModules(handshake, this.#agent.sampling !== undefined)
    const said = (tools: unknown, bytes: number): void => {
      const result = {
        methods: offeredMethods(modules),
        mcp: modules,
        ...describeServer(handshake),
        ...listTools(tools),
      }
      this.#outcome.settle({ result }, { bytes, raw: { result } })
    }
    if (handshake === undefined) this.#outcome.fail(fault('no_worker', { agent: this.#agent.name }))
    else if (modules['tools'] !== true) said(undefined, 0)
    else {
      this.#send(LIST_TOOLS, handshake, (answer, bytes) =>
        said('result' in answer ? objectOr(answer.result)['tools'] : undefined, bytes),
      )
    }
  }

  cancel(): void {
    this.#cancelled = true
    this.#exchange?.cancel()
  }

  async #handshake(): Promise<JsonObject | undefined> {
    return this.#port.handshake(this.#agent.pool).catch(() => undefined)
  }

  #send(
    request: NativeRequest,
    handshake: JsonObject | undefined,
    settled: (answer: Answer, bytes: number) => void,
  ): void {
    const message = { method: request.method, params: { ...request.params, _meta: this.#meta(handshake) } }
    const listener = carefulListener(this.#outcome, {
      sent: (worker) => this.#outcome.sent(worker),
      received: (said, bytes = byteLength(said)) => {
        if (said['method'] === 'notifications/progress') this.#progress(objectOr(said['params']))
        else this.#receive(said, (answer) => settled(answer, bytes))
      },
      failed: (error) => this.#outcome.fail(error),
    })
    this.#exchange = this.#port.request(this.#agent.pool, message, exchangeOptions(this.#invocation), listener)
  }

  #receive(message: JsonObject, settled: (answer: Answer) => void): void {
    if (this.#exchange !== undefined) this.#port.finish(this.#exchange)
    const answer = readAnswer(message)
    if (answer === undefined) this.#outcome.fail(this.#invalid('it has neither result nor error'))
    else if ('result' in answer && objectOr(answer.result)['resultType'] === 'input_required') {
      this.#outcome.fail(this.#invalid('it asks for input, which a call cannot give'))
    } else settled(answer)
  }

  #settle(plan: Plan, answer: Answer, bytes: number): void {
    if ('result' in answer) {
      const result = objectOr(answer.result)
      const traceError = toolError(result)
      const settlement = traceError === undefined ? { bytes } : { bytes, traceError }
      this.#outcome.settle({ result: plan.finish(result) }, settlement)
    } else if (plan.guess && answer.error.code === CODE.methodNotFound) {
      this.#outcome.fail(fault('sampling_unsupported', { agent: this.#agent.name }))
    } else this.#outcome.settle(answer, { bytes })
  }

  #progress(params: JsonObject): void {
    const { progress, total, message } = params
    const outputs = typeof message === 'string' ? [{ type: 'text', value: message }] : []
    this.#outcome.partial(outputs, { progress, ...(total === undefined ? {} : { total }) })
  }

  #invalid(cause: string): ErrorBody {
    return fault('agent_invalid_response', { agent: this.#agent.name, cause })
  }

  /** A server of the stateless era wants its version and our capabilities with every request. */
  #meta(handshake: JsonObject | undefined): JsonObject {
    const { meta, progressToken } = this.#invocation
    const versions = handshake?.['supportedVersions']
    const modern = Array.isArray(versions)
      ? { [`${MODERN_PREFIX}protocolVersion`]: versions[0], [`${MODERN_PREFIX}clientCapabilities`]: {} }
      : {}
    return { ...meta, ...(progressToken === undefined ? {} : { progressToken }), ...modern }
  }
}

function describeServer(handshake: JsonObject | undefined): JsonObject {
  const { serverInfo, instructions } = handshake ?? {}
  return {
    ...(serverInfo === undefined ? {} : { server: serverInfo }),
    ...(typeof instructions === 'string' ? { description: instructions } : {}),
  }
}

function listTools(tools: unknown): JsonObject {
  return Array.isArray(tools) ? { tools } : {}
}
