/**
 * One direction of a connection: bytes come in any portions, each whole line is judged, and runs of lines that go on
 * untouched leave as one slice of what came.
 *
 * Invariant: what leaves is whole lines in their order, each with its newline.
 */
import { type LineSink, LineSplitter } from '../wire/frame.ts'
import type { Verdict } from './crossing.ts'

export interface FlowEnds {
  readonly judge: (bytes: Buffer, start: number, end: number) => Verdict
  readonly on: (bytes: Buffer) => void
  readonly back: (bytes: Buffer) => void
}

const NOTHING = Buffer.alloc(0)

export class LineFlow {
  readonly #splitter: LineSplitter
  readonly #ends: FlowEnds
  #run: Buffer = NOTHING
  #runStart = 0
  #runEnd = 0

  constructor(maxLineBytes: number, ends: FlowEnds) {
    this.#splitter = new LineSplitter(maxLineBytes)
    this.#ends = ends
  }

  /** False: a line is longer than allowed, and nothing more may be pushed. */
  push(chunk: Buffer): boolean {
    this.#splitter.push(chunk, 0, this.#take)
    this.#flush()
    return !this.#splitter.overflowed
  }

  /** The bytes have ended: a last line without newline counts. */
  finish(): void {
    this.#splitter.finish(this.#take)
    this.#flush()
  }

  readonly #take: LineSink = (bytes, start, end) => {
    const verdict = this.#ends.judge(bytes, start, end)
    if (verdict === 'pass') {
      this.#extend(bytes, start, end + 1)
      return true
    }
    this.#flush()
    if (verdict === 'swallow') return true
    if ('on' in verdict) this.#ends.on(verdict.on)
    else this.#ends.back(verdict.back)
    return true
  }

  #extend(bytes: Buffer, start: number, end: number): void {
    if (bytes === this.#run && start === this.#runEnd) {
      this.#runEnd = end
      return
    }
    this.#flush()
    this.#run = bytes
    this.#runStart = start
    this.#runEnd = end
  }

  #flush(): void {
    if (this.#runEnd > this.#runStart) this.#ends.on(this.#run.subarray(this.#runStart, this.#runEnd))
    this.#run = NOTHING
    this.#runStart = 0
    this.#runEnd = 0
  }
}
