/**
 * What a seed stands for: pools, limits and manners of a small world. Everything is kept small on purpose, so that queues
 * are full, ids collide and deadlines pass within a few hundred events.
 */
import { AGENT_DEFAULTS, type AgentSpec } from '../../src/aio/agent-spec.ts'
import { DEFAULT_LIMITS, type Limits } from '../../src/kernel/limits.ts'
import type { BusSpec, PoolSpec } from '../../src/kernel/vocabulary.ts'
import type { AccessScenario } from './access-scenario.ts'
import { Chance } from './chance.ts'

export type TongueName = 'plain' | 'acp' | 'legacy' | 'modern'

export interface Scenario {
  readonly spec: BusSpec
  /** What the workers of a pool speak. */
  readonly tongues: Map<string, TongueName>
  /** Clients may speak another tongue than the pool they use. */
  readonly isMixed: boolean
  readonly maxClientsAtOnce: number
  /** One client on stdio: its end is the end of the bus. */
  readonly isStdio: boolean
  /** The bus is told to shut down in the middle. */
  readonly endsAbruptly: boolean
  readonly reloads: boolean
  /** How many of the peers misbehave. */
  readonly malice: number
  /** Some pools are agents that clients and workers call; undefined: there is no gateway. */
  readonly aio?: AioScenario
  /** Clients are told apart; undefined: all are the same to the bus. */
  readonly access?: AccessScenario
  readonly customs: Customs
}

/** What not every world knows. */
export interface Customs {
  /** Workers that never answer some of what they are asked, handshakes too. */
  readonly withholds: boolean
  /** The newest version that the agents of a pool speak; clients ask for any (ACP). */
  readonly versions: ReadonlyMap<string, number>
  /** Agents that take one handshake only, whatever their version. */
  readonly refusesSecond: boolean
  /** Messages may come in one array (MCP 2025-03-26). */
  readonly hasBatches: boolean
  /** A reload changes everything that can be changed. */
  readonly reloadsBoldly: boolean
  /** The machine sleeps now and then. */
  readonly sleeps: boolean
}

const NO_CUSTOMS: Customs = {
  withholds: false,
  versions: new Map(),
  refusesSecond: false,
  hasBatches: false,
  reloadsBoldly: false,
  sleeps: false,
}

export interface AioScenario {
  readonly agents: readonly AgentSpec[]
  /** Workers pass on what they are asked until nobody may any more. */
  readonly isDeep: boolean
  /** How often a worker that works calls another agent. */
  readonly workerShare: number
  readonly hasRemoteQueries: boolean
}

/** A step that no run has: what it draws is drawn beside everything else. */
const AIO_STEP = -4_013
const AIO_SHARE = 0.25
const CUSTOMS_STEP = -4_027
const CUSTOMS_SHARE = 0.5

/** Every fourth seed or so is a world with agents; the others are as they were before there were any. */
export function isAioSeed(seed: number): boolean {
  return new Chance(seed, AIO_STEP).is(AIO_SHARE)
}

const TONGUES = [
  [4, 'plain'],
  [3, 'acp'],
  [3, 'legacy'],
  [2, 'modern'],
] as const

export function drawScenario(chance: Chance): Scenario {
  const limits = drawLimits(chance)
  const tongues = new Map<string, TongueName>()
  const pools: PoolSpec[] = []
  const count = chance.weigh([
    [5, 1],
    [3, 2],
    [1, 3],
  ])
  for (let i = 0; i < count; i++) pools.push(drawPool(chance, `p${i}`, limits, tongues))
  const scenario = {
    spec: { pools, defaultPool: chance.is(0.5) ? pools[0]!.id : undefined, limits },
    tongues,
    isMixed: chance.is(0.15),
    maxClientsAtOnce: chance.between(1, 7),
    isStdio: chance.is(0.05),
    endsAbruptly: chance.is(0.3),
    reloads: chance.is(0.2),
    malice: chance.pick([0, 0.1, 0.3, 0.6]),
    customs: NO_CUSTOMS,
  }
  return { ...scenario, spec: { ...scenario.spec, pools: pools.map((pool) => maybeLazy(chance, pool)) } }
}

/** Some pools start their workers only when they are needed, and let them go when they are not. */
function maybeLazy(chance: Chance, pool: PoolSpec): PoolSpec {
  if (pool.sharing !== 'shared' || !chance.is(0.15)) return pool
  return { ...pool, isLazy: true, ...(chance.is(0.5) ? { idleTimeoutMs: 300 } : {}) }
}

/** Every second world or so has customs of its own; what they are is drawn beside everything else. */
export function addCustoms(seed: number, scenario: Scenario): Scenario {
  const chance = new Chance(seed, CUSTOMS_STEP)
  if (!chance.is(CUSTOMS_SHARE)) return scenario
  const { spec, tongues, isMixed } = scenario
  const customs: Customs = {
    withholds: chance.is(0.4),
    versions: new Map(chance.is(0.6) && !isMixed ? spec.pools.map(({ id }) => [id, chance.between(1, 2)]) : []),
    refusesSecond: chance.is(0.5),
    hasBatches: chance.is(0.5) && !isMixed,
    reloadsBoldly: chance.is(0.5),
    sleeps: chance.is(0.5),
  }
  const pools = spec.pools.map((pool, index) => {
    const next = spec.pools[index + 1]
    const isAlike = next !== undefined && tongues.get(next.id) === tongues.get(pool.id)
    const balance = tongues.get(pool.id) === 'acp' && chance.is(0.4) ? ({ balance: 'session' } as const) : {}
    return { ...pool, ...balance, ...(isAlike && chance.is(0.7) ? { fallback: next.id } : {}) }
  })
  return { ...scenario, customs, spec: { ...spec, pools } }
}

/** Gives the world a gateway: pools that are no agents of an editor become agents that can be called. */
export function addAgents(chance: Chance, drawn: Scenario): Scenario {
  const isDeep = chance.is(0.15)
  const scenario = isDeep ? deepen(chance, drawn) : drawn
  const { spec, tongues } = scenario
  const pools = [...spec.pools]
  if (!isDeep && (chance.is(0.5) || pools.every(({ id }) => tongues.get(id) === 'acp'))) {
    tongues.set('a', chance.pick(CALLABLE))
    pools.push({ ...drawPool(chance, 'a', spec.limits, new Map()), era: 'auto' })
  }
  const callable = pools.filter(({ id }) => tongues.get(id) !== 'acp' && (id === 'a' || chance.is(0.9)))
  const agents = callable.map((pool) => drawAgent(chance, pool, tongues.get(pool.id)!, isDeep))
  const agentPools = pools.map((pool) => (callable.includes(pool) ? asAgent(pool, tongues.get(pool.id)!) : pool))
  const aio = {
    agents,
    isDeep,
    workerShare: chance.pick([0, 0.1, 0.3]),
    hasRemoteQueries: chance.is(0.3),
  }
  return { ...scenario, spec: { ...spec, pools: agentPools, gateway: 'all' }, aio }
}

const CALLABLE = ['plain', 'plain', 'legacy', 'modern'] as const

/** One agent that always asks itself, and time and room enough for it to come to an end. */
function deepen(chance: Chance, { spec, tongues, ...rest }: Scenario): Scenario {
  const limits = { ...spec.limits, maxOutputQueueBytes: 20_000, maxPendingPerClient: 50, requestTimeoutMs: 0 }
  const drawn = drawPool(chance, 'a', limits, new Map())
  const pool = {
    ...drawn,
    limits,
    era: 'auto',
    instances: 1,
    maxInstances: 1,
    sharing: 'shared',
    hangTimeoutMs: 0,
  } as const
  tongues.clear()
  tongues.set('a', chance.pick(CALLABLE))
  return { ...rest, tongues, reloads: false, malice: 0, spec: { ...spec, pools: [pool], defaultPool: 'a', limits } }
}

/** A server that agents call is greeted at its start, as the configuration has it. */
function asAgent(pool: PoolSpec, tongue: TongueName): PoolSpec {
  return tongue === 'plain' ? { ...pool, protocol: 'plain' } : { ...pool, protocol: 'mcp' }
}

function drawAgent(chance: Chance, { id, instances }: PoolSpec, tongue: TongueName, isDeep: boolean): AgentSpec {
  const common = {
    ...AGENT_DEFAULTS,
    name: id,
    pool: id,
    instances,
    timeoutMs: isDeep ? 30_000 : chance.pick([60, 1_000, 30_000, 30_000]),
    maxPayloadBytes: chance.pick([400, 100_000, 100_000]),
    methodStyle: chance.is(0.7) ? ('namespaced' as const) : ('bare' as const),
  }
  if (tongue === 'plain') return { ...common, type: 'stdio', mode: 'ndjson' }
  return { ...common, type: 'mcp', ...(chance.is(0.5) ? { sampling: { tool: 'think' } } : {}) }
}

function drawLimits(chance: Chance): Limits {
  return {
    ...DEFAULT_LIMITS,
    maxInputBufferBytes: chance.between(900, 4_000),
    maxOutputQueueBytes: chance.pick([300, 800, 3_000, 20_000]),
    maxRestarts: chance.between(0, 6),
    restartWindowMs: chance.pick([500, 5_000, 60_000]),
    drainTimeoutMs: chance.pick([50, 500, 5_000]),
    backpressureTimeoutMs: chance.pick([300, 1_500, 20_000]),
    maxClients: chance.pick([2, 5, 50]),
    maxSessionsPerClient: chance.pick([1, 3, 50]),
    maxPendingPerClient: chance.pick([1, 4, 30]),
    requestTimeoutMs: chance.pick([0, 0, 0, 80, 1_500]),
    maxTotalBufferBytes: chance.pick([4_000, 30_000, 10_000_000, 10_000_000]),
    blockingTimeoutMs: chance.pick([200, 1_000, 5_000]),
    halfCloseTimeoutMs: chance.pick([100, 1_500, 30_000]),
  }
}

function drawPool(chance: Chance, id: string, limits: Limits, tongues: Map<string, TongueName>): PoolSpec {
  const tongue = chance.weigh<TongueName>(TONGUES)
  tongues.set(id, tongue)
  const instances = chance.between(1, 3)
  return {
    id,
    instances,
    maxInstances: instances + chance.between(0, 3),
    sharing: chance.weigh([
      [5, 'shared'],
      [2, 'isolated'],
      [2, 'lease'],
    ]),
    protocol: chance.is(0.5) ? 'auto' : PROTOCOLS[tongue],
    era: tongue === 'modern' && chance.is(0.4) ? 'modern' : tongue === 'legacy' && chance.is(0.4) ? 'legacy' : 'auto',
    restart: chance.weigh([
      [6, 'always'],
      [1, 'on-failure'],
      [1, 'never'],
    ]),
    startTimeoutMs: chance.pick([300, 5_000, 60_000]),
    hangTimeoutMs: chance.pick([0, 0, 0, 400]),
    limits: chance.is(0.5) ? limits : drawOwnLimits(chance, limits),
    trace: false,
    revision: `${id}@0`,
  }
}

/** A pool may have less patience than the bus: its workers are judged before the clients that hold them up. */
function drawOwnLimits(chance: Chance, limits: Limits): Limits {
  return {
    ...limits,
    maxOutputQueueBytes: chance.pick([200, 2_000, 40_000]),
    backpressureTimeoutMs: limits.backpressureTimeoutMs / 5,
  }
}

const PROTOCOLS = { plain: 'plain', acp: 'acp', legacy: 'mcp', modern: 'mcp' } as const

function redrawPool(chance: Chance, isBold: boolean, pool: PoolSpec, edition: number): PoolSpec {
  if (chance.is(0.5)) return pool
  const revision = `${pool.id}@${edition}`
  if (!isBold) return { ...pool, revision }
  // Where only `instances` grew, those that run stay (contract 7.5).
  if (chance.is(0.4)) return { ...pool, instances: pool.instances + 1, maxInstances: pool.maxInstances + 1 }
  const limits = { ...pool.limits, requestTimeoutMs: chance.pick([0, 80, 1_500]) }
  return { ...pool, revision, limits, hangTimeoutMs: chance.pick([0, 400]), instances: chance.between(1, 3) }
}

/** The configuration after a reload: pools stay, change, go or come. */
export function redrawSpec(
  chance: Chance,
  { spec, tongues, customs }: Scenario,
  old: BusSpec,
  edition: number,
): BusSpec {
  const pools = old.pools
    .filter((pool, index) => index === 0 || chance.is(0.85) || pool.id === old.defaultPool)
    .map((pool) => redrawPool(chance, customs.reloadsBoldly, pool, edition))
  if (chance.is(0.3)) pools.push(drawPool(chance, `n${edition}`, spec.limits, tongues))
  return { ...old, pools }
}
