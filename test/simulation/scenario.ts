/**
 * What a seed stands for: pools, limits and manners of a small world. Everything is kept small on purpose, so that queues
 * are full, ids collide and deadlines pass within a few hundred events.
 */
import { DEFAULT_LIMITS, type Limits } from '../../src/kernel/limits.ts'
import type { BusSpec, PoolSpec } from '../../src/kernel/vocabulary.ts'
import type { Chance } from './chance.ts'

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
  }
  return { ...scenario, spec: { ...scenario.spec, pools: pools.map((pool) => maybeLazy(chance, pool)) } }
}

/** Some pools start their workers only when they are needed, and let them go when they are not. */
function maybeLazy(chance: Chance, pool: PoolSpec): PoolSpec {
  if (pool.sharing !== 'shared' || !chance.is(0.15)) return pool
  return { ...pool, isLazy: true, ...(chance.is(0.5) ? { idleTimeoutMs: 300 } : {}) }
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
    limits: chance.is(0.5) ? limits : { ...limits, maxOutputQueueBytes: chance.pick([200, 2_000, 40_000]) },
    trace: false,
    revision: `${id}@0`,
  }
}

const PROTOCOLS = { plain: 'plain', acp: 'acp', legacy: 'mcp', modern: 'mcp' } as const

/** The configuration after a reload: pools stay, change, go or come. */
export function redrawSpec(chance: Chance, { spec, tongues }: Scenario, old: BusSpec, edition: number): BusSpec {
  const pools = old.pools
    .filter((pool, index) => index === 0 || chance.is(0.85) || pool.id === old.defaultPool)
    .map((pool) => (chance.is(0.5) ? pool : { ...pool, revision: `${pool.id}@${edition}` }))
  if (chance.is(0.3)) pools.push(drawPool(chance, `n${edition}`, spec.limits, tongues))
  return { ...old, pools }
}
