/**
 * What a client of the aggregate wants to hear of: resources of members, and lists that change (contract 13.7, 13.11).
 *
 * A client of the stateless era listens: each of its subscriptions is acknowledged once, and every message has its id. A
 * member of that era is listened to in turn, with all the URIs that this client wants of it; one with a handshake is asked
 * for each URI.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { META } from './eras.ts'
import type { MemberLink } from './member-link.ts'
import type { Kind } from './member-list.ts'
import type { Pending } from './pending.ts'
import type { AggregatePort } from './port.ts'
import { notice } from './replies.ts'
import { BOUNDS } from './spec.ts'

/** By which word of a subscription a list is meant, and by which message its change is told. */
const CHANGES: Readonly<Record<Kind, { readonly word: string; readonly method: string }>> = {
  tools: { word: 'toolsListChanged', method: 'notifications/tools/list_changed' },
  prompts: { word: 'promptsListChanged', method: 'notifications/prompts/list_changed' },
  resources: { word: 'resourcesListChanged', method: 'notifications/resources/list_changed' },
  templates: { word: 'resourcesListChanged', method: 'notifications/resources/list_changed' },
}

const MAX_LISTENS = 1_024
/** Of one client, in all that it listens to. */
const MAX_URIS = 4_096

interface Listen {
  readonly pending: Pending
  readonly lists: ReadonlySet<string>
  readonly uris: ReadonlySet<string>
}

/** What the subscriptions ask of the client they are for. */
export interface SubscriptionHost {
  readonly port: AggregatePort
  readonly client: number
  /** Where the resource is; undefined: nowhere. */
  linkFor(uri: string): MemberLink | undefined
  /** The members of `_meta` that a request of the stateless era has, as JSON. */
  metaFor(): string
}

export class Subscriptions {
  readonly #host: SubscriptionHost
  readonly #listens = new Map<Pending, Listen>()
  /** What a client with a handshake has subscribed to at members without. */
  readonly #subscribed = new Map<MemberLink, Set<string>>()
  /** The id of what is listened to at a member. */
  readonly #listenIds = new Map<MemberLink, string>()

  constructor(host: SubscriptionHost) {
    this.#host = host
  }

  /** False: there are as many as there may be. */
  listen(pending: Pending, line: Envelope): boolean {
    const filter = filterIn(line)
    if (this.#listens.size >= MAX_LISTENS || this.count + filter.uris.size > MAX_URIS) return false
    const found = new Set([...filter.uris].filter((uri) => this.#host.linkFor(uri) !== undefined))
    this.#listens.set(pending, { pending, lists: filter.lists, uris: found })
    pending.onCancel = () => this.end(pending)
    const notifications: Record<string, unknown> = Object.fromEntries([...filter.lists].map((word) => [word, true]))
    if (filter.uris.size > 0) notifications['resourceSubscriptions'] = [...found]
    this.#tell(pending, 'notifications/subscriptions/acknowledged', { notifications })
    this.#follow(found)
    return true
  }

  end(pending: Pending): void {
    const listen = this.#listens.get(pending)
    if (listen === undefined) return
    this.#listens.delete(pending)
    this.#unfollow(listen.uris)
  }

  get open(): readonly Pending[] {
    return [...this.#listens.keys()]
  }

  /** A client with a handshake wants to hear of a resource of a member without. */
  subscribe(link: MemberLink, uri: string): void {
    const uris = this.#subscribed.get(link) ?? new Set()
    this.#subscribed.set(link, uris.add(uri))
    this.#listenAt(link)
  }

  unsubscribe(link: MemberLink, uri: string): void {
    if (this.#subscribed.get(link)?.delete(uri)) this.#listenAt(link)
  }

  unsubscribeAll(): void {
    const links = [...this.#subscribed.keys()]
    this.#subscribed.clear()
    for (const link of links) this.#listenAt(link)
  }

  /** How many resources it has subscribed to, one way or the other. */
  get count(): number {
    let count = 0
    for (const uris of this.#subscribed.values()) count += uris.size
    for (const { uris } of this.#listens.values()) count += uris.size
    return count
  }

  /** A list is not what it was; a client with a handshake hears of it in any case. */
  listChanged(kind: Kind, isGreeted: boolean): void {
    const { word, method } = CHANGES[kind]
    if (isGreeted) this.#host.port.reply(this.#host.client, notice(method, {}))
    for (const { pending, lists } of this.#listens.values()) if (lists.has(word)) this.#tell(pending, method, {})
  }

  /** A member says that a resource is not what it was. */
  updated(link: MemberLink, line: Envelope): boolean {
    const uri = line.text(FIELD.uri)
    if (uri === undefined) return false
    const method = 'notifications/resources/updated'
    for (const { pending, uris } of this.#listens.values()) if (uris.has(uri)) this.#tell(pending, method, { uri })
    if (link.era === 'legacy') return this.#listens.size > 0
    if (this.#subscribed.get(link)?.has(uri)) this.#host.port.reply(this.#host.client, notice(method, { uri }))
    return true
  }

  #tell({ spelling }: Pending, method: string, params: Record<string, unknown>): void {
    this.#host.port.reply(this.#host.client, notice(method, params, spelling))
  }

  #follow(uris: Iterable<string>): void {
    for (const link of this.#ask(uris, 'resources/subscribe')) this.#listenAt(link)
  }

  #unfollow(uris: Iterable<string>): void {
    const unwanted = [...uris].filter((uri) => ![...this.#listens.values()].some((each) => each.uris.has(uri)))
    for (const link of this.#ask(unwanted, 'resources/unsubscribe')) this.#listenAt(link)
  }

  /** Members with a handshake are asked for each; the others are given back. */
  #ask(uris: Iterable<string>, method: string): Set<MemberLink> {
    const modern = new Set<MemberLink>()
    for (const uri of uris) {
      const link = this.#host.linkFor(uri)
      if (link?.era === 'legacy') link.ask(method, JSON.stringify({ uri }))
      else if (link !== undefined) modern.add(link)
    }
    return modern
  }

  /** All that is wanted of the member is one subscription there: it is begun anew when something else is wanted. */
  #listenAt(link: MemberLink): void {
    const before = this.#listenIds.get(link)
    const wanted = new Set(this.#subscribed.get(link))
    for (const { uris } of this.#listens.values())
      for (const uri of uris) if (this.#host.linkFor(uri) === link) wanted.add(uri)
    this.#listenIds.delete(link)
    if (wanted.size > 0) {
      const filter = JSON.stringify({ resourceSubscriptions: [...wanted] })
      const params = `{"_meta":{${this.#host.metaFor()}},"notifications":${filter}}`
      const id = link.ask('subscriptions/listen', params, () => this.#ended(link, id))
      this.#listenIds.set(link, id)
    }
    if (before !== undefined) link.cancel(before)
  }

  /** The member has ended it, or has gone: what is still wanted of it is asked for again, after a while. */
  #ended(link: MemberLink, id: string): void {
    if (this.#listenIds.get(link) !== id) return
    this.#listenIds.delete(link)
    this.#host.port.after(BOUNDS.retryMs, () => {
      if (!this.#listenIds.has(link)) this.#listenAt(link)
    })
  }

  /** The member is not to be listened to any more. */
  forget(link: MemberLink): void {
    this.#subscribed.delete(link)
    this.#listenIds.delete(link)
  }

  /** The client has gone: nothing is wanted any more. */
  forgetAll(): void {
    this.#listens.clear()
    this.#subscribed.clear()
    this.#listenIds.clear()
  }
}

function filterIn(line: Envelope): { lists: Set<string>; uris: Set<string> } {
  const params = line.has(FIELD.params) ? JSON.parse(line.spelling(FIELD.params)) : {}
  const notifications = (params?.notifications ?? {}) as Record<string, unknown>
  const words = new Set(Object.values(CHANGES).map(({ word }) => word))
  const lists = new Set([...words].filter((word) => notifications[word] === true))
  const given = notifications['resourceSubscriptions']
  const uris = Array.isArray(given) ? given.filter((uri): uri is string => typeof uri === 'string') : []
  return { lists, uris: new Set(uris) }
}

/** The result that ends a subscription, as members of JSON. */
export function endOfListen({ spelling }: Pending): string {
  return `"resultType":"complete","_meta":{${JSON.stringify(META.subscriptionId)}:${spelling}}`
}
