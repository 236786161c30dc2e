/**
 * Reads one line: proves that it is JSON and UTF-8, and notes where its routing fields lie; the fast twin of
 * src/wire/line-scan.ts.
 *
 * Which fields those are is data that the other side has written at TREE. Whatever is rare is not done here: the verdict
 * is then UNSURE, and the twin reads the line. Outside the notes and NESTING, memory is left as it was found.
 */
import {
  COUNTED,
  FIELD_BELOW,
  FIELD_KEY,
  FIELD_LENGTH,
  FIELD_MASK,
  FIELD_NEXT,
  FIELD_SLOT,
  FIELD_TABLE,
  HASH_LENGTH,
  HASHES,
  MAX_FIELDS,
  NOTE_ENDS,
  NOTE_ID_IS_INTEGER,
  NOTE_ID_LOW,
  NOTE_PLAIN,
  NOTE_REPEATED,
  NOTE_STARTS,
  NOTE_TWICE,
  NOTES,
  NOWHERE,
  ONCE_BELOW_CELL,
  TREE,
  VECTOR_BYTES,
  VERDICT_BROKEN,
  VERDICT_OBJECT,
  VERDICT_OTHER,
  VERDICT_UNSURE,
} from '../src/wire/layout'
import { CARRIAGE_RETURN, CLOSE_OBJECT, COLON, COMMA, MINUS, NEWLINE, OPEN_OBJECT, QUOTE, ZERO } from './characters'
import { findStop, openText, wide } from './stops'
import { broken, expectText, fail, isDigit, skipByte, skipOddString, skipSpace, skipValue, spansLines } from './text'
import { isAscii, isUtf8 } from './utf8'

const STARTS: usize = NOTES + 4 * NOTE_STARTS
const ENDS: usize = NOTES + 4 * NOTE_ENDS
const PLAIN: usize = NOTES + 4 * NOTE_PLAIN
/** Every double holds an integer of so many digits. */
const MAX_ID_DIGITS: usize = 15

/** What is added to an address to make it an offset in the buffer of the other side. */
let shift: i32 = 0
let hasEscapedKey: bool = false
/** The slots that are filled, as a set. */
let filled: u64 = 0

// @inline
function cell(index: i32): usize {
  return NOTES + 4 * index
}

/** Reads the text in `[start, end)`; offsets are noted as addresses plus `offset`. */
export function scan(start: usize, end: usize, offset: i32): i32 {
  shift = offset
  clearNotes()
  const behind = load<u8>(end)
  if (behind === NEWLINE) return judge(start, end)
  store<u8>(end, 0)
  const verdict = judge(start, end)
  store<u8>(end, behind)
  return verdict
}

/**
 * Reads the object that begins at `start` and ends its line before `limit`: returns the address of the newline plus `offset`.
 * Whatever else stands there is left to `scan`, to which somebody tells its end: NOWHERE.
 */
export function scanAhead(start: usize, limit: usize, offset: i32): i32 {
  shift = offset
  clearNotes()
  const behind = load<u8>(limit)
  store<u8>(limit, 0)
  const end = findEnd(start, limit)
  store<u8>(limit, behind)
  return end
}

function findEnd(start: usize, limit: usize): i32 {
  if (load<u8>(start) !== OPEN_OBJECT) return NOWHERE
  expectText(limit)
  openText(start)
  let end = readObject(start, TREE)
  if (broken || spansLines || hasEscapedKey) return NOWHERE
  if (load<u8>(end) === CARRIAGE_RETURN) end++
  if (load<u8>(end) !== NEWLINE || (wide && !isWideText(start, end))) return NOWHERE
  return (end as i32) + shift
}

function clearNotes(): void {
  hasEscapedKey = false
  filled = 0
  store<i32>(cell(NOTE_TWICE), -1)
  store<i32>(cell(NOTE_ID_IS_INTEGER), 0)
  store<i32>(cell(NOTE_REPEATED), 0)
  for (let at = STARTS; at < STARTS + 4 * MAX_FIELDS; at += 64) {
    v128.store(at, i32x4.splat(-1))
    v128.store(at, i32x4.splat(-1), 16)
    v128.store(at, i32x4.splat(-1), 32)
    v128.store(at, i32x4.splat(-1), 48)
  }
}

function judge(start: usize, end: usize): i32 {
  expectText(end)
  openText(start)
  const first = skipSpace(start)
  const isObject = load<u8>(first) === OPEN_OBJECT
  const behind = isObject ? readObject(first, TREE) : skipValue(first)
  if (hasEscapedKey) return VERDICT_UNSURE
  if (broken || skipSpace(behind) !== end) return VERDICT_BROKEN
  if (wide && !isWideText(start, end)) return VERDICT_BROKEN
  return isObject ? VERDICT_OBJECT : VERDICT_OTHER
}

/** What stands before the line is none of its business. */
function isWideText(start: usize, end: usize): bool {
  const before = load<u32>(start - 4)
  store<u32>(start - 4, 0)
  const isValid = isUtf8(start, end)
  store<u32>(start - 4, before)
  return isValid
}

function readObject(at: usize, table: usize): usize {
  let i = skipSpace(at + 1)
  if (load<u8>(i) === CLOSE_OBJECT) return i + 1
  while (true) {
    if (load<u8>(i) !== QUOTE) return fail()
    const key = i + 1
    const keyEnd = findStop(key)
    if (load<u8>(keyEnd) !== QUOTE) {
      hasEscapedKey = true
      return fail()
    }
    const field = findField(table, key, keyEnd - key)
    i = skipSpace(skipByte(keyEnd + 1, COLON))
    if (field === 0) i = skipValue(i)
    else i = readField(i, field)
    i = skipSpace(i)
    const next = load<u8>(i++)
    if (next === COMMA) i = skipSpace(i)
    else if (next === CLOSE_OBJECT) return i
    else return fail()
  }
}

// @inline
function findField(table: usize, key: usize, length: usize): usize {
  const hash = ((load<u8>(key) as usize) + length * HASH_LENGTH) & (HASHES - 1)
  let field: usize = load<u32>(table + (hash << 2))
  while (field !== 0 && !isKey(field, key)) field = load<u32>(field, FIELD_NEXT)
  return field
}

/** The closing quote is compared too, and with it the length. */
// @inline
function isKey(field: usize, key: usize): bool {
  const differs = v128.xor(v128.load(field, FIELD_KEY), v128.load(key))
  if (v128.any_true(v128.and(differs, v128.load(field, FIELD_MASK)))) return false
  return load<i32>(field, FIELD_LENGTH) < VECTOR_BYTES || isLongKey(field, key)
}

function isLongKey(field: usize, key: usize): bool {
  for (let i = VECTOR_BYTES; i <= load<i32>(field, FIELD_LENGTH); i++) {
    if (load<u8>(field + i, FIELD_KEY) !== load<u8>(key + i)) return false
  }
  return true
}

// @inline
function readField(at: usize, field: usize): usize {
  const below = load<u64>(field, FIELD_BELOW)
  if ((filled & below) !== 0) clearBelow(below)
  const slot = load<i32>(field, FIELD_SLOT)
  const first = load<u8>(at)
  let behind: usize
  let isPlain = 1
  if (first === QUOTE) {
    const end = findStop(at + 1)
    behind = end + 1
    if (load<u8>(end) !== QUOTE) {
      behind = skipOddString(end)
      isPlain = 0
    } else if (wide) isPlain = isAscii(at, end) ? 1 : 0
    // An id that stands twice may have been a number the first time.
    if (slot === 0) store<i32>(cell(NOTE_ID_IS_INTEGER), 0)
  } else if (first === OPEN_OBJECT && load<u32>(field, FIELD_TABLE) !== 0) {
    behind = readObject(at, load<u32>(field, FIELD_TABLE))
  } else {
    behind = skipValue(at)
    if (slot === 0) noteInteger(at, behind)
  }
  if (slot !== -1) note(slot, at, behind, isPlain)
  return behind
}

/** An object stands a second time: as in every JSON library, the last one counts, with nothing of the first. */
function clearBelow(slots: u64): void {
  for (let rest = slots; rest !== 0; rest &= rest - 1) store<i32>(STARTS + ((ctz(rest) as usize) << 2), -1)
  filled &= ~slots
}

// @inline
function note(slot: i32, start: usize, behind: usize, isPlain: i32): void {
  const bit = (1 as u64) << slot
  if ((filled & bit) !== 0) noteTwice(slot)
  filled |= bit
  const at = (slot as usize) << 2
  store<i32>(STARTS + at, (start as i32) + shift)
  store<i32>(ENDS + at, (behind as i32) + shift)
  store<i32>(PLAIN + at, isPlain)
}

/** An id that stands twice is kept in mind, whatever else does: nobody can be answered by it. */
function noteTwice(slot: i32): void {
  if (slot >= load<i32>(ONCE_BELOW_CELL)) noteRepeated(slot)
  else if (load<i32>(cell(NOTE_TWICE)) !== 0) store<i32>(cell(NOTE_TWICE), slot)
}

function noteRepeated(slot: i32): void {
  if (slot < COUNTED) store<i32>(cell(NOTE_REPEATED), load<i32>(cell(NOTE_REPEATED)) | (1 << slot))
}

/** The id by value, when it is an integer without sign trouble and within what a double holds exactly. */
function noteInteger(start: usize, behind: usize): void {
  store<i32>(cell(NOTE_ID_IS_INTEGER), 0)
  const isNegative = load<u8>(start) === MINUS
  const first = isNegative ? start + 1 : start
  if (behind - first > MAX_ID_DIGITS || (isNegative && load<u8>(first) === ZERO)) return
  let value: i64 = 0
  for (let i = first; i < behind; i++) {
    const byte = load<u8>(i)
    if (!isDigit(byte)) return
    value = value * 10 + ((byte - ZERO) as i64)
  }
  if (isNegative) value = -value
  store<i64>(cell(NOTE_ID_LOW), value)
  store<i32>(cell(NOTE_ID_IS_INTEGER), 1)
}
