/**
 * One MCP server made of many pools (contract 13): its members, what they offer, and its clients.
 *
 * It asks members for their lists once for all clients, makes a catalogue of them whenever one changes, and tells each
 * client what concerns it. It has no process and no worker; the kernel knows it only as somebody who answers.
 */
import type { Reason } from '../kernel/faults.ts'
import type { Rights } from '../kernel/rights.ts'
import { type Catalogue, EMPTY, makeCatalogue, ownerOfUri } from './catalogue.ts'
import { type Known, MemberList } from './member-list.ts'
import { Methods } from './methods.ts'
import type { AggregatePort } from './port.ts'
import { SEARCH_TOOLS } from './search-tools.ts'
import { Seat } from './seat.ts'
import { type AggregateSpec, BOUNDS } from './spec.ts'
import { View } from './view.ts'

const NOTHING = (): void => {}
const EVERYTHING: Rights = { role: 'user', pools: ['*'] }

export class Aggregate {
  readonly port: AggregatePort
  readonly methods = new Methods()
  spec: AggregateSpec
  catalogue: Catalogue = EMPTY
  readonly #lists = new Map<string, MemberList>()
  readonly #seats = new Map<number, Seat>()
  #views = new WeakMap<Rights, View>()
  /** What waits for the first lists: requests, and a word of changes. */
  readonly #waiting = new Set<() => void>()
  #stopWaiting: (() => void) | undefined
  #stopWatching: () => void = () => {}
  readonly #reported = new Set<string>()

  constructor(port: AggregatePort, spec: AggregateSpec) {
    this.port = port
    this.spec = spec
    this.#enlist()
    this.#watch()
  }

  /** Another configuration; what clients see of it they are told. */
  adopt(spec: AggregateSpec): void {
    this.spec = spec
    this.#enlist()
    // A pool of the same name may be another one now.
    for (const list of this.#lists.values()) list.refreshAnew()
    this.#listsChanged()
  }

  #enlist(): void {
    const pools = new Set(this.spec.members.map(({ pool }) => pool))
    for (const [pool, list] of this.#lists) {
      if (pools.has(pool)) continue
      list.end()
      this.#lists.delete(pool)
    }
    for (const pool of pools) {
      if (this.#lists.has(pool)) continue
      const list = new MemberList(this.port, pool, () => this.#listsChanged())
      this.#lists.set(pool, list)
      list.refresh()
    }
  }

  #watch(): void {
    this.#stopWatching = this.port.after(BOUNDS.watchMs, () => {
      for (const list of this.#lists.values()) list.watch()
      this.#watch()
    })
  }

  knownOf(pool: string): Known | undefined {
    return this.#lists.get(pool)?.known
  }

  isMember(pool: string): boolean {
    return this.#lists.has(pool)
  }

  /** Members that are not listed. */
  get missing(): string[] {
    return this.spec.members.flatMap(({ pool }) => (this.knownOf(pool) === undefined ? [pool] : []))
  }

  /** No member is listed: nobody can tell what there is. */
  get isEmpty(): boolean {
    return this.missing.length === this.spec.members.length
  }

  memberChanged(pool: string): void {
    this.#lists.get(pool)?.refresh()
  }

  ownerOf(uri: string): string | undefined {
    return ownerOfUri(this.catalogue, uri)
  }

  /** What somebody with these rights sees. */
  viewFor(rights: Rights | undefined): View {
    const whose = rights?.tools === undefined ? EVERYTHING : rights
    const known = this.#views.get(whose)
    if (known !== undefined) return known
    const view = new View(this.spec, this.catalogue, whose, SEARCH_TOOLS)
    this.#views.set(whose, view)
    return view
  }

  // ---- waiting for the first lists ----

  /** Nobody has to wait for a list. */
  get isListed(): boolean {
    return this.#waitMs === 0
  }

  get #waitMs(): number {
    let waitMs = 0
    for (const list of this.#lists.values()) waitMs = Math.max(waitMs, list.waitMs(this.spec.listWaitMs))
    return waitMs
  }

  whenListed(run: () => void): void {
    this.#waiting.add(run)
    this.#stopWaiting ??= this.port.after(Math.ceil(this.#waitMs), () => this.#serveWaiting())
  }

  #serveWaiting(): void {
    this.#stopWaiting?.()
    this.#stopWaiting = undefined
    if (!this.catalogue.isSettled) this.#makeCatalogue()
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const run of waiting) run()
    if (!this.isListed) return this.whenListed(NOTHING)
    for (const seat of this.#seats.values()) seat.listsChanged()
  }

  #makeCatalogue(): void {
    const knownOf = (pool: string): Known | undefined => this.knownOf(pool)
    this.catalogue = makeCatalogue(this.spec, { knownOf, isSettled: this.isListed }, this.catalogue)
    this.#views = new WeakMap()
  }

  #listsChanged(): void {
    this.#makeCatalogue()
    this.#reportConflicts()
    for (const seat of this.#seats.values()) seat.membersChanged()
    if (this.isListed) return this.#serveWaiting()
    // While somebody is waited for, clients are told of it all at the end of the wait.
    this.whenListed(NOTHING)
  }

  #reportConflicts(): void {
    for (const { pool, own, name, keptBy, listed } of this.catalogue.conflicts) {
      const told = `${pool} ${listed} ${name} ${keptBy}`
      if (this.#reported.has(told) || this.#reported.size >= BOUNDS.rememberedNames) continue
      this.#reported.add(told)
      const about = { aggregate: this.spec.id, pool, own: briefly(own), name, kept_by: keptBy, listed }
      this.port.log('warn', 'two members have one name: the earlier keeps it', about)
    }
  }

  // ---- clients ----

  take(client: number, bytes: Buffer, row: number | undefined): void {
    this.#seatOf(client).take(bytes, row)
  }

  #seatOf(client: number): Seat {
    const known = this.#seats.get(client)
    if (known !== undefined) return known
    const seat = new Seat(this, client)
    this.#seats.set(client, seat)
    return seat
  }

  /** False: it was nothing that a member of this one has asked. */
  takeAnswer(client: number, bytes: Buffer): boolean {
    return this.#seats.get(client)?.takeAnswer(bytes) === true
  }

  waived(client: number, row: number): void {
    this.#seats.get(client)?.waived(row)
  }

  /** Rights may be others now. */
  rightsChanged(): void {
    for (const seat of this.#seats.values()) seat.listsChanged()
  }

  gone(client: number): void {
    this.#seats.get(client)?.leave()
    this.#seats.delete(client)
  }

  /** The bus ends: nothing new is listed, and what would last for ever is over. */
  drain(): void {
    this.#stopWatching()
    for (const list of this.#lists.values()) list.end()
    for (const seat of this.#seats.values()) seat.endListens()
  }

  /** All that is open is answered with this. */
  failAll(reason: Reason): void {
    for (const seat of this.#seats.values()) seat.failAll(reason)
  }

  close(): void {
    this.#stopWatching()
    this.#stopWaiting?.()
    for (const seat of this.#seats.values()) seat.leave()
    this.#seats.clear()
    for (const list of this.#lists.values()) list.end()
  }

  get status(): AggregateStatus {
    const { tools, prompts, resources, conflicts } = this.catalogue
    return {
      pool: this.spec.id,
      clients: this.#seats.size,
      tools: tools.size,
      prompts: prompts.size,
      resources: resources.size,
      missing: this.missing,
      conflicts: conflicts
        .slice(0, BOUNDS.toldConflicts)
        .map(({ pool, own, name, keptBy, listed }) => ({ pool, own: briefly(own), name, kept_by: keptBy, listed })),
    }
  }
}

/** An own name as it is told to people: a member may choose one without end. */
function briefly(own: string): string {
  return own.slice(0, BOUNDS.toldName)
}

export interface AggregateStatus {
  readonly pool: string
  readonly clients: number
  readonly tools: number
  readonly prompts: number
  readonly resources: number
  /** Members that are not listed. */
  readonly missing: readonly string[]
  readonly conflicts: readonly {
    readonly pool: string
    readonly own: string
    readonly name: string
    readonly kept_by: string
    readonly listed: string
  }[]
}
