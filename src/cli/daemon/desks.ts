/**
 * Who takes what the kernel hands on instead of routing it: the interfaces to which the daemon gives those actions. Each desk
 * answers by an event, whenever it can.
 */
import type { Action, CallerId, JournalOrder } from '../../kernel/events.ts'
import type { Observed } from '../../kernel/observation.ts'
import type { Identity } from '../../kernel/rights.ts'
import type { ClientId, PoolId } from '../../kernel/vocabulary.ts'

/** Who takes what is not routed; see `gateway-room.ts`. */
export interface CallDesk {
  take(call: Extract<Action, { do: 'call' }>): void
  cancel(from: CallerId, id: string | number): void
  callerGone(from: CallerId): void
  listChanged(pool: PoolId): void
  failCalls(): void
  observed(what: Observed): void
  /** The trace of a request that was observed and has not been told to have ended. */
  traceOf(observed: number): string | undefined
}

/** Who answers for pools that are made of others; see `aggregate-room.ts`. */
export interface AggregateDesk {
  take(message: Extract<Action, { do: 'aggregate' }>): void
  waived(client: ClientId, row: number): void
  gone(client: ClientId): void
  /** Nobody new is let in: what would last for ever ends. */
  drain(): void
  failCalls(): void
}

/** Who judges what clients show; see `admissions.ts`. */
export interface AdmissionDesk {
  judge(client: ClientId, token: string | undefined): void
  admitted(client: ClientId, identity: Identity): void
  turnedAway(client: ClientId, reason: string): void
  done(deed: Extract<Action, { do: 'audit' }>, traceId: string | undefined): void
  closed(client: ClientId): void
}

/** Who writes down what is said in kept sessions; see `session-journal.ts`. */
export interface JournalDesk {
  take(order: JournalOrder): void
}
