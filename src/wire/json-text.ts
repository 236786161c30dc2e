/**
 * Walks over JSON text as bytes and proves that it is well-formed (RFC 8259, UTF-8), building nothing.
 *
 * Every `skip` takes the offset of a value's first byte and returns the offset behind its last, or -1 when the text is
 * broken before `end`. It accepts exactly what `JSON.parse` accepts of a valid UTF-8 text; the byte order mark is not
 * accepted by either. Nesting has no limit but the length of the line: the stack is one growing array of bytes.
 */
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const MINUS = 0x2d
const DOT = 0x2e
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const LOWER_U = 0x75

export const BROKEN = -1

/** What a byte means inside a string: 0 is part of it, anything else needs a look. */
const PLAIN = 0
const IN_STRING = new Uint8Array(256)
for (let byte = 0; byte < 256; byte++) {
  IN_STRING[byte] = byte < 0x20 ? 3 : byte >= 0x80 ? 4 : byte === QUOTE ? 1 : byte === BACKSLASH ? 2 : PLAIN
}

const ESCAPED = new Uint8Array(256)
for (const letter of '"\\/bfnrt') ESCAPED[letter.charCodeAt(0)] = 1

const HEX = new Uint8Array(256)
for (const digit of '0123456789abcdefABCDEF') HEX[digit.charCodeAt(0)] = 1

/** Strings longer than this are looked at four bytes at a time. */
const LONG_STRING_BYTES = 512

/** Told of the last string that was skipped: nothing but ASCII, nothing escaped. */
export let lastStringPlain = true

export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0d || byte === 0x09 || byte === 0x0a
}

export function skipSpace(bytes: Buffer, at: number, end: number): number {
  while (at < end && isSpace(bytes[at]!)) at++
  return at
}

/** `at` stands on the opening quote. */
export function skipString(bytes: Buffer, at: number, end: number): number {
  lastStringPlain = true
  const longFrom = at + LONG_STRING_BYTES
  let i = at + 1
  while (i < end) {
    const kind = IN_STRING[bytes[i]!]!
    if (kind === PLAIN) {
      i++
      if (i > longFrom) i = skipPlainWords(bytes, i, end)
      continue
    }
    if (kind === 1) return i + 1
    lastStringPlain = false
    i = kind === 2 ? skipEscape(bytes, i, end) : kind === 4 ? skipUtf8(bytes, i, end) : BROKEN
    if (i === BROKEN) return BROKEN
  }
  return BROKEN
}

/**
 * Runs over bytes that are plain inside a string, a word at a time, and stops before the first word that holds a quote,
 * a backslash, a control character or a byte above 0x7f. Subtracting from bytes below 0x80 borrows exactly there.
 */
function skipPlainWords(bytes: Buffer, at: number, end: number): number {
  const misaligned = (bytes.byteOffset + at) & 3
  const first = misaligned === 0 ? at : at + 4 - misaligned
  const count = (end - first) >> 2
  if (count < 8) return at
  for (let i = at; i < first; i++) if (IN_STRING[bytes[i]!] !== PLAIN) return i
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + first, count)
  let i = 0
  while (i < count) {
    const word = words[i]!
    const suspicious =
      word | (word - 0x20202020) | ((word ^ 0x22222222) - 0x01010101) | ((word ^ 0x5c5c5c5c) - 0x01010101)
    if ((suspicious & 0x80808080) !== 0) break
    i++
  }
  return first + i * 4
}

function skipEscape(bytes: Buffer, at: number, end: number): number {
  if (at + 1 >= end) return BROKEN
  const letter = bytes[at + 1]!
  if (ESCAPED[letter] === 1) return at + 2
  if (letter !== LOWER_U || at + 6 > end) return BROKEN
  for (let i = at + 2; i < at + 6; i++) if (HEX[bytes[i]!] === 0) return BROKEN
  return at + 6
}

/** One character of two to four bytes; overlong forms, surrogates and what lies beyond Unicode are broken. */
function skipUtf8(bytes: Buffer, at: number, end: number): number {
  const lead = bytes[at]!
  const length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0
  if (length === 0 || at + length > end) return BROKEN
  const second = bytes[at + 1]!
  const lowest = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80
  const highest = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf
  if (second < lowest || second > highest) return BROKEN
  for (let i = at + 2; i < at + length; i++) if ((bytes[i]! & 0xc0) !== 0x80) return BROKEN
  return at + length
}

export function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}

function skipDigits(bytes: Buffer, at: number, end: number): number {
  let i = at
  while (i < end && isDigit(bytes[i]!)) i++
  return i === at ? BROKEN : i
}

export function skipNumber(bytes: Buffer, at: number, end: number): number {
  let i = bytes[at] === MINUS ? at + 1 : at
  if (i >= end) return BROKEN
  i = bytes[i] === 0x30 ? i + 1 : skipDigits(bytes, i, end)
  if (i !== BROKEN && i < end && bytes[i] === DOT) i = skipDigits(bytes, i + 1, end)
  if (i === BROKEN || i >= end || (bytes[i]! | 0x20) !== 0x65) return i
  i++
  if (i < end && (bytes[i] === MINUS || bytes[i] === 0x2b)) i++
  return skipDigits(bytes, i, end)
}

const LITERALS: Readonly<Record<number, Buffer>> = {
  116: Buffer.from('true'),
  102: Buffer.from('false'),
  110: Buffer.from('null'),
}

function skipLiteral(bytes: Buffer, at: number, end: number): number {
  const literal = LITERALS[bytes[at]!]
  if (literal === undefined || at + literal.length > end) return BROKEN
  for (let i = 1; i < literal.length; i++) if (bytes[at + i] !== literal[i]) return BROKEN
  return at + literal.length
}

function skipScalar(bytes: Buffer, at: number, end: number): number {
  const byte = bytes[at]!
  if (byte === QUOTE) return skipString(bytes, at, end)
  if (byte === MINUS || isDigit(byte)) return skipNumber(bytes, at, end)
  return skipLiteral(bytes, at, end)
}

/** The closing byte of every container that is open, outermost first. */
let open = new Uint8Array(256)

function push(depth: number, closing: number): void {
  if (depth === open.length) {
    const larger = new Uint8Array(open.length * 2)
    larger.set(open)
    open = larger
  }
  open[depth] = closing
}

/** A key and its colon; `at` stands on the opening quote. Returns the offset of the value's first byte. */
function skipKey(bytes: Buffer, at: number, end: number): number {
  if (at >= end || bytes[at] !== QUOTE) return BROKEN
  const behind = skipString(bytes, at, end)
  if (behind === BROKEN) return BROKEN
  const colon = skipSpace(bytes, behind, end)
  if (colon >= end || bytes[colon] !== COLON) return BROKEN
  const value = skipSpace(bytes, colon + 1, end)
  return value < end ? value : BROKEN
}

/** Any value; `at` stands on its first byte. */
export function skipValue(bytes: Buffer, at: number, end: number): number {
  if (at >= end) return BROKEN
  const byte = bytes[at]!
  if (byte !== OPEN_OBJECT && byte !== OPEN_ARRAY) return skipScalar(bytes, at, end)
  let depth = 0
  let i = at
  for (;;) {
    // Here `i` stands on the first byte of a value.
    const first = bytes[i]!
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      const closing = first + 2
      i = skipSpace(bytes, i + 1, end)
      if (i >= end) return BROKEN
      if (bytes[i] !== closing) {
        // Whatever is open must still be closed: a line of nothing but brackets is given up halfway.
        if (depth >= end - i) return BROKEN
        push(depth++, closing)
        if (first === OPEN_OBJECT && (i = skipKey(bytes, i, end)) === BROKEN) return BROKEN
        continue
      }
      i++
    } else if ((i = skipScalar(bytes, i, end)) === BROKEN) return BROKEN
    // Here `i` stands behind a value: close what closes, then go on to the next one.
    for (;;) {
      if (depth === 0) return i
      i = skipSpace(bytes, i, end)
      if (i >= end) return BROKEN
      if (bytes[i] !== open[depth - 1]) break
      depth--
      i++
    }
    if (bytes[i] !== COMMA) return BROKEN
    i = skipSpace(bytes, i + 1, end)
    if (open[depth - 1] === CLOSE_OBJECT) i = skipKey(bytes, i, end)
    if (i === BROKEN || i >= end) return BROKEN
  }
}

export { CLOSE_OBJECT, COLON, COMMA, MINUS, OPEN_OBJECT, QUOTE }

/** Nothing but white space. */
export function isBlank(bytes: Buffer, start: number, end: number): boolean {
  let i = start
  while (i < end && isSpace(bytes[i]!)) i++
  return i === end
}
