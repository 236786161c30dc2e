/**
 * One client of an aggregate: what it has said, what it is owed, and its links to members (contract 13.2, 13.3).
 *
 * What goes to a member goes as it came, but for the name and what the other era needs; what comes back likewise. Every
 * request is answered once: here, by a member, or by the kernel when its client goes. What each method does stands in
 * `methods.ts`.
 */
import type { Reason } from '../kernel/faults.ts'
import { Envelope, SHAPE } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { memberOf } from '../wire/json-array.ts'
import { cut, type Edit, insertMember, mostBytesOf, replace, splice, writeEdited } from '../wire/splice.ts'
import type { Aggregate } from './aggregate.ts'
import type { NamedKind } from './catalogue.ts'
import * as eras from './eras.ts'
import { askForInput, requiresInput } from './input-rounds.ts'
import { type LinkHost, MemberLink } from './member-link.ts'
import { KIND_NAMES, type Kind } from './member-list.ts'
import { Memories } from './memories.ts'
import { Pending, PendingTable } from './pending.ts'
import type { AggregatePort, ReplyOptions } from './port.ts'
import { Questions } from './questions.ts'
import { emptyResult, ownMistake, refusal, resultOf } from './replies.ts'
import { BOUNDS } from './spec.ts'
import { endOfListen, Subscriptions } from './subscriptions.ts'
import type { View } from './view.ts'

/** What a client with a handshake has said of itself, as it spelled it. */
interface Introduction {
  readonly params: string
  readonly capabilities: string
  readonly clientInfo: string
}

const UNKNOWN_CLIENT: Introduction = {
  params: JSON.stringify({
    protocolVersion: eras.NEWEST_LEGACY,
    capabilities: {},
    clientInfo: { name: 'stdio-bus', version: '0.1.0' },
  }),
  capabilities: '{}',
  clientInfo: '{"name":"stdio-bus","version":"0.1.0"}',
}

export class Seat implements LinkHost {
  readonly client: number
  readonly port: AggregatePort
  readonly aggregate: Aggregate
  readonly pending = new PendingTable()
  readonly questions: Questions
  readonly subscriptions: Subscriptions
  readonly memories = new Memories()
  /** For lines of members, and for those of the client. */
  readonly reader = new Envelope()
  readonly #line = new Envelope()
  readonly #links = new Map<string, MemberLink>()
  /** Links to what is no such member any more, until they owe nothing. */
  readonly #parting = new Set<MemberLink>()
  #introduction = UNKNOWN_CLIENT
  #isGreeted = false
  #isModern = false
  #level: string | undefined
  /** The version of the catalogue that it last listed each kind of. */
  readonly #listedVersions = new Map<Kind, number>()
  /** What it was last told of each list, or has seen; when it was last told of a change, and what stops the next. */
  readonly #seen = new Map<Kind, string>()
  #toldAtMs = Number.NEGATIVE_INFINITY
  #stopTelling: (() => void) | undefined

  constructor(aggregate: Aggregate, client: number) {
    this.aggregate = aggregate
    this.port = aggregate.port
    this.client = client
    this.questions = new Questions(this.port, client)
    this.subscriptions = new Subscriptions(this)
    for (const kind of KIND_NAMES) this.sawList(kind)
  }

  get view(): View {
    return this.aggregate.viewFor(this.port.rightsOf(this.client))
  }

  // ---- from the client ----

  take(bytes: Buffer, row: number | undefined): void {
    const line = this.#line
    line.read(bytes, 0, bytes.length)
    const method = line.text(FIELD.method)!
    const era = eras.eraOf(line)
    if (row === undefined) return this.aggregate.methods.notice(this, method, line)
    const pending = new Pending(row, line.key(FIELD.id)!, line.idSpelling(), method, era)
    this.pending.add(pending)
    if (era === 'modern') this.#noteModern(line)
    this.#serve(pending, () => this.aggregate.methods.request(this, pending, line))
  }

  /** A mistake of ours costs this request and nothing else: it is answered, and told by whoever called. */
  #serve(pending: Pending, serve: () => void): void {
    try {
      serve()
    } catch (error) {
      if (!pending.isOver) this.#reply(pending, ownMistake(pending.spelling), { outcome: 'error' })
      throw error
    }
  }

  /** The line of a request that has waited is read again. */
  again(pending: Pending, bytes: Buffer, then: (line: Envelope) => void): void {
    if (pending.isOver) return
    this.#line.read(bytes, 0, bytes.length)
    this.#serve(pending, () => then(this.#line))
  }

  takeAnswer(bytes: Buffer): boolean {
    this.#line.read(bytes, 0, bytes.length)
    return this.questions.takeAnswer(this.#line)
  }

  /** It has introduced itself, with these parameters. */
  greet(line: Envelope): void {
    this.#isGreeted = true
    if (!line.has(FIELD.params)) return
    const params = { start: line.startOf(FIELD.params), end: line.endOf(FIELD.params) }
    const part = (key: string): string => {
      const span = memberOf(line.bytes, params.start, params.end, key)
      return span === undefined ? '{}' : line.bytes.utf8Slice(span.start, span.end)
    }
    this.#introduction = {
      params: line.spelling(FIELD.params),
      capabilities: part('capabilities'),
      clientInfo: part('clientInfo'),
    }
    this.questions.offer(fieldsIn(this.#introduction.capabilities))
  }

  #noteModern(line: Envelope): void {
    this.#isModern = true
    if (!line.has(FIELD.metaLogLevel)) return
    const level = line.text(FIELD.metaLogLevel)
    if (level === undefined) return
    this.#level = level
    for (const link of this.#links.values()) link.setLevel(level)
  }

  set level(level: string) {
    this.#level = level
    // Where every client has a worker of its own, none is started for this alone (contract 13.3).
    for (const { pool } of this.aggregate.spec.members) {
      const isOwn = this.port.factsOf(pool)?.sharing === 'isolated'
      const link = isOwn ? this.#links.get(pool) : this.linkTo(pool)
      link?.setLevel(level)
    }
  }

  /** Everybody that it is a client of. */
  get links(): Iterable<MemberLink> {
    return this.#links.values()
  }

  /** The member, of which it is a client from now on; undefined: nobody knows what that speaks. */
  linkTo(pool: string): MemberLink | undefined {
    const known = this.#links.get(pool)
    if (known !== undefined) return known
    const member = this.aggregate.knownOf(pool)
    if (member === undefined) return undefined
    const link = new MemberLink(this, pool, member.era)
    this.#links.set(pool, link)
    if (this.#level !== undefined && member.capabilities['logging'] !== undefined) link.setLevel(this.#level)
    return link
  }

  /** A member that is none any more, or is a server of the other era now, is not asked again; what it has in hand it answers. */
  membersChanged(): void {
    for (const link of [...this.#links.values()]) {
      const era = this.aggregate.knownOf(link.pool)?.era ?? link.era
      if (this.aggregate.isMember(link.pool) && era === link.era) continue
      this.#links.delete(link.pool)
      this.subscriptions.forget(link)
      this.#parting.add(link)
      this.#part(link)
    }
  }

  #part(link: MemberLink | undefined): void {
    if (link === undefined || !this.#parting.has(link)) return
    for (const pending of this.pending.wanted()) if (pending.link === link) return
    this.#parting.delete(link)
    link.leave()
  }

  linkFor(uri: string): MemberLink | undefined {
    const pool = this.aggregate.ownerOf(uri) ?? this.memories.uris.find(uri)
    return pool === undefined ? undefined : this.linkTo(pool)
  }

  /** A request goes to a member, with what its era needs. */
  pass(pending: Pending, link: MemberLink, line: Envelope, edits: Edit[] = []): void {
    pending.link = link
    edits.push(...cut(line, ADDRESSING))
    if (link.era === 'modern' && pending.era === 'legacy') edits.push(eras.addRequestMeta(line, this.metaFor()))
    if (link.era === 'legacy' && pending.era === 'modern') edits.push(...eras.cutRequestMeta(line))
    const sent = spliceBriefly(line, edits)
    line.release()
    if (link.era === 'modern' && pending.era === 'legacy') pending.sent = Buffer.from(sent)
    link.send(sent)
  }

  /** What a request of the stateless era says of this client, as members of JSON. */
  metaFor(): string {
    const { capabilities, clientInfo } = this.#introduction
    const level = this.#level === undefined ? '' : `,"${eras.META.logLevel}":${JSON.stringify(this.#level)}`
    return `"${eras.META.protocolVersion}":"${eras.MODERN_REVISION}","${eras.META.clientCapabilities}":${capabilities},"${eras.META.clientInfo}":${clientInfo}${level}`
  }

  greeting(): string {
    return this.#introduction.params
  }

  // ---- answers ----

  answer(pending: Pending, members: string, more: ReplyOptions = {}): void {
    this.#reply(pending, resultOf(pending.spelling, members), more)
  }

  answerEmpty(pending: Pending): void {
    this.#reply(pending, emptyResult(pending.spelling, pending.era))
  }

  refuse(pending: Pending, reason: Reason, detail: Record<string, unknown> = {}): void {
    this.port.count(reason)
    this.#reply(pending, refusal(pending.spelling, reason, detail, pending.era), { outcome: reason })
  }

  /** No member shows what was asked for, or there is none to show it. */
  refuseUnknown(pending: Pending, reason: Reason, detail: Record<string, unknown>): void {
    const { isEmpty, missing } = this.aggregate
    if (isEmpty) this.refuse(pending, 'no_member', { members: missing })
    else this.refuse(pending, reason, missing.length === 0 ? detail : { ...detail, missing })
  }

  reply(pending: Pending, line: Buffer): void {
    this.#reply(pending, line)
  }

  #reply(pending: Pending, line: Buffer, more: ReplyOptions = {}): void {
    const { row, isWaived } = pending
    this.pending.end(pending)
    // What was given up is owed nothing; what still comes is told all the same.
    this.port.reply(this.client, line, isWaived ? more : { ...more, row })
    this.#part(pending.link)
  }

  /** The client gives a request up. */
  cancel(line: Envelope): void {
    const key = line.key(FIELD.requestId)
    const pending = key === undefined ? undefined : this.pending.newest(key)
    if (pending === undefined) return
    if (pending.onCancel === undefined && pending.link !== undefined)
      pending.link.send(splice(line, cut(line, ADDRESSING)))
    this.#giveUp(pending)
    this.port.waive(this.client, pending.row)
  }

  #giveUp(pending: Pending): void {
    pending.onCancel?.()
    pending.onCancel = undefined
    if (pending.link === undefined) this.pending.end(pending)
    else this.pending.waive(pending)
    this.#part(pending.link)
  }

  /** The kernel has answered the request itself. */
  waived(row: number): void {
    const pending = this.pending.byRow(row)
    if (pending === undefined) return
    if (pending.onCancel === undefined) pending.link?.send(cancelLine(pending.spelling))
    this.#giveUp(pending)
  }

  // ---- from members ----

  fromMember(link: MemberLink, bytes: Buffer): void {
    const line = this.reader
    if (line.shape === SHAPE.response) return this.#fromMemberAnswer(link, line, bytes)
    if (line.shape === SHAPE.request) return this.questions.fromMember(link, line)
    if (line.shape === SHAPE.notification) this.#noticed(link, line, bytes)
  }

  #fromMemberAnswer(link: MemberLink, line: Envelope, bytes: Buffer): void {
    const key = line.key(FIELD.id)
    const pending = key === undefined ? undefined : this.pending.at(link, key)
    if (pending === undefined) return
    if (link.era === pending.era && line.has(FIELD.result)) this.memories.learn(line, link.pool)
    if (link.era !== pending.era && line.has(FIELD.result)) return this.answered(pending, link, line)
    const outcome = line.has(FIELD.error) ? 'error' : undefined
    line.release()
    this.pending.end(pending)
    this.port.reply(this.client, bytes, {
      row: pending.isWaived ? undefined : pending.row,
      via: link.delegate,
      outcome,
    })
    this.#part(link)
  }

  /** A result of the other era, or the answer to a call that was repeated. */
  answered(pending: Pending, link: MemberLink, line: Envelope): void {
    if (pending.isOver) return
    const isResult = line.has(FIELD.result)
    const edits: Edit[] = [replace(line, FIELD.id, pending.spelling)]
    if (isResult) {
      this.memories.learn(line, link.pool)
      if (pending.era === 'legacy' && requiresInput(line)) return askForInput(this, pending, link, line)
      edits.push(
        ...(pending.era === 'legacy' ? eras.cutResultMembers(line) : eras.addResultMembers(line, pending.method)),
      )
    }
    this.#reply(pending, splice(line, edits), { via: link.delegate, ...(isResult ? {} : { outcome: 'error' }) })
  }

  failed(pending: Pending, why: string): void {
    if (!pending.isOver) this.refuse(pending, 'input_required', { pool: pending.link?.pool, why })
  }

  linkFailed(link: MemberLink, error: string): void {
    if (this.#links.get(link.pool) === link) this.#links.delete(link.pool)
    for (const pending of [...this.pending.wanted()]) {
      if (pending.link !== link) continue
      const line = Buffer.from(`{"jsonrpc":"2.0","id":${pending.spelling},"error":${error}}\n`)
      this.#reply(pending, line, { outcome: 'error' })
    }
  }

  #noticed(link: MemberLink, line: Envelope, bytes: Buffer): void {
    const method = line.text(FIELD.method)!
    const via = { via: link.delegate }
    if (method.endsWith('/list_changed')) return this.aggregate.memberChanged(link.pool)
    if (method === 'notifications/subscriptions/acknowledged') return
    if (method === 'notifications/cancelled') return this.questions.withdrawn(link, line)
    if (method === 'notifications/resources/updated' && this.subscriptions.updated(link, line)) return
    if (method === 'notifications/message') this.port.reply(this.client, splice(line, loggerOf(line, link.pool)), via)
    else this.port.reply(this.client, bytes, via)
  }

  // ---- lists that change ----

  /** It has been given this list. */
  sawList(kind: Kind): void {
    this.#seen.set(kind, this.view.digest(kind))
    this.#listedVersions.set(kind, this.aggregate.catalogue.version)
  }

  /** The name has passed to another member since it last listed the names (contract 13.5). */
  hasMoved(kind: NamedKind, name: string): boolean {
    const movedAt = this.aggregate.catalogue.past[kind].moved.get(name)
    return movedAt !== undefined && movedAt > this.#listedVersions.get(kind)!
  }

  /** What the members offer has changed: it hears of it if it sees it, and not too often (contract 13.10). */
  listsChanged(): void {
    if (this.#stopTelling !== undefined || !this.aggregate.isListed) return
    const waitMs = this.#toldAtMs + BOUNDS.changeGapMs - this.port.nowMs()
    if (waitMs <= 0) return this.#tellChanges()
    this.#stopTelling = this.port.after(waitMs, () => {
      this.#stopTelling = undefined
      this.#tellChanges()
    })
  }

  #tellChanges(): void {
    const { view } = this
    const changed = KIND_NAMES.filter((kind) => view.digest(kind) !== this.#seen.get(kind))
    if (changed.length === 0) return
    this.#toldAtMs = this.port.nowMs()
    for (const kind of changed) this.#seen.set(kind, view.digest(kind))
    // Resources and their templates are told of by one word.
    const told = changed.includes('resources') ? changed.filter((kind) => kind !== 'templates') : changed
    for (const kind of told) this.subscriptions.listChanged(kind, this.#isGreeted && !this.#isModern)
  }

  // ---- the end ----

  /** What would last for ever ends with the bus. */
  endListens(): void {
    for (const pending of this.subscriptions.open) {
      this.subscriptions.end(pending)
      this.answer(pending, endOfListen(pending))
    }
    this.subscriptions.unsubscribeAll()
  }

  failAll(reason: Reason): void {
    this.endListens()
    for (const pending of [...this.pending.wanted()]) this.refuse(pending, reason)
  }

  leave(): void {
    this.#stopTelling?.()
    this.subscriptions.forgetAll()
    for (const pending of [...this.pending.wanted()]) this.pending.end(pending)
    for (const link of [...this.#links.values(), ...this.#parting]) link.leave()
    this.#links.clear()
    this.#parting.clear()
  }
}

/** How a line names its pool, which is nobody's concern behind it. */
const ADDRESSING = [FIELD.pool]

function cancelLine(spelling: string): Buffer {
  return Buffer.from(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${spelling}}}\n`)
}

/** Whose log line it is stands before the name of its logger (contract 13.11). */
function loggerOf(line: Envelope, pool: string): Edit[] {
  if (!line.has(FIELD.params)) return []
  const logger = memberOf(line.bytes, line.startOf(FIELD.params), line.endOf(FIELD.params), 'logger')
  if (logger === undefined) return [insertMember(line, FIELD.params, `"logger":${JSON.stringify(`${pool}/`)}`)]
  const own: unknown = JSON.parse(line.bytes.utf8Slice(logger.start, logger.end))
  return [{ ...logger, text: JSON.stringify(`${pool}/${typeof own === 'string' ? own : ''}`) }]
}

function fieldsIn(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

/** Most calls fit into it. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024)

/** The same as `splice`; where the line lies holds until the next one is spliced. */
function spliceBriefly(line: Envelope, edits: readonly Edit[]): Buffer {
  if (mostBytesOf(line, edits) > scratch.length) return splice(line, edits)
  return scratch.subarray(0, writeEdited(scratch, 0, line, edits))
}
