/** The last lines of the log, for whoever may see them: by level, pool and text, and as they come (contract 15.13). */
import { type ApiCall, badParameter, countOf, maySee } from './api-call.ts'
import type { Topic } from './feed.ts'
import type { ConsolePort } from './port.ts'

const LEVELS = ['debug', 'info', 'warn', 'error']
const MAX_TEXT = 256

interface LogEntry {
  readonly seq: number
  readonly level: string
  readonly pool?: string
  readonly [key: string]: unknown
}

export class LogLines implements Topic {
  readonly #port: ConsolePort

  constructor(port: ConsolePort) {
    this.#port = port
  }

  /** The newest first; `cursor` is the number of the line before which it goes on. */
  page(call: ApiCall, limit: number): unknown {
    const { query } = call
    const text = (query.get('text') ?? '').slice(0, MAX_TEXT).toLowerCase()
    const level = LEVELS.indexOf(query.get('level') ?? 'debug')
    if (level === -1) throw badParameter(`level is one of ${LEVELS.join(', ')}.`)
    const pool = query.get('pool')
    const cursor = query.get('cursor')
    const before = cursor === null ? Number.POSITIVE_INFINITY : countOf(cursor)
    if (before === undefined) throw badParameter('cursor is what next_cursor said.')
    const items: unknown[] = []
    const lines = this.#port.logs()
    for (let index = lines.length - 1; index >= 0 && items.length <= limit; index--) {
      const { seq, line } = lines[index]!
      if (seq >= before || (text !== '' && !line.toLowerCase().includes(text))) continue
      const entry = read(seq, line)
      if (LEVELS.indexOf(entry.level) < level || (pool !== null && entry.pool !== pool) || !mayRead(call, entry))
        continue
      items.push(entry)
    }
    const hasMore = items.length > limit
    if (hasMore) items.pop()
    return { items, ...(hasMore ? { next_cursor: String((items.at(-1) as LogEntry).seq) } : {}) }
  }

  follow(call: ApiCall, send: (data: unknown, position?: string) => void, after?: string): () => void {
    const tell = (seq: number, line: string): void => {
      const entry = read(seq, line)
      if (mayRead(call, entry)) send(entry, String(seq))
    }
    const last = Number(after ?? Number.NaN)
    if (!Number.isNaN(last)) for (const { seq, line } of this.#port.logs()) if (seq > last) tell(seq, line)
    return this.#port.followLogs(tell)
  }
}

function read(seq: number, line: string): LogEntry {
  return { ...(JSON.parse(line) as Omit<LogEntry, 'seq'>), seq } as LogEntry
}

/** What is of no pool is the bus's own, and for admins. */
function mayRead(call: ApiCall, { pool }: LogEntry): boolean {
  return pool === undefined ? call.admitted.identity.rights.role === 'admin' : maySee(call, pool)
}
