/**
 * The gateway and the trace store of a running bus, assembled: calls come in from the kernel, answers go back.
 *
 * Loaded only when the configuration has agents or traced pools, so that a plain bus does without. It decides nothing:
 * what an agent is asked is the gateway's, where a message goes is the kernel's.
 */

import { fault } from '../../aio/faults.ts'
import { Gateway } from '../../aio/gateway.ts'
import type { Caller, TraceAnswer, TraceSink } from '../../aio/port.ts'
import type { BusConfig } from '../../config/bus-config.ts'
import type { TraceQuery } from '../../console/api/port.ts'
import { ControlError, type ControlMethods } from '../../console/control-server.ts'
import type { Action, CallerId } from '../../kernel/events.ts'
import type { Observed } from '../../kernel/observation.ts'
import type { Identity, Rights } from '../../kernel/rights.ts'
import { type ClientId, LOCAL, type PoolId, type PoolSpec } from '../../kernel/vocabulary.ts'
import type { WorkerProcess } from '../../process/worker-process.ts'
import { traceControlMethods } from '../../trace/control-methods.ts'
import type { TraceDocument } from '../../trace/document.ts'
import { TrafficObserver } from '../../trace/observer.ts'
import { askWholeTrace, QueryRefusal } from '../../trace/queries.ts'
import type { TraceStore } from '../../trace/store.ts'
import type { Tracing } from '../../trace/tracing.ts'
import { isNestedTooDeep, MAX_NESTING } from '../../wire/nesting.ts'
import { openAgentUpstream } from './agent-upstreams.ts'
import type { Edges } from './edges.ts'
import { type Doorway, KernelPort, keyOf } from './gateway-port.ts'
import { absent, type Launches } from './launches.ts'
import type { Log } from './log.ts'
import { OddIds } from './odd-ids.ts'
import { Oneshots } from './oneshot.ts'
import { namesToolTwice, permissionsOf } from './permissions.ts'
import type { AskNodes } from './trace-of-nodes.ts'

export interface TraceStatus {
  readonly state: 'ok' | 'failed'
  readonly dropped: number
}

export interface RoomOptions {
  readonly daemon: Doorway
  readonly launches: Launches
  readonly config: BusConfig
  readonly log: Log
  readonly edges: Edges
  /** Asks all nodes for a trace. */
  readonly askNodes?: AskNodes
  /** Agents that only other nodes have, each with the pool through which it is reached. */
  readonly farAgents?: () => ReadonlyMap<string, PoolId>
  /** What the caller may do; undefined: everything. Without it nobody is asked. */
  readonly rightsOf?: (from: CallerId) => Rights | undefined
  /** The variables that a process for a call of this connection has (contract 9.22). */
  readonly environmentOf?: (client: ClientId, pool: PoolId) => Readonly<Record<string, string>>
}

/** Whoever came without a credential. */
const ANONYMOUS = 'anonymous'

type CallAction = Extract<Action, { do: 'call' }>

export class GatewayRoom {
  readonly refused = new Map<string, number>()
  readonly #tracing: Tracing
  readonly #askNodes: AskNodes | undefined
  readonly #port: KernelPort
  readonly #gateway: Gateway
  readonly #oneshots: Oneshots
  readonly #observer: TrafficObserver
  readonly #odd = new OddIds()
  readonly #log: Log
  readonly #edges: Edges
  readonly #daemon: Doorway
  readonly #rightsOf: NonNullable<RoomOptions['rightsOf']>
  #config: BusConfig
  #pools: ReadonlyMap<string, PoolSpec>
  #answerAll: () => void = () => {}

  constructor(options: RoomOptions, tracing: Tracing) {
    const { daemon, launches, config, log, edges, rightsOf, environmentOf, farAgents, askNodes } = options
    this.#askNodes = askNodes
    this.#tracing = tracing
    this.#rightsOf = rightsOf ?? (() => undefined)
    this.#log = log
    this.#edges = edges
    this.#daemon = daemon
    this.#config = config
    this.#pools = poolsOf(config)
    this.#oneshots = new Oneshots((pool, client) => {
      const spec = this.#pools.get(pool)
      const own = client === undefined ? undefined : environmentOf?.(client as ClientId, pool)
      return spec === undefined ? removed(pool) : launches.start(spec.revision, own)
    }, log)
    const poolOf = (pool: string): PoolSpec | undefined => this.#pools.get(pool)
    this.#port = new KernelPort(daemon, this.#odd, poolOf, (pool) => this.#oneshots.count(pool))
    const { store } = tracing
    this.#observer = new TrafficObserver(store, store.ids, config.aio.store.payloadBytes)
    const closing = new Promise<TraceAnswer>((resolve) => {
      this.#answerAll = () => resolve({ fault: fault('shutting_down') })
    })
    this.#gateway = new Gateway({
      port: this.#port,
      agents: config.agents,
      traces: carefully(store, edges),
      ids: store.ids,
      queries: { query: (method, params) => Promise.race([this.#query(method, params), closing]) },
      spawnOneshot: this.#oneshots.spawn,
      openUpstream: openAgentUpstream,
      remoteQueries: config.aio.remoteQueries,
      isPool: (name) => this.#pools.has(name),
      ...(farAgents === undefined ? {} : { farAgents }),
      maxPendingPerCaller: config.bus.limits.maxPendingPerClient,
      broke: (error) => edges.report('an agent', error),
      count: (reason) => this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1),
    })
  }

  take(call: CallAction): void {
    const caller = callerOf(call.from, this.#permissionsOf(call.from))
    const message = JSON.parse(call.bytes.utf8Slice()) as Record<string, unknown>
    if (message['method'] === undefined) {
      // Nested beyond what can be written again, it is no answer.
      const answer = isNestedTooDeep(call.bytes) ? { id: message['id'] } : message
      this.#edges.guard('the gateway', () => this.#gateway.answered(caller, answer), false)
      return
    }
    try {
      this.#receive(call, caller, message)
    } catch (error) {
      this.#edges.report('the gateway', error)
      this.#gateway.refuse(caller, message, fault('internal_error'))
    }
  }

  #receive({ bytes, oddId }: CallAction, caller: Caller, message: Record<string, unknown>): void {
    if (oddId !== undefined) message['id'] = this.#odd.lend(caller.key, oddId)
    if (isNestedTooDeep(bytes)) this.#gateway.refuse(caller, message, fault('too_nested', { limit: MAX_NESTING }))
    else if (caller.permissions?.areToolsJudged && namesToolTwice(bytes))
      this.#gateway.refuse(caller, message, fault('not_allowed', { agent: String(message['method']).split('::')[0] }))
    else this.#gateway.receive(caller, message, bytes.length)
  }

  #permissionsOf(from: CallerId): Pick<Caller, 'permissions'> {
    const rights = from.kind === 'client' ? this.#rightsOf(from) : undefined
    // What agents call in turn is not judged again.
    if (rights === undefined || from.kind !== 'client' || from.cause !== undefined) return {}
    const { principal = LOCAL } = from
    const names = (): string[] => this.#names()
    return { permissions: permissionsOf(rights, { principal: principal === ANONYMOUS ? undefined : principal, names }) }
  }

  /** What can be called or asked for by name. */
  #names(): string[] {
    return [...this.#pools.keys(), ...this.#config.agents.map(({ name }) => name)]
  }

  cancel(from: CallerId, id: string | number): void {
    if (from.kind !== 'client') return
    const isOpen = this.#edges.guard('the gateway', () => this.#gateway.cancel(callerOf(from), id), false)
    if (isOpen) this.#daemon.apply({ type: 'call-cancelled', client: from.client, id })
  }

  callerGone(from: CallerId): void {
    this.#edges.guard('the gateway', () => this.#forget(from), undefined)
  }

  #forget(from: CallerId): void {
    const caller = callerOf(from)
    this.#odd.forget(caller.key)
    if (from.kind === 'client') return this.#gateway.gone(caller)
    this.#gateway.workerGone(caller.key)
    this.#port.workerGone(from.pool)
  }

  listChanged(pool: string): void {
    this.#edges.guard('the gateway', () => this.#gateway.listChanged(pool), undefined)
  }

  observed(what: Observed): void {
    this.#edges.guard('the trace store', () => this.#observer.take(what), undefined)
  }

  traceOf(observed: number): string | undefined {
    return this.#observer.traceOf(observed)
  }

  /** The drain is over: whoever still waits is told. */
  failCalls(): void {
    this.#gateway.close().catch((error) => this.#edges.report('the gateway', error))
    this.#answerAll()
  }

  /** A new configuration: its agents take new calls. The store stays as it was opened. */
  adopt(config: BusConfig): void {
    const { store, otlp, remoteQueries } = this.#config.aio
    const isSame = JSON.stringify([store, otlp, remoteQueries]) === JSON.stringify(settingsOf(config))
    if (!isSame) this.#log.write('warn', 'aio.store, aio.otlp and aio.remote_queries change with a restart only')
    this.#config = config
    this.#pools = poolsOf(config)
    this.#port.forgetAll()
    this.#gateway.replaceAgents(config.agents)
  }

  status(): TraceStatus {
    const { state, dropped } = this.#tracing.store.status()
    return { state, dropped }
  }

  /** Questions to the store by somebody of the console, who sees what its role lets it (contract 9.6). */
  tracesFor({ principal, rights }: Identity): TraceQuery {
    const { traceScope } = permissionsOf(rights, { principal, names: () => this.#names() })
    const { store } = this.#tracing
    return async (method, params) => {
      const answer = await store.query(method, { ...params, ...traceScope })
      if ('fault' in answer) throw new QueryRefusal(answer.fault)
      return JSON.parse(answer.text)
    }
  }

  /** Where there are other nodes, a trace is that of all of them. */
  async #query(method: Parameters<TraceStore['query']>[0], params: unknown): Promise<TraceAnswer> {
    const text = await this.#askNodes?.(method, params)
    return text === undefined ? this.#tracing.store.query(method, params) : { text }
  }

  /** All that this node has of a trace, as far as the scope lets it be seen; undefined: nothing. */
  async ownTrace(traceId: string, scope: object = {}): Promise<TraceDocument | undefined> {
    const { store } = this.#tracing
    const ask = async (method: 'get' | 'export', params: object): Promise<unknown> => {
      const answer = await store.query(method, { ...params, ...scope })
      if ('fault' in answer) throw new QueryRefusal(answer.fault)
      return JSON.parse(answer.text)
    }
    return askWholeTrace(ask, traceId).catch((error: unknown) => {
      if (error instanceof QueryRefusal) return undefined
      throw error
    })
  }

  followTraces(changed: () => void): () => void {
    return this.#tracing.store.follow(changed)
  }

  controlMethods(): ControlMethods {
    return traceControlMethods(this.#tracing.store, (message, data) => new ControlError(message, data))
  }

  async close(): Promise<void> {
    await this.#gateway.close()
    await this.#oneshots.killAll()
  }
}

/** A trace that cannot be told costs nobody a call. */
function carefully(store: TraceStore, edges: Edges): TraceSink {
  const told = (tell: () => void): void => edges.guard('the trace store', tell, undefined)
  return {
    begin: (call) => told(() => store.begin(call)),
    end: (call) => told(() => store.end(call)),
    partial: (partial) => told(() => store.partial(partial)),
  }
}

/** A reload has taken the pool away while the call waited for its turn. */
function removed(pool: string): WorkerProcess {
  return absent({ code: 'REMOVED', reason: `pool ${JSON.stringify(pool)} is no longer in the configuration` })
}

function settingsOf({ aio }: BusConfig): unknown {
  return [aio.store, aio.otlp, aio.remoteQueries]
}

function poolsOf({ bus }: BusConfig): ReadonlyMap<string, PoolSpec> {
  return new Map(bus.pools.map((pool) => [pool.id, pool]))
}

function callerOf(from: CallerId, more: Pick<Caller, 'permissions'> = {}): Caller {
  if (from.kind === 'worker') return { kind: 'worker', key: keyOf(from), pool: from.pool }
  const { client, isLocal, principal = LOCAL, cause } = from
  const why = cause === undefined ? {} : { cause }
  return { kind: 'client', key: String(client), isLocal, origin: { principal, client }, ...why, ...more }
}
