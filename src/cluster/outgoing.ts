/**
 * One direction of a stream as its sender knows it: what waits for credit, what was sent and is not acknowledged, how far it
 * may go.
 *
 * It holds a copy of all that was sent until it is acknowledged, at most the window; what waits belongs to whoever wrote it
 * and is not copied until it leaves. The end takes one offset of its own, so that it is acknowledged like a byte.
 */
import { CLUSTER } from './limits.ts'

interface Piece {
  readonly offset: number
  readonly bytes: Buffer
}

const NO_PIECES: Piece[] = []
const NO_BUFFERS: Buffer[] = []
const NOTHING = Buffer.alloc(0)

export class Outgoing {
  /** The offset of the next byte that is sent for the first time, and of the first that is not acknowledged. */
  sent = 0
  acked = 0
  /** As far as the receiver lets it go. */
  limit: number = CLUSTER.windowBytes
  waitingBytes = 0
  #waiting: Buffer[] = NO_BUFFERS
  #retained: Piece[] = NO_PIECES
  /** Sent again from here; at the end of what is retained: nothing is. */
  #again = 0
  /** Why it ends, once it is to. */
  #reason: Buffer | undefined
  #endOffset = -1
  /** When the receiver last moved, or the first of what it lacks was sent. */
  sinceMs = 0
  /** When what it lacks was last sent again. */
  resentMs = Number.NEGATIVE_INFINITY

  /** Everything has been acknowledged. */
  get isQuiet(): boolean {
    return this.acked === this.sent
  }

  get isEnding(): boolean {
    return this.#reason !== undefined
  }

  get isEnded(): boolean {
    return this.#endOffset !== -1 && this.acked > this.#endOffset
  }

  /** What leaves next is the very first. */
  get isAtStart(): boolean {
    return this.#again === 0
  }

  /** What leaves next is the end, which needs no credit. */
  get isNextEnd(): boolean {
    if (this.#again < this.sent) return this.#again === this.#endOffset
    return this.waitingBytes === 0 && this.isEnding
  }

  /** There is something that would leave if there were credit. */
  get isWilling(): boolean {
    return this.#again < this.sent || this.waitingBytes > 0 || (this.isEnding && this.#endOffset === -1)
  }

  write(buffers: readonly Buffer[]): void {
    if (this.isEnding) return
    if (this.#waiting === NO_BUFFERS) this.#waiting = []
    for (const buffer of buffers) {
      this.#waiting.push(buffer)
      this.waitingBytes += buffer.length
    }
  }

  /** Ends after what was written; `isAtOnce`: what has not left is not sent. */
  end(reason: Buffer, isAtOnce: boolean): void {
    if (this.isEnding) return
    this.#reason = reason
    if (!isAtOnce) return
    this.#waiting = NO_BUFFERS
    this.waitingBytes = 0
  }

  /** The next piece, of at most so many bytes; undefined: nothing may leave now. */
  next(maxBytes: number, nowMs: number): (Piece & { readonly isEnd: boolean }) | undefined {
    return this.#nextAgain(maxBytes) ?? this.#nextNew(maxBytes, nowMs)
  }

  #nextAgain(maxBytes: number): (Piece & { readonly isEnd: boolean }) | undefined {
    if (this.#again >= this.sent) return undefined
    if (this.#again === this.#endOffset) {
      this.#again = this.sent
      return { offset: this.#endOffset, bytes: this.#reason!, isEnd: true }
    }
    const piece = this.#retained.find(({ offset, bytes }) => offset + bytes.length > this.#again)!
    const from = this.#again - piece.offset
    const bytes = piece.bytes.subarray(from, from + maxBytes)
    const offset = this.#again
    this.#again += bytes.length
    return { offset, bytes, isEnd: false }
  }

  #nextNew(maxBytes: number, nowMs: number): (Piece & { readonly isEnd: boolean }) | undefined {
    if (this.waitingBytes === 0) return this.#nextEnd(nowMs)
    const room = Math.min(maxBytes, this.limit - this.sent, CLUSTER.windowBytes - (this.sent - this.acked))
    if (room <= 0) return undefined
    const bytes = this.#take(Math.min(room, this.waitingBytes))
    const offset = this.#moveTo(this.sent + bytes.length, nowMs)
    if (this.#retained === NO_PIECES) this.#retained = []
    this.#retained.push({ offset, bytes })
    return { offset, bytes, isEnd: false }
  }

  /** The end needs no credit. */
  #nextEnd(nowMs: number): (Piece & { readonly isEnd: boolean }) | undefined {
    if (this.#reason === undefined || this.#endOffset !== -1) return undefined
    this.#endOffset = this.#moveTo(this.sent + 1, nowMs)
    return { offset: this.#endOffset, bytes: this.#reason, isEnd: true }
  }

  /** What is sent first is waited for from now on. */
  #moveTo(offset: number, nowMs: number): number {
    const before = this.sent
    if (this.isQuiet) this.sinceMs = nowMs
    this.sent = this.#again = offset
    return before
  }

  #take(count: number): Buffer {
    const taken = Buffer.allocUnsafe(count)
    for (let at = 0; at < count; ) {
      const first = this.#waiting[0]!
      const copied = first.copy(taken, at, 0, Math.min(first.length, count - at))
      at += copied
      if (copied === first.length) this.#waiting.shift()
      else this.#waiting[0] = first.subarray(copied)
    }
    this.waitingBytes -= count
    if (this.waitingBytes === 0) this.#waiting = NO_BUFFERS
    return taken
  }

  /** The receiver has everything below `offset` and lets us go to `limit`; what was never sent it cannot have. */
  acknowledge(offset: number, limit: number, nowMs: number): boolean {
    if (offset > this.sent) return false
    this.limit = Math.max(this.limit, limit)
    if (offset <= this.acked) return true
    this.acked = offset
    this.sinceMs = nowMs
    this.#again = Math.max(this.#again, offset)
    const left = this.#retained.filter((piece) => piece.offset + piece.bytes.length > offset)
    this.#retained = left.length === 0 ? NO_PIECES : left
    return true
  }

  /** What is not acknowledged leaves once more. */
  resend(): number {
    const bytes = this.sent - this.acked
    this.#again = this.acked
    return bytes
  }

  forget(): void {
    this.#waiting = NO_BUFFERS
    this.#retained = NO_PIECES
    this.waitingBytes = 0
    this.#reason ??= NOTHING
    this.#again = this.sent
    this.#endOffset = Math.max(this.#endOffset, 0)
  }
}
