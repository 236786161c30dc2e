/**
 * Writes batches of calls into the database, each batch whole or not at all.
 *
 * It runs on the store's own thread. Sums of a trace are gathered over the batch and written once per trace, because most
 * calls of a batch belong to few traces. A call that is already finished is never changed again.
 */

import { type Database, resultCode, SQLITE, type Statement } from '../host/sqlite.ts'
import { type Batch, CALL_COLUMNS, type CallRow, type Change, columnValues, MAX_CONTINUED_ID } from './row.ts'
import { type Keep, keepPayloads } from './row-payloads.ts'
import { STATUS } from './schema.ts'

/** What a batch adds to one trace. */
interface TraceDelta {
  calls: number
  errors: number
  open: number
  missing: number
  maxId: number
  endedAtMs: number
  readonly agents: Set<string>
}

const MAX_INTERNED = 20_000
/** What SQLite says of a row that does not fit; a value it cannot even be given has no code. */
const ROW_FAULTS = new Set<number | undefined>([SQLITE.tooBig, SQLITE.constraint, SQLITE.mismatch, undefined])

const placeholders = CALL_COLUMNS.map(() => '?').join(', ')
const SQL = {
  findTrace: 'SELECT trace FROM traces WHERE trace_id = ?',
  addTrace: 'INSERT OR IGNORE INTO traces (trace_id, otel_trace_id, started_at) VALUES (?, ?, ?)',
  sumTrace: `UPDATE traces SET n_calls = n_calls + ?, n_errors = n_errors + ?, n_open = n_open + ?, missing = missing + ?,
    max_id = max(max_id, ?), ended_at = max(coalesce(ended_at, 0), ?) WHERE trace = ?`,
  addAgent: 'INSERT OR IGNORE INTO trace_agents (trace, agent) VALUES (?, ?)',
  addCall: `INSERT OR IGNORE INTO calls (trace, ${CALL_COLUMNS.join(', ')}) VALUES (?, ${placeholders})`,
  endCall: `UPDATE calls SET status = ?, error = ?, worker = ?, native_method = ?, target = ?, partials = ?, first_partial_at = ?,
    bytes_out = ?, ended_at = ?, flags = flags | ? WHERE trace = ? AND id = ? AND status = ${STATUS.pending}`,
  touchCall: `UPDATE calls SET partials = ?, first_partial_at = ? WHERE trace = ? AND id = ? AND status = ${STATUS.pending}`,
  addPayloads: 'INSERT OR REPLACE INTO payloads (call, input, output) VALUES (?, ?, ?)',
  addOutput: `INSERT INTO payloads (call, output) SELECT call, ? FROM calls WHERE trace = ? AND id = ?
    ON CONFLICT (call) DO UPDATE SET output = excluded.output`,
  remember: "INSERT OR REPLACE INTO meta (key, value) VALUES ('last_write_ms', ?)",
} as const

export class TraceWriter {
  readonly #db: Database
  readonly #keep: Keep
  readonly #statements: Record<keyof typeof SQL, Statement>
  readonly #interned = new Map<string, number>()

  constructor(db: Database, keep: Keep) {
    this.#db = db
    this.#keep = keep
    const prepared = Object.entries(SQL).map(([name, sql]) => [name, db.prepare(sql)])
    this.#statements = Object.fromEntries(prepared)
  }

  /** Throws what SQLite throws; then nothing of the batch is in the database. */
  write(batch: Batch): void {
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      this.#writeAll(batch)
      this.#db.exec('COMMIT')
    } catch (error) {
      this.#interned.clear()
      rollBack(this.#db)
      throw error
    }
  }

  #writeAll(batch: Batch): void {
    const deltas = new Map<number, TraceDelta>()
    for (const change of batch.changes) this.#apply(change, deltas)
    for (const [traceId, calls] of batch.missing) {
      const trace = this.#intern(traceId, null, batch.atMs)
      deltaOf(deltas, trace).missing += calls
    }
    for (const [trace, delta] of deltas) this.#sum(trace, delta)
    this.#statements.remember.run(String(batch.atMs))
  }

  #apply(change: Change, deltas: Map<number, TraceDelta>): void {
    const { row } = change
    const trace = this.#intern(change.traceId, change.otelTraceId, row.started_at)
    const delta = deltaOf(deltas, trace)
    if (change.kind === 'touch') {
      this.#statements.touchCall.run(row.partials, row.first_partial_at, trace, row.id)
      return
    }
    if (!this.#tryWrite(change, trace)) delta.missing += 1
    else count(delta, change.kind, row)
  }

  /** One call that cannot be written must not cost the others of its batch, nor the store. */
  #tryWrite({ kind, row }: Change, trace: number): boolean {
    try {
      return kind === 'end' ? this.#end(trace, row) : this.#add(trace, row)
    } catch (error) {
      if (ROW_FAULTS.has(resultCode(error))) return false
      throw error
    }
  }

  /** False when the trace has a call of that id already: the first one stays. */
  #add(trace: number, row: CallRow): boolean {
    const kept = keepPayloads(row, this.#keep)
    const { changes, lastInsertRowid } = this.#statements.addCall.run(trace, ...columnValues({ ...row, ...kept }))
    if (Number(changes) === 0) return false
    if (kept.input === null && kept.output === null) return true
    this.#statements.addPayloads.run(Number(lastInsertRowid), kept.input, kept.output)
    return true
  }

  /** False when there is no open call of that id. */
  #end(trace: number, row: CallRow): boolean {
    const { error, output, flags } = keepPayloads({ ...row, input: null }, this.#keep)
    const ended = this.#statements.endCall.run(
      ...[row.status, error, row.worker, row.native_method, row.target, row.partials],
      ...[row.first_partial_at, row.bytes_out, row.ended_at, flags, trace, row.id],
    )
    if (Number(ended.changes) === 0) return false
    if (output !== null) this.#statements.addOutput.run(output, trace, row.id)
    return true
  }

  #intern(traceId: string, otelTraceId: string | null, atMs: number): number {
    const known = this.#interned.get(traceId)
    if (known !== undefined) return known
    // Most traces that are not interned are new.
    const { changes, lastInsertRowid } = this.#statements.addTrace.run(traceId, otelTraceId, atMs)
    const isNew = Number(changes) > 0
    const trace = isNew ? Number(lastInsertRowid) : (this.#statements.findTrace.get(traceId) as { trace: number }).trace
    if (this.#interned.size >= MAX_INTERNED) this.#interned.clear()
    this.#interned.set(traceId, trace)
    return trace
  }

  #sum(trace: number, delta: TraceDelta): void {
    const { calls, errors, open, missing, maxId, endedAtMs } = delta
    this.#statements.sumTrace.run(calls, errors, open, missing, maxId, endedAtMs, trace)
    for (const agent of delta.agents) this.#statements.addAgent.run(trace, agent)
  }

  /** After rows were deleted: an interned trace may be gone. */
  forget(): void {
    this.#interned.clear()
  }
}

export function rollBack(db: Database): void {
  try {
    db.exec('ROLLBACK')
  } catch {
    // SQLite has rolled back by itself, as it does when the disk is full.
  }
}

function count(delta: TraceDelta, kind: Change['kind'], row: CallRow): void {
  const isOpen = row.status === STATUS.pending
  if (kind === 'new') {
    delta.calls += 1
    delta.agents.add(row.agent)
    if (row.id <= MAX_CONTINUED_ID) delta.maxId = Math.max(delta.maxId, row.id)
  }
  if (kind === 'new' && isOpen) delta.open += 1
  if (kind === 'end') delta.open -= 1
  if (row.status === STATUS.error) delta.errors += 1
  delta.endedAtMs = Math.max(delta.endedAtMs, row.ended_at ?? row.started_at)
}

function deltaOf(deltas: Map<number, TraceDelta>, trace: number): TraceDelta {
  const known = deltas.get(trace)
  if (known) return known
  const fresh = { calls: 0, errors: 0, open: 0, missing: 0, maxId: 0, endedAtMs: 0, agents: new Set<string>() }
  deltas.set(trace, fresh)
  return fresh
}
