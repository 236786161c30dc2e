/** A copy of what the bus is doing, for people and programs that look on; nobody outside the kernel sees a table. */
import type { Core } from './core.ts'
import type { Facts } from './events.ts'
import type { WorkerState } from './lifecycle.ts'
import type { PrincipalRow } from './principals.ts'

export interface WorkerSnapshot {
  readonly id: number
  readonly pool: string
  readonly state: WorkerState
  readonly generation: number
  readonly restarts: number
  /** What its source tells of it while it lives. */
  readonly facts: Facts
  readonly queue_bytes: number
  readonly outstanding: number
  readonly sessions: number
  readonly last_error?: string
}

export interface BusSnapshot {
  readonly phase: string
  readonly workers: readonly WorkerSnapshot[]
  readonly clients: number
  readonly sessions: number
  readonly outstanding: number
  readonly queue_bytes: number
  readonly paused: number
  readonly dropped: Readonly<Record<string, number>>
  readonly refused: Readonly<Record<string, number>>
  readonly lines: { readonly from_clients: number; readonly from_workers: number }
  readonly restarts: number
  readonly clients_total: number
  /** Where callers are told apart. */
  readonly principals?: readonly PrincipalSnapshot[]
}

export interface PrincipalSnapshot {
  readonly name: string
  readonly connections: number
  readonly pending: number
  readonly refused: number
}

function takePrincipal({ id, clients, pendingCount, refused }: PrincipalRow): PrincipalSnapshot {
  return { name: id, connections: clients.size, pending: pendingCount, refused }
}

export function takeSnapshot(core: Core): BusSnapshot {
  const peers = [...core.clients.values(), ...core.workers.values()]
  return {
    phase: core.phase,
    workers: [...core.workers.values()].map((worker) => ({
      id: worker.id,
      pool: worker.pool.spec.id,
      state: worker.state,
      generation: worker.generation,
      restarts: worker.restarts.total,
      facts: worker.facts ?? {},
      queue_bytes: worker.outbox.retainedBytes,
      outstanding: worker.outstanding.size - worker.ownerless.size,
      sessions: worker.sessions.size,
      ...(worker.lastError === undefined ? {} : { last_error: worker.lastError }),
    })),
    clients: core.clients.size,
    sessions: core.sessions.size,
    outstanding: [...core.clients.values()].reduce((count, client) => count + client.pendingCount, 0),
    queue_bytes: peers.reduce((bytes, peer) => bytes + peer.outbox.retainedBytes + peer.heldBytes, 0),
    paused: peers.filter((peer) => peer.isPaused).length,
    dropped: Object.fromEntries(core.dropped),
    refused: Object.fromEntries(core.refused),
    lines: { from_clients: core.totals.linesFromClients, from_workers: core.totals.linesFromWorkers },
    restarts: core.totals.restarts,
    clients_total: core.totals.clients,
    ...(core.spec.hasAccess ? { principals: [...core.principals.rows].map(takePrincipal) } : {}),
  }
}
