/** Worlds whose clients are told apart: who there is, and what they may do (contract 9). */
import type { Rights } from '../../src/kernel/rights.ts'
import { Chance } from './chance.ts'
import type { Scenario } from './scenario.ts'

export interface SimPrincipal {
  /** By whom it counts: `name`, or `name/subject`. */
  readonly id: string
  readonly name: string
  readonly subject?: string
}

export interface AccessScenario {
  readonly principals: readonly SimPrincipal[]
  readonly rights: ReadonlyMap<string, Rights>
  /** How many of the clients come through a door that asks who they are. */
  readonly proveShare: number
  /** So many come at once and say nothing, from so many addresses. */
  readonly siege: { readonly clients: number; readonly addresses: number } | undefined
}

/** A step that no run has; seeds of regressions are none of these. */
const ACCESS_STEP = -57_131
const ACCESS_SHARE = 0.3

/** What is drawn here is drawn beside everything else: the other worlds are as they were before there were principals. */
export function isAccessSeed(seed: number): boolean {
  return new Chance(seed, ACCESS_STEP).is(ACCESS_SHARE)
}

/** A world where everybody speaks the tongue of its pool, and nobody is called as an agent. */
export function addAccess(seed: number, scenario: Scenario): Scenario {
  const chance = new Chance(seed, ACCESS_STEP)
  if (!chance.is(ACCESS_SHARE) || scenario.aio !== undefined || scenario.isStdio) return scenario
  const { spec } = scenario
  const pools = spec.pools.map(({ id }) => id)
  const principals: SimPrincipal[] = [
    { id: 'anonymous', name: 'anonymous' },
    { id: 'anna', name: 'anna' },
    { id: 'ben', name: 'ben' },
    { id: 'dev/1', name: 'dev', subject: '1' },
    { id: 'dev/2', name: 'dev', subject: '2' },
  ]
  const access: AccessScenario = {
    principals: principals.slice(0, chance.between(2, principals.length)),
    rights: new Map(principals.map(({ id }) => [id, drawRights(chance, pools)])),
    proveShare: chance.pick([0.3, 0.6, 0.9]),
    siege: chance.weigh([
      [90, undefined],
      [5, { clients: 262, addresses: 1 }],
      [1, { clients: 1_030, addresses: 6 }],
    ]),
  }
  const limits = access.siege === undefined ? spec.limits : { ...spec.limits, maxClients: 5_000 }
  const maxClientsAtOnce = Math.max(scenario.maxClientsAtOnce, chance.between(2, 9))
  return { ...scenario, isMixed: false, maxClientsAtOnce, access, spec: { ...spec, limits, hasAccess: true } }
}

export const TOOLS = ['read_file', 'read_secret', 'write', 'push', 'a.c'] as const

export function drawRights(chance: Chance, pools: readonly string[]): Rights {
  const role = chance.weigh([
    [8, 'user'],
    [1, 'observer'],
    [1, 'admin'],
  ] as const)
  return {
    role,
    pools: drawPatterns(chance, pools),
    ...(chance.is(0.4) ? { tools: drawTools(chance, pools) } : {}),
    ...(chance.is(0.35) ? { rate: chance.pick(RATES) } : {}),
    ...(chance.is(0.25) ? { maxPending: chance.pick([1, 3, 10]) } : {}),
    ...(chance.is(0.25) ? { maxConnections: chance.pick([1, 2, 3]) } : {}),
  }
}

const RATES = [
  { count: 2, perMs: 1_000 },
  { count: 5, perMs: 1_000 },
  { count: 10, perMs: 60_000 },
  { count: 20, perMs: 3_600_000 },
] as const

function drawPatterns(chance: Chance, pools: readonly string[]): readonly string[] {
  const roll = chance.next()
  if (roll < 0.45) return ['*']
  if (roll < 0.75) return [chance.pick(pools), 'n*']
  if (roll < 0.9) return ['p?']
  return roll < 0.95 ? ['x*', 'P0'] : []
}

function drawTools(chance: Chance, pools: readonly string[]): NonNullable<Rights['tools']> {
  const pool = chance.pick(pools)
  const allow = chance.pick([['read_*'], ['*'], [`${pool}::*`], ['*i*', 'a.c'], ['p????', 'w?ite'], []])
  const deny = chance.pick([['*_secret'], [`${pool}::*e*`, 'push'], ['a?c'], ['read_*']])
  const isBoth = chance.is(0.4)
  return { ...(isBoth || chance.is(0.5) ? { allow } : {}), ...(isBoth || chance.is(0.5) ? { deny } : {}) }
}
