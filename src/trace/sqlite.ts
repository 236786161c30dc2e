/**
 * The one door to SQLite: the runtime's own `node:sqlite` where it has it, the same API from a package where not.
 *
 * Nothing else in the project knows which of the two it is. Only what the store uses is typed here.
 */

export type SqlValue = string | number | null

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

/** Built in without a flag since 22.13. */
function hasBuiltIn(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return major > 22 || (major === 22 && minor >= 13)
}

async function loadSqlite(): Promise<DatabaseClass> {
  if (!hasBuiltIn()) return (await import('@photostructure/sqlite')).DatabaseSync as unknown as DatabaseClass
  // The name is not a literal because the types of the oldest supported runtime do not know the module.
  const name: string = 'node:sqlite'
  return (await withoutExperimentalWarning(() => import(name))).DatabaseSync
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
