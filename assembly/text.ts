/**
 * Walks over JSON text and proves that it is well-formed, building nothing: the fast twin of src/wire/json-text.ts.
 *
 * Every `skip` takes the address of a value's first byte and returns the address behind its last. Nothing is checked twice:
 * a zero stands behind the text, which no skip gets past, so no bound is looked at; and text that is broken leads to BROKEN,
 * where there is only another zero, so the way back needs no look either. Whether bytes above 0x7f are UTF-8 is left to
 * the caller. What may fail does so by `fail()`, in a branch: what is chosen without one must be waited for.
 */
import {
  BACKSLASH,
  COLON,
  COMMA,
  DOT,
  LOWER_U,
  MINUS,
  OPEN_OBJECT,
  PLUS,
  QUOTE,
  SLASH,
  SPACE,
  ZERO,
} from './characters'
import { takeStop, takeString, textEnd } from './stops'

/** The address of a zero that is never overwritten. */
export const BROKEN: usize = 16

const CLOSE_ARRAY: u8 = 0x5d
const TRUE: u32 = 0x65757274
const FALS: u32 = 0x736c6166
const NULL: u32 = 0x6c6c756e
/** The letters b, f, n, r and t, as bits counted from 0x60. */
const ESCAPED_LETTERS: u32 = 0x00144044
const MAX_DEPTH: i32 = 64

/** Set when text is broken. */
export let broken: bool = false
/** Set when text was called broken only because it nests too deeply to be judged here. */
export let tooDeep: bool = false

export function expectWhole(): void {
  broken = false
  tooDeep = false
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
  while (i < textEnd && isSpace(load<u8>(i))) {
    if (load<u8>(i) !== SPACE) takeStop()
    i++
  }
  return i
}

function isSpace(byte: u8): bool {
  return byte === SPACE || byte === 0x0d || byte === 0x09 || byte === 0x0a
}

/** The next stop is the opening quote. */
// @inline
function skipString(): usize {
  const at = takeString()
  let behind = at + 1
  if (load<u8>(at) !== QUOTE) behind = skipOddString(at)
  return behind
}

/** The rest of a string from its first stop that is no quote. */
export function skipOddString(at: usize): usize {
  let i = at
  while (load<u8>(i) === BACKSLASH) {
    const letter = load<u8>(i, 1)
    if (letter === QUOTE || letter === BACKSLASH) takeStop()
    else if (!isEscape(letter) && !(letter === LOWER_U && isHex(i + 2))) return fail()
    i = takeStop()
  }
  if (load<u8>(i) !== QUOTE) return fail()
  return i + 1
}

function isEscape(letter: u8): bool {
  if (letter < 0x60) return letter === SLASH
  return letter < 0x80 && ((ESCAPED_LETTERS >> (letter - 0x60)) & 1) === 1
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
export function skipWord(at: usize, first: u8): usize {
  if (first > 0x39) return skipLiteral(at)
  if (first === MINUS) return skipNumber(at + 1)
  return skipNumber(at)
}

// @inline
function opens(byte: u8): bool {
  return (byte | 0x20) === OPEN_OBJECT
}

// @inline
export function skipValue(at: usize): usize {
  const first = load<u8>(at)
  let behind: usize
  if (first === QUOTE) behind = skipString()
  else if (opens(first)) behind = skipContainer(at)
  else behind = skipWord(at, first)
  return behind
}

/** A key and its colon; returns the address of the value. */
// @inline
function skipKey(at: usize): usize {
  let i: usize
  if (load<u8>(at) === QUOTE) i = skipByte(skipString(), COLON)
  else i = fail()
  return skipSpace(i)
}

/** The open containers are bits, the innermost lowest: set for an object. Brackets and braces differ in one bit, too. */
function skipContainer(at: usize): usize {
  let objects: u64 = 0
  let depth = 0
  let i = at
  while (true) {
    // Here `i` stands on the first byte of a value.
    const first = load<u8>(i)
    if (first === QUOTE) i = skipString()
    else if (!opens(first)) i = skipWord(i, first)
    else {
      i = skipSpace(i + 1)
      if (load<u8>(i) !== first + 2) {
        if (depth === MAX_DEPTH) {
          tooDeep = true
          return fail()
        }
        depth++
        objects = (objects << 1) | ((first >> 5) & 1)
        if (first === OPEN_OBJECT) i = skipKey(i)
        continue
      }
      i++
    }
    // Here `i` stands behind a value: close what closes, then go on to the next one.
    while (true) {
      if (depth === 0) return i
      i = skipSpace(i)
      const next = load<u8>(i++)
      if (next === COMMA) break
      if (next !== (CLOSE_ARRAY | (((objects as u8) & 1) << 5))) return fail()
      objects >>= 1
      depth--
    }
    i = skipSpace(i)
    if ((objects & 1) === 1) i = skipKey(i)
  }
}
