/** A copy of what the bus is doing, for people and programs that look on; nobody outside the kernel sees a table. */
import type { Core } from './core.ts'
import type { Facts } from './events.ts'
import type { Kept } from './kept/kept.ts'
import { sayEnd } from './last-end.ts'
import type { WorkerState } from './lifecycle.ts'
import type { Worker } from './peers.ts'
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
  /** For how long its queue has been full. */
  readonly full_sec?: number
  readonly outstanding: number
  readonly sessions: number
  /** Requests that were ever sent to it. */
  readonly requests: number
  /** How long its process has been there. */
  readonly uptime_sec?: number
  /** Why it is not served by anybody: parked, or not to be started. */
  readonly last_error?: string
  /** Of one without a process: the last one did not get so far that it could be spoken to. */
  readonly never_ran?: true
  /** Of one that is parked: when it is tried again. */
  readonly retry_in_sec?: number
  /** How the process before this one ended. */
  readonly last_exit?: { readonly reason: string; readonly how: string; readonly ago_sec: number }
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
  /** Where sessions outlive their clients. */
  readonly kept_sessions?: { readonly kept: number; readonly detached: number; readonly bytes: number }
  /** Where callers are told apart. */
  readonly principals?: readonly PrincipalSnapshot[]
}

export interface PrincipalSnapshot {
  readonly name: string
  readonly connections: number
  readonly pending: number
  readonly refused: number
}

function takeWorker(worker: Worker, nowMs: number): WorkerSnapshot {
  const { lastEnd, retryAtMs } = worker
  const isParked = worker.state === 'parked'
  return {
    id: worker.id,
    pool: worker.pool.spec.id,
    state: worker.state,
    generation: worker.generation,
    restarts: worker.restarts.total,
    facts: worker.facts ?? {},
    queue_bytes: worker.outbox.retainedBytes,
    ...(worker.outbox.isFull ? { full_sec: seconds(worker.stuckMs) } : {}),
    outstanding: worker.outstanding.size - worker.ownerless.size,
    sessions: worker.sessions.size,
    requests: worker.requestCount,
    ...(worker.isAlive ? { uptime_sec: seconds(nowMs - worker.spawnedAtMs) } : {}),
    ...(isWithout(worker) && !worker.hasOpened ? { never_ran: true as const } : {}),
    ...(worker.lastError === undefined ? {} : { last_error: worker.lastError }),
    ...(isParked && retryAtMs !== undefined ? { retry_in_sec: seconds(retryAtMs - nowMs) } : {}),
    ...(lastEnd === undefined
      ? {}
      : { last_exit: { reason: lastEnd.reason, how: sayEnd(lastEnd), ago_sec: seconds(nowMs - lastEnd.atMs) } }),
  }
}

function isWithout({ state }: Worker): boolean {
  return state === 'parked' || state === 'backing_off'
}

function seconds(ms: number): number {
  return Math.max(0, Math.round(ms)) / 1000
}

function takePrincipal({ id, clients, pendingCount, refused }: PrincipalRow): PrincipalSnapshot {
  return { name: id, connections: clients.size, pending: pendingCount, refused }
}

export function takeSnapshot(core: Core, kept: Kept, nowMs: number): BusSnapshot {
  const peers = [...core.clients.values(), ...core.workers.values()]
  return {
    phase: core.phase,
    workers: [...core.workers.values()].map((worker) => takeWorker(worker, nowMs)),
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
    ...(kept.isOn ? { kept_sessions: kept.figures } : {}),
    ...(core.spec.hasAccess ? { principals: [...core.principals.rows].map(takePrincipal) } : {}),
  }
}
