/**
 * All that an aggregate knows of the rest of the bus.
 *
 * Towards a member it is a client of that pool, by a *delegate*; towards its own clients it answers by `reply`. Lines end
 * with their newline.
 */

import type { WorkerState } from '../kernel/lifecycle.ts'
import type { Rights } from '../kernel/rights.ts'
import type { Era, Sharing } from '../kernel/vocabulary.ts'

/** A client of a pool that speaks for somebody: for one client of the aggregate, or for the bus itself. */
export interface Delegate {
  readonly id: number
  send(line: Buffer): void
  /** Nothing more is wanted of the member: what is open there is cancelled. */
  leave(): void
}

export interface ReplyOptions {
  /** The request that this answers. */
  readonly row?: number | undefined
  /** How it ended, for the audit log. */
  readonly outcome?: string | undefined
  /** The delegate that brought it: its worker waits while the client does not read. */
  readonly via?: number | undefined
  readonly hasBatches?: boolean
}

export interface MemberFacts {
  readonly sharing: Sharing
  readonly era: Era
}

export interface AggregatePort {
  /** `client`: the connection that it speaks for; undefined: the bus. */
  open(pool: string, client: number | undefined, received: (line: Buffer) => void): Delegate
  reply(client: number, line: Buffer, options?: ReplyOptions): void
  /** A request that its client has cancelled is over. */
  waive(client: number, row: number): void
  /** Undefined: it may do everything. */
  rightsOf(client: number): Rights | undefined
  /** Undefined: there is no such pool any more. */
  factsOf(pool: string): MemberFacts | undefined
  workersOf(pool: string): readonly { readonly state: WorkerState; readonly generation: number }[]
  nowMs(): number
  /** Calls `run` after so long, unless what it returns is called first. */
  after(delayMs: number, run: () => void): () => void
  log(level: 'debug' | 'info' | 'warn', text: string, about: Readonly<Record<string, unknown>>): void
  /** Something was refused for this reason. */
  count(reason: string): void
  /** What nobody can guess, for ids that must not be. */
  readonly secret: string
}
