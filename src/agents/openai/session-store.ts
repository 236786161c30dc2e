/**
 * Keeps sessions on disk, one file of JSON lines each, so that another process or day can go on with them.
 *
 * Files are appended to, never rewritten, and readable by their owner only. A broken line, as a crash leaves it, is
 * skipped and told of; what comes after it begins on a line of its own. Invariant: an id that is no UUID never touches the
 * file system.
 */
import { constants, mkdirSync } from 'node:fs'
import { type FileHandle, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { plainText } from './content.ts'
import { isRecord } from './errors.ts'
import { type Message, mend } from './history.ts'
import type { Log } from './log.ts'

export interface StoredSession {
  readonly id: string
  readonly cwd: string
  readonly model: string
  readonly history: readonly Message[]
}

export interface SessionRow {
  readonly sessionId: string
  readonly cwd: string
  readonly title?: string
  readonly updatedAt: string
}

export interface SessionPage {
  readonly sessions: SessionRow[]
  readonly nextCursor?: string
}

type Entry =
  | { readonly kind: 'session'; readonly cwd: string; readonly model: string }
  | { readonly kind: 'title'; readonly title: string }
  | { readonly kind: 'model'; readonly model: string }
  | { readonly kind: 'message'; readonly message: Message }

export const pageSize = 100
const maxFileBytes = 256 * 1024 * 1024
/** Session and title stand at the front of a file, within this. */
const headBytes = 16 * 1024
const maxTitleChars = 80
const newline = 0x0a
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export class SessionStore {
  readonly #dir: string
  readonly #log: Log

  /** Makes the folder; throws when it cannot be one. */
  constructor(dir: string, log: Log) {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    this.#dir = dir
    this.#log = log
  }

  async create(id: string, cwd: string, model: string): Promise<void> {
    await this.#append(id, [{ kind: 'session', cwd, model }], constants.O_CREAT | constants.O_EXCL)
  }

  /** Appends what was said; the first question gives the title. */
  async remember(id: string, messages: readonly Message[], isFirst: boolean): Promise<void> {
    const entries = messages.map((message): Entry => ({ kind: 'message', message }))
    const title = isFirst ? titleOf(messages) : undefined
    await this.#append(id, title === undefined ? entries : [{ kind: 'title', title }, ...entries])
  }

  async chooseModel(id: string, model: string): Promise<void> {
    await this.#append(id, [{ kind: 'model', model }])
  }

  async read(id: string): Promise<StoredSession | undefined> {
    if (!uuid.test(id)) return undefined
    const path = this.#pathOf(id)
    const size = await stat(path).then((stats) => stats.size, ignoreMissing)
    if (size === undefined || size > maxFileBytes) return undefined
    const text = await readFile(path, 'utf8').catch(ignoreMissing)
    if (text === undefined) return undefined
    const { entries, broken } = parseEntries(text)
    if (broken > 0) this.#log(`the file of session ${id} has ${broken} broken lines, as a crash leaves them: skipped`)
    return restore(id, entries)
  }

  /** Newest first, a page at a time. */
  async list(cwd: string | undefined, cursor: string | undefined): Promise<SessionPage> {
    const names = (await readdir(this.#dir)).filter((name) => name.endsWith('.jsonl') && uuid.test(name.slice(0, -6)))
    const rows = (await Promise.all(names.map((name) => this.#row(name.slice(0, -6))))).filter(
      (row) => row !== undefined,
    )
    const wanted = rows
      .filter((row) => cwd === undefined || row.cwd === cwd)
      .sort((a, b) => (keyOf(a) < keyOf(b) ? 1 : -1))
    const after = cursor === undefined ? wanted : wanted.filter((row) => keyOf(row) < cursor)
    const sessions = after.slice(0, pageSize)
    return after.length > pageSize ? { sessions, nextCursor: keyOf(sessions.at(-1)!) } : { sessions }
  }

  async remove(id: string): Promise<void> {
    if (uuid.test(id)) await rm(this.#pathOf(id), { force: true })
  }

  #pathOf(id: string): string {
    return join(this.#dir, `${id}.jsonl`)
  }

  /** Without `flags` the file must be there: a session deleted by another process stays deleted. */
  async #append(id: string, entries: readonly Entry[], flags = 0): Promise<void> {
    const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
    const file = await open(this.#pathOf(id), constants.O_RDWR | constants.O_APPEND | flags, 0o600)
    try {
      await file.writeFile((await endsInMidLine(file)) ? `\n${lines}` : lines)
    } finally {
      await file.close()
    }
  }

  async #row(id: string): Promise<SessionRow | undefined> {
    const file = await open(this.#pathOf(id)).catch(ignoreMissing)
    if (!file) return undefined
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0)
      const { mtime } = await file.stat()
      return toRow(id, parseEntries(buffer.toString('utf8', 0, bytesRead)).entries, mtime)
    } finally {
      await file.close()
    }
  }
}

function toRow(id: string, entries: readonly Entry[], updated: Date): SessionRow | undefined {
  const session = entries.find((entry) => entry.kind === 'session')
  const title = entries.find((entry) => entry.kind === 'title')?.title
  if (!session) return undefined
  return {
    sessionId: id,
    cwd: session.cwd,
    updatedAt: updated.toISOString(),
    ...(title === undefined ? {} : { title }),
  }
}

const keyOf = (row: SessionRow): string => `${row.updatedAt} ${row.sessionId}`

function restore(id: string, entries: readonly Entry[]): StoredSession | undefined {
  const session = entries.find((entry) => entry.kind === 'session')
  if (!session) return undefined
  const model = entries.findLast((entry) => entry.kind === 'model')?.model ?? session.model
  const history = entries.flatMap((entry) => (entry.kind === 'message' ? [entry.message] : []))
  return { id, cwd: session.cwd, model, history: mend(history) }
}

async function endsInMidLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat()
  if (size === 0) return false
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  return buffer[0] !== newline
}

function parseEntries(text: string): { entries: Entry[]; broken: number } {
  const lines = text.split('\n').filter((line) => line !== '')
  const entries = lines.map(parseEntry).filter((entry) => entry !== undefined)
  return { entries, broken: lines.length - entries.length }
}

function parseEntry(line: string): Entry | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isRecord(value) && typeof value['kind'] === 'string' ? (value as Entry) : undefined
  } catch {
    return undefined
  }
}

function titleOf(messages: readonly Message[]): string | undefined {
  const question = messages.find((message) => message.role === 'user')
  const line = question && plainText(question.content).trim().split('\n', 1)[0]
  return line ? line.slice(0, maxTitleChars) : undefined
}

function ignoreMissing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
  throw error
}
