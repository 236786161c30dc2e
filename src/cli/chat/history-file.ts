/**
 * What was asked before, for the arrow keys: a file of this user alone, one JSON string a line, the newest last.
 *
 * It is a comfort: a file that cannot be read or written costs nobody a conversation. Bounded in entries and in their length.
 */
import { closeSync, constants, mkdirSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runDirectory } from '../../console/running.ts'
import { openOwnFile, readPlainFile } from '../../host/own-file.ts'

const MAX_ENTRIES = 1_000
/** The file is made shorter when it has more. */
const MAX_LINES = 2_000
const MAX_ENTRY_CHARS = 8_192

export class HistoryFile {
  readonly #path: string
  #entries: string[]
  #lines: number

  constructor(path = join(runDirectory(), 'chat-history')) {
    this.#path = path
    const read = readEntries(path)
    this.#lines = read.length
    this.#entries = read.slice(-MAX_ENTRIES)
  }

  /** The newest first, as a line editor wants them. */
  newestFirst(): string[] {
    return [...this.#entries].reverse()
  }

  add(entry: string): void {
    if (entry.length > MAX_ENTRY_CHARS || entry === this.#entries.at(-1)) return
    this.#entries = [...this.#entries, entry].slice(-MAX_ENTRIES)
    try {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 })
      if (this.#lines >= MAX_LINES) this.#rewrite()
      else this.#append(entry)
    } catch {
      // The conversation goes on without.
    }
  }

  #append(entry: string): void {
    const { descriptor } = openOwnFile(this.#path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT)
    try {
      writeSync(descriptor, `${JSON.stringify(entry)}\n`)
      this.#lines += 1
    } finally {
      closeSync(descriptor)
    }
  }

  #rewrite(): void {
    const fresh = `${this.#path}.${process.pid}`
    rmSync(fresh, { force: true })
    writeFileSync(fresh, this.#entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''), {
      mode: 0o600,
      flag: 'wx',
    })
    renameSync(fresh, this.#path)
    this.#lines = this.#entries.length
  }
}

function readEntries(path: string): string[] {
  try {
    return (readPlainFile(path) ?? '').split('\n').flatMap(readEntry)
  } catch {
    return []
  }
}

function readEntry(line: string): string[] {
  try {
    const entry: unknown = JSON.parse(line)
    return typeof entry === 'string' && entry !== '' ? [entry] : []
  } catch {
    return []
  }
}
