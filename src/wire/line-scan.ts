/**
 * Reads one line in plain JavaScript: the twin of the scanner in assembly/, for what that leaves alone and for machines
 * that cannot run it. Both write the same notes and come to the same verdict; a test holds them to it.
 *
 * It compares keys by value and never looks into an object that is not on a path of the field table.
 */
import { FIELD, FIELD_TREE, type FieldNode, ONCE_BELOW } from './fields.ts'
import {
  BROKEN,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isDigit,
  lastStringPlain,
  MINUS,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  skipString,
  skipValue,
} from './json-text.ts'
import {
  COUNTED,
  MAX_FIELDS,
  NOTE_ENDS,
  NOTE_ID_HIGH,
  NOTE_ID_IS_INTEGER,
  NOTE_ID_LOW,
  NOTE_PLAIN,
  NOTE_REPEATED,
  NOTE_STARTS,
  NOTE_TWICE,
  VERDICT_BROKEN,
  VERDICT_OBJECT,
  VERDICT_OTHER,
} from './layout.ts'

const ZERO = 0x30
const TWO_32 = 2 ** 32
/** Every double holds an integer of so many digits. */
const MAX_ID_DIGITS = 15

/** Reads `bytes[start, end)` and fills `notes`, whose offsets count from the front of `bytes`. */
export function scanLine(bytes: Buffer, start: number, end: number, notes: Int32Array): number {
  notes.fill(-1, NOTE_STARTS, NOTE_STARTS + MAX_FIELDS)
  notes[NOTE_TWICE] = -1
  notes[NOTE_ID_IS_INTEGER] = 0
  notes[NOTE_REPEATED] = 0
  const at = skipSpace(bytes, start, end)
  if (at >= end) return VERDICT_BROKEN
  const isObject = bytes[at] === OPEN_OBJECT
  const behind = isObject ? readObject(bytes, at, end, FIELD_TREE, notes) : skipValue(bytes, at, end)
  if (behind === BROKEN || skipSpace(bytes, behind, end) !== end) return VERDICT_BROKEN
  return isObject ? VERDICT_OBJECT : VERDICT_OTHER
}

function readObject(bytes: Buffer, at: number, end: number, node: FieldNode, notes: Int32Array): number {
  let i = skipSpace(bytes, at + 1, end)
  if (i < end && bytes[i] === CLOSE_OBJECT) return i + 1
  for (;;) {
    if (i >= end || bytes[i] !== QUOTE) return BROKEN
    const keyStart = i + 1
    i = skipString(bytes, i, end)
    if (i === BROKEN) return BROKEN
    const field = lastStringPlain ? findField(node, bytes, keyStart, i - 1) : findEscaped(node, bytes, keyStart, i - 1)
    i = skipSpace(bytes, i, end)
    if (i >= end || bytes[i] !== COLON) return BROKEN
    i = skipSpace(bytes, i + 1, end)
    i = field === undefined ? skipValue(bytes, i, end) : readField(bytes, i, end, field, notes)
    if (i === BROKEN) return BROKEN
    i = skipSpace(bytes, i, end)
    if (i >= end) return BROKEN
    if (bytes[i] === CLOSE_OBJECT) return i + 1
    if (bytes[i] !== COMMA) return BROKEN
    i = skipSpace(bytes, i + 1, end)
  }
}

function findField(node: FieldNode, bytes: Buffer, start: number, end: number): FieldNode | undefined {
  const candidates = node.byLength[end - start]
  if (candidates === undefined) return undefined
  for (const candidate of candidates) if (isKey(candidate.key, bytes, start)) return candidate
  return undefined
}

function isKey(key: Buffer, bytes: Buffer, start: number): boolean {
  for (let i = 0; i < key.length; i++) if (key[i] !== bytes[start + i]) return false
  return true
}

/** A key with escapes is decoded and looked up by value. */
function findEscaped(node: FieldNode, bytes: Buffer, start: number, end: number): FieldNode | undefined {
  const key = Buffer.from(JSON.parse(bytes.utf8Slice(start - 1, end + 1)) as string)
  return findField(node, key, 0, key.length)
}

function readField(bytes: Buffer, at: number, end: number, field: FieldNode, notes: Int32Array): number {
  if (at >= end) return BROKEN
  // An object that stands a second time: as in every JSON library the last one counts, with nothing of the first.
  for (const slot of field.below) notes[NOTE_STARTS + slot] = -1
  const isOnPath = field.hasChildren && bytes[at] === OPEN_OBJECT
  const behind = isOnPath ? readObject(bytes, at, end, field, notes) : skipValue(bytes, at, end)
  if (behind === BROKEN || field.slot === -1) return behind
  if (notes[NOTE_STARTS + field.slot] !== -1) noteTwice(field.slot, notes)
  notes[NOTE_STARTS + field.slot] = at
  notes[NOTE_ENDS + field.slot] = behind
  notes[NOTE_PLAIN + field.slot] = lastStringPlain ? 1 : 0
  if (field.slot === FIELD.id) noteInteger(bytes, at, behind, notes)
  return behind
}

/** An id that stands twice is kept in mind, whatever else does: nobody can be answered by it. */
function noteTwice(slot: number, notes: Int32Array): void {
  if (slot >= ONCE_BELOW) noteRepeated(slot, notes)
  else if (notes[NOTE_TWICE] !== FIELD.id) notes[NOTE_TWICE] = slot
}

function noteRepeated(slot: number, notes: Int32Array): void {
  if (slot < COUNTED) notes[NOTE_REPEATED]! |= 1 << slot
}

function noteInteger(bytes: Buffer, start: number, end: number, notes: Int32Array): void {
  notes[NOTE_ID_IS_INTEGER] = isCommonInteger(bytes, start, end) ? 1 : 0
  if (notes[NOTE_ID_IS_INTEGER] === 0) return
  const value = Number(bytes.latin1Slice(start, end))
  notes[NOTE_ID_HIGH] = Math.floor(value / TWO_32)
  notes[NOTE_ID_LOW] = value % TWO_32
}

/** Digits without sign trouble and within what a double holds exactly: every library writes it the same. */
export function isCommonInteger(bytes: Buffer, start: number, end: number): boolean {
  const first = bytes[start] === MINUS ? start + 1 : start
  if (end - first > MAX_ID_DIGITS || (first !== start && bytes[first] === ZERO)) return false
  for (let i = first; i < end; i++) if (!isDigit(bytes[i]!)) return false
  return true
}

/** The integer that a scan has noted as the id. */
export function notedInteger(notes: Int32Array): number {
  const low = notes[NOTE_ID_LOW]!
  const high = notes[NOTE_ID_HIGH]!
  return high === low >> 31 ? low : high * TWO_32 + (low >>> 0)
}
