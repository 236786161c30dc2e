/**
 * What one member offers, as the bus has found out for all clients at once (contract 13.3, 13.8, 13.10).
 *
 * The member is greeted, asked for its lists page by page within bounds, and asked again when it says that they have
 * changed, when its worker is another one, or when asking failed. It keeps what was last heard; who sees what of it is not
 * its concern. Of a member that every client has for itself, the bus has one worker too: some change their lists as soon as
 * they are greeted, and would be started again and again.
 */
import { memberOf } from '../wire/json-array.ts'
import { META, MODERN_REVISION, NEWEST_LEGACY, type SpokenEra } from './eras.ts'
import { type Item, readPage } from './items.ts'
import { type Answer, MemberTalk } from './member-talk.ts'
import type { AggregatePort } from './port.ts'
import { BOUNDS } from './spec.ts'

/** The four lists of a server: their methods, where the items stand, and the capability that says there are any. */
export const KINDS = {
  tools: { method: 'tools/list', key: 'tools', capability: 'tools', uriKey: undefined },
  prompts: { method: 'prompts/list', key: 'prompts', capability: 'prompts', uriKey: undefined },
  resources: { method: 'resources/list', key: 'resources', capability: 'resources', uriKey: 'uri' },
  templates: {
    method: 'resources/templates/list',
    key: 'resourceTemplates',
    capability: 'resources',
    uriKey: 'uriTemplate',
  },
} as const

export type Kind = keyof typeof KINDS
export const KIND_NAMES = Object.keys(KINDS) as readonly Kind[]

export interface Known {
  readonly era: SpokenEra
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions: string | undefined
  readonly lists: Readonly<Record<Kind, readonly Item[]>>
}

interface Introduction {
  readonly era: SpokenEra
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions: string | undefined
}

/** The member was not there to be asked; it says nothing about what it speaks. */
class Away extends Error {}

export class MemberList {
  readonly pool: string
  readonly #port: AggregatePort
  readonly #changed: () => void
  #known: Known | undefined
  #talk: MemberTalk | undefined
  #introduction: Introduction | undefined
  #isAsking = false
  #isStale = false
  #isEnded = false
  /** It has been parked for too long: it is not shown. */
  #isHidden = false
  #parkedSinceMs: number | undefined
  #generations = ''
  /** The last asking failed: it is to be asked again, when it is due. */
  #hasFailed = false
  #retryAtMs = 0
  #retryMs: number = BOUNDS.retryMs
  /** When it was last asked to the end. */
  #listedAtMs = Number.NEGATIVE_INFINITY
  /** Another program may be there: it is greeted anew. */
  #isOther = false
  /** Since when it has been asked for the first time; undefined: that is over, one way or the other. */
  #firstAskedMs: number | undefined

  constructor(port: AggregatePort, pool: string, changed: () => void) {
    this.#port = port
    this.pool = pool
    this.#changed = changed
    this.#firstAskedMs = port.nowMs()
  }

  /** What it offers; undefined: nobody knows, or it has been away for too long. */
  get known(): Known | undefined {
    return this.#isHidden ? undefined : this.#known
  }

  /** So long somebody who wants a list may have to wait for it; 0: it is known, or waiting does not help. */
  waitMs(listWaitMs: number): number {
    if (this.#known !== undefined || this.#firstAskedMs === undefined) return 0
    return Math.max(0, this.#firstAskedMs + listWaitMs - this.#port.nowMs())
  }

  /** Asks for everything, now or as soon as the asking under way has ended; a member that was just listed has a rest. */
  refresh(): void {
    this.#isStale = true
    if (this.#isAsking || this.#isEnded) return
    this.#isAsking = true
    // What goes wrong is told by whoever tells what goes wrong in a timer, and the member is asked again later.
    this.#list().catch((error) => {
      this.#isAsking = false
      this.#failed('the bus failed at it')
      this.#settle(true)
      this.#port.after(0, () => {
        throw error
      })
    })
  }

  /** The same, of a program that may be another one. */
  refreshAnew(): void {
    this.#isOther = true
    this.refresh()
  }

  /** Called once in a while: whether its workers are there, and are those that were asked. */
  watch(): void {
    const nowMs = this.#port.nowMs()
    const workers = this.#port.workersOf(this.pool)
    const isParked = workers.length > 0 && workers.every(({ state }) => state === 'parked' || state === 'stopped')
    if (isParked) this.#noteParked(nowMs)
    else this.#noteThere(workers)
    const isDue = (this.#known === undefined || this.#hasFailed) && nowMs >= this.#retryAtMs
    if (!isParked && isDue && !this.#isAsking) this.refresh()
  }

  #noteParked(nowMs: number): void {
    this.#parkedSinceMs ??= nowMs
    if (this.#isHidden || nowMs - this.#parkedSinceMs < BOUNDS.parkedMs) return
    this.#isHidden = true
    this.#changed()
  }

  #noteThere(workers: ReturnType<AggregatePort['workersOf']>): void {
    const wasHidden = this.#isHidden
    this.#parkedSinceMs = undefined
    this.#isHidden = false
    if (this.#port.factsOf(this.pool)?.sharing === 'isolated') return wasHidden ? this.refresh() : undefined
    const generations = generationsOf(workers)
    const isAsAsked = generations === '' || generations === this.#generations
    if (this.#known === undefined || (isAsAsked && !wasHidden)) return
    this.#generations = generations
    // Another program may be there, which offers other things.
    this.refreshAnew()
  }

  end(): void {
    this.#isEnded = true
    this.#leave()
  }

  async #list(): Promise<void> {
    while (this.#isStale && !this.#isEnded) {
      await this.#rest()
      this.#isStale = false
      const before = this.#known
      try {
        await this.#listOnce()
        this.#hasFailed = false
        this.#retryMs = BOUNDS.retryMs
      } catch (error) {
        if (!(error instanceof Away)) throw error
        this.#failed(error.message)
      }
      this.#listedAtMs = this.#port.nowMs()
      // What others wait for is told now: a member may say without end that its lists have changed.
      this.#settle(before !== this.#known)
    }
    this.#isAsking = false
  }

  /** A member that says again and again that its lists have changed is asked only so often. */
  #rest(): Promise<void> | undefined {
    const restMs = this.#listedAtMs + BOUNDS.relistGapMs - this.#port.nowMs()
    return restMs <= 0 ? undefined : new Promise((resolve) => this.#port.after(restMs, resolve))
  }

  /** An asking is over. */
  #settle(hasChanged: boolean): void {
    const wasFirst = this.#firstAskedMs !== undefined
    this.#firstAskedMs = undefined
    if ((hasChanged || wasFirst) && !this.#isEnded) this.#changed()
  }

  #failed(why: string): void {
    this.#leave()
    this.#hasFailed = true
    this.#retryAtMs = this.#port.nowMs() + this.#retryMs
    this.#retryMs = Math.min(this.#retryMs * 2, BOUNDS.longestRetryMs)
    if (!this.#isEnded) this.#port.log('debug', `member could not be listed: ${why}`, { pool: this.pool })
  }

  async #listOnce(): Promise<void> {
    if (this.#isOther) this.#leave()
    this.#isOther = false
    const talk = (this.#talk ??= new MemberTalk(this.#port, this.pool, (method) => this.#noticed(method)))
    const introduction = (this.#introduction ??= await this.#introduce(talk))
    const meta = introduction.era === 'modern' ? MODERN_META : {}
    const entries = await Promise.all(
      KIND_NAMES.map(async (kind) => [kind, await this.#listKind(talk, kind, introduction, meta)] as const),
    )
    this.#generations = generationsOf(this.#port.workersOf(this.pool))
    const lists = Object.fromEntries(entries) as unknown as Known['lists']
    if (!isKnownAs(this.#known, introduction, lists)) this.#known = { ...introduction, lists }
  }

  #noticed(method: string): void {
    if (method.endsWith('/list_changed')) this.refresh()
  }

  async #introduce(talk: MemberTalk): Promise<Introduction> {
    const era = this.#port.factsOf(this.pool)?.era ?? 'auto'
    const greeting = { ...GREETING, capabilities: this.#offers() }
    const greeted = era === 'modern' ? undefined : await talk.ask('initialize', greeting)
    if (era !== 'modern' && (greeted === undefined || isAway(greeted))) throw new Away(reasonOf(greeted))
    if (greeted?.result !== undefined) {
      talk.tell('notifications/initialized')
      return introductionIn(greeted, 'legacy')
    }
    const discovered = era === 'legacy' ? undefined : await talk.ask('server/discover', { _meta: MODERN_META._meta })
    if (discovered?.result === undefined) throw new Away(reasonOf(discovered ?? greeted))
    const introduction = introductionIn(discovered, 'modern')
    // It lasts as long as the talk does.
    void talk.ask('subscriptions/listen', { ...MODERN_META, notifications: ALL_CHANGES }, Number.POSITIVE_INFINITY)
    return introduction
  }

  /** A worker that one client has to itself may show more to hosts that answer questions: its clients may be such. */
  #offers(): object {
    return this.#port.factsOf(this.pool)?.sharing === 'shared' ? {} : ANSWERS
  }

  async #listKind(talk: MemberTalk, kind: Kind, { capabilities }: Introduction, meta: object): Promise<Item[]> {
    const { method, key, capability, uriKey } = KINDS[kind]
    const items: Item[] = []
    if (capabilities[capability] === undefined) return items
    let cursor: string | undefined
    let bytes = 0
    for (let pages = 0; ; pages++) {
      const answer = await talk.ask(method, { ...meta, ...(cursor === undefined ? {} : { cursor }) })
      if (answer === undefined || isAway(answer)) throw new Away(reasonOf(answer))
      const format = { key, uriKey, most: BOUNDS.items + 1 - items.length }
      const page = answer.result === undefined ? undefined : readPage(answer.line, answer.result, format)
      if (page === undefined) return this.#cut(kind, items, 'it answered with something that is no list')
      if (page.odd > 0) this.#cut(kind, items, `${page.odd} entries have no name, or are nested too deep`)
      if (page.mended > 0) this.#cut(kind, items, `${page.mended} entries have fields that hosts cannot read`)
      bytes += answer.line.length
      for (const item of page.items) items.push(item)
      const isRepeated = page.nextCursor !== undefined && page.nextCursor === cursor
      cursor = page.nextCursor
      const isTooLong = items.length > BOUNDS.items || bytes > BOUNDS.listBytes
      if (isTooLong || isRepeated || (cursor !== undefined && pages + 1 >= BOUNDS.pages))
        return this.#cut(kind, items.slice(0, BOUNDS.items), 'it does not end')
      if (cursor === undefined) return items
    }
  }

  #cut(kind: Kind, items: Item[], why: string): Item[] {
    this.#port.log('warn', `the list of a member was cut: ${why}`, { pool: this.pool, list: kind })
    return items
  }

  #leave(): void {
    this.#talk?.leave()
    this.#talk = undefined
    this.#introduction = undefined
  }
}

/** What clients may answer; what the bus itself is asked all the same it refuses. */
const ANSWERS = { sampling: {}, elicitation: {}, roots: {} } as const
const MODERN_META = {
  _meta: { [META.protocolVersion]: MODERN_REVISION, [META.clientCapabilities]: ANSWERS },
} as const
const GREETING = {
  protocolVersion: NEWEST_LEGACY,
  clientInfo: { name: 'stdio-bus', version: '0.1.0' },
} as const
const ALL_CHANGES = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true } as const

/** What the bus says where no worker was there to answer; anything else a member may have said. */
const SPOKEN: ReadonlySet<unknown> = new Set([undefined, 'protocol_mismatch', 'unknown_method'])

function isAway({ error }: Answer): boolean {
  const { reason, retryable } = (error?.data ?? {}) as { reason?: unknown; retryable?: unknown }
  return error !== undefined && !SPOKEN.has(reason) && retryable === true
}

/** Which lives of its workers can be asked. */
function generationsOf(workers: ReturnType<AggregatePort['workersOf']>): string {
  const ready = workers.filter(({ state }) => state === 'ready')
  return ready.map(({ generation }) => generation).join()
}

/** It offers what it did, so nothing is to be made of it anew. */
function isKnownAs(known: Known | undefined, { era, capabilities, instructions }: Introduction, lists: Known['lists']) {
  if (known?.era !== era || known.instructions !== instructions) return false
  if (JSON.stringify(Object.keys(known.capabilities)) !== JSON.stringify(Object.keys(capabilities))) return false
  return KIND_NAMES.every((kind) => isSameList(known.lists[kind], lists[kind]))
}

function isSameList(one: readonly Item[], other: readonly Item[]): boolean {
  return one.length === other.length && one.every(({ raw }, at) => raw.equals(other[at]!.raw))
}

function reasonOf(answer: Answer | undefined): string {
  return answer?.error?.message ?? 'it did not answer'
}

function introductionIn({ line, result }: Answer, era: SpokenEra): Introduction {
  const read = (key: string): unknown => {
    const span = memberOf(line, result!.start, result!.end, key)
    return span === undefined ? undefined : JSON.parse(line.utf8Slice(span.start, span.end))
  }
  const capabilities = read('capabilities')
  const instructions = read('instructions')
  return {
    era,
    capabilities: typeof capabilities === 'object' && capabilities !== null ? { ...capabilities } : {},
    instructions: typeof instructions === 'string' && instructions !== '' ? instructions : undefined,
  }
}
