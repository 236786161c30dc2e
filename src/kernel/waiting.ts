/**
 * Messages that wait, for whatever it is: in order, with their bytes, for a while (contract 6.7, 7.2, 8.3).
 *
 * A message that waits holds a copy of its line, which counts as its client's; whoever fills a line that is full is not
 * read from until it is half empty. What cannot be made to wait (an exchange of the gateway's; a start on demand, which may
 * take long) is refused instead. Invariant: a message waits in one line at most, and its row knows where.
 */
import { emptyMap, emptySet, ownMap, ownSet } from './empty.ts'
import type { Reason } from './faults.ts'
import { Gate } from './gate.ts'
import type { Client } from './peers.ts'
import type { Route } from './route.ts'
import type { Switchboard } from './switchboard.ts'

/** What a message costs beside its bytes while it waits. */
const ROW_BYTES = 512

export class WaitingLine {
  readonly gate = new Gate()
  routes = emptySet<Route>()
  /** Whose they are, and how many are whose. */
  clients = emptyMap<Client, number>()
  readonly limitBytes: number
  bytes = 0

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get isEmpty(): boolean {
    return this.routes.size === 0
  }

  add(route: Route): void {
    const { client, bytes } = route
    this.routes = ownSet(this.routes).add(route)
    this.clients = ownMap(this.clients).set(client, (this.clients.get(client) ?? 0) + 1)
    this.bytes += bytes
  }

  delete(route: Route): void {
    const { client, bytes } = route
    const left = this.clients.get(client)! - 1
    this.routes.delete(route)
    if (left === 0) this.clients.delete(client)
    else this.clients.set(client, left)
    this.bytes -= bytes
  }
}

/** How long a message waits at the most, and what becomes of it then. */
export interface Patience {
  readonly untilMs: number
  giveUp(route: Route): void
}

export class Waiting {
  readonly #board: Switchboard
  /** Lines in which less waits than before. */
  readonly #relieved = new Set<WaitingLine>()

  constructor(board: Switchboard) {
    this.#board = board
  }

  /** The message waits in `line`; false: there is no room for it, and it was refused. */
  enter(route: Route, line: WaitingLine, patience?: Patience): boolean {
    const { client, pool } = route
    const isHeldUp = !client.isExchange && !pool.spec.isLazy
    if (!isHeldUp && line.bytes > line.limitBytes) {
      this.#board.refuse(route, 'overloaded', { pool: pool.spec.id })
      return false
    }
    if (route.bytes === 0) {
      route.line = route.line.keep()
      route.cameBefore = this.#board.core.owed.nextSerial
    }
    route.bytes = route.line.bytes.length + ROW_BYTES
    route.place = line
    line.add(route)
    if (route.request !== undefined) route.request.route = route
    if (patience !== undefined) this.#limit(route, patience)
    const { flow } = this.#board
    client.heldBytes += route.bytes
    this.#board.core.waitingBytes += route.bytes
    flow.account(client)
    if (isHeldUp && line.bytes > line.limitBytes && client.blockedOn === undefined) flow.block(client, line.gate)
    return true
  }

  #limit(route: Route, { untilMs, giveUp }: Patience): void {
    route.timer = this.#board.core.timers.set(untilMs, () => {
      const line = route.place!
      this.leave(route)
      giveUp(route)
      this.reopen(line)
    })
  }

  /** The message waits no more; its line stays with it. */
  leave(route: Route): void {
    const { place, request, timer, client } = route
    if (place === undefined) return
    place.delete(route)
    route.place = undefined
    route.timer = undefined
    if (timer !== undefined) this.#board.core.timers.cancel(timer)
    if (request !== undefined) request.route = undefined
    client.heldBytes -= route.bytes
    this.#board.core.waitingBytes -= route.bytes
    if (client.state !== 'closed') this.#board.flow.account(client)
  }

  /** The message is given up where it waits. */
  withdraw(route: Route): void {
    const { place } = route
    this.leave(route)
    if (place !== undefined) this.reopen(place)
  }

  /** All that wait, in order, out of their line; it stays closed until `reopen`, so that nobody overtakes them. */
  take(line: WaitingLine, isMeant: (route: Route) => boolean = () => true): Route[] {
    const taken: Route[] = []
    for (const route of line.routes) if (isMeant(route)) taken.push(route)
    for (const route of taken) this.leave(route)
    return taken
  }

  /** Whoever was stopped because the line was full goes on when it has room, after the event at hand. */
  reopen(line: WaitingLine): void {
    this.#relieved.add(line)
  }

  /** The event is over, and nobody is in the middle of serving those who waited; false: nothing came of it. */
  settle(): boolean {
    if (this.#relieved.size === 0) return false
    const relieved = [...this.#relieved]
    this.#relieved.clear()
    for (const line of relieved)
      if (line.bytes * 2 < line.limitBytes || line.isEmpty) this.#board.flow.release(line.gate)
    return true
  }

  /** Nobody will serve them. */
  dismiss(line: WaitingLine, reason: Reason, detail: () => Record<string, unknown>): void {
    for (const route of this.take(line)) this.#board.refuse(route, reason, detail())
    this.reopen(line)
  }

  /** The client has gone: nothing of it waits. Its requests were given up before; what is no request is dropped. */
  forget(client: Client, line: WaitingLine): void {
    for (const route of line.routes) {
      if (route.client !== client) continue
      if (route.request === undefined) this.#board.core.drop('client_gone')
      this.leave(route)
    }
    this.reopen(line)
  }
}
