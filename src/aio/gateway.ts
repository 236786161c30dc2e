/**
 * The AIO gateway: takes messages whose method is `agent::method`, finds the agent, and owes each request one answer.
 *
 * It assembles the parts of this room. It knows neither kernel nor trace store, only the port and the sinks it is given.
 * Every call it accepts is in the trace from beginning to end, refused ones too; only a message without a proper name or
 * trace id is merely counted (spec N3).
 */

import {
  type Adapter,
  type Cancel,
  type ChildStart,
  type Invocation,
  type OpenChild,
  type Outcome,
  wholeOutcome,
} from './adapter.ts'
import { type AgentSpec, isPooled, type NamedAgent } from './agent-spec.ts'
import { Agents } from './agents.ts'
import type { Answer } from './answers.ts'
import { answerBus, type BusContext } from './bus-methods.ts'
import { type CallHost, OpenCall } from './call.ts'
import { openChild } from './children.ts'
import { type Envelope, type RequestId, readEnvelope, requestId } from './envelope.ts'
import { callFar, type FarCall } from './far-adapter.ts'
import { fault, isRefusal } from './faults.ts'
import { askHelp, HelpCache } from './help.ts'
import { invocationOf } from './invocation.ts'
import { type JsonObject, objectOr } from './json-object.ts'
import { after } from './later.ts'
import { nativeNames } from './mcp-plan.ts'
import { checkInputs } from './modalities.ts'
import { BUS, HELP } from './names.ts'
import { callerKey, OpenCalls } from './open-calls.ts'
import { type Ancestor, callKey, MAX_DEPTH, Parents, type Placement } from './parents.ts'
import { allowedAgents, forbiddenTool, hideTools } from './permissions.ts'
import type {
  CallCaller,
  CallCause,
  CallEnd,
  Caller,
  ErrorBody,
  GatewayPort,
  OpenUpstream,
  Origin,
  SpawnOneshot,
  TraceIds,
  TraceQueries,
  TraceSink,
} from './port.ts'
import { composeAnswer, composePartial } from './replies.ts'

export interface GatewayOptions {
  readonly port: GatewayPort
  readonly agents: readonly AgentSpec[]
  readonly traces: TraceSink
  readonly ids: TraceIds
  readonly queries: TraceQueries
  readonly spawnOneshot: SpawnOneshot
  readonly openUpstream: OpenUpstream
  readonly remoteQueries?: boolean
  readonly maxPendingPerCaller?: number
  /** Agents that only other nodes have, each with the pool through which it is reached (contract 14.10). */
  readonly farAgents?: () => ReadonlyMap<string, string>
  /** There is a pool of this name. */
  readonly isPool?: (name: string) => boolean
  /** Told of an exception in an adapter or a query; its caller has been answered. */
  readonly broke?: (error: unknown) => void
  /** Told of refusals that have no place in a trace. */
  readonly count?: (reason: string) => void
}

const MAX_PENDING_PER_CALLER = 4_096
/** Of a call that another node is to record, until it has. */
const NOT_PLACED = 0

export class Gateway implements CallHost {
  readonly #options: GatewayOptions
  readonly #port: GatewayPort
  readonly #parents: Parents
  readonly #agents: Agents
  readonly #help = new HelpCache()
  readonly #open = new OpenCalls()
  #draining = false

  constructor(options: GatewayOptions) {
    this.#options = options
    this.#port = options.port
    this.#parents = new Parents(options.ids, () => options.port.nowMs())
    const { port, openUpstream, isPool = () => false } = options
    this.#agents = new Agents({ port, openUpstream, isPool, spawnOneshot: this.#spawnOneshot })
    this.replaceAgents(options.agents)
  }

  /** Calls that are not answered yet. */
  get openCalls(): number {
    return this.#open.size
  }

  /** New calls find these agents; calls under way end with the agent they began with, those that wait need it to be there. */
  replaceAgents(agents: readonly AgentSpec[]): void {
    const gone = this.#agents.replace(agents)
    for (const call of this.#open.all()) {
      const { agent } = call.envelope
      if (!call.isSent && gone.has(agent)) call.stop(fault('no_worker', { agent }))
    }
    this.#help.clear()
  }

  /** A program answers a call that was put to it; false: it was put to nobody. */
  answered(caller: Caller, message: JsonObject): boolean {
    return this.#agents.programs.answered(caller, message)
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
    this.#agents.forget(caller)
  }

  workerGone(worker: string): void {
    this.gone({ kind: 'worker', key: worker })
    this.#parents.forgetWorker(worker)
    this.#help.forgetWorker(worker)
  }

  /** A worker of the pool says that its tools, prompts or resources are others now. */
  listChanged(pool: string): void {
    const agent = this.#agents.ofPool(pool)
    if (agent !== undefined) this.#help.forget(agent.name)
  }

  /** From now on new calls are refused; open ones go on. */
  drain(): void {
    this.#draining = true
  }

  /** Ends every open call with an error and lets go of connections. */
  async close(): Promise<void> {
    this.#draining = true
    for (const call of this.#open.all()) call.stop(fault('shutting_down'))
    await this.#agents.close()
  }

  nowMs(): number {
    return this.#port.nowMs()
  }

  after(delayMs: number, run: () => void): () => void {
    return after(this.#port, delayMs, run)
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
    if (!call.isFar) this.#options.traces.partial?.({ traceId, callId, seq, outputs, atMs: this.nowMs() })
    const params = { seq, outputs, partial: true, ...extra }
    const message = composePartial(call.envelope, traceId, params, this.#agents.isStrict(call.caller))
    if (message !== undefined) this.#port.reply(call.caller, message)
  }

  room(call: OpenCall): Promise<void> | undefined {
    return this.#port.room?.(call.caller)
  }

  child(call: OpenCall, start: ChildStart): OpenChild {
    const { ids, traces } = this.#options
    const letGo = (worker: string, place: Ancestor): void => this.#letGo(worker, place)
    const host = { ids, traces, parents: this.#parents, nowMs: () => this.nowMs(), letGo }
    return openChild(host, call.place, call.envelope.agent, start)
  }

  ended(call: OpenCall, end: CallEnd, answer: Answer | undefined): void {
    this.#open.delete(call)
    this.#parents.over(call, call.cause)
    if (!call.isFar) this.#options.traces.end(end)
    const { id } = call.envelope
    if (answer !== undefined && id !== undefined && call.place.callId === NOT_PLACED)
      this.#port.reply(call.caller, { jsonrpc: '2.0', id, ...answer })
    else if (answer !== undefined && id !== undefined) {
      const message = composeAnswer(id, answer, call.place, this.#agents.isStrict(call.caller))
      this.#port.reply(call.caller, message, call.place.traceId)
    }
    if (call.worker !== null) this.#letGo(call.worker, call.place)
  }

  /** The caller of an orphan, a worker, lives and is owed an answer; what that worker was asked for is wanted no longer. */
  #letGo(worker: string, place: Ancestor): void {
    for (const orphan of this.#parents.closed(worker, place)) orphan.stop(fault('parent_gone'))
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
    const echo = traceId === undefined || this.#agents.isStrict(caller) ? {} : { trace_id: traceId }
    this.#port.reply(caller, { jsonrpc: '2.0', id, ...answer, ...echo })
  }

  #busContext(caller: Caller): BusContext {
    const { permissions } = caller
    const { ids, queries, remoteQueries = false } = this.#options
    const workers = (agent: NamedAgent): number =>
      isPooled(agent) ? (this.#port.workers?.(agent.pool) ?? agent.instances) : 0
    const agents = allowedAgents(permissions, this.#agents.all)
    const register = (params: unknown): Answer => {
      const answer = this.#agents.programs.register(caller, params, (name) => this.#agents.isTaken(name))
      if ('result' in answer) this.#help.forget(String(objectOr(answer.result)['name']))
      return answer
    }
    const unregister = (params: unknown) => this.#agents.programs.unregister(caller, params)
    return { agents, register, unregister, ids, queries, remoteQueries, workers, broke: (error) => this.broke(error) }
  }

  #call(caller: Caller, envelope: Envelope, bytes: number): void {
    // Not even the trace, which its caller may read, tells whether there is one that it may not use.
    const isAllowed = caller.permissions?.mayUseAgent(envelope.agent) ?? true
    const agent = isAllowed ? this.#agents.find(envelope.agent) : undefined
    const far =
      agent === undefined && caller.kind === 'worker' ? this.#options.farAgents?.().get(envelope.agent) : undefined
    if (far !== undefined && this.#callFar(caller, envelope, far)) return
    const call = this.#record(caller, envelope, bytes, agent)
    if (!isAllowed) return call.fail(fault('not_allowed', { agent: envelope.agent }))
    if (agent === undefined) {
      const known = [...allowedAgents(caller.permissions, this.#agents.all).keys()]
      const refusal = far === undefined ? undefined : this.#refusalForAny(call)
      return call.fail(refusal ?? fault('unknown_agent', { agent: envelope.agent, known }))
    }
    if (!call.isOpen) return
    const refusal = this.#refusalOf(call, agent, bytes)
    const checked = envelope.method === 'input' && agent.type !== 'mcp' ? checkInputs(agent, envelope.params) : envelope
    if (refusal !== undefined) call.fail(refusal)
    else if ('fault' in checked) call.fail(checked.fault)
    else this.#invoke(call, agent, checked.params)
  }

  /** An agent calls one of another node, which records it; false: it may not, which is recorded here. */
  #callFar(caller: Caller, envelope: Envelope, pool: string): boolean {
    const placement = this.#parents.place(caller, envelope.traceId, envelope.meta)
    const { depth, otelTraceId, origin, cause, traceId, isOrphan } = placement
    if (isOrphan || this.#refusalFor(depth, this.#open.count(caller) + 1) !== undefined) return false
    const place = { traceId: traceId ?? '', callId: NOT_PLACED, depth, otelTraceId, origin }
    const call = new OpenCall(this, caller, envelope, place, 0)
    call.isFar = true
    call.cause = cause
    this.#open.add(call)
    this.#parents.made(call, cause)
    const placed: FarCall['placed'] = (where) => Object.assign(place, where)
    const far = { pool, envelope, traceId, cause: this.#causeOf(caller, placement), client: connectionOf(call), placed }
    call.begin((outcome) => callFar(far, this.#port, outcome))
    return true
  }

  /** The trace is one for OpenTelemetry too, wherever it goes on. */
  #causeOf({ pool }: Caller, { parentId: callId, depth, traceId, otelTraceId }: Placement): CallCause {
    const agent = this.#agents.ofPool(pool)?.name ?? pool
    const otel = otelTraceId ?? (traceId === undefined ? undefined : this.#options.ids.otelTraceId(traceId))
    return {
      callId,
      depth: depth - 1,
      ...(agent === undefined ? {} : { agent }),
      ...(otel === undefined ? {} : { otelTraceId: otel }),
    }
  }

  #invoke(call: OpenCall, agent: NamedAgent, params: unknown): void {
    const { place, envelope } = call
    const adapter = this.#agents.adapterOf(agent.name)
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
  #record(caller: Caller, envelope: Envelope, bytes: number, agent: NamedAgent | undefined): OpenCall {
    const { ids, traces } = this.#options
    const placement = this.#parents.place(caller, envelope.traceId, envelope.meta)
    const { parentId, depth, otelTraceId } = placement
    const program = this.#programFor(caller, placement)
    const origin = (program === undefined ? undefined : placement.parentOrigin) ?? placement.origin
    const traceId = placement.traceId ?? ids.issue()
    const place = { traceId, callId: ids.allocate(traceId, envelope.id ?? null), depth, otelTraceId, origin }
    this.#parents.remember(place)
    traces.begin({
      traceId,
      callId: place.callId,
      parentId,
      requestId: envelope.id ?? null,
      protocol: agent?.type === 'mcp' ? 'mcp' : 'aio',
      type: traceType(agent),
      agent: envelope.agent,
      worker: null,
      method: envelope.method,
      ...(agent?.type === 'mcp' ? nativeNames(agent, envelope.method, envelope.params) : {}),
      input: envelope.params ?? {},
      bytesIn: bytes,
      startedAtMs: this.nowMs(),
      caller: this.#describeCaller(caller, origin, program),
      ...(otelTraceId === undefined ? {} : { otelTraceId }),
    })
    const call = new OpenCall(this, caller, envelope, place, agent?.timeoutMs ?? 0)
    call.cause = placement.cause
    this.#open.add(call)
    this.#parents.made(call, placement.cause)
    if (placement.isOrphan) call.fail(fault('parent_gone'))
    return call
  }

  /** The agent as which a connection calls, where it does so for a call that it has in hand. */
  #programFor(caller: Caller, { traceId, parentId: callId }: Placement): string | undefined {
    if (caller.kind !== 'client' || traceId === undefined || callId === null) return undefined
    return this.#agents.programs.nameServing(caller, callKey({ traceId, callId }))
  }

  #describeCaller(caller: Caller, origin: Origin, program: string | undefined): CallCaller {
    const { kind, pool, cause } = caller
    if (program !== undefined) return { kind: 'agent', ...origin, name: program, agent: program }
    if (cause !== undefined)
      return { kind: 'agent', ...origin, ...(cause.agent === undefined ? {} : { agent: cause.agent }) }
    if (kind === 'client') {
      const name = this.#agents.programs.nameOf(caller)
      return { kind, ...origin, ...(name === undefined ? {} : { name }) }
    }
    const agent = this.#agents.ofPool(pool)?.name ?? pool
    return { kind: 'agent', ...origin, ...(agent === undefined ? {} : { agent }) }
  }

  #refusalOf(call: OpenCall, agent: NamedAgent, bytes: number): ErrorBody | undefined {
    if (this.#draining) return fault('shutting_down')
    const { permissions } = call.caller
    const tool = permissions === undefined ? undefined : forbiddenTool(permissions, call.envelope)
    if (tool !== undefined) return fault('not_allowed', { agent: agent.name, tool })
    if (bytes > agent.maxPayloadBytes) return fault('payload_too_large', { bytes, limit: agent.maxPayloadBytes })
    return this.#refusalForAny(call)
  }

  #refusalForAny({ place, caller }: OpenCall): ErrorBody | undefined {
    return this.#refusalFor(place.depth, this.#open.count(caller))
  }

  /** `pending`: how many calls its caller has open, this one included. */
  #refusalFor(depth: number, pending: number): ErrorBody | undefined {
    const { maxPendingPerCaller: limit = MAX_PENDING_PER_CALLER } = this.#options
    if (this.#draining) return fault('shutting_down')
    if (depth > MAX_DEPTH) return fault('too_deep', { limit: MAX_DEPTH })
    return pending > limit ? fault('too_many_pending', { limit }) : undefined
  }

  #answerHelp(call: OpenCall, agent: NamedAgent, adapter: Adapter, invocation: Invocation, outcome: Outcome): Cancel {
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

  /** What the call had in hand is forgotten with its process; what the process said of itself is not. */
  readonly #spawnOneshot: SpawnOneshot = (...order) => {
    const process = this.#options.spawnOneshot(...order)
    void process.ended.then(() => this.#parents.forgetWorker(process.worker))
    return process
  }
}

/** What the trace calls it: where it runs, not what it speaks. */
function traceType(agent: NamedAgent | undefined): 'stdio' | 'http' | 'mcp' {
  return agent?.type === 'http' || agent?.type === 'mcp' ? agent.type : 'stdio'
}

/** The connection for which the call is made; what a worker says of that counts only for calls that it has in hand. */
function connectionOf({ caller, cause }: OpenCall): number | undefined {
  return caller.kind === 'client' ? caller.origin?.client : cause?.origin.client
}
