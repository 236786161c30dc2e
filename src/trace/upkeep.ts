/**
 * What the store does for itself: one owner per file, calls that a crash left open, days that are over, numbers of a day.
 */
import { closeSync, constants, fchmodSync, lstatSync, mkdirSync, readSync } from 'node:fs'
import { dirname } from 'node:path'
import { openOwnFile } from '../host/own-file.ts'
import { type Database, openDatabase, SQLITE } from '../host/sqlite.ts'
import { readMeta, STATUS } from './schema.ts'
import { rollBack } from './writer.ts'

const MAGIC = Buffer.from('SQLite format 3\0')
/** What SQLite puts beside a database. */
const COMPANIONS = ['-wal', '-shm', '-journal']

/**
 * A file that only its owner may read exists before SQLite opens it; SQLite gives its companions the same mode. Nothing
 * is changed that is not a database, or empty, and this user's own; whatever else the path points at is left alone.
 */
export function makePrivate(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  for (const companion of COMPANIONS) if (isThere(path + companion)) restrict(path + companion, constants.O_RDWR)
  restrict(path, constants.O_RDWR | constants.O_CREAT, MAGIC)
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

function restrict(path: string, flags: number, magic?: Buffer): void {
  const { descriptor, stats } = openOwnFile(path, flags)
  try {
    if (magic !== undefined && stats.size > 0 && !beginsWith(descriptor, magic)) throw new NotADatabase(path)
    if ((stats.mode & 0o777) !== 0o600) fchmodSync(descriptor, 0o600)
  } finally {
    closeSync(descriptor)
  }
}

function beginsWith(descriptor: number, magic: Buffer): boolean {
  const head = Buffer.alloc(magic.length)
  readSync(descriptor, head, 0, head.length, 0)
  return head.equals(magic)
}

class NotADatabase extends Error {
  readonly errcode = SQLITE.notDatabase

  constructor(path: string) {
    super(`${path} is not a database`)
  }
}

/**
 * Holds the store for this process until `close`. The lock is one of SQLite's own on a file beside the store: the system
 * lifts it when the process dies, so there is never a stale one, and readers of the store itself are not shut out.
 */
export async function lockStore(path: string): Promise<Database> {
  const lockPath = `${path}.lock`
  makePrivate(lockPath)
  const lock = await openDatabase(lockPath, { timeoutMs: 0 })
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    throw error
  }
}

const RESTARTED = JSON.stringify({
  code: -32603,
  message: 'The bus ended before the answer came',
  data: { reason: 'bus_restarted' },
})

/** Calls left open by an earlier run become errors that ended when that run last wrote. */
export function closeOpenCalls(db: Database, nowMs: number): void {
  const endedAtMs = Number(readMeta(db, 'last_write_ms') ?? nowMs)
  db.exec('BEGIN IMMEDIATE')
  db.prepare(
    `UPDATE traces SET n_errors = n_errors + o.open, n_open = 0, ended_at = max(coalesce(ended_at, 0), started_at, ?)
     FROM (SELECT trace, count(*) AS open FROM calls WHERE status = ${STATUS.pending} GROUP BY trace) o
     WHERE traces.trace = o.trace`,
  ).run(endedAtMs)
  db.prepare(
    `UPDATE calls SET status = ${STATUS.error}, error = ?, ended_at = max(started_at, ?) WHERE status = ${STATUS.pending}`,
  ).run(RESTARTED, endedAtMs)
  db.exec('COMMIT')
}

const PROBE_BYTES = 65_536

/** Proves that the disk takes a write: a full one lets a store be opened, and would fail again at the first batch. */
export function probe(db: Database): void {
  db.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', ?)").run('x'.repeat(PROBE_BYTES))
  db.exec("DELETE FROM meta WHERE key = 'probe'")
}

const SWEEP_TRACES = 200

/** Deletes some traces whose last sign of life is before `cutoffMs`; true when there may be more. */
export function sweepOld(db: Database, cutoffMs: number): boolean {
  const old = db
    .prepare('SELECT trace FROM traces WHERE n_open = 0 AND coalesce(ended_at, started_at) < ? ORDER BY trace LIMIT ?')
    .all(cutoffMs, SWEEP_TRACES) as { trace: number }[]
  if (old.length === 0) return false
  db.exec('BEGIN IMMEDIATE')
  try {
    for (const { trace } of old) deleteTrace(db, trace)
    db.exec('COMMIT')
  } catch (error) {
    rollBack(db)
    throw error
  }
  db.exec('PRAGMA incremental_vacuum(2000)')
  return old.length === SWEEP_TRACES
}

function deleteTrace(db: Database, trace: number): void {
  db.prepare('DELETE FROM payloads WHERE call IN (SELECT call FROM calls WHERE trace = ?)').run(trace)
  for (const table of ['calls', 'trace_agents', 'traces']) {
    db.prepare(`DELETE FROM ${table} WHERE trace = ?`).run(trace)
  }
}

/**
 * Takes `count` numbers of a day for good, none below `atLeast`; returns the first. Two takers never get the same, and the
 * taking is on the disk before it counts: a number that was issued must survive a power cut.
 */
export function reserveNumbers(db: Database, day: string, count: number, atLeast: number): number {
  db.exec('PRAGMA synchronous = FULL')
  const { next } = db
    .prepare(
      `INSERT INTO counters (day, next) VALUES (?, ?)
       ON CONFLICT (day) DO UPDATE SET next = max(next, ?) + ? RETURNING next`,
    )
    .get(day, atLeast + count, atLeast, count) as { next: number }
  db.exec('PRAGMA synchronous = NORMAL')
  return next - count
}
