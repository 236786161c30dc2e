/**
 * The lines that have come from the bus and that the program has not taken yet.
 *
 * Above its limit it asks the link to stop reading, and to go on below half of it. Invariant: lines leave in their order,
 * once each, and what came before the end is given out before the end.
 */
import type { BusError } from './errors.ts'

export interface InboxSource {
  pause(): void
  resume(): void
}

const NEWLINE = 10
const MAX_BYTES = 1024 * 1024
/** So many lines that were taken may still be held. */
const MAX_TAKEN = 256

type Taken = Buffer | undefined

export class Inbox {
  readonly #lines: Buffer[] = []
  #next = 0
  #bytes = 0
  #isPaused = false
  #hasEnded = false
  #error: BusError | undefined
  #taker: { resolve(line: Taken): void; reject(error: BusError): void } | undefined
  readonly #source: InboxSource

  constructor(source: InboxSource) {
    this.#source = source
  }

  /** Whole lines, each with its newline. */
  put(lines: Buffer): void {
    let start = 0
    for (let end = lines.indexOf(NEWLINE); end !== -1; end = lines.indexOf(NEWLINE, start)) {
      // A line of white space is no message, and a slice would keep the whole chunk it came in.
      if (end > start) this.#add(Buffer.from(lines.subarray(start, end)))
      start = end + 1
    }
    if (this.#bytes <= MAX_BYTES || this.#isPaused) return
    this.#isPaused = true
    this.#source.pause()
  }

  end(error: BusError | undefined): void {
    this.#hasEnded = true
    this.#error = error
    const taker = this.#taker
    this.#taker = undefined
    if (error === undefined) taker?.resolve(undefined)
    else taker?.reject(error)
  }

  /** The next line without its newline; undefined at the end. One taker at a time. */
  take(): Promise<Taken> {
    const line = this.#shift()
    if (line !== undefined) return Promise.resolve(line)
    if (this.#hasEnded) return this.#error === undefined ? Promise.resolve(undefined) : Promise.reject(this.#error)
    return new Promise((resolve, reject) => {
      this.#taker = { resolve, reject }
    })
  }

  #add(line: Buffer): void {
    const taker = this.#taker
    if (taker !== undefined) {
      this.#taker = undefined
      return taker.resolve(line)
    }
    this.#lines.push(line)
    this.#bytes += line.length
  }

  #shift(): Taken {
    if (this.#next === this.#lines.length) return undefined
    const line = this.#lines[this.#next]!
    this.#bytes -= line.length
    if (++this.#next === this.#lines.length || this.#next === MAX_TAKEN) {
      this.#lines.splice(0, this.#next)
      this.#next = 0
    }
    if (this.#isPaused && this.#bytes < MAX_BYTES / 2) {
      this.#isPaused = false
      this.#source.resume()
    }
    return line
  }
}
