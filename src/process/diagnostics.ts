/**
 * Makes log lines of what a worker writes to stderr (contract 5.3), whatever it writes and however much.
 *
 * It never asks the worker to wait: bytes beyond the length of a line and lines beyond the rate are counted and forgotten,
 * and the count is told. What comes out is printable: control characters are escaped.
 */
import { printable } from '../wire/printable.ts'

export interface DiagnosticLimits {
  readonly maxLineBytes: number
  readonly maxLinesPerSecond: number
}

export const DIAGNOSTIC_LIMITS: DiagnosticLimits = { maxLineBytes: 8 * 1024, maxLinesPerSecond: 200 }

const NEWLINE = 10
const RETURN = 13
const WINDOW_MS = 1_000

export class DiagnosticLines {
  readonly #tell: (line: string) => void
  readonly #limits: DiagnosticLimits
  #held = Buffer.alloc(0)
  #heldBytes = 0
  #cutBytes = 0
  #windowStartMs = Number.NEGATIVE_INFINITY
  #told = 0
  #suppressed = 0
  #reminder: NodeJS.Timeout | undefined

  constructor(tell: (line: string) => void, limits: DiagnosticLimits = DIAGNOSTIC_LIMITS) {
    this.#tell = tell
    this.#limits = limits
  }

  push(chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#hold(chunk.subarray(start, end))
      this.#release()
      start = end + 1
    }
    this.#hold(chunk.subarray(start))
  }

  /** The stream has ended: a last line without newline counts, and so does what was suppressed. */
  end(): void {
    this.#release()
    this.#openWindow(performance.now())
  }

  #hold(part: Buffer): void {
    if (part.length === 0) return
    if (this.#held.length === 0) this.#held = Buffer.allocUnsafeSlow(this.#limits.maxLineBytes)
    const copied = part.copy(this.#held, this.#heldBytes)
    this.#heldBytes += copied
    this.#cutBytes += part.length - copied
  }

  #release(): void {
    const bytes = this.#heldBytes - (this.#held[this.#heldBytes - 1] === RETURN ? 1 : 0)
    const cutBytes = this.#cutBytes
    this.#heldBytes = 0
    this.#cutBytes = 0
    if (bytes <= 0 || !this.#admit()) return
    const text = printable(this.#held.toString('utf8', 0, bytes))
    this.#tell(cutBytes === 0 ? text : `${text}... (${cutBytes} more bytes)`)
  }

  #admit(): boolean {
    const nowMs = performance.now()
    if (nowMs - this.#windowStartMs >= WINDOW_MS) this.#openWindow(nowMs)
    if (this.#told < this.#limits.maxLinesPerSecond) {
      this.#told += 1
      return true
    }
    this.#suppressed += 1
    this.#reminder ??= setTimeout(() => this.#openWindow(performance.now()), WINDOW_MS).unref()
    return false
  }

  #openWindow(nowMs: number): void {
    clearTimeout(this.#reminder)
    this.#reminder = undefined
    this.#windowStartMs = nowMs
    this.#told = 0
    if (this.#suppressed > 0) this.#tell(`${this.#suppressed} lines suppressed`)
    this.#suppressed = 0
  }
}
