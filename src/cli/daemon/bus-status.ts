/**
 * The status of a bus: what the kernel counts, and what is counted outside of it, in one document (contract 8.6).
 *
 * It asks and changes nothing. Whoever is no administrator is shown a part of it (contract 9.6).
 */
import type { Status, WorkerStatus } from '../../console/status.ts'
import { mayUsePool, type Rights } from '../../kernel/rights.ts'
import type { BusSnapshot, WorkerSnapshot } from '../../kernel/snapshot.ts'
import { ownMemoryBytes } from '../../process/usage.ts'
import { VERSION } from '../version.ts'
import type { Admissions } from './admissions.ts'
import type { AggregateRoom } from './aggregate-room.ts'
import type { BusStore } from './bus-store.ts'
import type { ClusterRoom } from './cluster-room.ts'
import type { Edges } from './edges.ts'
import type { GatewayRoom } from './gateway-room.ts'
import type { WebRoom } from './web-room.ts'

/** Those who count something; who is not loaded counts nothing. */
export interface Rooms {
  readonly edges: Edges
  readonly admissions: Admissions | undefined
  readonly aggregates: AggregateRoom | undefined
  readonly cluster: ClusterRoom | undefined
  readonly gateway: GatewayRoom | undefined
  readonly store: BusStore | undefined
  readonly web: WebRoom | undefined
}

export interface About {
  readonly uptimeMs: number
  readonly addresses: readonly string[]
  readonly config: string
}

export function statusOfBus(snapshot: BusSnapshot, rooms: Rooms, about: About): Status {
  const { workers, kept_sessions: kept, ...bus } = snapshot
  const { admissions, aggregates, cluster, edges, gateway, web } = rooms
  const journal = rooms.store?.journal?.status() ?? { state: 'memory', dropped: 0 }
  return {
    ...bus,
    workers: workers.map(statusOfWorker),
    refused: sum([
      Object.entries(bus.refused),
      gateway?.refused ?? [],
      aggregates?.refused ?? [],
      web?.refusedByReason ?? [],
      edges.failures === 0 ? [] : [['internal_error', edges.failures]],
    ]),
    ...(admissions && { access: admissions.status }),
    ...(kept && { kept_sessions: { ...journal, ...kept } }),
    ...(aggregates && { aggregates: aggregates.status }),
    ...(cluster && { cluster: cluster.figures }),
    ...(web && { web: web.figures }),
    ...(gateway && { traces: gateway.status() }),
    pid: process.pid,
    version: VERSION,
    uptime_sec: Math.round(about.uptimeMs) / 1000,
    rss_bytes: ownMemoryBytes(),
    addresses: about.addresses,
    config: about.config,
  }
}

/** Several count what the bus refuses, each what the others do not see. */
function sum(counts: readonly Iterable<readonly [reason: string, count: number]>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const count of counts) for (const [reason, more] of count) sums[reason] = (sums[reason] ?? 0) + more
  return sums
}

/** Only a worker that is a process has a pid; one that is elsewhere has an address. */
function statusOfWorker({ facts, ...worker }: WorkerSnapshot): WorkerStatus {
  const { pid, address } = facts
  return {
    ...worker,
    pid: typeof pid === 'number' ? pid : null,
    ...(typeof address === 'string' ? { address } : {}),
  }
}

/** An observer sees its pools, and nothing of other callers or of this machine. */
export function statusFor(status: Status, rights: Rights | undefined): Partial<Status> {
  if (rights === undefined || rights.role === 'admin') return status
  const { config: _config, principals: _principals, access: _access, pid: _pid, ...known } = status
  const { client_list: _clients, session_list: _sessions, ...shown } = known
  const workers = status.workers
    .filter(({ pool }) => mayUsePool(rights, pool))
    .map(({ last_stderr: _said, address: _address, ...worker }) => ({ ...worker, pid: null }))
  const pools = (status.pools ?? []).filter(({ id }) => mayUsePool(rights, id))
  return { ...shown, workers, pools }
}
