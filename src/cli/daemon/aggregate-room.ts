/**
 * The aggregates of a running bus, joined to the kernel: messages for them come in, answers go back, and delegates speak
 * for their clients to members.
 *
 * Loaded only when the configuration has aggregates. It decides nothing: what is listed and who is asked is in
 * `src/aggregate`, where a message goes is the kernel's.
 */
import { randomBytes } from 'node:crypto'
import { Aggregate, type AggregateStatus } from '../../aggregate/aggregate.ts'
import type { AggregatePort } from '../../aggregate/port.ts'
import type { BusConfig } from '../../config/bus-config.ts'
import type { Action } from '../../kernel/events.ts'
import type { Rights } from '../../kernel/rights.ts'
import type { ClientId, PoolId, PoolSpec } from '../../kernel/vocabulary.ts'
import { afterWaking } from './bus-clock.ts'
import type { Daemon } from './daemon.ts'
import type { AggregateDesk } from './desks.ts'
import type { Edges } from './edges.ts'
import type { Log } from './log.ts'

export interface AggregateRoomOptions {
  readonly daemon: Daemon
  readonly log: Log
  readonly edges: Edges
  /** What the client may do; undefined: everything. */
  readonly rightsOf: (client: ClientId) => Rights | undefined
}

export class AggregateRoom implements AggregateDesk {
  readonly refused = new Map<string, number>()
  readonly #options: AggregateRoomOptions
  readonly #port: AggregatePort
  readonly #aggregates = new Map<PoolId, Aggregate>()
  #pools: ReadonlyMap<PoolId, PoolSpec> = new Map()

  constructor(options: AggregateRoomOptions) {
    this.#options = options
    this.#port = this.#makePort()
  }

  /** The aggregates of this configuration, of which the kernel knows by now. */
  adopt({ bus, aggregates }: BusConfig): void {
    this.#pools = new Map(bus.pools.map((pool) => [pool.id, pool]))
    for (const [id, aggregate] of this.#aggregates) {
      if (aggregates.some((spec) => spec.id === id)) continue
      aggregate.failAll('no_member')
      aggregate.close()
      this.#aggregates.delete(id)
    }
    for (const spec of aggregates) {
      const known = this.#aggregates.get(spec.id)
      if (known === undefined) this.#aggregates.set(spec.id, new Aggregate(this.#port, spec))
      else known.adopt(spec)
    }
  }

  take({ client, pool, bytes, row }: Extract<Action, { do: 'aggregate' }>): void {
    this.#guard(() => {
      if (pool !== undefined) this.#aggregates.get(pool)?.take(client, bytes, row)
      else for (const aggregate of this.#aggregates.values()) if (aggregate.takeAnswer(client, bytes)) return
    })
  }

  waived(client: ClientId, row: number): void {
    this.#forEach((aggregate) => aggregate.waived(client, row))
  }

  gone(client: ClientId): void {
    this.#forEach((aggregate) => aggregate.gone(client))
  }

  drain(): void {
    this.#forEach((aggregate) => aggregate.drain())
  }

  failCalls(): void {
    this.#forEach((aggregate) => aggregate.failAll('shutting_down'))
  }

  rightsChanged(): void {
    this.#forEach((aggregate) => aggregate.rightsChanged())
  }

  get status(): readonly AggregateStatus[] {
    return [...this.#aggregates.values()].map((aggregate) => aggregate.status)
  }

  close(): void {
    this.#forEach((aggregate) => aggregate.close())
  }

  #forEach(run: (aggregate: Aggregate) => void): void {
    for (const aggregate of this.#aggregates.values()) this.#guard(() => run(aggregate))
  }

  /** What goes wrong here is told and ends nobody (contract 8.6). */
  #guard(run: () => void): void {
    this.#options.edges.guard('an aggregate', run, undefined)
  }

  #makePort(): AggregatePort {
    const { daemon, log, rightsOf } = this.#options
    return {
      open: (pool, client, received) =>
        daemon.openDelegate(pool, client as ClientId | undefined, (line) => this.#guard(() => received(line))),
      reply: (client, bytes, options) =>
        daemon.apply({
          type: 'member-reply',
          client: client as ClientId,
          bytes,
          row: options?.row,
          via: options?.via as ClientId | undefined,
          outcome: options?.outcome,
          hasBatches: options?.hasBatches,
        }),
      waive: (client, row) => daemon.apply({ type: 'member-waived', client: client as ClientId, row }),
      rightsOf: (client) => rightsOf(client as ClientId),
      factsOf: (pool) => this.#pools.get(pool),
      workersOf: (pool) => daemon.workerStates(pool),
      nowMs: () => performance.now(),
      after: (delayMs, run) => afterWaking(delayMs, () => this.#guard(run)),
      log: (level, text, about) => log.write(level, text, about),
      count: (reason) => this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1),
      secret: randomBytes(9).toString('base64url'),
    }
  }
}
