/**
 * The tables of the journal in the file of the store: sessions, runs of their lines by the number of the first, and the newest
 * of each state. A run is what was said in a moment: a digit for the kind of each line, and the lines as they are.
 *
 * What was said is kept as it was: nothing is redacted or cut. A session is known by its key, which its principal and its
 * id make; numbers of lines are those that their readers count.
 */
import type { Database } from '../host/sqlite.ts'

const VERSION = 1

const TABLES = `
CREATE TABLE IF NOT EXISTS journal_sessions (
  row INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  session TEXT NOT NULL,
  pool TEXT NOT NULL,
  principal TEXT NOT NULL,
  cwd TEXT NOT NULL,
  title TEXT NOT NULL DEFAULT '',
  answer TEXT,
  is_lost INTEGER NOT NULL DEFAULT 0,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL,
  seq INTEGER NOT NULL DEFAULT 0,
  first_seq INTEGER NOT NULL DEFAULT 1,
  bytes INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS journal_sessions_by_time ON journal_sessions (updated_at);
CREATE TABLE IF NOT EXISTS journal_runs (
  row INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at REAL NOT NULL,
  kinds TEXT NOT NULL,
  lines BLOB NOT NULL,
  PRIMARY KEY (row, seq)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS journal_states (
  row INTEGER NOT NULL,
  kind TEXT NOT NULL,
  seq INTEGER NOT NULL,
  line BLOB NOT NULL,
  PRIMARY KEY (row, kind)
) WITHOUT ROWID;
`

/** Makes the tables where they are missing; refuses those of a newer program. */
export function prepareJournal(db: Database): void {
  const found = db.prepare("SELECT value FROM meta WHERE key = 'journal_version'").get() as
    | { value: string }
    | undefined
  const version = Number(found?.value ?? 0)
  if (version > VERSION)
    throw new Error(`the journal was written by a newer stdio-bus (${version}): update, or name another file`)
  // Also where somebody has taken one away.
  db.exec(TABLES)
  if (version === VERSION) return
  db.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES ('journal_version', ?)").run(String(VERSION))
}
