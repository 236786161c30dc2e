/**
 * Walks over JSON text and proves that it is well-formed, building nothing: the fast twin of src/wire/json-text.ts.
 *
 * Every `skip` takes the address of a value's first byte and returns the address behind its last. Nothing is checked twice:
 * a zero stands behind the text, which no skip gets past, so no bound is looked at; and text that is broken leads to BROKEN,
 * where there is only another zero, so the way back needs no look either. Whether bytes above 0x7f are UTF-8 is left to
 * the caller. What may fail does so by `fail()`, in a branch: what is chosen without one must be waited for.
 */

import { ESCAPES, NESTING } from '../src/wire/layout'
import {
  BACKSLASH,
  CARRIAGE_RETURN,
  COLON,
  COMMA,
  DOT,
  LOWER_U,
  MINUS,
  NEWLINE,
  OPEN_OBJECT,
  PLUS,
  QUOTE,
  SPACE,
  ZERO,
} from './characters'
import { block, findStop, findStopsFrom } from './stops'

/** The address of a zero that is never overwritten. */
export const BROKEN: usize = 16

const CLOSE_ARRAY: u8 = 0x5d
const TRUE: u32 = 0x65757274
const FALS: u32 = 0x736c6166
const NULL: u32 = 0x6c6c756e
/** So many open containers fit into one word. */
const WORD_DEPTH: i32 = 64

// What may follow a backslash has a one in this table.
store<u8>(ESCAPES + 0x22, 1)
store<u8>(ESCAPES + 0x2f, 1)
store<u8>(ESCAPES + 0x5c, 1)
store<u8>(ESCAPES + 0x62, 1)
store<u8>(ESCAPES + 0x66, 1)
store<u8>(ESCAPES + 0x6e, 1)
store<u8>(ESCAPES + 0x72, 1)
store<u8>(ESCAPES + 0x74, 1)

/** Set when text is broken. */
export let broken: bool = false
/** Set when a line ended within the text. */
export let spansLines: bool = false

let textEnd: usize = 0

/** A control character must stand at `end`. */
export function expectText(end: usize): void {
  textEnd = end
  broken = false
  spansLines = false
}

export function fail(): usize {
  broken = true
  return BROKEN
}

// @inline
export function skipSpace(at: usize): usize {
  let i = at
  if (load<u8>(i) <= SPACE) i = skipSpaces(i)
  return i
}

/** `byte`, perhaps behind white space; returns the address behind it. */
// @inline
export function skipByte(at: usize, byte: u8): usize {
  let behind = at + 1
  if (load<u8>(at) !== byte) behind = skipByteBehindSpace(at, byte)
  return behind
}

function skipByteBehindSpace(at: usize, byte: u8): usize {
  const i = skipSpaces(at)
  if (load<u8>(i) !== byte) return fail()
  return i + 1
}

function skipSpaces(at: usize): usize {
  let i = at
  while (isSpace(load<u8>(i)) && i < textEnd) {
    if (load<u8>(i) === NEWLINE) spansLines = true
    i++
  }
  return i
}

function isSpace(byte: u8): bool {
  return byte === SPACE || byte === CARRIAGE_RETURN || byte === 0x09 || byte === NEWLINE
}

/** `at` stands behind the opening quote. */
// @inline
function skipString(at: usize): usize {
  const end = findStop(at)
  let behind = end + 1
  if (load<u8>(end) !== QUOTE) behind = skipOddString(end)
  return behind
}

/** The rest of a string from its first stop that is no quote. */
export function skipOddString(at: usize): usize {
  let i = at
  while (load<u8>(i) === BACKSLASH) {
    const letter = load<u8>(i, 1)
    if (load<u8>(ESCAPES + letter) === 0 && !(letter === LOWER_U && isHex(i + 2))) return fail()
    i = findStop(i + 2)
  }
  if (load<u8>(i) !== QUOTE) return fail()
  return i + 1
}

function isHex(at: usize): bool {
  for (let i = at; i < at + 4; i++) if (!isHexDigit(load<u8>(i))) return false
  return true
}

function isHexDigit(byte: u8): bool {
  return isDigit(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)
}

// @inline
export function isDigit(byte: u8): bool {
  return ((byte - ZERO) as u8) < 10
}

// @inline
function skipDigits(at: usize): usize {
  let i = at + 1
  if (isDigit(load<u8>(at))) while (isDigit(load<u8>(i))) i++
  else i = fail()
  return i
}

/** `at` stands behind the sign, if there is one. */
function skipNumber(at: usize): usize {
  let i = at + 1
  if (load<u8>(at) !== ZERO) i = skipDigits(at)
  const next = load<u8>(i)
  if (next === COMMA || next > 0x65) return i
  if (next === DOT) i = skipDigits(i + 1)
  if ((load<u8>(i) | 0x20) !== 0x65) return i
  const sign = load<u8>(i, 1)
  if (sign === MINUS || sign === PLUS) return skipDigits(i + 2)
  return skipDigits(i + 1)
}

function skipLiteral(at: usize): usize {
  const four = load<u32>(at)
  if (four === TRUE || four === NULL) return at + 4
  if (four !== FALS || load<u8>(at, 4) !== 0x65) return fail()
  return at + 5
}

/** Neither a string nor a container. */
// @inline
function skipWord(at: usize, first: u8): usize {
  let behind: usize
  if (first > 0x39) behind = skipLiteral(at)
  else if (first === MINUS) behind = skipNumber(at + 1)
  else behind = skipNumber(at)
  return behind
}

// @inline
function opens(byte: u8): bool {
  return (byte | 0x20) === OPEN_OBJECT
}

// @inline
export function skipValue(at: usize): usize {
  const first = load<u8>(at)
  let behind: usize
  if (first === QUOTE) behind = skipString(at + 1)
  else if (opens(first)) behind = skipContainer(at)
  else behind = skipWord(at, first)
  return behind
}

// @inline
function closing(objects: u64): u8 {
  return CLOSE_ARRAY | (((objects as u8) & 1) << 5)
}

/**
 * The open containers are bits, the innermost lowest: set for an object; full words of them lie at NESTING. So are the stops of a block that lie ahead: a
 * string takes two, its quotes, without waiting for what is before it. White space may hold stops too, so then, and
 * behind an escape, they are looked for anew.
 */
function skipContainer(at: usize): usize {
  let objects: u64 = 0
  let depth = 0
  let ahead: u64 = 0
  let base: usize = 0
  let isKey = false
  let i = at
  while (true) {
    const first = load<u8>(i)
    if (first === QUOTE) {
      ahead &= ahead - 1
      if (ahead === 0) {
        ahead = findStopsFrom(i + 1)
        base = block
      }
      const end = base + (ctz(ahead) as usize)
      ahead &= ahead - 1
      i = end + 1
      if (load<u8>(end) !== QUOTE) {
        i = skipOddString(end)
        ahead = 0
      }
      if (isKey) {
        isKey = false
        if (load<u8>(i) !== COLON) {
          i = skipSpaces(i)
          ahead = 0
          if (load<u8>(i) !== COLON) return fail()
        }
        i++
        continue
      }
    } else if (first <= SPACE) {
      const behind = skipSpaces(i)
      if (behind === i) return fail()
      i = behind
      ahead = 0
      continue
    } else if (isKey) {
      return fail()
    } else if (opens(first)) {
      if ((depth & (WORD_DEPTH - 1)) === 0) {
        // Text that opens more than it has bytes to close is broken, however it goes on.
        if ((depth as usize) > textEnd - i) return fail()
        store<u64>(wordOf(depth), objects)
      }
      depth++
      objects = (objects << 1) | ((first >> 5) & 1)
      i++
      if (load<u8>(i) <= SPACE) {
        i = skipSpaces(i)
        ahead = 0
      }
      if (load<u8>(i) !== closing(objects)) {
        isKey = first === OPEN_OBJECT
        continue
      }
    } else {
      i = skipWord(i, first)
    }
    // Here `i` stands behind a value: close what closes, then go on to the next one.
    let next = load<u8>(i)
    while (next !== COMMA) {
      if (next === closing(objects)) {
        i++
        objects >>= 1
        if (--depth === 0) return i
        if ((depth & (WORD_DEPTH - 1)) === 0) objects = load<u64>(wordOf(depth))
      } else {
        const behind = skipSpaces(i)
        if (behind === i) return fail()
        i = behind
        ahead = 0
      }
      next = load<u8>(i)
    }
    i++
    isKey = (objects & 1) === 1
  }
}

/** Where the containers are kept that were open when the depth was this multiple of WORD_DEPTH. */
// @inline
function wordOf(depth: i32): usize {
  return NESTING + ((depth >> 3) as usize)
}
