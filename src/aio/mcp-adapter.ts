/**
 * Agents that are MCP servers: the seed's module methods become native requests and their results come back in both
 * forms.
 *
 * A message to an MCP server never has a field beside the JSON-RPC ones: strict servers leave such a message without
 * any answer. The trace travels in `params._meta`. The handshake is the bus's and has happened before a request is sent.
 */
import { CODE } from '../wire/jsonrpc.ts'
import type { AcpPlace } from './acp-sessions.ts'
import { type Adapter, carefulListener, exchangeOptions, type Invocation, type Outcome } from './adapter.ts'
import type { McpAgent, UrlAgent } from './agent-spec.ts'
import { type Answer, readAnswer } from './answers.ts'
import { fault, isRefusal } from './faults.ts'
import { type JsonObject, objectOr } from './json-object.ts'
import { type Plan, planCall } from './mcp-plan.ts'
import { type NativeRequest, offeredMethods, offeredModules, toolError } from './mcp-translate.ts'
import type { Asked, ErrorBody, Exchange } from './port.ts'
import type { Samplings } from './sampling.ts'
import { type ModelDesk, SAMPLING, ServedSampling } from './served-sampling.ts'
import { byteLength } from './stdio-adapter.ts'
import type { McpPort } from './url-server.ts'

const MODERN_PREFIX = 'io.modelcontextprotocol/'
const MAX_ROUNDS = 8
const LIST_TOOLS: NativeRequest = { method: 'tools/list', params: {} }

/** What all MCP agents of a gateway share. */
export interface McpWays {
  readonly port: McpPort
  readonly samplings: Samplings
  readonly models: ModelDesk
}

export function mcpAdapter(agent: McpAgent | UrlAgent, ways: McpWays): Adapter {
  const { samplings } = ways
  return (invocation, outcome) => {
    const call = new McpCall(agent, ways, invocation, outcome)
    const plan = invocation.method === 'help' ? undefined : planCall(agent, invocation, samplings)
    const broke = (error: unknown): void => outcome.broke(error)
    // The time of a server that is not started here runs from the beginning.
    if (agent.pool === undefined && !isRefusal(plan)) outcome.sent(null)
    if (plan === undefined) call.describe().catch(broke)
    else if ('fault' in plan) outcome.fail(plan.fault)
    else call.run(plan).catch(broke)
    return () => call.cancel()
  }
}

class McpCall {
  readonly #agent: McpAgent | UrlAgent
  readonly #pool: string
  readonly #port: McpPort
  readonly #invocation: Invocation
  readonly #outcome: Outcome
  readonly #sampling: ServedSampling | undefined
  #exchange: Exchange | undefined
  #worker = ''
  #rounds = 0
  #giveUps: readonly (() => void)[] = []
  #cancelled = false

  constructor(agent: McpAgent | UrlAgent, { port, models }: McpWays, invocation: Invocation, outcome: Outcome) {
    this.#agent = agent
    this.#pool = agent.pool ?? agent.name
    this.#port = port
    this.#invocation = invocation
    this.#outcome = outcome
    this.#sampling = samplingOf(agent, (place) => new ServedSampling(models, place, invocation, outcome))
  }

  async run(plan: Plan): Promise<void> {
    const handshake = await this.#handshake()
    if (this.#cancelled) return
    const modules = offeredModules(handshake, this.#agent.sampling?.tool !== undefined)
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
    const modules = offeredModules(handshake, this.#agent.sampling?.tool !== undefined)
    const said = (tools: unknown, bytes: number): void => {
      const result = {
        methods: offeredMethods(modules),
        mcp: modules,
        ...describeServer(handshake),
        ...listTools(tools),
      }
      this.#outcome.settle({ result }, { bytes, raw: { result } })
    }
    if (handshake === undefined && this.#agent.pool !== undefined)
      this.#outcome.fail(fault('no_worker', { agent: this.#agent.name }))
    else if (handshake !== undefined && modules['tools'] !== true) said(undefined, 0)
    else {
      this.#send(LIST_TOOLS, handshake, (answer, bytes) =>
        said('result' in answer ? objectOr(answer.result)['tools'] : undefined, bytes),
      )
    }
  }

  cancel(): void {
    this.#cancelled = true
    this.#exchange?.cancel()
    for (const giveUp of this.#giveUps) giveUp()
  }

  async #handshake(): Promise<JsonObject | undefined> {
    return this.#port.handshake(this.#pool).catch(() => undefined)
  }

  #send(
    request: NativeRequest,
    handshake: JsonObject | undefined,
    settled: (answer: Answer, bytes: number) => void,
  ): void {
    const message = { method: request.method, params: { ...request.params, _meta: this.#meta(handshake) } }
    const again = (inputs: JsonObject): void =>
      this.#send({ ...request, params: { ...request.params, ...inputs } }, handshake, settled)
    const listener = carefulListener(this.#outcome, {
      sent: (worker) => {
        this.#worker = worker ?? ''
        this.#outcome.sent(worker)
      },
      received: (said, bytes = byteLength(said)) => {
        if (said['method'] === 'notifications/progress') this.#progress(objectOr(said['params']))
        else this.#receive(said, again, (answer) => settled(answer, bytes))
      },
      failed: (error) => this.#outcome.fail(error),
      asked: (question, answer) => this.#sampling?.answer(question, this.#worker, answer),
    })
    this.#exchange = this.#port.request(this.#pool, message, exchangeOptions(this.#invocation), listener)
  }

  #receive(message: JsonObject, again: (inputs: JsonObject) => void, settled: (answer: Answer) => void): void {
    if (this.#exchange !== undefined) this.#port.finish(this.#exchange)
    const answer = readAnswer(message)
    if (answer === undefined) return this.#outcome.fail(this.#invalid('it has neither result nor error'))
    const wanted = 'result' in answer ? objectOr(answer.result) : {}
    if (wanted['resultType'] === 'input_required') this.#giveInput(wanted, again)
    else settled(answer)
  }

  /** A stateless server asks by its result, and is asked again with the answers. */
  #giveInput({ inputRequests, requestState }: JsonObject, again: (inputs: JsonObject) => void): void {
    const sampling = this.#sampling
    const questions = Object.entries(objectOr(inputRequests)).map(([key, asked]) => ({ key, asked: readAsked(asked) }))
    const isServed = questions.every(({ asked }) => asked.method === SAMPLING)
    if (sampling === undefined || !isServed || questions.length > MAX_ROUNDS)
      return this.#outcome.fail(this.#invalid('it asks for input, which a call cannot give'))
    if (++this.#rounds > MAX_ROUNDS) return this.#outcome.fail(fault('sampling_limit', { limit: MAX_ROUNDS }))
    const inputResponses: Record<string, unknown> = {}
    const goOn = (): void => {
      if (Object.keys(inputResponses).length < questions.length || this.#cancelled) return
      this.#giveUps = []
      again({ inputResponses, ...(requestState === undefined ? {} : { requestState }) })
    }
    this.#giveUps = questions.flatMap(({ key, asked }) => {
      const giveUp = sampling.answer(asked, this.#worker, (reply) => {
        if ('error' in reply) return this.#outcome.fail(reply.error)
        inputResponses[key] = reply.result
        goOn()
      })
      return giveUp === undefined ? [] : [giveUp]
    })
    goOn()
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

  get #offers(): JsonObject {
    return this.#sampling === undefined ? {} : { sampling: {} }
  }

  /** A server of the stateless era wants its version and our capabilities with every request. */
  #meta(handshake: JsonObject | undefined): JsonObject {
    const { meta, progressToken } = this.#invocation
    const versions = handshake?.['supportedVersions']
    const modern = Array.isArray(versions)
      ? { [`${MODERN_PREFIX}protocolVersion`]: versions[0], [`${MODERN_PREFIX}clientCapabilities`]: this.#offers }
      : {}
    return { ...meta, ...(progressToken === undefined ? {} : { progressToken }), ...modern }
  }
}

/** Who answers for a model, if anybody does. */
function samplingOf<T>({ sampling }: McpAgent | UrlAgent, make: (place: AcpPlace) => T): T | undefined {
  const { pool, cwd = '/' } = sampling ?? {}
  return pool === undefined ? undefined : make({ name: pool, pool, cwd })
}

function readAsked(asked: unknown): Asked {
  const { method, params } = objectOr(asked)
  return { method: String(method), params }
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
