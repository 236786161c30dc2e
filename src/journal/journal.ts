/**
 * The journal as the daemon sees it: takes the orders of the kernel, hands them to the thread of the store in batches, and
 * tells the kernel what was written, read, or cannot be for now (contract 12.9, 12.10).
 *
 * Nobody waits for it. What it has not written the kernel still holds: after a failure the kernel tells it all again, so
 * nothing is kept here that has been given up. Invariant: at most one batch is under way, orders are written in order.
 */
import type { BusEvent, JournalOrder, Written } from '../kernel/events.ts'
import { packBatch, type WriteOrder } from './batch.ts'
import type { JournalCalls } from './tables.ts'

/** The way to the thread; see `StoreTenant`. */
export interface JournalPort {
  isOpen(): boolean
  ask(op: string, params: unknown): Promise<{ readonly value: unknown } | undefined>
  follow(listener: (isOpen: boolean) => void): void
}

export interface JournalOptions {
  readonly port: JournalPort
  readonly tell: (event: BusEvent) => void
  readonly nowMs: () => number
  /** 0: nothing is ever too old. */
  readonly retentionDays: number
}

export interface JournalStatus {
  readonly state: 'ok' | 'failed'
  /** Lines that were given up before they were written. */
  readonly dropped: number
}

const BATCH_MS = 100
const BATCH_ORDERS = 512
/** Above this the disk is taken to be too slow. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024
const SWEEP_MS = 3_600_000
const DAY_MS = 86_400_000
const MAX_SESSIONS = 100_000

export class SessionJournal {
  readonly #options: JournalOptions
  #waiting: WriteOrder[] = []
  #waitingBytes = 0
  #timer: NodeJS.Timeout | undefined
  #sweepTimer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #isWriting = false
  #dropped = 0

  constructor(options: JournalOptions) {
    this.#options = options
    options.port.follow((isOpen) => void this.#changed(isOpen))
  }

  /** Tells the kernel what earlier runs have written down. */
  async open(): Promise<void> {
    if (this.#options.port.isOpen()) await this.#changed(true)
    if (this.#options.retentionDays === 0) return
    this.#sweepTimer = setInterval(() => void this.#sweep(), SWEEP_MS).unref()
    void this.#sweep()
  }

  take(order: JournalOrder): void {
    if (order.order === 'read') return void this.#read(order)
    if (!this.#isWriting) return
    this.#waiting.push(order)
    if (order.order === 'append') this.#waitingBytes += order.bytes.length
    if (this.#waitingBytes > MAX_WAITING_BYTES) return this.#giveUp()
    if (this.#writing !== undefined) return
    if (this.#waiting.length >= BATCH_ORDERS) this.#write()
    else this.#timer ??= setTimeout(() => this.#write(), BATCH_MS)
  }

  status(): JournalStatus {
    return { state: this.#isWriting ? 'ok' : 'failed', dropped: this.#dropped }
  }

  /** Writes all that it was told. */
  async close(): Promise<void> {
    clearInterval(this.#sweepTimer)
    while (this.#isWriting && (this.#waiting.length > 0 || this.#writing !== undefined)) {
      if (this.#writing === undefined) this.#write()
      await this.#writing
    }
    clearTimeout(this.#timer)
  }

  async #changed(isOpen: boolean): Promise<void> {
    if (isOpen === this.#isWriting) return
    if (!isOpen) return this.#giveUp()
    const sessions = await this.#ask('list', { limit: MAX_SESSIONS })
    if (sessions === undefined || this.#isWriting) return
    this.#isWriting = true
    this.#options.tell({ type: 'journal-opened', sessions })
    this.#options.tell({ type: 'journal-changed', isWriting: true })
  }

  /** The kernel has it all, and tells it again. */
  #giveUp(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#dropped += this.#waiting.filter(({ order }) => order === 'append').length
    this.#waiting = []
    this.#waitingBytes = 0
    if (!this.#isWriting) return
    this.#isWriting = false
    this.#options.tell({ type: 'journal-changed', isWriting: false })
    // A disk that is slow is well again without anybody saying so.
    if (this.#options.port.isOpen()) setTimeout(() => void this.#changed(this.#options.port.isOpen()), 1_000).unref()
  }

  #write(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const orders = this.#waiting
    if (orders.length === 0) return
    this.#waiting = []
    this.#waitingBytes = 0
    this.#writing = this.#post(orders).finally(() => {
      this.#writing = undefined
      if (this.#waiting.length > 0 && this.#isWriting) this.#timer ??= setTimeout(() => this.#write(), BATCH_MS)
    })
  }

  async #post(orders: readonly WriteOrder[]): Promise<void> {
    const written = await this.#ask('write', packBatch(orders))
    if (written === undefined) {
      this.#dropped += orders.filter(({ order }) => order === 'append').length
      return this.#giveUp()
    }
    if (!this.#isWriting) return
    const upTo = new Map<string, Written>()
    for (const order of orders) if (order.order === 'append') upTo.set(order.key, [order.key, order.life, order.seq])
    if (upTo.size > 0) this.#options.tell({ type: 'journal-written', upTo: [...upTo.values()] })
  }

  async #read({ key, reader, from, to, maxBytes, wantsHead }: Extract<JournalOrder, { order: 'read' }>): Promise<void> {
    const reply = await this.#ask('read', { key, from, to, maxBytes, wantsHead })
    const { entries, bytes, head } = reply ?? { entries: [], bytes: new Uint8Array(), head: undefined }
    const told = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.#options.tell({ type: 'journal-lines', reader, entries, bytes: told, ...(head === undefined ? {} : { head }) })
  }

  async #sweep(): Promise<void> {
    const cutoffMs = this.#options.nowMs() - this.#options.retentionDays * DAY_MS
    for (let keys = await this.#ask('sweep', { cutoffMs }); keys !== undefined && keys.length > 0; ) {
      this.#options.tell({ type: 'journal-swept', keys })
      keys = await this.#ask('sweep', { cutoffMs })
    }
  }

  async #ask<Op extends keyof JournalCalls>(
    op: Op,
    params: JournalCalls[Op]['params'],
  ): Promise<JournalCalls[Op]['yields'] | undefined> {
    return (await this.#options.port.ask(op, params))?.value as JournalCalls[Op]['yields'] | undefined
  }
}
