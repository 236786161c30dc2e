/**
 * Reads a stream in turns: what one source sends keeps all others waiting for about a millisecond at a time.
 *
 * The runtime would read a full socket many times in a row; after a millisecond of whole chunks the others have their turn. What a chunk
 * costs depends on its lines, so it is told in portions that end with a line, as large as the last ones allow; when the
 * time is over, the rest waits for the next turn. Order is kept, and nothing that was read is lost while it waits. What is
 * told is lent, and whoever takes it hears whether more of the same read may follow at once.
 */
import type { Duplex } from 'node:stream'
import { isSecured, READ_BYTES, readLent } from './handles.ts'

const NEWLINE = 0x0a
const TURN_MS = 1
/** Between two reads of one source there is more time than this only if the others had their turn. */
const TURN_GAP_MS = 0.1
/** What a stream over another one hands over at once of what it has read: for TLS that is a record. */
const RECORD_BYTES = 16 * 1024
/** Less than this is told at once, and its time is not worth measuring. */
const SMALLEST_PORTION_BYTES = 1024

/** `hasMore`: more of what was read at once follows, or may. */
export type Take = (bytes: Buffer, hasMore: boolean) => void

export class FairReader {
  /** In the place of the one that was given. */
  readonly stream: Duplex
  readonly #take: Take
  /** It hands over one read in several chunks, and nobody is told which is the last. */
  readonly #comesInRecords: boolean
  /** A chunk of this size says that more is waiting. */
  readonly #fullBytes: number
  /** What is told at once; code that has not run yet is slow, so it begins small. */
  #portionBytes = SMALLEST_PORTION_BYTES
  /** What was read and waits for its turn. */
  #rest: Buffer | undefined
  #isPaused = false
  #isTurnOver = false
  #turnStartMs = 0
  #lastReadMs = 0
  #endings: (() => void)[] = []
  readonly #nextTurn = (): void => this.#goOn()

  /** From the first `resume` on what comes is told. */
  constructor(stream: Duplex, take: Take) {
    this.#take = take
    this.#comesInRecords = isSecured(stream)
    this.stream = readLent(stream, (chunk) => {
      // The runtime lets a stream flow at its end, whoever has paused it.
      if (this.#rest !== undefined) this.#flush()
      const rest = this.#read(chunk)
      if (rest !== undefined) this.#rest = Buffer.from(rest)
    })
    this.#fullBytes = this.stream === stream ? RECORD_BYTES : READ_BYTES
  }

  pause(): void {
    this.#isPaused = true
    this.stream.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (!this.#isTurnOver) this.stream.resume()
  }

  /** Nothing comes any more: calls `then` when what waits has been told, in its turns. */
  finish(then: () => void): void {
    if (this.#rest === undefined) then()
    else this.#endings.push(then)
  }

  #flush(): void {
    const rest = this.#rest
    this.#rest = undefined
    if (rest !== undefined) this.#take(rest, true)
  }

  /** Returns what has to wait. */
  #read(chunk: Buffer): Buffer | undefined {
    if (chunk.length <= SMALLEST_PORTION_BYTES) {
      this.#take(chunk, this.#comesInRecords)
      return undefined
    }
    let atMs = performance.now()
    if (atMs - this.#lastReadMs > TURN_GAP_MS) this.#turnStartMs = atMs
    const endOfTurnMs = this.#turnStartMs + TURN_MS
    let from = 0
    do {
      const end = this.#portionEnd(chunk, from)
      this.#take(
        end - from === chunk.length ? chunk : chunk.subarray(from, end),
        end < chunk.length || this.#comesInRecords,
      )
      const endMs = performance.now()
      this.#learn(end - from, endMs - atMs)
      from = end
      atMs = endMs
    } while (from < chunk.length && atMs < endOfTurnMs)
    if (from < chunk.length || (chunk.length >= this.#fullBytes && atMs >= endOfTurnMs)) this.#endTurn()
    this.#lastReadMs = atMs
    return from < chunk.length ? chunk.subarray(from) : undefined
  }

  #portionEnd(chunk: Buffer, from: number): number {
    if (chunk.length - from <= this.#portionBytes) return chunk.length
    const newline = chunk.indexOf(NEWLINE, from + this.#portionBytes - 1)
    return newline === -1 ? chunk.length : newline + 1
  }

  #learn(bytes: number, tookMs: number): void {
    if (tookMs > TURN_MS) {
      this.#portionBytes = Math.max(SMALLEST_PORTION_BYTES, Math.min(this.#portionBytes, bytes) >> 1)
    } else if (tookMs * 2 < TURN_MS && bytes >= this.#portionBytes) {
      this.#portionBytes = Math.min(READ_BYTES, this.#portionBytes * 2)
    }
  }

  #endTurn(): void {
    if (this.#isTurnOver) return
    this.#isTurnOver = true
    this.stream.pause()
    setImmediate(this.#nextTurn)
  }

  #goOn(): void {
    this.#isTurnOver = false
    this.#lastReadMs = 0
    const rest = this.#rest
    this.#rest = undefined
    if (rest !== undefined) this.#rest = this.#read(rest)
    if (this.#rest === undefined) for (const then of this.#endings.splice(0)) then()
    if (!this.#isTurnOver && !this.#isPaused) this.stream.resume()
  }
}
