/**
 * The nouns of the specification as types, and nothing else: no behaviour, no defaults.
 *
 * Ids are branded: mixing the JSON-RPC id of a message with the number of a client is this field's own bug.
 */
import type { Field } from '../wire/fields.ts'
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
  /** Its workers take the end of any session, whatever the agents behind them can do. */
  readonly closesSessions?: boolean
  /** A lazy worker without sessions and requests for so long is ended; left out: never. */
  readonly idleTimeoutMs?: number
  readonly limits: Limits
  /** Traffic of this pool is recorded in the trace store. */
  readonly trace: boolean
  /** Its processes live for one call each and are not the kernel's: only the gateway starts them (spec N10). */
  readonly isAioOnly?: boolean
  /** Changes whenever anything of the pool changes, command line included: reload compares it (contract 7.5). */
  readonly revision: string
}

/** What the kernel needs to know of the whole bus. */
export interface BusSpec {
  readonly pools: readonly PoolSpec[]
  readonly defaultPool: PoolId | undefined
  readonly limits: Limits
  /** What is handed to the gateway instead of being routed: methods of the bus, or all that name an agent (spec N1). */
  readonly gateway?: 'off' | 'bus' | 'all'
  /** Left out: messages name their pool by `pool` (contract 6.3). */
  readonly addressing?: Addressing
  /** Callers are told apart, and are told as whom (contract 9). */
  readonly hasAccess?: boolean
  /** Every request of a client is told of when it has ended (contract 9.23). */
  readonly hasAudit?: boolean
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
export type Door = 'stdio' | 'unix' | 'tcp' | 'tls' | 'internal'
