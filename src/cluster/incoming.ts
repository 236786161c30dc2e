/**
 * The other direction of a stream, as its receiver knows it: what has come in order, and what of it was taken.
 *
 * What is not taken is kept, at most the window, because no more was allowed. What came before is ignored, what comes too
 * early is not kept: it is asked for again (contract 14.5).
 */
import { readEnding, type StreamEnding } from './ending.ts'
import { CLUSTER } from './limits.ts'

const NO_BUFFERS: Buffer[] = []

export type Arrival = 'new' | 'old' | 'early' | 'beyond'

export class Incoming {
  received = 0
  taken = 0
  isPaused = false
  /** Why the far side has ended; the end is told when all before it is taken. */
  reason: Buffer | undefined
  /** What was last acknowledged, and allowed. */
  ackedAt = 0
  limitTold: number = CLUSTER.windowBytes
  askedAgainMs = Number.NEGATIVE_INFINITY
  #inbox: Buffer[] = NO_BUFFERS

  get limit(): number {
    return this.taken + CLUSTER.windowBytes
  }

  /** Everything up to the end has been taken. */
  get isOver(): boolean {
    return this.reason !== undefined && this.#inbox.length === 0
  }

  get ending(): StreamEnding {
    return this.reason === undefined ? { reason: 'closed' } : readEnding(this.reason)
  }

  /** Takes in what is new of the bytes and hands it on, unless it has to wait. */
  take(offset: number, bytes: Buffer, hand: (bytes: Buffer) => void): Arrival {
    if (offset > this.received) return 'early'
    const from = this.received - offset
    if (from >= bytes.length || this.reason !== undefined) return 'old'
    if (offset + bytes.length > this.limit) return 'beyond'
    const fresh = from === 0 ? bytes : bytes.subarray(from)
    this.received += fresh.length
    if (this.isPaused || this.#inbox.length > 0) this.#keep(fresh)
    else {
      this.taken += fresh.length
      hand(fresh)
    }
    return 'new'
  }

  /** The far side has ended at this offset. */
  end(offset: number, reason: Buffer): Arrival {
    if (offset > this.received) return 'early'
    if (offset < this.received || this.reason !== undefined) return 'old'
    this.received++
    this.reason = Buffer.from(reason)
    return 'new'
  }

  /** Hands on what waited, until it is stopped. */
  release(hand: (bytes: Buffer) => void): void {
    while (!this.isPaused && this.#inbox.length > 0) {
      const bytes = this.#inbox.shift()!
      this.taken += bytes.length
      hand(bytes)
    }
    if (this.#inbox.length === 0) this.#inbox = NO_BUFFERS
  }

  /** Nobody wants it any more. */
  discard(): void {
    this.isPaused = false
    this.release(() => {})
  }

  /** The sender should hear of it now rather than with the next thing that is sent. */
  get isAckUrgent(): boolean {
    return this.received - this.ackedAt >= CLUSTER.ackAtBytes || this.limit - this.limitTold >= CLUSTER.ackAtBytes
  }

  #keep(bytes: Buffer): void {
    if (this.#inbox === NO_BUFFERS) this.#inbox = []
    this.#inbox.push(Buffer.from(bytes))
  }
}
