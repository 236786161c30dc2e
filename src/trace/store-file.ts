/**
 * Looks at the database of a trace store without being its bus: reads, never writes, and does not mind whether a bus runs.
 */
import { statSync } from 'node:fs'
import { type Database, openDatabase } from '../host/sqlite.ts'
import type { OtlpOptions } from './export-otlp.ts'
import type { Askable } from './queries.ts'
import { answerQuery } from './query.ts'
import { CALL_COLUMNS, type CallRow } from './row.ts'
import { prepareReading, STATUS } from './schema.ts'
import { sqlSource } from './sql-source.ts'
import type { CallEvent } from './store.ts'

export interface StoreFile extends Askable {
  /** What has begun or ended since the last look; the first look sees nothing. */
  look(): CallEvent[]
  close(): void
}

/** The file cannot be read; the message says why and what to do. */
export class StoreFileError extends Error {
  override readonly name = 'StoreFileError'
  readonly exitCode = 1
}

export async function openStoreFile(path: string, otlp: OtlpOptions = {}): Promise<StoreFile> {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined)
    throw new StoreFileError(`there is no trace store at ${path}: check the path given with --store`)
  // A pipe would be waited for.
  if (!found.isFile()) throw new StoreFileError(`${path} is not a file: check the path given with --store`)
  const db = await openReadable(path)
  const source = sqlSource(db)
  const watch = new CallWatch(db)
  return {
    query: async (method, params) => answerQuery(source, method, params, otlp),
    look: () => watch.look(),
    close: () => db.close(),
  }
}

async function openReadable(path: string): Promise<Database> {
  try {
    const db = await openDatabase(path, { readOnly: true })
    prepareReading(db)
    return db
  } catch (cause) {
    throw new StoreFileError(`${path} cannot be read as a trace store: ${(cause as Error).message}`, { cause })
  }
}

type SeenCall = CallRow & { readonly call: number; readonly trace_id: string; readonly otel_trace_id: string | null }

const COLUMNS = CALL_COLUMNS.map((name) => `c.${name}`).join(', ')
const SELECT = `SELECT c.call, t.trace_id, t.otel_trace_id, ${COLUMNS} FROM calls c JOIN traces t ON t.trace = c.trace`
const MAX_WATCHED = 10_000
const MAX_LOOK = 1_000

/** Sees rows as they appear, and open ones as they end. */
class CallWatch {
  readonly #db: Database
  readonly #open = new Set<number>()
  #last: number

  constructor(db: Database) {
    this.#db = db
    this.#last = (db.prepare('SELECT coalesce(max(call), 0) AS last FROM calls').get() as { last: number }).last
  }

  look(): CallEvent[] {
    return [...this.#ended(), ...this.#begun()]
  }

  #begun(): CallEvent[] {
    const calls = this.#db
      .prepare(`${SELECT} WHERE c.call > ? ORDER BY c.call LIMIT ${MAX_LOOK}`)
      .all(this.#last) as SeenCall[]
    this.#last = calls.at(-1)?.call ?? this.#last
    return calls.flatMap((call) => {
      if (call.status !== STATUS.pending) return [toEvent('started', call), toEvent('ended', call)]
      if (this.#open.size < MAX_WATCHED) this.#open.add(call.call)
      return [toEvent('started', call)]
    })
  }

  #ended(): CallEvent[] {
    const find = this.#db.prepare(`${SELECT} WHERE c.call = ? AND c.status <> ${STATUS.pending}`)
    const ended: CallEvent[] = []
    for (const call of this.#open) {
      const row = find.get(call) as SeenCall | undefined
      if (row === undefined) continue
      this.#open.delete(call)
      ended.push(toEvent('ended', row))
    }
    return ended
  }
}

function toEvent(event: CallEvent['event'], call: SeenCall): CallEvent {
  return { event, traceId: call.trace_id, otelTraceId: call.otel_trace_id, row: call }
}
