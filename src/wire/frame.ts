/**
 * Splits a byte stream into lines, and does nothing else.
 *
 * Bytes are never decoded and whole lines are never copied: the sink is told where in the chunk a line lies. An unfinished
 * line is held in one growing buffer, so that a peer that sends a byte at a time costs no more than its bytes. A line of
 * more than `maxLineBytes` is the peer's fault: then nothing comes out any more, and the caller must close it.
 */
import { readAhead } from './envelope.ts'
import { NOWHERE } from './layout.ts'
import { borrowLineBuffer, handOut } from './line-buffers.ts'
import { lend } from './scanner.ts'

export const NEWLINE = 10

/** Takes the line in `bytes[start, end)`, whose newline stands at `end`; false: no more for now. */
export type LineSink = (bytes: Buffer, start: number, end: number) => boolean

const NOTHING = Buffer.alloc(0)
const LAST_NEWLINE = Buffer.from([NEWLINE])

/** A held part below this is grown to fit the next small read, above it to fit the next large one. */
const SMALL_BYTES = 4096
const READ_BYTES = 65_536

export class LineSplitter {
  overflowed = false
  /** The beginning of the line that was too long. */
  head: Buffer = NOTHING
  #held: Buffer | undefined
  #heldBytes = 0

  /** May change between two lines. */
  maxLineBytes: number
  readonly #isRouted: boolean
  /** The last line was short, so the next one is likely to lie whole where it begins. */
  #isShort = true

  /**
   * `isRouted`: the sink reads each line as a message (`envelope.ts`), and whoever keeps it beyond the sink claims it
   * (`line-buffers.ts`); otherwise a line may be kept as it is.
   */
  constructor(maxLineBytes: number, isRouted = false) {
    this.maxLineBytes = maxLineBytes
    this.#isRouted = isRouted
  }

  /** What this splitter keeps in memory, as allocated. */
  get retainedBytes(): number {
    return this.#held === undefined ? 0 : this.#held.length
  }

  /** Hands `sink` every line that `chunk` completes from `from` on, and returns the offset up to which it was taken. */
  push(chunk: Buffer, from: number, sink: LineSink): number {
    if (this.overflowed) return chunk.length
    let start = from
    if (this.#heldBytes > 0) {
      const end = chunk.indexOf(NEWLINE, start)
      if (end === -1) return this.#hold(chunk, start, chunk.length)
      if (!this.#fits(chunk, start, end)) return chunk.length
      this.#append(chunk, start, end + 1)
      start = end + 1
      if (!this.#release(sink)) return start
    }
    const lentBefore = lend(chunk)
    start = this.#split(chunk, start, sink)
    lend(lentBefore)
    return start
  }

  #split(chunk: Buffer, from: number, sink: LineSink): number {
    let start = from
    for (let end = this.#endOf(chunk, start); end !== -1; end = this.#endOf(chunk, start)) {
      if (!this.#fits(chunk, start, end)) return chunk.length
      const line = start
      start = end + 1
      this.#isShort = start - line <= SMALL_BYTES
      if (!sink(chunk, line, end)) return start
    }
    return start === chunk.length ? start : this.#hold(chunk, start, chunk.length)
  }

  /** A short message is read at once, as its sink is about to: that tells where its line ends. */
  #endOf(chunk: Buffer, start: number): number {
    const end = this.#isRouted && this.#isShort ? readAhead(chunk, start) : NOWHERE
    return end === NOWHERE ? chunk.indexOf(NEWLINE, start) : end
  }

  /** The stream has ended: a last line without newline counts (contract 4.2.1). */
  finish(sink: LineSink): void {
    if (this.#heldBytes === 0 || this.overflowed) return
    this.#append(LAST_NEWLINE, 0, 1)
    this.#release(sink)
  }

  /** What was begun is given up; the next byte begins a line. */
  clear(): void {
    this.overflowed = false
    this.head = NOTHING
    this.#held = undefined
    this.#heldBytes = 0
  }

  #fits(chunk: Buffer, start: number, end: number): boolean {
    if (this.#heldBytes + end - start <= this.maxLineBytes) return true
    this.overflowed = true
    this.head = this.#held?.subarray(0, this.#heldBytes) ?? chunk.subarray(start, end)
    return false
  }

  #hold(chunk: Buffer, start: number, end: number): number {
    if (this.#fits(chunk, start, end)) this.#append(chunk, start, end)
    return chunk.length
  }

  /** The held line leaves with its buffer: whoever takes it may keep a reference. */
  #release(sink: LineSink): boolean {
    const line = this.#held!
    const end = this.#heldBytes - 1
    this.#held = undefined
    this.#heldBytes = 0
    return this.#isRouted ? handOut(line, () => sink(line, 0, end)) : sink(line, 0, end)
  }

  #append(chunk: Buffer, start: number, end: number): void {
    const need = this.#heldBytes + end - start
    if (this.#held === undefined || this.#held.length < need) this.#grow(need)
    chunk.copy(this.#held!, this.#heldBytes, start, end)
    this.#heldBytes = need
  }

  #grow(need: number): void {
    const roomy = need <= SMALL_BYTES ? need * 2 : Math.max(need * 2, need + READ_BYTES)
    const mostBytes = Math.max(need, Math.min(roomy, this.maxLineBytes + 1))
    const larger = this.#isRouted ? borrowLineBuffer(need, mostBytes) : Buffer.allocUnsafeSlow(mostBytes)
    this.#held?.copy(larger, 0, 0, this.#heldBytes)
    this.#held = larger
  }
}
