/**
 * Remembers the sessions of a door over a restart of the bus (contract 10.7): a line is appended when one begins or ends, and the
 * whole is written anew at the start and when too much of it is over.
 *
 * Of a session's id it has the digest only. It is its owner's alone (0600), never reached through a link. A file that cannot be
 * written costs the memory, not the sessions.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { NotAPlainFile, openOwnFile } from '../../host/own-file.ts'
import type { PoolId, Principal } from '../../kernel/vocabulary.ts'

export interface Remembered {
  /** The digest of its id. */
  readonly key: string
  readonly principal: Principal
  readonly pool: PoolId | undefined
  readonly revision: string
  /** The message with which its client has introduced itself. */
  readonly initialize: string
}

/** Of a longer introduction nothing is remembered. */
const MAX_INITIALIZE_BYTES = 64 * 1024
const MAX_SESSIONS = 100_000
/** Lines that may be over before the file is written anew. */
const SLACK = 1_000
const MAX_FILE_BYTES = 512 * 1024 * 1024

export class SessionsFile {
  readonly #path: string
  readonly #warn: (message: string) => void
  readonly #sessions: Map<string, Remembered>
  #descriptor: number | undefined
  #deadLines = 0
  #hasWarned = false

  /** Fails if something else is in its place, or it cannot be written at all. */
  constructor(path: string, warn: (message: string) => void) {
    this.#path = path
    this.#warn = warn
    const { sessions, badLines } = read(path)
    this.#sessions = sessions
    if (badLines > 0) warn(`${path} has ${badLines} lines that are no sessions; they are left out`)
    this.#writeAnew()
  }

  /** As it was found. */
  get remembered(): Iterable<Remembered> {
    return this.#sessions.values()
  }

  add(session: Remembered): void {
    const isTooMuch = session.initialize.length > MAX_INITIALIZE_BYTES || this.#sessions.size >= MAX_SESSIONS
    if (isTooMuch)
      return this.#trouble('a session is not remembered: its introduction is too long, or there are too many')
    this.#sessions.set(session.key, session)
    this.#append(session)
  }

  remove(key: string): void {
    if (!this.#sessions.delete(key)) return
    this.#deadLines += 2
    if (this.#deadLines > SLACK + 2 * this.#sessions.size) this.#tryWriteAnew()
    else this.#append({ key, ended: true })
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
    this.#descriptor = undefined
  }

  #append(row: object): void {
    if (this.#descriptor === undefined) return
    try {
      writeSync(this.#descriptor, `${JSON.stringify(row)}\n`)
      this.#hasWarned = false
    } catch (error) {
      this.#trouble((error as Error).message)
    }
  }

  #tryWriteAnew(): void {
    try {
      this.#writeAnew()
    } catch (error) {
      this.#trouble((error as Error).message)
    }
  }

  /** Beside the old one, which it then replaces: whoever reads sees the one or the other. */
  #writeAnew(): void {
    const draft = `${this.#path}.${process.pid}.tmp`
    const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
    rmSync(draft, { force: true })
    const descriptor = openSync(draft, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    try {
      fchmodSync(descriptor, 0o600)
      for (const session of this.#sessions.values()) writeSync(descriptor, `${JSON.stringify(session)}\n`)
      fsyncSync(descriptor)
      renameSync(draft, this.#path)
    } catch (error) {
      closeSync(descriptor)
      rmSync(draft, { force: true })
      throw error
    }
    this.close()
    this.#descriptor = descriptor
    this.#deadLines = 0
  }

  #trouble(problem: string): void {
    if (!this.#hasWarned) this.#warn(`${this.#path}: ${problem}`)
    this.#hasWarned = true
  }
}

function read(path: string): { sessions: Map<string, Remembered>; badLines: number } {
  const sessions = new Map<string, Remembered>()
  let badLines = 0
  for (const line of textOf(path).split('\n')) {
    if (line === '') continue
    const row = rowOf(line)
    if (row === undefined) badLines++
    else if ('ended' in row) sessions.delete(row.key)
    else if (sessions.size < MAX_SESSIONS) sessions.set(row.key, row)
  }
  return { sessions, badLines }
}

function textOf(path: string): string {
  let file: ReturnType<typeof openOwnFile>
  try {
    file = openOwnFile(path, constants.O_RDONLY)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
  try {
    if (file.stats.size > MAX_FILE_BYTES) throw new NotAPlainFile(path, 'longer than any list of sessions')
    return readFileSync(file.descriptor, 'utf8')
  } finally {
    closeSync(file.descriptor)
  }
}

/** What a line says, if it is one of ours. */
function rowOf(line: string): Remembered | { readonly key: string; readonly ended: true } | undefined {
  let row: Record<string, unknown>
  try {
    row = JSON.parse(line) as Record<string, unknown>
  } catch {
    return undefined
  }
  if (typeof row !== 'object' || row === null || typeof row['key'] !== 'string') return undefined
  const { key, ended, principal, pool, revision, initialize } = row
  if (ended === true) return { key, ended }
  const isWhole = [principal, revision, initialize].every((text) => typeof text === 'string')
  if (!isWhole || (pool !== undefined && typeof pool !== 'string') || !isMessage(initialize as string)) return undefined
  return { key, principal, pool, revision, initialize } as Remembered
}

/** One line, with nothing before or behind it. */
function isMessage(text: string): boolean {
  if (text.includes('\n') || text.length > MAX_INITIALIZE_BYTES) return false
  try {
    return (JSON.parse(text) as { method?: unknown } | null)?.method === 'initialize'
  } catch {
    return false
  }
}
