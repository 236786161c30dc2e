/**
 * Who is there, one by one, for people and programs that look on: pools, clients and sessions (contract 8.6).
 *
 * The counts are in `snapshot.ts`. A list is cut where it gets long: nobody reads ten thousand rows, and making them would
 * hold up everybody.
 */
import type { Core } from './core.ts'
import { FIXED } from './limits.ts'
import type { Client } from './peers.ts'
import type { Pool } from './pools.ts'
import type { Session } from './sessions.ts'

export interface PoolRow {
  readonly id: string
  readonly workers: number
  readonly ready: number
  /** Messages that wait for one of its workers. */
  readonly waiting: number
  readonly sharing: string
  /** What its workers speak, once that is known. */
  readonly protocol: string | null
}

export interface ClientRow {
  readonly id: number
  readonly door: string
  readonly principal: string
  readonly pool: string | null
  readonly sessions: number
  readonly pending: number
  readonly queue_bytes: number
}

export interface SessionRow {
  readonly id: string
  readonly pool: string
  readonly worker: number
  readonly client: number | null
  readonly principal: string
}

export interface Roll {
  readonly pools: readonly PoolRow[]
  readonly client_list: readonly ClientRow[]
  readonly session_list: readonly SessionRow[]
}

export function takeRoll(core: Core): Roll {
  return {
    pools: [...core.pools.values()].map(describePool),
    client_list: first(core.clients.values(), describeClient),
    session_list: first(sessionsOf(core), describeSession),
  }
}

function describePool({ spec, family, dialect }: Pool): PoolRow {
  const workers = family.flatMap((pool) => pool.workers)
  const waiting = family.reduce((count, pool) => count + pool.waiting.routes.size + pool.leases.routes.size, 0)
  const ready = workers.filter((worker) => worker.isReady).length
  return {
    id: spec.id,
    workers: workers.length,
    ready,
    waiting,
    sharing: spec.sharing,
    protocol: dialect?.table.protocol ?? null,
  }
}

function describeClient(client: Client): ClientRow {
  return {
    id: client.id,
    door: client.door,
    principal: client.owner?.id ?? '',
    pool: client.pool ?? null,
    sessions: client.sessions.size,
    pending: client.pendingCount,
    queue_bytes: client.outbox.retainedBytes + client.heldBytes,
  }
}

function describeSession({ id, worker, driver, principal }: Session): SessionRow {
  return { id, pool: worker.pool.spec.id, worker: worker.id, client: driver?.id ?? null, principal }
}

function* sessionsOf({ workers }: Core): Generator<Session> {
  for (const { sessions } of workers.values()) yield* sessions.values()
}

function first<Item, Row>(items: Iterable<Item>, describe: (item: Item) => Row): Row[] {
  const rows: Row[] = []
  for (const item of items) {
    if (rows.length === FIXED.maxRollRows) break
    rows.push(describe(item))
  }
  return rows
}
