/**
 * The one door to SQLite: the runtime's own `node:sqlite` where it has it, the same API from a package where not (Node before
 * 22.13).
 *
 * Nothing else in the project knows which of the two it is. Only what the store uses is typed here.
 */
import { isBuiltin } from 'node:module'

export type SqlValue = string | number | Uint8Array | null

export interface Statement {
  run(...values: SqlValue[]): { changes: number | bigint; lastInsertRowid: number | bigint }
  get(...values: SqlValue[]): unknown
  all(...values: SqlValue[]): unknown[]
}

export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

/** Somebody who has tables of its own in a store, and is asked on the thread that has the database. */
export interface StoreTenant {
  /** Makes its tables where they are missing; refuses those of a newer program. */
  prepare(db: Database): void
  serve(db: Database, op: string, params: never): unknown
}

type DatabaseClass = new (path: string, options?: { readOnly?: boolean; timeout?: number }) => Database

export interface OpenOptions {
  readonly readOnly?: boolean
  /** How long to wait for somebody else's lock. */
  readonly timeoutMs?: number
}

/** Opens a database file; throws what SQLite throws, with its result code in `errcode`. */
export async function openDatabase(path: string, options: OpenOptions = {}): Promise<Database> {
  const DatabaseSync = await loadSqlite()
  return new DatabaseSync(path, { readOnly: options.readOnly ?? false, timeout: options.timeoutMs ?? 2_000 })
}

/** SQLite's primary result codes, as far as they decide anything here. */
export const SQLITE = {
  busy: 5,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  tooBig: 18,
  constraint: 19,
  mismatch: 20,
  notDatabase: 26,
} as const

/** The primary result code of an error of SQLite; undefined for any other error. */
export function resultCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

/** The runtime has no SQLite, and the package that brings it is not installed: it is an optional dependency. */
export class SqliteMissing extends Error {
  override readonly name = 'SqliteMissing'
  readonly code = 'NO_SQLITE'
}

async function loadSqlite(): Promise<DatabaseClass> {
  if (!isBuiltin('node:sqlite')) return loadPackage()
  // The name is not a literal because the types of the oldest supported runtime do not know the module.
  const name: string = 'node:sqlite'
  return (await withoutExperimentalWarning(() => import(name))).DatabaseSync
}

async function loadPackage(): Promise<DatabaseClass> {
  try {
    return (await import('@photostructure/sqlite')).DatabaseSync as unknown as DatabaseClass
  } catch (cause) {
    const remedy = 'run "npm install @photostructure/sqlite" where stdio-bus is installed, or use Node 22.13 or newer'
    throw new SqliteMissing(`Node ${process.versions.node} has no SQLite of its own: ${remedy}`, { cause })
  }
}

/** The API is the same on all supported runtimes; its warning on stderr would only worry the operator. */
async function withoutExperimentalWarning<T>(load: () => Promise<T>): Promise<T> {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return await load()
  } finally {
    process.emitWarning = emitWarning
  }
}
