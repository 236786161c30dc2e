/**
 * What a client that speaks a stateful protocol has said to a pool, and the workers of the pool that know it (contract 6.6).
 *
 * An introduction outlives workers: when one is restarted, or the client comes to another, the bus repeats its handshake
 * there, the only message that is ever sent twice. Invariant: a bond stands in the tables of its worker and of its
 * introduction, or in neither.
 */
import type { Dialect } from './dialects.ts'
import { emptyMap, emptySet, ownMap, ownSet } from './empty.ts'
import type { Client, Worker } from './peers.ts'
import type { WaitingLine } from './waiting.ts'

export class Introduction {
  readonly client: Client
  /** Fixed, but for a client that has a worker of its own and finds out what it speaks. */
  dialect: Dialect
  /** The client's own handshake, where it reached a worker, and the version that it asked for. */
  initialize: Buffer | undefined
  version: number | undefined
  /** A worker has answered its handshake with a result. */
  isWelcomed = false
  /** What the client has offered to do; undefined: it has not said. */
  offers: Readonly<Record<string, unknown>> | undefined
  /** The least severe log line the client wants, as a rank; undefined: it has not said. */
  level: number | undefined
  /** What it subscribed to. */
  uris = emptySet<string>()
  /** Where its messages go that nothing binds. */
  home: Bond | undefined
  bonds = emptyMap<Worker, Bond>()

  constructor(client: Client, dialect: Dialect) {
    this.client = client
    this.dialect = dialect
  }

  /** The client has introduced itself to another pool, in whose place this one serves. */
  takeOver({ initialize, version, offers, isWelcomed }: Introduction): void {
    this.initialize = initialize
    this.version = version
    this.offers = offers
    this.isWelcomed = isWelcomed
  }

  /** A worker has answered the handshake, in this version; what the client has said in its place to others holds as well. */
  welcome(version: number | undefined): void {
    for (const each of this.client.introductions.values()) {
      if (each !== this && (each.initialize === undefined || each.initialize !== this.initialize)) continue
      each.isWelcomed = true
      if (version !== undefined) each.version = version
    }
  }

  /** It has subscribed to a resource. */
  note(uri: string): void {
    this.uris = ownSet(this.uris).add(uri)
  }

  bondWith(worker: Worker): Bond {
    const bond = new Bond(this, worker)
    this.bonds = ownMap(this.bonds).set(worker, bond)
    worker.bonds = ownSet(worker.bonds).add(bond)
    return bond
  }

  /** The worker is gone, or knows the client no more. */
  leave(bond: Bond): void {
    this.bonds.delete(bond.worker)
    bond.worker.bonds.delete(bond)
    if (this.home === bond) this.home = undefined
  }

  end(): void {
    for (const bond of this.bonds.values()) bond.worker.bonds.delete(bond)
    this.bonds.clear()
    this.home = undefined
  }
}

export class Bond {
  readonly introduction: Introduction
  readonly worker: Worker
  /** The process that knows the client. */
  generation: number
  /** The client's messages that wait until the worker has answered the repeated handshake. */
  held: WaitingLine | undefined
  /** The worker has answered the repeated handshake in another version than the client was welcomed in. */
  isMismatched = false

  constructor(introduction: Introduction, worker: Worker) {
    this.introduction = introduction
    this.worker = worker
    this.generation = worker.generation
  }

  get client(): Client {
    return this.introduction.client
  }

  get isHome(): boolean {
    return this.introduction.home === this
  }

  get isCurrent(): boolean {
    const { generation, state } = this.worker
    return generation === this.generation && (state === 'ready' || state === 'retiring')
  }
}
