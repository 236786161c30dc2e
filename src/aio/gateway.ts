/**
 * The AIO gateway: takes messages whose method is `agent::method`, finds the agent, and owes each request one answer.
 *
 * It assembles the parts of this room. It knows neither kernel nor trace store, only the port and the sinks it is given.
 * Every call it accepts is in the trace from beginning to end, refused ones too; only a message without a proper name or
 * trace id is merely counted (spec N3).
 */
import { type Adapter, type Cancel, type Invocation, type Outcome, wholeOutcome } from './adapter.ts'
import type { AgentSpec } from './agent-spec.ts'
import type { Answer } from './answers.ts'
import { answerBus, type BusContext } from './bus-methods.ts'
import { type CallHost, OpenCall } from './call.ts'
import { type Envelope, type RequestId, readEnvelope, requestId } from './envelope.ts'
import { fault, isRefusal } from './faults.ts'
import { askHelp, HelpCache } from './help.ts'
import { HttpWays, httpAdapter } from './http-adapter.ts'
import { invocationOf } from './invocation.ts'
import { type JsonObject, objectOr } from './json-object.ts'
import { mcpAdapter } from './mcp-adapter.ts'
import { nativeNames } from './mcp-plan.ts'
import { checkInputs } from './modalities.ts'
import { BUS, HELP } from './names.ts'
import { oneshotAdapter } from './oneshot-adapter.ts'
import { callerKey, OpenCalls } from './open-calls.ts'
import { MAX_DEPTH, Parents } from './parents.ts'
import { allowedAgents, forbiddenTool, hideTools } from './permissions.ts'
import type {
  CallCaller,
  CallEnd,
  Caller,
  ErrorBody,
  GatewayPort,
  Origin,
  SpawnOneshot,
  TraceIds,
  TraceQueries,
  TraceSink,
} from './port.ts'
import { composeAnswer, composePartial } from './replies.ts'
import { Samplings } from './sampling.ts'
import { stdioAdapter } from './stdio-adapter.ts'
import { Turns } from './turns.ts'

export interface GatewayOptions {
  readonly port: GatewayPort
  readonly agents: readonly AgentSpec[]
  readonly traces: TraceSink
  readonly ids: TraceIds
  readonly queries: TraceQueries
  readonly spawnOneshot: SpawnOneshot
  readonly remoteQueries?: boolean
  readonly maxPendingPerCaller?: number
  /** Told of an exception in an adapter or a query; its caller has been answered. */
  readonly broke?: (error: unknown) => void
  /** Told of refusals that have no place in a trace. */
  readonly count?: (reason: string) => void
}

const MAX_PENDING_PER_CALLER = 4_096

export class Gateway implements CallHost {
  readonly #options: GatewayOptions
  readonly #port: GatewayPort
  readonly #parents: Parents
  readonly #samplings: Samplings
  readonly #help = new HelpCache()
  readonly #open = new OpenCalls()
  readonly #turns = new Turns()
  /** Pools of MCP servers; one that is no agent any more may still have workers. */
  readonly #strictPools = new Set<string>()
  #agents: ReadonlyMap<string, AgentSpec> = new Map()
  #adapters: ReadonlyMap<string, Adapter> = new Map()
  #http: HttpWays | undefined
  #draining = false

  constructor(options: GatewayOptions) {
    this.#options = options
    this.#port = options.port
    this.#parents = new Parents(options.ids, () => options.port.nowMs())
    this.#samplings = new Samplings(() => options.port.nowMs())
    this.replaceAgents(options.agents)
  }

  /** Calls that are not answered yet. */
  get openCalls(): number {
    return this.#open.size
  }

  /** New calls find these agents; calls under way end with the agent they began with, those that wait need it to be there. */
  replaceAgents(agents: readonly AgentSpec[]): void {
    const before = this.#agents
    this.#adapters = new Map(agents.map((agent) => [agent.name, this.#keptAdapter(agent) ?? this.#adapterFor(agent)]))
    this.#agents = new Map(agents.map((agent) => [agent.name, agent]))
    for (const call of this.#open.all()) {
      const { agent } = call.envelope
      if (!call.isSent && before.has(agent) && !this.#agents.has(agent)) call.stop(fault('no_worker', { agent }))
    }
    this.#help.clear()
    for (const agent of agents) {
      if (agent.type === 'mcp') this.#strictPools.add(agent.pool)
      else if (agent.type === 'stdio') this.#strictPools.delete(agent.pool)
    }
  }

  /** `bytes` is the length of the line the message came in. */
  receive(caller: Caller, message: Record<string, unknown>, bytes: number): void {
    const envelope = readEnvelope(message, this.#options.ids)
    if (isRefusal(envelope)) this.#refuse(caller, message, envelope.fault)
    else if (envelope.agent === BUS) this.#answerBus(caller, envelope).catch((error) => this.broke(error))
    else this.#call(caller, envelope, bytes)
  }

  /** Refuses a message that cannot be looked at; it is counted and not traced. */
  refuse(caller: Caller, message: Record<string, unknown>, error: ErrorBody): void {
    this.#refuse(caller, message, error)
  }

  /** The caller no longer wants the answer to its newest request with this id; false: there is none. */
  cancel(caller: Caller, id: RequestId): boolean {
    const call = this.#open.newest(caller, id)
    call?.abandon('cancelled')
    return call !== undefined
  }

  gone(caller: Caller): void {
    for (const call of this.#open.of(caller)) call.abandon('caller_gone')
    this.#samplings.forget(callerKey(caller))
  }

  workerGone(worker: string): void {
    this.gone({ kind: 'worker', key: worker })
    this.#parents.forgetWorker(worker)
    this.#help.forgetWorker(worker)
  }

  /** A worker of the pool says that its tools, prompts or resources are others now. */
  listChanged(pool: string): void {
    for (const agent of this.#agents.values()) {
      if (agent.type !== 'http' && agent.pool === pool) this.#help.forget(agent.name)
    }
  }

  /** From now on new calls are refused; open ones go on. */
  drain(): void {
    this.#draining = true
  }

  /** Ends every open call with an error and lets go of connections. */
  async close(): Promise<void> {
    this.#draining = true
    for (const call of this.#open.all()) call.stop(fault('shutting_down'))
    await this.#http?.dispatcher.destroy()
  }

  nowMs(): number {
    return this.#port.nowMs()
  }

  after(delayMs: number, run: () => void): () => void {
    if (this.#port.after !== undefined) return this.#port.after(delayMs, run)
    const timer = setTimeout(run, delayMs)
    return () => clearTimeout(timer)
  }

  sent(call: OpenCall, worker: string): void {
    if (call.worker !== null) this.#parents.closed(call.worker, call.place)
    this.#parents.opened(worker, call.place)
  }

  reached(call: OpenCall, worker: string): void {
    this.#parents.reached(worker, call.place)
  }

  partial(call: OpenCall, seq: number, outputs: readonly unknown[], extra: JsonObject): void {
    const { traceId, callId } = call.place
    this.#options.traces.partial?.({ traceId, callId, seq, outputs, atMs: this.nowMs() })
    const params = { seq, outputs, partial: true, ...extra }
    const message = composePartial(call.envelope, traceId, params, this.#isStrict(call.caller))
    if (message !== undefined) this.#port.reply(call.caller, message)
  }

  room(call: OpenCall): Promise<void> | undefined {
    return this.#port.room?.(call.caller)
  }

  ended(call: OpenCall, end: CallEnd, answer: Answer | undefined): void {
    this.#open.delete(call)
    this.#parents.over(call, call.cause)
    const unwanted = call.worker === null ? [] : this.#parents.closed(call.worker, call.place)
    this.#options.traces.end(end)
    const { id } = call.envelope
    if (answer !== undefined && id !== undefined)
      this.#port.reply(call.caller, composeAnswer(id, answer, call.place, this.#isStrict(call.caller)))
    // Its caller, a worker, lives and is owed an answer; what that worker was asked for is wanted no longer.
    for (const orphan of unwanted) orphan.stop(fault('parent_gone'))
  }

  broke(error: unknown): void {
    this.#options.broke?.(error)
  }

  #refuse(caller: Caller, message: JsonObject, error: ErrorBody): void {
    this.#options.count?.(String(objectOr(error.data)['reason']))
    const id = requestId(message)
    if (id !== undefined) this.#port.reply(caller, { jsonrpc: '2.0', id, error })
  }

  async #answerBus(caller: Caller, envelope: Envelope): Promise<void> {
    const { id, method, params, traceId } = envelope
    if (id === undefined) return
    const answer = await answerBus(this.#busContext(caller), caller, method, params)
    const echo = traceId === undefined || this.#isStrict(caller) ? {} : { trace_id: traceId }
    this.#port.reply(caller, { jsonrpc: '2.0', id, ...answer, ...echo })
  }

  #busContext({ permissions }: Caller): BusContext {
    const { ids, queries, remoteQueries = false } = this.#options
    const workers = (agent: AgentSpec): number =>
      agent.type === 'http' ? 0 : (this.#port.workers?.(agent.pool) ?? agent.instances)
    const agents = allowedAgents(permissions, this.#agents)
    return { agents, ids, queries, remoteQueries, workers, broke: (error) => this.broke(error) }
  }

  #call(caller: Caller, envelope: Envelope, bytes: number): void {
    // Not even the trace, which its caller may read, tells whether there is one that it may not use.
    const isAllowed = caller.permissions?.mayUseAgent(envelope.agent) ?? true
    const agent = isAllowed ? this.#agents.get(envelope.agent) : undefined
    const call = this.#record(caller, envelope, bytes, agent)
    if (!isAllowed) return call.fail(fault('not_allowed', { agent: envelope.agent }))
    if (agent === undefined) {
      const known = [...allowedAgents(caller.permissions, this.#agents).keys()]
      return call.fail(fault('unknown_agent', { agent: envelope.agent, known }))
    }
    if (!call.isOpen) return
    const refusal = this.#refusalOf(call, agent, bytes)
    const checked = envelope.method === 'input' && agent.type !== 'mcp' ? checkInputs(agent, envelope.params) : envelope
    if (refusal !== undefined) call.fail(refusal)
    else if ('fault' in checked) call.fail(checked.fault)
    else this.#invoke(call, agent, checked.params)
  }

  #invoke(call: OpenCall, agent: AgentSpec, params: unknown): void {
    const { place, envelope } = call
    const adapter = this.#adapters.get(agent.name)!
    const isHelp = envelope.method === HELP
    const made = invocationOf(agent, envelope, params, place, callerKey(call.caller), () =>
      this.#parents.traceparent(place),
    )
    // What is said to help is remembered for all.
    const invocation = isHelp ? made : { ...made, client: connectionOf(call) }
    call.begin((outcome) => {
      const shown = hideTools(call.caller.permissions, envelope, outcome)
      return isHelp ? this.#answerHelp(call, agent, adapter, invocation, shown) : adapter(invocation, shown)
    })
  }

  /** Gives the call its place in the graph and its row in the trace. */
  #record(caller: Caller, envelope: Envelope, bytes: number, agent: AgentSpec | undefined): OpenCall {
    const { ids, traces } = this.#options
    const placement = this.#parents.place(caller, envelope.traceId, envelope.meta)
    const { parentId, depth, otelTraceId, origin } = placement
    const traceId = placement.traceId ?? ids.issue()
    const place = { traceId, callId: ids.allocate(traceId, envelope.id ?? null), depth, otelTraceId, origin }
    this.#parents.remember(place)
    traces.begin({
      traceId,
      callId: place.callId,
      parentId,
      requestId: envelope.id ?? null,
      protocol: agent?.type === 'mcp' ? 'mcp' : 'aio',
      type: agent?.type ?? 'stdio',
      agent: envelope.agent,
      worker: null,
      method: envelope.method,
      ...(agent?.type === 'mcp' ? nativeNames(agent, envelope.method, envelope.params) : {}),
      input: envelope.params ?? {},
      bytesIn: bytes,
      startedAtMs: this.nowMs(),
      caller: this.#describeCaller(caller, origin),
      ...(otelTraceId === undefined ? {} : { otelTraceId }),
    })
    const call = new OpenCall(this, caller, envelope, place, agent?.timeoutMs ?? 0)
    call.cause = placement.cause
    this.#open.add(call)
    this.#parents.made(call, placement.cause)
    if (placement.isOrphan) call.fail(fault('parent_gone'))
    return call
  }

  #describeCaller({ kind, pool }: Caller, origin: Origin): CallCaller {
    if (kind === 'client') return { kind, ...origin }
    const agent = [...this.#agents.values()].find((agent) => agent.type !== 'http' && agent.pool === pool)?.name ?? pool
    return { kind: 'agent', ...origin, ...(agent === undefined ? {} : { agent }) }
  }

  #refusalOf(call: OpenCall, agent: AgentSpec, bytes: number): ErrorBody | undefined {
    const { maxPendingPerCaller = MAX_PENDING_PER_CALLER } = this.#options
    if (this.#draining) return fault('shutting_down')
    const { permissions } = call.caller
    const tool = permissions === undefined ? undefined : forbiddenTool(permissions, call.envelope)
    if (tool !== undefined) return fault('not_allowed', { agent: agent.name, tool })
    if (bytes > agent.maxPayloadBytes) return fault('payload_too_large', { bytes, limit: agent.maxPayloadBytes })
    if (call.place.depth > MAX_DEPTH) return fault('too_deep', { limit: MAX_DEPTH })
    const tooMany = this.#open.count(call.caller) > maxPendingPerCaller
    return tooMany ? fault('too_many_pending', { limit: maxPendingPerCaller }) : undefined
  }

  #answerHelp(call: OpenCall, agent: AgentSpec, adapter: Adapter, invocation: Invocation, outcome: Outcome): Cancel {
    const cached = this.#help.get(agent.name, this.nowMs())
    if (cached !== undefined) {
      outcome.settle({ result: cached }, { bytes: 0 })
      return () => {}
    }
    const remembered = wholeOutcome(outcome, (answer, settlement) => {
      if ('result' in answer) this.#help.set(agent.name, answer.result, call.worker, this.nowMs())
      outcome.settle(answer, settlement)
    })
    return askHelp(agent, adapter, invocation, remembered)
  }

  /** An agent that stays as it was keeps its adapter: those who wait for their turn there keep their places. */
  #keptAdapter(agent: AgentSpec): Adapter | undefined {
    const before = this.#agents.get(agent.name)
    return JSON.stringify(before) === JSON.stringify(agent) ? this.#adapters.get(agent.name) : undefined
  }

  #adapterFor(agent: AgentSpec): Adapter {
    if (agent.type === 'mcp') return mcpAdapter(agent, this.#port, this.#samplings)
    if (agent.type === 'http') return httpAdapter(agent, (this.#http ??= new HttpWays(this.#turns)))
    return agent.mode === 'oneshot'
      ? oneshotAdapter(agent, this.#spawnOneshot, this.#turns)
      : stdioAdapter(agent, this.#port)
  }

  /** What the call had in hand is forgotten with its process; what the process said of itself is not. */
  readonly #spawnOneshot: SpawnOneshot = (pool, signal) => {
    const process = this.#options.spawnOneshot(pool, signal)
    void process.ended.then(() => this.#parents.forgetWorker(process.worker))
    return process
  }

  /** MCP peers leave a message with fields they do not know without notice. */
  #isStrict(caller: Caller): boolean {
    return caller.kind === 'worker' && caller.pool !== undefined && this.#strictPools.has(caller.pool)
  }
}

/** The connection for which the call is made; what a worker says of that counts only for calls that it has in hand. */
function connectionOf({ caller, cause }: OpenCall): number | undefined {
  return caller.kind === 'client' ? caller.origin?.client : cause?.origin.client
}
