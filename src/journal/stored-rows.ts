/**
 * Rows of the journal as they are found in the file, where a column can hold anything: what is not what was written is left
 * out or taken for nothing, and never reaches the kernel.
 */
import type { StoredSession } from '../kernel/events.ts'
import type { EntryKind } from '../kernel/kept/journal.ts'
import { KINDS } from './batch.ts'

/** How much there is of a session. */
export interface Counted {
  readonly seq: unknown
  readonly first_seq: unknown
  readonly bytes: unknown
}

export interface SessionRow extends Counted {
  readonly row: number
  readonly session: unknown
  readonly pool: unknown
  readonly principal: unknown
  readonly cwd: unknown
  readonly title: unknown
  readonly is_lost: unknown
  readonly created_at: unknown
  readonly updated_at: unknown
}

/** What was said in a moment. */
export interface RunRow {
  readonly seq: unknown
  readonly kinds: unknown
  readonly lines: unknown
}

export interface StoredLine {
  readonly seq: number
  readonly kind: EntryKind
  readonly line: Uint8Array
}

interface Counts {
  readonly seq: number
  readonly first_seq: number
  readonly bytes: number
}

/** The last moment of the year 9999. */
const LAST_MS = 253_402_300_799_999

/** The counts are some that a session can have. */
export function isCounted<Row extends Counted>(row: Row): row is Row & Counts {
  const { seq, first_seq: first, bytes } = row
  return isWhole(seq) && isWhole(first) && isWhole(bytes) && first >= 1 && first <= seq + 1
}

/** Undefined: it names nobody's session. */
export function storedOf(row: SessionRow, { seq, first_seq: firstSeq, bytes }: Counts): StoredSession | undefined {
  const { session, pool, principal } = row
  if (!isText(session) || !isText(pool) || !isText(principal) || session === '') return undefined
  return {
    session,
    pool,
    principal,
    cwd: isText(row.cwd) ? row.cwd : '',
    title: isText(row.title) ? row.title : '',
    createdAtMs: momentOf(row.created_at),
    updatedAtMs: momentOf(row.updated_at),
    seq,
    firstSeq,
    bytes,
    isLost: row.is_lost !== 0,
  }
}

/** The agent's answer to new or load, if it is still an object. */
export function headAnswerOf(answer: unknown): string | undefined {
  if (!isText(answer)) return undefined
  try {
    const value: unknown = JSON.parse(answer)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? answer : undefined
  } catch {
    return undefined
  }
}

export function bytesOf(line: unknown): Uint8Array {
  if (line instanceof Uint8Array) return line
  return isText(line) ? Buffer.from(line) : new Uint8Array()
}

const NEWLINE = 10

/** Where the bytes go on behind so many lines. */
export function behindLines(bytes: Uint8Array, start: number, count: number): number {
  let at = start
  for (let line = 0; line < count; line++) at = bytes.indexOf(NEWLINE, at) + 1
  return at
}

/** The lines of a run, as many as it has and says that it has. */
export function* linesOf({ seq, kinds, lines }: RunRow): Generator<StoredLine> {
  if (!isWhole(seq) || !isText(kinds)) return
  const bytes = bytesOf(lines)
  let at = 0
  for (let index = 0; index < kinds.length; index++) {
    const end = bytes.indexOf(NEWLINE, at) + 1
    if (end === 0) return
    yield { seq: seq + index, kind: KINDS[Number(kinds[index])] ?? 'update', line: bytes.subarray(at, end) }
    at = end
  }
}

/** One that nobody can have written down is the first of all: 1 and not 0, which is said of what has never begun. */
function momentOf(value: unknown): number {
  return typeof value === 'number' && value >= 1 && value <= LAST_MS ? value : 1
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
