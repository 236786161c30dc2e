/**
 * The tables of the trace store, and how a database becomes one.
 *
 * A trace id is interned as an integer that grows in the order of first sight, so "newest first" is a walk over a primary
 * key. Payloads live apart from calls: lists and statistics never touch them. Recovery looks only at open calls, through an
 * index that holds nothing else.
 */
import type { Database } from '../host/sqlite.ts'

export const SCHEMA_VERSION = 2

/** The status of a call as it is stored. */
export const STATUS = { pending: 0, ok: 1, error: 2 } as const

/** What a call lost or had cut, as bits of `calls.flags`. */
export const FLAG = { inputCut: 1, outputCut: 2, inputLost: 4, outputLost: 8 } as const

const TABLES = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE counters (day TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE traces (
  trace INTEGER PRIMARY KEY,
  trace_id TEXT NOT NULL UNIQUE,
  otel_trace_id TEXT,
  started_at REAL NOT NULL,
  ended_at REAL,
  n_calls INTEGER NOT NULL DEFAULT 0,
  n_errors INTEGER NOT NULL DEFAULT 0,
  n_open INTEGER NOT NULL DEFAULT 0,
  max_id INTEGER NOT NULL DEFAULT 0,
  missing INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE trace_agents (trace INTEGER NOT NULL, agent TEXT NOT NULL, PRIMARY KEY (trace, agent)) WITHOUT ROWID;
CREATE INDEX trace_agents_by_agent ON trace_agents (agent, trace);
CREATE TABLE calls (
  call INTEGER PRIMARY KEY,
  trace INTEGER NOT NULL,
  id INTEGER NOT NULL,
  parent_id INTEGER,
  request_id TEXT,
  protocol TEXT NOT NULL,
  type TEXT NOT NULL,
  agent TEXT NOT NULL,
  worker TEXT,
  method TEXT NOT NULL,
  native_method TEXT,
  target TEXT,
  status INTEGER NOT NULL,
  error TEXT,
  partials INTEGER NOT NULL DEFAULT 0,
  first_partial_at REAL,
  bytes_in INTEGER NOT NULL,
  bytes_out INTEGER NOT NULL DEFAULT 0,
  started_at REAL NOT NULL,
  ended_at REAL,
  flags INTEGER NOT NULL DEFAULT 0,
  caller TEXT,
  UNIQUE (trace, id)
);
CREATE INDEX calls_open ON calls (trace) WHERE status = 0;
CREATE TABLE payloads (call INTEGER PRIMARY KEY, input TEXT, output TEXT);
`

/** What makes of each earlier version the next one. */
const MIGRATIONS: Readonly<Record<number, string>> = { 1: 'ALTER TABLE calls ADD COLUMN caller TEXT;' }

/** What a reader, who changes nothing, must see of each earlier version as if it were the next one. */
const VIEWS: Readonly<Record<number, string>> = {
  1: 'CREATE TEMP VIEW calls AS SELECT *, NULL AS caller FROM main.calls;',
}

/** Settings that must precede the first table. */
const BIRTH = 'PRAGMA auto_vacuum = INCREMENTAL;'

const SETTINGS = `
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA foreign_keys = OFF;
PRAGMA journal_size_limit = 16777216;
PRAGMA cache_size = -8192;
`

/** Makes an empty file a trace store, and one of an earlier version one of this; refuses one that a newer bus has written. */
export function prepareDatabase(db: Database, makeInstance: () => string): void {
  if (versionOf(db) === 0) db.exec(BIRTH)
  db.exec(SETTINGS)
  const version = versionOf(db)
  if (version > SCHEMA_VERSION) throw newerStore(version)
  if (version === SCHEMA_VERSION) return
  db.exec('BEGIN IMMEDIATE')
  if (version === 0) {
    db.exec(TABLES)
    db.prepare('INSERT INTO meta (key, value) VALUES (?, ?)').run('bus_instance', makeInstance())
  }
  for (let from = version; from > 0 && from < SCHEMA_VERSION; from++) db.exec(MIGRATIONS[from]!)
  db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`)
  db.exec('COMMIT')
}

/** For a reader that changes nothing; refuses a file that is not a trace store this program can read. */
export function prepareReading(db: Database): void {
  const version = versionOf(db)
  if (version === 0) throw new Error('this file is not a trace store: it has no traces table')
  if (version > SCHEMA_VERSION) throw newerStore(version)
  for (let from = version; from < SCHEMA_VERSION; from++) db.exec(VIEWS[from]!)
}

export function readMeta(db: Database, key: string): string | undefined {
  return (db.prepare('SELECT value FROM meta WHERE key = ?').get(key) as { value: string } | undefined)?.value
}

function versionOf(db: Database): number {
  return (db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version
}

function newerStore(version: number): Error {
  return new Error(`the store was written by a newer stdio-bus (schema ${version}): update, or name another file`)
}
