/**
 * The state that all rooms of the kernel share: peers, tables, deadlines, counts, and the actions of the event at hand.
 *
 * It decides nothing. Time is what the current event brought; chance comes from a source that is given.
 */

import { IdTable } from '../wire/id-table.ts'
import type { Action, LogLevel } from './events.ts'
import type { DropReason, Reason } from './faults.ts'
import { Owed } from './owed.ts'
import type { Client, Peer, Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import { Principals } from './principals.ts'
import { SessionNames } from './session-names.ts'
import { Sessions } from './sessions.ts'
import { Timers } from './timers.ts'
import { Traffic } from './traffic.ts'
import type { BusSpec, ClientId, PoolId, WorkerId } from './vocabulary.ts'

export class Core {
  spec: BusSpec
  nowMs = 0
  readonly chance: () => number
  readonly clients = new Map<ClientId, Client>()
  /** Internal clients: they come and go with every call, and their ids are the bus's own. */
  readonly exchanges = new IdTable<Client>(1)
  readonly workers = new Map<WorkerId, Worker>()
  readonly pools = new Map<PoolId, Pool>()
  readonly principals = new Principals(() => this.nowMs)
  readonly sessions = new Sessions()
  readonly traffic = new Traffic()
  /** Only where workers choose ids without knowing of each other, and their clients do not tell them apart. */
  readonly sessionNames: SessionNames | undefined
  readonly timers = new Timers()
  readonly owed = new Owed(() => this.nowMs, this.timers)
  readonly dropped = new Map<DropReason, number>()
  readonly refused = new Map<Reason, number>()
  readonly totals = { linesFromClients: 0, linesFromWorkers: 0, clients: 0, restarts: 0 }
  actions: Action[] = []
  /** Peers whose outbox has something new. */
  dirty: Peer[] = []
  retainedBytes = 0
  /** Of these, what waits for a worker, a lease or a welcome: only workers make it less. */
  waitingBytes = 0
  /** Requests may be taken: where they are to be audited, they can be. */
  isAudited = true
  /** From the time of the events to that of a calendar. */
  calendarOffsetMs = 0
  phase: 'running' | 'draining' | 'flushing' | 'ending' | 'finished' = 'running'

  constructor(spec: BusSpec, chance: () => number) {
    this.spec = spec
    this.chance = chance
    if (spec.addressing !== undefined) this.sessionNames = new SessionNames(chance)
  }

  /** Connections and exchanges alike. */
  *everyClient(): Generator<Client> {
    yield* [...this.clients.values()]
    yield* this.exchanges.values()
  }

  get calendarMs(): number {
    return this.nowMs + this.calendarOffsetMs
  }

  log(level: LogLevel, text: string, about: Record<string, unknown> = {}): void {
    this.actions.push({ do: 'log', level, text, about })
  }

  drop(reason: DropReason): void {
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + 1)
  }

  countRefusal(reason: Reason): void {
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1)
  }

  /** The pools of the configuration with their branches, and those that retire. */
  get everyPool(): ReadonlySet<Pool> {
    const pools = new Set(this.pools.values())
    for (const { branches } of this.pools.values()) for (const branch of branches) pools.add(branch)
    for (const { pool } of this.workers.values()) if (pool.isRetired) pools.add(pool)
    return pools
  }

  /** The longest line a client may send: as long as the largest any pool or the bus allows (contract 8.1). */
  get maxClientLineBytes(): number {
    let bytes = this.spec.limits.maxInputBufferBytes
    for (const pool of this.spec.pools) bytes = Math.max(bytes, pool.limits.maxInputBufferBytes)
    return bytes
  }
}
