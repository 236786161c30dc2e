/**
 * What a reload changes, in the words of the file: which pools come, go, grow or are replaced, and by which keys; and what
 * else is different. Names of keys only: values may be secrets.
 *
 * It says what the kernel will do (contract 7.5): a pool of the same revision that has as many instances or more stays.
 */
import type { PoolSpec } from '../kernel/vocabulary.ts'
import type { BusConfig } from './bus-config.ts'
import { LIMIT_KEYS, POOL_LIMIT_NAMES } from './limit-keys.ts'

export interface PoolChange {
  readonly pool: string
  /** `changed`: its workers are replaced. `grown`: those that run stay. */
  readonly change: 'added' | 'removed' | 'changed' | 'grown'
  /** What is different; for those that were there before. */
  readonly keys: readonly string[]
  readonly instances: number
}

export interface ConfigChanges {
  readonly pools: readonly PoolChange[]
  /** Other keys at the top of the file. */
  readonly keys: readonly string[]
}

export function changesBetween(before: BusConfig, after: BusConfig): ConfigChanges {
  const kept = new Set(after.bus.pools.map(({ id }) => id))
  const removed = before.bus.pools.filter(({ id }) => !kept.has(id))
  const pools = [
    ...after.bus.pools.flatMap((pool) => changeOf(pool, before, after) ?? []),
    ...removed.map(({ id, instances }): PoolChange => ({ pool: id, change: 'removed', keys: [], instances })),
  ]
  return { pools, keys: topKeys(before, after) }
}

function changeOf({ id, instances, revision }: PoolSpec, before: BusConfig, after: BusConfig): PoolChange | undefined {
  const known = before.bus.pools.find((pool) => pool.id === id)
  if (known === undefined) return { pool: id, change: 'added', keys: [], instances }
  const isSame = known.revision === revision
  if (isSame && known.instances === instances) return undefined
  const change = isSame && instances > known.instances ? 'grown' : 'changed'
  return { pool: id, change, keys: poolKeys(id, before, after), instances }
}

/** A change as a person reads it. */
export function describeChange({ pool, change, keys, instances }: PoolChange): string {
  const workers = `${instances} ${instances === 1 ? 'worker' : 'workers'}`
  const what = keys.length === 0 ? '' : ` (${keys.join(', ')})`
  if (change === 'added') return `added ${pool}: ${workers}`
  if (change === 'removed') return `removed ${pool}: its workers end with their last session`
  if (change === 'grown') return `grown ${pool}: ${workers}, those that run stay`
  return `changed ${pool}${what}: ${workers}, old ones end with their last session`
}

function poolKeys(id: string, before: BusConfig, after: BusConfig): string[] {
  const [one, other] = [before, after].map(({ bus, launches }) => {
    const pool = bus.pools.find((each) => each.id === id)!
    // Of the limits, those that a pool can have of its own.
    const limits = POOL_LIMIT_NAMES.map((key) => pool.limits[LIMIT_KEYS[key].name])
    return { ...pool, ...launches.get(id), limits }
  })
  return differing(one!, other!)
    .filter((key) => key !== 'revision')
    .map(inFile)
}

function topKeys({ bus: one, ...before }: BusConfig, { bus: other, ...after }: BusConfig): string[] {
  const { listen, access, aio, agents, registry } = before
  const next = { listen: after.listen, access: after.access, aio: after.aio }
  const files = differing(
    { listen, access, aio, agents, registry },
    { ...next, agents: after.agents, registry: after.registry },
  )
  const bus = differing(
    { limits: one.limits, default_pool: one.defaultPool },
    { limits: other.limits, default_pool: other.defaultPool },
  )
  return [...bus, ...files]
}

function differing(one: object, other: object): string[] {
  const [left, right] = [one, other] as Record<string, unknown>[]
  const keys = new Set([...Object.keys(left!), ...Object.keys(right!)])
  return [...keys].filter((key) => JSON.stringify(left![key]) !== JSON.stringify(right![key]))
}

/** `startTimeoutMs` is `start_timeout_sec` there. */
function inFile(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replace(/_ms$/, '_sec')
}
