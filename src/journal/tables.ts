/**
 * The journal on the thread of the store: writes batches whole or not at all, reads lines by their numbers, and forgets
 * what is too old. It decides nothing about sessions, and believes nothing of a file that others may have edited.
 */
import type { Database, Statement, StoreTenant } from '../host/sqlite.ts'
import type { JournalHead, StoredSession } from '../kernel/events.ts'
import type { EntryKind } from '../kernel/kept/journal.ts'
import type { PackedBatch, PackedLines, PackedOrder, PackedOther } from './batch.ts'
import { prepareJournal } from './schema.ts'
import {
  behindLines,
  bytesOf,
  type Counted,
  headAnswerOf,
  isCounted,
  linesOf,
  type RunRow,
  type SessionRow,
  type StoredLine,
  storedOf,
} from './stored-rows.ts'

export interface ReadRequest {
  readonly key: string
  readonly from: number
  readonly to: number
  readonly maxBytes: number
  readonly wantsHead: boolean
}

export interface ReadReply {
  readonly entries: readonly { readonly seq: number; readonly kind: EntryKind; readonly length: number }[]
  readonly bytes: Uint8Array
  readonly head?: JournalHead
}

/** Every request and what it yields. */
export interface JournalCalls {
  write: { params: PackedBatch; yields: null }
  read: { params: ReadRequest; yields: ReadReply }
  list: { params: { limit: number }; yields: readonly StoredSession[] }
  sweep: { params: { cutoffMs: number }; yields: readonly string[] }
}

const SQL = {
  find: 'SELECT row FROM journal_sessions WHERE key = ?',
  open: `INSERT INTO journal_sessions (key, session, pool, principal, cwd, created_at, updated_at)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING`,
  bounds: 'SELECT seq, first_seq FROM journal_sessions WHERE row = ?',
  addRun: 'INSERT OR IGNORE INTO journal_runs (row, seq, at, kinds, lines) VALUES (?, ?, ?, ?, ?)',
  count:
    'UPDATE journal_sessions SET seq = max(seq, ?), bytes = bytes + ?, updated_at = max(updated_at, ?) WHERE row = ?',
  trimRuns:
    'DELETE FROM journal_runs WHERE row = ?1 AND seq < ?2 AND seq + length(kinds) <= ?2 RETURNING length(lines) AS bytes',
  trimmed: 'UPDATE journal_sessions SET first_seq = ?, seq = max(seq, ? - 1), bytes = max(0, bytes - ?) WHERE row = ?',
  dropStates: 'DELETE FROM journal_states WHERE row = ?',
  dropRuns: 'DELETE FROM journal_runs WHERE row = ?',
  dropSession: 'DELETE FROM journal_sessions WHERE row = ?',
  title: 'UPDATE journal_sessions SET title = ? WHERE row = ?',
  answer: 'UPDATE journal_sessions SET answer = ? WHERE row = ?',
  lost: 'UPDATE journal_sessions SET is_lost = ? WHERE row = ?',
  state: 'INSERT OR REPLACE INTO journal_states (row, kind, seq, line) VALUES (?, ?, ?, ?)',
  read: `SELECT seq, kinds, lines FROM journal_runs WHERE row = ?1 AND seq <= ?3
    AND seq >= coalesce((SELECT max(seq) FROM journal_runs WHERE row = ?1 AND seq <= ?2), 0) ORDER BY seq LIMIT 32`,
  head: 'SELECT answer FROM journal_sessions WHERE row = ?',
  states: 'SELECT kind, seq, line FROM journal_states WHERE row = ?',
  recount: `SELECT coalesce(max(seq + length(kinds) - 1), 0) AS seq, coalesce(min(seq), 1) AS first_seq,
    coalesce(sum(length(lines)), 0) AS bytes FROM journal_runs WHERE row = ? AND typeof(seq) = 'integer' AND seq > 0`,
  list: `SELECT * FROM (SELECT * FROM journal_sessions ORDER BY updated_at DESC LIMIT ?) ORDER BY updated_at`,
  old: 'SELECT row, key FROM journal_sessions WHERE updated_at < ? AND bytes > 0 LIMIT 200',
  emptied: 'UPDATE journal_sessions SET first_seq = seq + 1, bytes = 0 WHERE row = ?',
} as const

type Statements = Record<keyof typeof SQL, Statement>

const MAX_KNOWN_ROWS = 20_000

export class JournalTables implements StoreTenant {
  #db: Database | undefined
  #statements: Statements | undefined
  /** Rows of sessions that were written lately. */
  readonly #rows = new Map<string, number>()

  prepare(db: Database): void {
    prepareJournal(db)
    this.#db = db
    this.#rows.clear()
    this.#statements = Object.fromEntries(
      Object.entries(SQL).map(([name, sql]) => [name, db.prepare(sql)]),
    ) as Statements
  }

  serve(_db: Database, op: string, params: never): unknown {
    return (this.#acts[op as keyof JournalCalls] as (params: never) => unknown)(params)
  }

  readonly #acts: { [Op in keyof JournalCalls]: (params: JournalCalls[Op]['params']) => JournalCalls[Op]['yields'] } = {
    write: (batch) => this.#write(batch),
    read: (request) => this.#read(request),
    list: ({ limit }) => this.#list(limit),
    sweep: ({ cutoffMs }) => this.#sweep(cutoffMs),
  }

  get #do(): Statements {
    return this.#statements!
  }

  #write({ items, bytes }: PackedBatch): null {
    return this.#atOnce(() => {
      let at = 0
      for (const item of items) at = 'other' in item ? this.#other(item, bytes, at) : this.#lines(item, bytes, at)
      return null
    })
  }

  #lines({ key, from, kinds, length, atMs }: PackedLines, bytes: Uint8Array, at: number): number {
    const row = this.#rowOf(key)
    const end = at + length
    if (row === undefined) return end
    // What is told again is written once.
    const known = Math.max(0, Math.min(kinds.length, this.#boundsOf(row).last - from + 1))
    if (known === kinds.length) return end
    const rest = bytes.subarray(behindLines(bytes, at, known), end)
    const { changes } = this.#do.addRun.run(row, from + known, atMs, kinds.slice(known), rest)
    this.#do.count.run(from + kinds.length - 1, Number(changes) > 0 ? rest.length : 0, atMs, row)
    return end
  }

  /** Which numbers of a session are written and not given up. */
  #boundsOf(row: number): { readonly first: number; readonly last: number } {
    const { seq, first_seq: first } = this.#do.bounds.get(row) as { seq: unknown; first_seq: unknown }
    return { first: typeof first === 'number' ? first : 1, last: typeof seq === 'number' ? seq : 0 }
  }

  #other({ other }: PackedOther, bytes: Uint8Array, at: number): number {
    const length = other.order === 'note' ? (other.state?.length ?? 0) : 0
    const line = bytes.subarray(at, at + length)
    if (other.order === 'open') this.#open(other)
    const row = this.#rowOf(other.key)
    if (row !== undefined) this.#change(row, other, line)
    return at + length
  }

  #change(row: number, other: PackedOrder, line: Uint8Array): void {
    if (other.order === 'delete') return this.#drop(row, other.key)
    if (other.order === 'trim') return this.#trim(row, other.before, other.isRestart === true)
    if (other.order !== 'note') return
    const { title, answer, isLost, state } = other
    if (title !== undefined) this.#do.title.run(title, row)
    if (answer !== undefined) this.#do.answer.run(answer, row)
    if (isLost !== undefined) this.#do.lost.run(Number(isLost), row)
    if (state !== undefined) this.#do.state.run(row, state.kind, state.seq, line)
  }

  #open({ key, session, pool, principal, cwd, atMs, isAgain }: Extract<PackedOrder, { order: 'open' }>): void {
    const before = this.#rowOf(key)
    if (before !== undefined && !isAgain) this.#drop(before, key)
    this.#do.open.run(key, session, pool, principal, cwd, atMs, atMs)
  }

  /** What was said is overwritten, too: whoever deletes it wants it gone from the disk. */
  #drop(row: number, key: string): void {
    this.#rows.delete(key)
    this.#db!.exec('PRAGMA secure_delete = ON')
    for (const statement of [this.#do.dropRuns, this.#do.dropStates, this.#do.dropSession]) statement.run(row)
    this.#db!.exec('PRAGMA secure_delete = OFF')
  }

  #trim(row: number, before: number, isRestart: boolean): void {
    const gone = this.#do.trimRuns.all(row, before) as { bytes: number }[]
    const bytes = gone.reduce((sum, each) => sum + each.bytes, 0)
    this.#do.trimmed.run(before, before, bytes, row)
    if (isRestart) this.#do.dropStates.run(row)
  }

  #rowOf(key: string): number | undefined {
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const found = this.#do.find.get(key) as { row: number } | undefined
    if (found === undefined) return undefined
    if (this.#rows.size >= MAX_KNOWN_ROWS) this.#rows.clear()
    this.#rows.set(key, found.row)
    return found.row
  }

  /** What is no session is left out; where the counts of one cannot be, its lines are counted anew. */
  #list(limit: number): readonly StoredSession[] {
    return (this.#do.list.all(limit) as SessionRow[]).flatMap((row) => {
      const counted = isCounted(row) ? row : (this.#do.recount.get(row.row) as Counted)
      return isCounted(counted) ? (storedOf(row, counted) ?? []) : []
    })
  }

  #read({ key, from, to, maxBytes, wantsHead }: ReadRequest): ReadReply {
    const row = this.#rowOf(key)
    if (row === undefined) return { entries: [], bytes: new Uint8Array() }
    const entries: { seq: number; kind: EntryKind; length: number }[] = []
    const pieces: Uint8Array[] = []
    let bytes = 0
    for (const { seq, kind, line } of to < from ? [] : this.#linesOf(row, from, to)) {
      if (bytes > 0 && bytes + line.length > maxBytes) break
      bytes += line.length
      entries.push({ seq, kind, length: line.length })
      pieces.push(line)
    }
    const head = wantsHead ? this.#head(row, pieces) : undefined
    return { entries, bytes: ownBytes(pieces), ...(head === undefined ? {} : { head }) }
  }

  *#linesOf(row: number, from: number, to: number): Generator<StoredLine> {
    // A run goes when all of it is given up.
    const first = Math.max(from, this.#boundsOf(row).first)
    for (const run of this.#do.read.all(row, first, to) as RunRow[])
      for (const line of linesOf(run)) if (line.seq >= first && line.seq <= to) yield line
  }

  #head(row: number, pieces: Uint8Array[]): JournalHead {
    const { answer } = this.#do.head.get(row) as { answer: unknown }
    const states = (this.#do.states.all(row) as { kind: string; seq: number; line: unknown }[]).map(
      ({ kind, seq, line: found }) => {
        const line = bytesOf(found)
        pieces.push(line)
        return { kind, seq, length: line.length }
      },
    )
    return { answer: headAnswerOf(answer), states }
  }

  #sweep(cutoffMs: number): readonly string[] {
    const old = this.#do.old.all(cutoffMs) as { row: number; key: string }[]
    return this.#atOnce(() => {
      for (const { row } of old) {
        for (const statement of [this.#do.dropRuns, this.#do.dropStates, this.#do.emptied]) statement.run(row)
      }
      return old.map(({ key }) => key)
    })
  }

  #atOnce<Result>(change: () => Result): Result {
    const db = this.#db!
    db.exec('BEGIN IMMEDIATE')
    try {
      const result = change()
      db.exec('COMMIT')
      return result
    } catch (error) {
      this.#rows.clear()
      try {
        db.exec('ROLLBACK')
      } catch {
        // SQLite has rolled back by itself, as it does when the disk is full.
      }
      throw error
    }
  }
}

function ownBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const all = Buffer.allocUnsafeSlow(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}
