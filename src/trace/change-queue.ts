/**
 * What waits to be written, bounded, and what is given up when more comes than the disk takes.
 *
 * The order of giving up: payloads, then partials, then whole calls (spec T5). The end of a call that the database
 * already has open is never given up: it is one row without payloads, and there are no more of them than open calls.
 */
import { type CallRecord, losePayload, payloadLength } from './record.ts'
import type { Change } from './row.ts'

export interface QueueBounds {
  readonly maxRows: number
  readonly maxPayloadBytes: number
}

/** Shares of `maxRows` at which the next kind of thing is given up. */
const GIVE_UP_PAYLOADS = 0.5
const GIVE_UP_PARTIALS = 0.75

export interface Dropped {
  payloads: number
  partials: number
  rows: number
}

export interface Taken {
  readonly records: readonly CallRecord[]
  readonly changes: readonly Change[]
}

export class ChangeQueue {
  readonly dropped: Dropped = { payloads: 0, partials: 0, rows: 0 }
  readonly #bounds: QueueBounds
  readonly #onLoss: (record: CallRecord) => void
  readonly #waiting = new Set<CallRecord>()
  #payloadBytes = 0

  constructor(bounds: QueueBounds, onLoss: (record: CallRecord) => void) {
    this.#bounds = bounds
    this.#onLoss = onLoss
  }

  get size(): number {
    return this.#waiting.size
  }

  start(record: CallRecord): void {
    if (this.size >= this.#bounds.maxRows) return this.#loseRow(record)
    this.#admitPayload(record, 'input')
    this.#add(record, 'new')
  }

  touch(record: CallRecord): void {
    if (record.queued !== undefined || !record.stored) return
    if (this.size >= this.#bounds.maxRows * GIVE_UP_PARTIALS) this.dropped.partials += 1
    else this.#add(record, 'touch')
  }

  /** A call whose start was lost stays lost: its trace has been charged for it. */
  end(record: CallRecord): void {
    if (!record.stored && record.queued === undefined) return
    this.#admitPayload(record, 'output')
    this.#add(record, record.queued === 'new' ? 'new' : 'end')
  }

  /** Removes up to `maxRows` records and says what to write of each. */
  take(maxRows: number): Taken {
    const records: CallRecord[] = []
    const changes: Change[] = []
    for (const record of this.#waiting) {
      if (records.length === maxRows) break
      changes.push(this.#toChange(record))
      records.push(record)
    }
    for (const record of records) this.#remove(record)
    return { records, changes }
  }

  /** The database did not take these: calls it has never seen are lost, ends of those it has are tried again. */
  giveBack(records: readonly CallRecord[], kinds: readonly Change['kind'][]): void {
    records.forEach((record, index) => {
      if (kinds[index] === 'new') {
        record.stored = false
        this.#remove(record)
        this.#loseRow(record)
      } else if (kinds[index] === 'end' && record.queued === undefined) {
        losePayload(record, 'output')
        this.#add(record, 'end')
      }
    })
  }

  /** Nothing can be written for a while: only what must not be lost stays. */
  discard(): void {
    for (const record of [...this.#waiting]) {
      const kind = record.queued
      this.#remove(record)
      if (kind === 'new') this.#loseRow(record)
      if (kind === 'end') this.giveBack([record], ['end'])
    }
  }

  #admitPayload(record: CallRecord, which: 'input' | 'output'): void {
    const length = record.row[which]?.length ?? 0
    if (length === 0) return
    const isCrowded = this.size >= this.#bounds.maxRows * GIVE_UP_PAYLOADS
    if (!isCrowded && this.#payloadBytes + length <= this.#bounds.maxPayloadBytes) return
    losePayload(record, which)
    this.dropped.payloads += 1
    this.#onLoss(record)
  }

  #add(record: CallRecord, kind: Change['kind']): void {
    const bytes = payloadLength(record)
    this.#payloadBytes += bytes - record.queuedBytes
    record.queuedBytes = bytes
    record.queued = kind
    this.#waiting.add(record)
  }

  #remove(record: CallRecord): void {
    this.#payloadBytes -= record.queuedBytes
    record.queuedBytes = 0
    record.queued = undefined
    this.#waiting.delete(record)
  }

  #loseRow(record: CallRecord): void {
    this.dropped.rows += 1
    this.#onLoss(record)
  }

  #toChange(record: CallRecord): Change {
    return { kind: record.queued ?? 'new', traceId: record.traceId, otelTraceId: record.otelTraceId, row: record.row }
  }
}
