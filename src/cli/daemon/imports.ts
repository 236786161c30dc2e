/**
 * The pools of other nodes as pools of this one (contract 14.2): each node that has a pool is a place of it, and a pool that
 * only others have is one without workers. Pure: from what is announced to what the kernel is told.
 */
import type { AnnouncedPool } from '../../cluster/announcement.ts'
import type { NodeStatus } from '../../cluster/cluster.ts'
import { CLUSTER } from '../../cluster/limits.ts'
import { agentIn, agentPool, placeName } from '../../cluster/names.ts'
import type { Limits } from '../../kernel/limits.ts'
import { matchesAny } from '../../kernel/rights.ts'
import type { PoolId, PoolSpec, Refusal } from '../../kernel/vocabulary.ts'

/** Where the workers of a place are. */
export interface Place {
  readonly pool: PoolId
  readonly node: string
  readonly announced: AnnouncedPool
  /** Why nobody can go there now. */
  readonly refusal: Refusal | undefined
}

/**
 * What can be had elsewhere, by the name `POOL@NODE`; beyond the bound whoever was there first has it, and nobody who is lost
 * before somebody who lives.
 */
export function placesOf(nodes: readonly NodeStatus[], imports: readonly string[]): Map<PoolId, Place> {
  const places = new Map<PoolId, Place>()
  const isLost = ({ state }: NodeStatus): boolean => state === 'lost'
  const inTurn = [...nodes.filter((each) => !isLost(each)), ...nodes.filter(isLost)]
  for (const { node, state, pools, agents } of inTurn) {
    if (state === 'incompatible') continue
    for (const announced of [...pools, ...agents.map(asPool)]) {
      if (!matchesAny(imports, nameOf(announced.id))) continue
      if (places.size >= CLUSTER.maxPlaces) return places
      places.set(placeName(announced.id, node), {
        pool: announced.id,
        node,
        announced,
        refusal: refusalOf(node, state),
      })
    }
  }
  return places
}

/** An agent is reached like a pool; its workers are its gateway's affair. */
function asPool(agent: string): AnnouncedPool {
  return {
    id: agentPool(agent),
    protocol: 'plain',
    era: 'auto',
    ready: 1,
    workers: 0,
    outstanding: 0,
    streams: 0,
    sessions: 0,
    maxLineBytes: 0,
    isPortable: false,
  }
}

/** By which it is exported, imported and allowed. */
function nameOf(pool: PoolId): string {
  return agentIn(pool) ?? pool
}

/** The agents that others have and this node has not, with the pool of each. */
export function farAgents(places: ReadonlyMap<PoolId, Place>, own: readonly string[]): Map<string, PoolId> {
  const agents = new Map<string, PoolId>()
  for (const { pool } of places.values()) {
    const agent = agentIn(pool)
    if (agent !== undefined && !own.includes(agent)) agents.set(agent, pool)
  }
  return agents
}

function refusalOf(node: string, state: NodeStatus['state']): Refusal | undefined {
  if (state === 'lost') return { reason: 'node_lost', detail: { node } }
  return state === 'leaving' ? { reason: 'shutting_down', detail: { node } } : undefined
}

/** Own pools, told that others have them too, and those of others. `isSought`: where sessions live can be looked up. */
export function withPlaces(
  own: readonly PoolSpec[],
  places: ReadonlyMap<PoolId, Place>,
  limits: Limits,
  isSought: boolean,
): PoolSpec[] {
  const byPool = new Map<PoolId, Place[]>()
  for (const place of places.values()) byPool.set(place.pool, [...(byPool.get(place.pool) ?? []), place])
  const ownIds = new Set(own.map(({ id }) => id))
  return [
    ...own.map((pool) => ({ ...pool, ...traitsOf(byPool.get(pool.id) ?? [], 1, isSought) })),
    ...[...byPool].flatMap(([id, all]) => (ownIds.has(id) ? [] : [imported(id, all, limits, isSought)])),
    ...[...places].map(([id, place]) => placeSpec(id, place, limits)),
  ]
}

/** `here`: at how many places it is beside these. */
function traitsOf(places: readonly Place[], here: number, isSought: boolean): Partial<PoolSpec> {
  const hasOpen = places.some(({ refusal }) => refusal === undefined)
  const isSpread = places.length + here > 1
  return {
    ...(hasOpen ? { isPlaced: true } : {}),
    ...(isSpread ? { isSpread: true } : {}),
    ...(isSpread && isSought ? { isSought: true } : {}),
  }
}

function imported(id: PoolId, places: readonly Place[], limits: Limits, isSought: boolean): PoolSpec {
  const [first] = places
  const isAway = places.every(({ refusal }) => refusal !== undefined)
  // Whoever is leaving will be replaced sooner than whoever is lost.
  const refusal = places.find((place) => place.refusal?.reason === 'shutting_down')?.refusal ?? first!.refusal
  return {
    ...specOf(id, first!, limits),
    sharing: 'shared',
    maxInstances: 0,
    isPlaced: true,
    ...traitsOf(places, 0, isSought),
    ...(isAway && refusal !== undefined ? { refusal } : {}),
    // No list of pools names an agent.
    ...(agentIn(id) === undefined ? {} : { placeOf: nameOf(id) }),
    revision: `cluster:${id}`,
  }
}

function placeSpec(id: PoolId, place: Place, limits: Limits): PoolSpec {
  const { pool, announced, refusal } = place
  const { protocol, era, maxLineBytes } = announced
  return {
    ...specOf(id, place, limits),
    placeOf: nameOf(pool),
    ...(refusal === undefined ? {} : { refusal }),
    revision: `cluster:${id}:${protocol}:${era}:${maxLineBytes}`,
  }
}

/** Each client has a worker of its own there, which is a stream (contract 14.4). */
function specOf(id: PoolId, { announced }: Place, limits: Limits): PoolSpec {
  const { protocol, maxLineBytes } = announced
  return {
    id,
    instances: 0,
    maxInstances: limits.maxClients,
    sharing: 'isolated',
    protocol,
    era: announced.era === 'legacy' || announced.era === 'modern' ? announced.era : 'auto',
    restart: 'never',
    startTimeoutMs: 0,
    hangTimeoutMs: 0,
    isRemote: true,
    limits: { ...limits, maxInputBufferBytes: Math.max(limits.maxInputBufferBytes, maxLineBytes) },
    trace: false,
    revision: '',
  }
}
