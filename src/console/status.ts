/** The state of a bus as it is told to others. Types only. */

import type { Roll } from '../kernel/roll.ts'
import type { BusSnapshot, WorkerSnapshot } from '../kernel/snapshot.ts'
import type { ClusterFigures } from './cluster-view.ts'

/** A worker as it is shown: what its source tells of it, told as the kind of source has it. */
export type WorkerStatus = Omit<WorkerSnapshot, 'facts'> & {
  readonly pid: number | null
  /** Of one that is not a process of this machine. */
  readonly address?: string
  /** Lately, or over the life of its process where nobody has looked before. */
  readonly requests_per_sec?: number
  /** Of its process and those below it, where the system tells: 100 is one processor. */
  readonly cpu_percent?: number
  readonly memory_bytes?: number
  /** The last line it wrote to stderr. */
  readonly last_stderr?: string
}

export interface KeptStatus {
  readonly state: string
  readonly kept: number
  readonly detached: number
  readonly bytes: number
  readonly dropped: number
}

/** `clients` and `sessions` are numbers; the lists of them are beside, and only where they were asked for. */
export type Status = Omit<BusSnapshot, 'workers' | 'kept_sessions'> &
  Partial<Roll> & {
    readonly workers: readonly WorkerStatus[]
    readonly pid: number
    readonly version: string
    readonly uptime_sec: number
    readonly rss_bytes: number
    readonly addresses: readonly string[]
    readonly config: string
    /** The audit log, and what is wrong with the access file, where there are such. */
    readonly access?: {
      readonly audit?: { readonly state: 'ok' | 'failed'; readonly lost: number }
      readonly problem?: string
    }
    /** The pools that are made of others. */
    readonly aggregates?: readonly {
      readonly pool: string
      readonly clients: number
      readonly tools: number
      readonly missing: readonly string[]
      readonly conflicts: readonly { pool: string; own: string; name: string; kept_by: string; listed: string }[]
    }[]
    /** Sessions that outlive their clients, and whether what is said in them is written down. */
    readonly kept_sessions?: KeptStatus
    /** The other nodes, where there are such (contract 14.10). */
    readonly cluster?: ClusterFigures
    /** What is open at the web doors, where there are such (contract 10.18). */
    readonly web?: {
      readonly connections: number
      readonly mcp_sessions: number
      readonly acp_connections: number
      readonly streams: number
    }
    /** The trace store, where there is one. */
    readonly traces?: { readonly state: 'ok' | 'failed'; readonly dropped: number }
  }
