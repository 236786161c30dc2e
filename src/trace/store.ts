/**
 * The trace store as the rest of the bus sees it: told of calls, asked about traces.
 *
 * Telling never waits, never throws and never fails a call: rows go to a bounded queue and from there, in batches, to a
 * thread with a database; when that fails they stay in a bounded memory. Asking first sends what is queued, so a question
 * sees every call whose answer was delivered (spec T4).
 */
import { randomUUID } from 'node:crypto'
import type { CallEnd, CallPartial, CallStart } from './call.ts'
import { ChangeQueue, type Dropped } from './change-queue.ts'
import type { Opened } from './engine.ts'
import { payloadKeeper } from './payload.ts'
import { type Answer, answerQuery, type QueryMethod } from './query.ts'
import { RecentTraces } from './recent-traces.ts'
import { type CallRecord, closeRecord, countPartial, forgetLarge, openRecord } from './record.ts'
import { type CallRow, packChange } from './row.ts'
import { type StateChange, StoreLink, type StoreState } from './store-link.ts'
import { type StoreOptions, type StoreSettings, settingsOf } from './store-settings.ts'
import { TraceIds } from './trace-ids.ts'

export interface StoreStatus {
  readonly state: StoreState
  /** Everything that could not be kept in the database. */
  readonly dropped: number
  readonly droppedBy: Readonly<Dropped>
  readonly reason?: string
}

/** A call has begun or ended; for whoever follows live. */
export interface CallEvent {
  readonly event: 'started' | 'ended'
  readonly traceId: string
  readonly otelTraceId: string | null
  readonly row: CallRow
}

/** How somebody else uses the file of the store. */
export interface TenantPort {
  isOpen(): boolean
  /** Undefined: it failed. */
  ask(op: string, params: unknown): Promise<{ readonly value: unknown } | undefined>
  /** Told of every change of the store. */
  follow(listener: (isOpen: boolean) => void): void
}

const BATCH_ROWS = 500
const BATCH_MS = 100
const SWEEP_MS = 3_600_000
const DAY_MS = 86_400_000

/** Resolves when the store is ready to be told and asked, with or without a working database; never rejects. */
export async function openTraceStore(options: StoreOptions = {}): Promise<TraceStore> {
  const store = new TraceStore(settingsOf(options))
  await store.open()
  return store
}

export class TraceStore {
  readonly ids: TraceIds
  readonly #settings: StoreSettings
  readonly #queue: ChangeQueue
  readonly #recent: RecentTraces
  readonly #link: StoreLink | undefined
  readonly #open = new Map<string, CallRecord>()
  readonly #followers = new Set<(event: CallEvent) => void>()
  readonly #stateFollowers = new Set<(isOpen: boolean) => void>()
  /** Calls to charge to their traces with the next batch. */
  #missing = new Map<string, number>()
  #writing = 0
  #batchTimer: NodeJS.Timeout | undefined
  #sweepTimer: NodeJS.Timeout | undefined

  constructor(settings: StoreSettings) {
    const { nowMs, bounds } = settings
    const busInstance = randomUUID()
    this.#settings = settings
    this.#queue = new ChangeQueue(bounds.queue, (record) => this.#charge(record))
    this.#recent = new RecentTraces(busInstance, bounds.recent, payloadKeeper(settings))
    this.ids = new TraceIds(
      busInstance,
      nowMs,
      (day, count, atLeast) => this.#reserve(day, count, atLeast),
      settings.node,
    )
    if (settings.path === undefined) return
    this.#link = new StoreLink(
      settings.makeHost,
      { path: settings.path, payloadBytes: settings.payloadBytes, redact: settings.redact, otlp: settings.otlp },
      settings.times,
      nowMs,
      (change, opened) => this.#changed(change, opened),
    )
  }

  async open(): Promise<void> {
    await this.#link?.open()
    await this.ids.prepare()
  }

  begin(call: CallStart): void {
    if (this.#open.size >= this.#settings.bounds.maxOpen) {
      this.#queue.dropped.rows += 1
      this.#chargeTrace(call.traceId)
      return
    }
    const record = openRecord(call)
    this.#open.set(`${call.traceId}#${call.callId}`, record)
    this.#recent.add(record)
    if (this.#isKeeping()) this.#queue.start(record)
    else this.#pass(record)
    this.#schedule()
    this.#tell('started', record)
  }

  partial(partial: CallPartial): void {
    const record = this.#open.get(`${partial.traceId}#${partial.callId}`)
    if (record === undefined) return
    countPartial(record, partial)
    this.#queue.touch(record)
    this.#schedule()
  }

  end(call: CallEnd): void {
    const key = `${call.traceId}#${call.callId}`
    const record = this.#open.get(key)
    if (record === undefined) return
    this.#open.delete(key)
    closeRecord(record, call)
    this.#queue.end(record)
    if (record.queued === undefined) forgetLarge(record, this.#settings.bounds.rememberedPayloadBytes)
    this.#recent.weigh(record)
    this.#schedule()
    this.#tell('ended', record)
  }

  /** Calls the listener with every start and end from now on; returns how to stop. */
  follow(listener: (event: CallEvent) => void): () => void {
    this.#followers.add(listener)
    return () => this.#followers.delete(listener)
  }

  /** The way to tables that somebody else has in the file; undefined: there is no file. */
  tenant(name: string): TenantPort | undefined {
    const link = this.#link
    if (link === undefined) return undefined
    return {
      isOpen: () => link.state === 'ok',
      ask: async (op, params) => {
        const outcome = await link.ask('tenant', { name, op, params })
        return 'value' in outcome ? { value: outcome.value } : undefined
      },
      follow: (listener) => {
        this.#stateFollowers.add(listener)
      },
    }
  }

  /** Asks by the names and parameters of `bus::traces.*`; the answer is JSON text or a fault. */
  async query(method: QueryMethod, params: unknown): Promise<Answer> {
    const answer = await this.#askDatabase(method, params)
    const isUnknown = answer !== undefined && 'fault' in answer && answer.fault.data.reason === 'unknown_trace'
    if (answer !== undefined && !isUnknown) return answer
    return answerQuery(this.#recent, method, params, this.#settings.otlp)
  }

  status(): StoreStatus {
    const { payloads, partials, rows } = this.#queue.dropped
    const failure = this.#link?.failure
    return {
      state: failure === undefined ? 'ok' : 'failed',
      dropped: payloads + partials + rows,
      droppedBy: { payloads, partials, rows },
      ...(failure === undefined ? {} : { reason: failure.reason }),
    }
  }

  /** Writes what is queued, then lets go of the file; bounded in time. */
  async close(): Promise<void> {
    clearTimeout(this.#batchTimer)
    clearInterval(this.#sweepTimer)
    if (this.#link === undefined) return
    await Promise.race([this.#postAll(), delay(this.#settings.times.closeMs)])
    await this.#link.close()
  }

  async #askDatabase(method: QueryMethod, params: unknown): Promise<Answer | undefined> {
    if (this.#link?.state !== 'ok') return undefined
    void this.#postAll()
    const asked = this.#link.ask('query', { method, params })
    const outcome = await Promise.race([asked, delay(this.#settings.times.queryMs)])
    return outcome !== undefined && 'value' in outcome ? outcome.value : undefined
  }

  #isKeeping(): boolean {
    return this.#link?.state === 'ok'
  }

  /** There is no database now: the memory has it, and that is all. */
  #pass(record: CallRecord): void {
    forgetLarge(record, this.#settings.bounds.rememberedPayloadBytes)
    this.#recent.weigh(record)
    if (this.#link !== undefined) this.#queue.dropped.rows += 1
  }

  #charge(record: CallRecord): void {
    if (record.isCharged) return
    record.isCharged = true
    this.#recent.charge(record.traceId)
    this.#chargeTrace(record.traceId)
  }

  #chargeTrace(traceId: string): void {
    const count = this.#missing.get(traceId)
    if (count === undefined && this.#missing.size >= this.#settings.bounds.maxCharged) return
    this.#missing.set(traceId, (count ?? 0) + 1)
  }

  #schedule(): void {
    if (!this.#isKeeping() || this.#writing > 0) return
    if (this.#queue.size >= BATCH_ROWS) return this.#pump()
    this.#batchTimer ??= setTimeout(() => this.#pump(), BATCH_MS)
  }

  #pump(): void {
    clearTimeout(this.#batchTimer)
    this.#batchTimer = undefined
    if (this.#writing === 0 && this.#queue.size + this.#missing.size > 0) void this.#post()
  }

  /** Sends everything at once; the thread keeps the order, so a question that follows sees it all. */
  async #postAll(): Promise<void> {
    const posts: Promise<void>[] = []
    while (this.#isKeeping() && this.#queue.size + this.#missing.size > 0) posts.push(this.#post())
    await Promise.all(posts)
  }

  async #post(): Promise<void> {
    const link = this.#link
    if (link?.state !== 'ok') return
    const { records, changes } = this.#queue.take(BATCH_ROWS)
    const kinds = changes.map((change) => change.kind)
    const missing = this.#missing
    this.#missing = new Map()
    this.#writing += 1
    const batch = { changes: changes.map(packChange), missing: [...missing], atMs: this.#settings.nowMs() }
    const asked = link.ask('write', { batch })
    for (const record of records) this.#handedOver(record)
    const outcome = await asked
    this.#writing -= 1
    if ('error' in outcome) {
      this.#queue.giveBack(records, kinds)
      for (const [traceId, count] of missing) this.#missing.set(traceId, (this.#missing.get(traceId) ?? 0) + count)
    }
    if (this.#queue.size > 0) this.#schedule()
  }

  #handedOver(record: CallRecord): void {
    record.stored = true
    forgetLarge(record, this.#settings.bounds.rememberedPayloadBytes)
    this.#recent.weigh(record)
  }

  async #reserve(day: string, count: number, atLeast: number): Promise<number | undefined> {
    const outcome = await this.#link?.ask('reserve', { day, count, atLeast })
    return outcome !== undefined && 'value' in outcome ? outcome.value : undefined
  }

  #changed(change: StateChange, opened: Opened | undefined): void {
    if (opened !== undefined) this.#adopt(opened)
    this.#recent.isBacked = change.state === 'ok'
    if (change.state === 'failed') this.#queue.discard()
    else this.#schedule()
    this.#settings.onState(change)
    for (const follower of this.#stateFollowers) follower(change.state === 'ok')
  }

  /** The file knows who this bus is and which ids are used. */
  #adopt({ busInstance, lastIds }: Opened): void {
    this.#recent.busInstance = this.ids.busInstance = busInstance
    this.ids.calls.remember(lastIds)
    if (this.#settings.retentionDays === 0 || this.#sweepTimer !== undefined) return
    this.#sweepTimer = setInterval(() => void this.#sweep(), SWEEP_MS).unref()
    void this.#sweep()
  }

  async #sweep(): Promise<void> {
    const cutoffMs = this.#settings.nowMs() - this.#settings.retentionDays * DAY_MS
    let hasMore = true
    while (hasMore) {
      const outcome = await this.#link?.ask('sweep', { cutoffMs })
      hasMore = outcome !== undefined && 'value' in outcome && outcome.value
    }
  }

  #tell(event: CallEvent['event'], { traceId, otelTraceId, row }: CallRecord): void {
    for (const follower of this.#followers) follower({ event, traceId, otelTraceId, row })
  }
}

function delay(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), ms).unref())
}
