/**
 * What the bus does itself where several clients share a worker whose protocol knows only one: it answers pings, keeps the
 * log level of each client, and subscribes to a resource once for all of them (spec M15, M16).
 *
 * Where a worker is one client's own, nothing of this happens: every message passes.
 */
import { FIELD } from '../wire/fields.ts'
import type { ClientRow } from './dialect-table.ts'
import { ownMap } from './empty.ts'
import type { Bond } from './introductions.ts'
import type { Worker } from './peers.ts'
import type { Route } from './route.ts'
import type { Switchboard } from './switchboard.ts'

type Local = NonNullable<ClientRow['local']>

export class SharedDuties {
  readonly #board: Switchboard
  readonly #locals: Readonly<Record<Local, (route: Route, bond: Bond) => boolean>>

  constructor(board: Switchboard) {
    this.#board = board
    this.#locals = {
      pong: (route) => this.#pong(route),
      level: (route, bond) => this.#setLevel(route, bond),
      subscribe: (route, bond) => this.#subscribe(route, bond),
      unsubscribe: (route, bond) => this.#unsubscribe(route, bond),
    }
  }

  /** What the bus answers itself where several clients share a worker; true when the message is done with. */
  serve(route: Route, bond: Bond): boolean {
    const { row, request } = route
    if (row!.opens === 'once' && request !== undefined) {
      this.#board.handshakes.welcome(route, bond.worker)
      return true
    }
    if (row!.confirms) return true
    return row!.local !== undefined && request !== undefined && this.#locals[row!.local](route, bond)
  }

  /** A worker of a handshake that the bus does itself is there again: its clients need not do anything (spec M24). */
  workerOpened(worker: Worker): void {
    for (const bond of worker.bonds) {
      if (bond.generation === worker.generation || bond.introduction.initialize !== undefined) continue
      if (worker.greeting !== 'done') continue
      bond.generation = worker.generation
      this.takeUp(bond)
    }
  }

  /** A new worker learns what the client had told the old one. */
  takeUp(bond: Bond): void {
    for (const uri of bond.introduction.uris) this.#join(bond, uri)
    if (bond.worker.greeting === 'done') this.#tellLevel(bond)
  }

  /** An empty result, as a ping has it. */
  #pong({ request }: Route): boolean {
    this.#board.answerRequest(request!, '"result":{}')
    return true
  }

  /** The worker is told the most verbose level anybody wants; each client gets what it asked for. */
  #setLevel(route: Route, bond: Bond): boolean {
    const rank = bond.introduction.dialect.rankOf(route.line.text(FIELD.level))
    if (rank === -1) return false
    bond.introduction.level = rank
    this.#tellLevel(bond)
    return this.#pong(route)
  }

  #tellLevel({ worker, introduction: { dialect } }: Bond): void {
    const { words, levels } = dialect.table
    let lowest = Number.POSITIVE_INFINITY
    for (const { introduction } of worker.bonds) lowest = Math.min(lowest, introduction.level ?? lowest)
    if (lowest === Number.POSITIVE_INFINITY || lowest === worker.level) return
    worker.level = lowest
    this.#board.ask(worker, { method: words!.setLevel, params: { level: levels![lowest] } })
  }

  /** The worker hears of a resource once, however many clients subscribe to it. */
  #subscribe(route: Route, { introduction, worker }: Bond): boolean {
    const uri = route.line.text(FIELD.uri)
    if (uri === undefined) return false
    const subscribers = worker.subscriptions.get(uri)
    if (subscribers === undefined || subscribers.size === 0) return false
    subscribers.add(route.client)
    introduction.note(uri)
    return this.#pong(route)
  }

  #unsubscribe(route: Route, { introduction, worker }: Bond): boolean {
    const uri = route.line.text(FIELD.uri)
    if (uri === undefined) return false
    introduction.uris.delete(uri)
    const subscribers = worker.subscriptions.get(uri)
    subscribers?.delete(route.client)
    if (subscribers !== undefined && subscribers.size > 0) return this.#pong(route)
    worker.subscriptions.delete(uri)
    return false
  }

  #join({ client, worker, introduction: { dialect } }: Bond, uri: string): void {
    const subscribers = worker.subscriptions.get(uri)
    if (subscribers !== undefined) return void subscribers.add(client)
    worker.subscriptions = ownMap(worker.subscriptions).set(uri, new Set([client]))
    this.#board.ask(worker, { method: dialect.table.words!.subscribe, params: { uri } })
  }
}
