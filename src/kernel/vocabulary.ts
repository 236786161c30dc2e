/**
 * The nouns of the specification as types, and nothing else: no behaviour, no defaults.
 *
 * Ids are branded: mixing the JSON-RPC id of a message with the number of a client is this field's own bug.
 */
import type { Field } from '../wire/fields.ts'
import type { Reason } from './faults.ts'
import type { Limits } from './limits.ts'

/** The number of a client connection; never reused (contract 3.2). */
export type ClientId = number & { readonly __client: unique symbol }
/** The slot of a worker; a generation counts the processes that have filled it (contract 3.3). */
export type WorkerId = number & { readonly __worker: unique symbol }
export type PoolId = string
export type SessionId = string

/** How a pool's workers are divided among clients (contract 6.7). */
export type Sharing = 'shared' | 'isolated' | 'lease'
/** What goes to the next worker in turn: a connection with all its sessions, or each new session (contract 6.6). */
export type Balance = 'connection' | 'session'
/** Whether a worker that exits comes back (contract 7.2). */
export type RestartPolicy = 'always' | 'on-failure' | 'never'
/** What a pool's workers speak; `auto` recognises it from the first message of each connection. */
export type Protocol = 'auto' | 'plain' | (string & {})
/** MCP with the initialize handshake (legacy) or with per-request `_meta` (modern). */
export type Era = 'auto' | 'legacy' | 'modern'

/** How the sessions of a pool outlive their clients (contract 12.1). */
export interface Keeping {
  readonly keepMs: number
  /** What is said is kept on disk; else in memory. */
  readonly isJournaled: boolean
  /** How long a question waits for somebody. */
  readonly questionMs: number
  /** Of what is said in one session, so much is kept. */
  readonly maxBytes: number
  /** Sessions without a client. */
  readonly maxKept: number
}

/** Why somebody is not served, let in or believed. */
export interface Refusal {
  readonly reason: Reason
  readonly detail?: Readonly<Record<string, unknown>>
}

/** What the kernel needs to know of a pool; the command line belongs to `src/process`. */
export interface PoolSpec {
  readonly id: PoolId
  readonly instances: number
  readonly maxInstances: number
  readonly sharing: Sharing
  /** Left out: `connection`. */
  readonly balance?: Balance
  /** The pool that serves where this one has no worker; chains of them end. */
  readonly fallback?: PoolId
  readonly protocol: Protocol
  readonly era: Era
  readonly restart: RestartPolicy
  readonly startTimeoutMs: number
  /** 0: off. */
  readonly hangTimeoutMs: number
  /** Its workers start with the first message for them, and again with the next one after they have ended. */
  readonly isLazy?: boolean
  /** A principal with an environment for it has one worker of its own, whatever the sharing (contract 9.22). */
  readonly hasOwnWorkers?: boolean
  /** Its workers are upstreams on this or another machine, perhaps other buses (contract 11). */
  readonly isRemote?: boolean
  /** Its workers take the end of any session, whatever the agents behind them can do. */
  readonly closesSessions?: boolean
  /** A lazy worker without sessions and requests for so long is ended; left out: never. */
  readonly idleTimeoutMs?: number
  readonly limits: Limits
  /** Left out: a session ends with its client. */
  readonly keeping?: Keeping
  /** Traffic of this pool is recorded in the trace store. */
  readonly trace: boolean
  /** Its processes live for one call each and are not the kernel's: only the gateway starts them (spec N10). */
  readonly isAioOnly?: boolean
  /** What its workers are told that they may ask for, because the bus answers it (contract 13.16). */
  readonly offers?: Readonly<Record<string, unknown>>
  /** It is made of other pools and has no workers: what is for it is handed on (contract 13.1). */
  readonly isAggregate?: boolean
  /** Workers of this name are elsewhere too: where a newcomer goes is asked for (contract 14.3). */
  readonly isPlaced?: true
  /** Several nodes have it: what it lists is asked of all of them (contract 14.6). */
  readonly isSpread?: true
  /** So is, for a session that is claimed, where it lives (contract 14.6). */
  readonly isSought?: true
  /** One of the places of the pool of that name: its rights are that pool's, and no list names it (contract 14.2). */
  readonly placeOf?: PoolId
  /** Its sessions can be loaded wherever it has workers (contract 14.6). */
  readonly isPortable?: true
  /** Nobody is there now: whoever comes is told this. */
  readonly refusal?: Refusal
  /** Changes whenever anything of the pool changes, command line included: reload compares it (contract 7.5). */
  readonly revision: string
}

/** What the kernel needs to know of the whole bus. */
/** The call for which an agent makes another, as it goes along to the node of that one (contract 14.10). */
export interface CallCause {
  /** Of the trace that the message names; null: the agent has nothing in hand. */
  readonly callId: number | null
  readonly depth: number
  /** The agent that calls. */
  readonly agent?: string
  /** 32 hexadecimal digits. */
  readonly otelTraceId?: string
}

export interface BusSpec {
  readonly pools: readonly PoolSpec[]
  readonly defaultPool: PoolId | undefined
  readonly limits: Limits
  /** What is handed to the gateway instead of being routed: methods of the bus, or all that name an agent (spec N1). */
  readonly gateway?: 'off' | 'bus' | 'all'
  /** Left out: messages name their pool by `pool` (contract 6.3). */
  readonly addressing?: Addressing
  /** The random id of this bus, by which it is known to others (contract 11.6); left out: it is known to none. */
  readonly busId?: string
  /** The name of this bus among others: what is at this place is its own (contract 14.2). */
  readonly node?: string
  /** Agents that only other nodes have, each with the pool through which it is reached (contract 14.10). */
  readonly farAgents?: ReadonlyMap<string, PoolId>
  /** Where sessions live can be looked up (contract 14.6). */
  readonly hasDirectory?: boolean
  /** Callers are told apart, and are told as whom (contract 9). */
  readonly hasAccess?: boolean
  /** Every request of a client is told of when it has ended (contract 9.23). */
  readonly hasAudit?: boolean
  /** How much has happened lately is counted, for those who look on (contract 15.7). */
  readonly hasTraffic?: boolean
}

/**
 * How messages name their pool on a bus whose pools are agents that know nothing of each other: by these fields, and the
 * names of sessions are made different where two agents choose the same.
 */
export interface Addressing {
  /** Fields that may name a pool, in this order; they are cut before the worker gets the message. */
  readonly fields: readonly Field[]
  /** The result, as JSON, of a handshake that names no pool. */
  readonly welcome: string
}

/** Who a client is; whoever comes through a door that tells nobody apart is the same one. */
export type Principal = string
export const LOCAL: Principal = 'local'

/** Where a client connected; what it may ask of the bus itself depends on it. `internal`: an exchange of the gateway's. */
export type Door = 'stdio' | 'unix' | 'tcp' | 'tls' | 'http' | 'websocket' | 'cluster' | 'internal'
