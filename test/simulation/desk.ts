/**
 * Where calls of agents go in a simulated world: the real gateway and its real port, on the clock of the world.
 *
 * It stands in for `src/cli/daemon/gateway-room.ts` without store, files and processes, and keeps a record of every call
 * from the trace that the gateway writes: which line asked, what its place in the graph is, how it ended.
 */
import type { AgentSpec } from '../../src/aio/agent-spec.ts'
import { fault } from '../../src/aio/faults.ts'
import { Gateway } from '../../src/aio/gateway.ts'
import { MAX_DEPTH } from '../../src/aio/parents.ts'
import type { CallEnd, Caller, CallStart, TraceAnswer, TraceIds, TraceQueries, TraceSink } from '../../src/aio/port.ts'
import { type Clock, KernelPort, keyOf } from '../../src/cli/daemon/gateway-port.ts'
import { InternalClient, type InternalListener } from '../../src/cli/daemon/internal-client.ts'
import { OddIds } from '../../src/cli/daemon/odd-ids.ts'
import type { Action, BusEvent, CallerId } from '../../src/kernel/events.ts'
import type { ClientId, PoolId, PoolSpec, WorkerId } from '../../src/kernel/vocabulary.ts'
import { Alarms } from './alarms.ts'
import type { CallRecord, ClientLine, WorkerLine } from './line.ts'
import type { AioScenario } from './scenario.ts'
import type { SimClient } from './sim-client.ts'
import type { SimWorker } from './sim-worker.ts'
import { demand } from './violation.ts'
import type { World } from './world.ts'

/** So long a call may wait for a worker and for its introduction, on top of the time its agent has. */
const MAX_WAIT_MS = 200_000
const MAX_QUERY_MS = 50

export class Desk {
  /** Every call by `trace#id`. */
  readonly calls = new Map<string, CallRecord>()
  readonly exchanges = new Map<ClientId, InternalClient>()
  readonly agents: readonly AgentSpec[]
  readonly alarms = new Alarms()
  readonly #world: World
  readonly #gateway: Gateway
  readonly #port: KernelPort
  readonly #odd = new OddIds()
  readonly #lent: { readonly caller: string; readonly alias: string }[] = []
  readonly #open = new Set<CallRecord>()
  readonly #strangers = new Set<Caller>()
  #answerQueries: () => void = () => {}
  #queries = 0

  constructor(world: World, aio: AioScenario) {
    this.#world = world
    this.agents = aio.agents
    const clock: Clock = {
      nowMs: () => world.nowMs,
      after: (delayMs, run) => this.alarms.set(world.nowMs + delayMs, () => this.#guarded(run)),
      soon: (run) => void this.alarms.set(world.nowMs, () => this.#guarded(run)),
    }
    const poolOf = (pool: PoolId): PoolSpec | undefined => world.spec.pools.find(({ id }) => id === pool)
    this.#port = new KernelPort(
      {
        apply: (event) => this.#tell(event),
        openInternal: (pool, { prefer }, listener) => this.#openInternal(pool, prefer, listener),
        openDelegate: () => {
          throw new Error('no agent of this world has sessions')
        },
        room: () => undefined,
        workersOf: (pool) => world.workers.filter((worker) => worker.pool === pool && worker.isAlive).length,
        refusing: () => {},
      },
      this.#odd,
      poolOf,
      () => 0,
      clock,
    )
    this.#gateway = new Gateway({
      port: this.#port,
      agents: aio.agents,
      traces: this.#makeSink(),
      ids: makeIds(),
      queries: this.#makeQueries(),
      openUpstream: async () => {
        throw new Error('no agent of this world is at a URL')
      },
      spawnOneshot: () => {
        throw new Error('no agent of this world is one-shot')
      },
      remoteQueries: aio.hasRemoteQueries,
      maxPendingPerCaller: world.spec.limits.maxPendingPerClient,
    })
  }

  // ---- what the daemon does with it ----

  take({ from, bytes, oddId }: Extract<Action, { do: 'call' }>): void {
    const caller = callerOf(from)
    const message = JSON.parse(bytes.utf8Slice()) as Record<string, unknown>
    if (oddId !== undefined) {
      const alias = this.#odd.lend(caller.key, oddId)
      this.#lent.push({ caller: caller.key, alias })
      message['id'] = alias
    }
    this.#gateway.receive(caller, message, bytes.length)
  }

  cancel(from: CallerId, id: string | number): void {
    if (from.kind !== 'client' || !this.#gateway.cancel(callerOf(from), id)) return
    this.#tell({ type: 'call-cancelled', client: from.client, id })
  }

  callerGone(from: CallerId): void {
    const caller = callerOf(from)
    this.#strangers.add(caller)
    this.#odd.forget(caller.key)
    if (from.kind === 'client') this.#gateway.gone(caller)
    else {
      this.#gateway.workerGone(caller.key)
      this.#port.workerGone(from.pool)
    }
    for (const { key, line } of this.#open)
      demand(authorOf(line) !== caller.key, 'tables tidy', () => `the call ${key} of ${caller.key} goes on without it`)
  }

  listChanged(pool: PoolId): void {
    this.#gateway.listChanged(pool)
  }

  failCalls(): void {
    void this.#gateway.close()
    this.#answerQueries()
  }

  /** The agents of pools that are still there take new calls. */
  adopt(pools: readonly PoolSpec[]): void {
    this.#port.forgetAll()
    const isThere = (agent: AgentSpec): boolean => agent.type !== 'http' && pools.some(({ id }) => id === agent.pool)
    this.#gateway.replaceAgents(this.agents.filter(isThere))
  }

  // ---- what must hold ----

  get isIdle(): boolean {
    return this.#open.size === 0 && this.exchanges.size === 0 && this.#queries === 0
  }

  /** After every event. */
  inspect(): void {
    const { nowMs } = this.#world
    const open = this.#gateway.openCalls
    demand(open === this.#open.size, 'tables tidy', () => `${open} calls are open, the trace has ${this.#open.size}`)
    const [oldest] = this.#open
    if (oldest === undefined) return
    const waitedMs = nowMs - oldest.startedMs - oldest.timeoutMs
    demand(waitedMs <= MAX_WAIT_MS, 'goes on', () => `the call ${oldest.key} is open for ${waitedMs} ms too long`)
  }

  /** When everybody has got what there is. */
  inspectCalm(): void {
    const [call] = this.#open
    demand(call === undefined, 'answered once', () => `the call ${call?.key} is open and nothing happens any more`)
    const { size } = this.exchanges
    demand(size === 0, 'nothing left', () => `${size} exchanges are open and nothing happens any more`)
  }

  /** When the bus has finished. */
  inspectEnd(): void {
    this.inspectCalm()
    for (const { caller, alias } of this.#lent) {
      const isForgotten = this.#odd.spell(caller, { id: alias }) === JSON.stringify({ id: alias })
      demand(isForgotten, 'nothing left', () => `the odd id ${alias} of ${caller} is left`)
    }
    for (const caller of this.#strangers) if (caller.kind === 'worker') this.#demandForgotten(caller)
  }

  /** A process that is gone has no open calls from which another could descend. */
  #demandForgotten(caller: Caller): void {
    const before = this.calls.size
    this.#gateway.receive(caller, { method: 'nobody::at_all' }, 10)
    const last = [...this.calls.values()].at(before)
    demand(last?.parentId === null, 'nothing left', () => `calls are still open at worker ${caller.key}`)
  }

  // ---- what the gateway is given ----

  #tell(event: BusEvent): void {
    if (event.type === 'client-closed') this.exchanges.delete(event.client)
    this.#guarded(() => this.#world.apply(event))
  }

  /** The gateway may be in the middle of a promise: what goes wrong is told when the step is over. */
  #guarded(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.#world.failure ??= error
    }
  }

  #openInternal(pool: PoolId, prefer: WorkerId | undefined, listener: InternalListener): InternalClient {
    const client = this.#world.nextClientId()
    const internal = new InternalClient(client, listener, (event) => this.#tell(event))
    this.exchanges.set(client, internal)
    const of = prefer === undefined ? {} : { prefer }
    this.#tell({ type: 'client-opened', client, door: 'internal', pool, ...of })
    return internal
  }

  #makeSink(): TraceSink {
    return {
      begin: (call) => this.#guarded(() => this.#begin(call)),
      end: (call) => this.#guarded(() => this.#end(call)),
    }
  }

  #begin(start: CallStart): void {
    const { traceId, callId, parentId, agent, method, requestId } = start
    const key = `${traceId}#${callId}`
    const serial = (start.input as { '#'?: number })['#']
    const line = serial === undefined ? undefined : (this.#world.lines[serial] as ClientLine | WorkerLine)
    const parent = parentId === null ? undefined : this.calls.get(`${traceId}#${parentId}`)
    demand(!this.calls.has(key), 'answered once', () => `two calls are ${key}`)
    demand(
      parentId === null || parent !== undefined,
      'nobody else sees it',
      () => `${key} has a parent that is no call: ${parentId}`,
    )
    const call: CallRecord = {
      key,
      traceId,
      callId,
      parentId,
      agent,
      method,
      line,
      isRequest: requestId !== null,
      depth: (parent?.depth ?? 0) + 1,
      startedMs: this.#world.nowMs,
      timeoutMs: this.agents.find(({ name }) => name === agent)?.timeoutMs ?? 0,
      partials: 0,
      receiver: undefined,
      end: undefined,
    }
    demand(call.depth <= MAX_DEPTH + 1, 'bounded', () => `${key} is ${call.depth} levels deep`)
    this.calls.set(key, call)
    this.#open.add(call)
    if (line === undefined) return
    demand(line.call === undefined, 'answered once', () => `${line.text} was taken twice`)
    line.call = call
  }

  #end({ traceId, callId, error }: CallEnd): void {
    const key = `${traceId}#${callId}`
    const call = this.calls.get(key)
    demand(call !== undefined && this.#open.delete(call), 'answered once', () => `the call ${key} ended twice`)
    call.end = (error?.data as { reason?: string } | undefined)?.reason ?? 'said'
  }

  #makeQueries(): TraceQueries {
    const closing = new Promise<TraceAnswer>((resolve) => {
      this.#answerQueries = () => resolve({ fault: fault('shutting_down') })
    })
    const ask = (): Promise<TraceAnswer> =>
      new Promise((resolve, reject) => {
        const { chance, nowMs } = this.#world
        const isBroken = chance.is(0.1)
        this.#queries++
        this.alarms.set(nowMs + chance.int(MAX_QUERY_MS), () => {
          this.#queries--
          if (isBroken) reject(new Error('no store'))
          else resolve({ text: '{}' })
        })
      })
    return { query: () => Promise.race([ask(), closing]) }
  }
}

export function callerOf(from: CallerId): Caller {
  if (from.kind === 'worker') return { kind: 'worker', key: keyOf(from), pool: from.pool }
  return { kind: 'client', key: String(from.client), isLocal: from.isLocal }
}

/** By the key that the gateway knows it by. */
function authorOf(line: ClientLine | WorkerLine | undefined): string | undefined {
  const author: SimClient | SimWorker | undefined = line?.author
  if (author === undefined) return undefined
  return 'slot' in author ? `${author.slot}.${author.generation}` : String(author.id)
}

/** Like the ids of the store, without store and hash: the same in every run. */
function makeIds(): TraceIds {
  const used = new Map<string, Set<number>>()
  let issued = 0
  return {
    issue: () => `AIO-TR-20260101-${String(++issued).padStart(4, '0')}`,
    isValid: (traceId) => /^[!-"$-~]{1,128}$/.test(traceId),
    allocate: (traceId, requestId) => {
      const ids = used.get(traceId) ?? new Set()
      used.set(traceId, ids)
      const isOwn = typeof requestId === 'number' && Number.isSafeInteger(requestId) && requestId > 0
      let id = isOwn && !ids.has(requestId) ? requestId : ids.size + 1
      while (ids.has(id)) id++
      ids.add(id)
      return id
    },
    otelTraceId: (traceId) => digest(traceId, 32),
    spanId: (traceId, callId) => digest(`${traceId}#${callId}`, 16),
  }
}

function digest(text: string, digits: number): string {
  let hash = 0x811c9dc5
  let hex = ''
  for (let round = 0; hex.length < digits; round++) {
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193 + 2 * round)
    hex += (hash >>> 0).toString(16).padStart(8, '0')
  }
  return hex.slice(0, digits)
}
