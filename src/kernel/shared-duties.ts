/**
 * What the bus does itself where several clients share a worker whose protocol knows only one: it answers pings, keeps the
 * log level of each client, and subscribes to a resource once for all of them (spec M15, M16).
 *
 * Where a worker is one client's own, nothing of this happens: every message passes.
 */
import { FIELD } from '../wire/fields.ts'
import { type Bond, LEVELS, rankOf } from './bonds.ts'
import type { ClientRow } from './dialect.ts'
import type { Links } from './links.ts'
import type { Client, Worker } from './peers.ts'
import type { Switchboard } from './switchboard.ts'

type Local = NonNullable<ClientRow['local']>

export class SharedDuties {
  readonly #board: Switchboard
  readonly #links: Links
  readonly #locals: Readonly<Record<Local, (client: Client, worker: Worker, bond: Bond, isRequest: boolean) => boolean>>

  constructor(board: Switchboard, links: Links) {
    this.#board = board
    this.#links = links
    this.#locals = {
      pong: (client) => this.pong(client),
      level: (client, worker, bond) => this.#setLevel(client, worker, bond),
      subscribe: (client, worker) => this.#subscribe(client, worker),
      unsubscribe: (client, worker, bond) => this.#unsubscribe(client, worker, bond),
    }
  }

  /** What the bus answers itself where several clients share a worker; true when the message is done with. */
  serve(client: Client, worker: Worker, bond: Bond, row: ClientRow, isRequest: boolean): boolean {
    if (row.opens === 'once' && isRequest) {
      this.#links.handshakes.welcome(client, worker)
      return true
    }
    if (row.confirms) return true
    return row.local !== undefined && isRequest && this.#locals[row.local](client, worker, bond, isRequest)
  }

  /** A worker of a handshake that the bus does itself is there again: its clients need not do anything (spec M24). */
  workerOpened(worker: Worker): void {
    for (const bond of worker.bonds) {
      if (bond.generation === worker.generation || bond.initialize !== undefined || worker.greeting !== 'done') continue
      bond.generation = worker.generation
      this.takeUp(bond)
    }
  }

  /** A new worker learns what the client had told the old one. */
  takeUp({ client, worker, uris }: Bond): void {
    for (const uri of uris) this.#join(client, worker, uri)
    if (worker.greeting === 'done') this.#tellLevel(worker)
  }

  /** An empty result, as a ping has it. */
  pong(client: Client): boolean {
    this.#board.answer(client, this.#board.envelope.idSpelling(), '{}')
    return true
  }

  /** The worker is told the most verbose level anybody wants; each client gets what it asked for. */
  #setLevel(client: Client, worker: Worker, bond: Bond): boolean {
    const rank = rankOf(this.#board.envelope.text(FIELD.level))
    if (rank === -1) return false
    bond.level = rank
    this.#tellLevel(worker)
    return this.pong(client)
  }

  #tellLevel(worker: Worker): void {
    let lowest: number = LEVELS.length
    for (const { level } of worker.bonds) if (level !== undefined) lowest = Math.min(lowest, level)
    if (lowest === LEVELS.length || lowest === worker.level) return
    worker.level = lowest
    this.#board.ask(worker, worker.tongue!.dialect.words!.setLevel, { level: LEVELS[lowest] }, () => {})
  }

  /** The worker hears of a resource once, however many clients subscribe to it. */
  #subscribe(client: Client, worker: Worker): boolean {
    const uri = this.#board.envelope.text(FIELD.uri)
    const subscribers = uri === undefined ? undefined : worker.subscriptions.get(uri)
    if (subscribers === undefined || subscribers.size === 0) return false
    subscribers.add(client)
    client.bonds.get(worker.pool.spec.id)?.uris.add(uri!)
    return this.pong(client)
  }

  #unsubscribe(client: Client, worker: Worker, bond: Bond): boolean {
    const uri = this.#board.envelope.text(FIELD.uri)
    if (uri === undefined) return false
    bond.uris.delete(uri)
    const subscribers = worker.subscriptions.get(uri)
    subscribers?.delete(client)
    if (subscribers !== undefined && subscribers.size > 0) return this.pong(client)
    worker.subscriptions.delete(uri)
    return false
  }

  #join(client: Client, worker: Worker, uri: string): void {
    const subscribers = worker.subscriptions.get(uri)
    if (subscribers !== undefined) return void subscribers.add(client)
    worker.subscriptions.set(uri, new Set([client]))
    this.#board.ask(worker, worker.tongue!.dialect.words!.subscribe, { uri }, () => {})
  }
}
