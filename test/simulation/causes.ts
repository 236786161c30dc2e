/**
 * Whether an error of the bus can be true, judged by what happened to that very request: to the worker it was at, to the
 * session it names, to the pool it was meant for.
 *
 * The figures are those of the contract and of the scenario, never the kernel's own. Where the world cannot know where a
 * request was (it waited, or lay in a queue), a cause must have come up in its pool while it waited.
 */
import type { Reason } from '../../src/kernel/faults.ts'
import type { PoolSpec } from '../../src/kernel/vocabulary.ts'
import type { CallRecord, ClientLine } from './line.ts'
import type { SimClient } from './sim-client.ts'
import type { SimWorker } from './sim-worker.ts'
import { isDenied, isOverRate, isPrincipalBusy, isUnlisted, isUnproved, mayKnow } from './visit-ears.ts'
import type { World } from './world.ts'

/** What an error says beside its reason. */
export interface Detail {
  readonly sessionId?: string
  readonly why?: string
  readonly pools?: readonly string[]
}

type Cause = (client: SimClient, line: ClientLine, detail: Detail) => boolean

/** Contract 6.7: so long a request waits for a lease. */
const LEASE_WAIT_MS = 30_000

export function isJustified(client: SimClient, reason: Reason, line: ClientLine, detail: Detail): boolean {
  const cause = CAUSES[reason]
  return cause === undefined || client.world.scenario.isMixed || cause(client, line, detail)
}

const CAUSES: Partial<Record<Reason, Cause>> = {
  shutting_down: ({ world }) => world.isStopping,
  worker_exited: (_client, line) => hasLostWorker(line, (worker) => worker.endedAtMs),
  worker_stalled: (_client, line) => hasLostWorker(line, (worker) => worker.stalledAtMs),
  session_lost: isSessionLost,
  session_not_owned: isAnothers,
  request_timeout: ({ world }, line) => {
    const timeoutMs = world.poolsFor(line).map(({ limits }) => limits.requestTimeoutMs)
    return timeoutMs.some((ms) => ms > 0 && world.nowMs - line.arrivedAtMs >= ms)
  },
  too_many_pending: (client, line) =>
    line.owedBefore >= client.world.spec.limits.maxPendingPerClient || isPrincipalBusy(client, line),
  too_many_sessions: ({ world, everNamed }) => everNamed.size + 1 > world.spec.limits.maxSessionsPerClient,
  no_worker: ({ world, pool }, line) =>
    !world.spec.pools.some((spec) => spec.id === pool && isServing(world, spec, line)),
  overloaded: ({ world }, line) =>
    world
      .poolsFor(line)
      .some(
        ({ sharing, isLazy }) => isLazy || (sharing === 'lease' && world.nowMs - line.arrivedAtMs >= LEASE_WAIT_MS),
      ),
  pool_required: ({ addressing, world }) => addressing === 'none' && world.spec.defaultPool === undefined,
  unknown_pool: (client, line) =>
    (line.pool === 'nowhere' || !client.world.spec.pools.some(({ id }) => id === client.pool)) && mayKnow(client, line),
  session_id_conflict: (_client, line) => line.sessions.length === 2 || line.receiver?.temper === 'lying',
  too_many_subscriptions: () => false,
  not_allowed: isDenied,
  rate_limited: isOverRate,
  unauthenticated: isUnproved,
  keys_unavailable: (_client, { offer }) => offer?.kind === 'unknowable',
  bad_list: isUnlisted,
  protocol_mismatch: ({ tongue }) => tongue !== 'plain',
}

/** The same for a call of an agent. */
export function hasCallLostWorker(world: World, call: CallRecord, atMs: (worker: SimWorker) => number): boolean {
  const { receiver } = call
  if (receiver !== undefined && call.method !== 'help') return atMs(receiver) <= world.nowMs
  // It may have died unread in the queue of a worker whose pool serves in the place of the agent's own (contract 6.6).
  return world.everyWorker.some(
    (worker) => world.mayServe(call.agent, worker.pool) && isWhile(worker, atMs(worker), call.startedMs),
  )
}

/** The worker that has read it has ended; or it died unread with one, or one of its pool ended while it waited. */
function hasLostWorker(line: ClientLine, atMs: (worker: SimWorker) => number): boolean {
  const { world } = line.author
  const at = line.receiver ?? line.lostWith
  if (at !== undefined) return atMs(at) <= world.nowMs
  const pools = world.poolsFor(line).map(({ id }) => id)
  return world.everyWorker.some((worker) => pools.includes(worker.pool) && isWhile(worker, atMs(worker), line.sentAtMs))
}

/** It has ended, and the bus was not done with it before. */
function isWhile({ buriedAtMs, world }: SimWorker, endedAtMs: number, fromMs: number): boolean {
  return endedAtMs <= world.nowMs && buriedAtMs >= fromMs
}

/** Contract 7.1: a worker that had the session has ended; for a plain client again only after it was told. */
function isSessionLost(client: SimClient, line: ClientLine, { sessionId }: Detail): boolean {
  const { world } = client
  if (sessionId === undefined || !line.sessions.includes(sessionId)) return false
  const pools = world.poolsFor(line).map(({ id }) => id)
  const sinceMs = client.namedAtMs.get(sessionId) ?? Number.POSITIVE_INFINITY
  const toldMs = client.tongue === 'plain' ? (client.toldLostMs.get(sessionId) ?? sinceMs) : sinceMs
  client.toldLostMs.set(sessionId, line.arrivedAtMs)
  return world.everyWorker.some(
    (worker) => pools.includes(worker.pool) && isWhile(worker, worker.endedAtMs, Math.max(sinceMs, toldMs)),
  )
}

/** Contract 6.4: another client has used the name, and had not gone when this one did. */
function isAnothers(client: SimClient, line: ClientLine, { sessionId }: Detail): boolean {
  if (sessionId === undefined || !line.sessions.includes(sessionId)) return false
  for (const other of client.world.namers.get(sessionId) ?? [])
    if (other !== client && other.goneAtMs >= line.arrivedAtMs) return true
  return false
}

/** A worker of the pool has been there all the time, free for anybody. */
function isServing(world: World, pool: PoolSpec, line: ClientLine): boolean {
  if (pool.sharing !== 'shared' || line.author.tongue !== 'plain') return false
  return world.workers.some(
    (worker) =>
      worker.spec.revision === pool.revision &&
      worker.isAlive &&
      worker.startedAtMs < line.arrivedAtMs &&
      worker.endedAtMs === Number.POSITIVE_INFINITY,
  )
}
