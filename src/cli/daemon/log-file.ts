/**
 * The log as a file of bounded size: what goes over the bound is copied to `FILE.1`, which replaces the last such copy,
 * and the file begins anew.
 *
 * It is emptied in place, not moved: the program that started the bus has given it the same file as stderr, and what the
 * runtime says when it dies must be found there too. Invariant: never more than twice the bound on disk, and one line.
 */
import { closeSync, copyFileSync, ftruncateSync, writeSync } from 'node:fs'
import { openToAppend } from '../../host/own-file.ts'

export const MAX_LOG_FILE_BYTES = 8 * 1024 * 1024

export class LogFile {
  readonly #path: string
  readonly #descriptor: number
  readonly #maxBytes: number
  #bytes: number

  /** Fails with what the system says, or because something else stands in its place. */
  constructor(path: string, maxBytes = MAX_LOG_FILE_BYTES) {
    const { descriptor, stats } = openToAppend(path)
    this.#path = path
    this.#descriptor = descriptor
    this.#maxBytes = maxBytes
    this.#bytes = stats.isFile() ? stats.size : Number.NEGATIVE_INFINITY
  }

  /** A disk that is full loses lines, and stops nobody. */
  write(line: string): void {
    const bytes = Buffer.from(line)
    try {
      if (this.#bytes + bytes.length > this.#maxBytes) this.#beginAnew()
      writeSync(this.#descriptor, bytes)
      this.#bytes += bytes.length
    } catch {
      // There is nowhere left to say so.
    }
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  #beginAnew(): void {
    copyFileSync(this.#path, `${this.#path}.1`)
    ftruncateSync(this.#descriptor)
    this.#bytes = 0
  }
}
