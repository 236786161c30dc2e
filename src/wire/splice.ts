/**
 * Replaces or cuts values of a line without parsing it again; every other byte stays as it was (contract 4.2.3).
 */
import type { Envelope } from './envelope.ts'
import type { Field } from './fields.ts'
import { isSpace } from './json-text.ts'

export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

const NEWLINE = 0x0a
const LAST_ASCII = 0x7f
const COMMA = 0x2c
const BRACE = 0x7d
const QUOTE = 0x22
const BACKSLASH = 0x5c

export function replace(envelope: Envelope, field: Field, text: string): Edit {
  return { start: envelope.startOf(field), end: envelope.endOf(field), text }
}

/** Adds a member, spelled as JSON, at the front of the object that a field holds. */
export function insertMember(line: Envelope, field: Field, member: string): Edit {
  return insertInto(line.bytes, line.startOf(field), member)
}

/** The same for the object that begins at `open`. */
export function insertInto(bytes: Buffer, open: number, member: string): Edit {
  const at = open + 1
  const isEmpty = bytes[skip(bytes, at, 1)] === BRACE
  return { start: at, end: at, text: isEmpty ? member : `${member},` }
}

/** Bytes with all edits made, without a newline. */
export function editBytes(bytes: Buffer, edits: readonly Edit[]): Buffer {
  const parts: Buffer[] = []
  let rest = 0
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    parts.push(bytes.subarray(rest, edit.start), Buffer.from(edit.text))
    rest = edit.end
  }
  return Buffer.concat([...parts, bytes.subarray(rest)])
}

/** Cuts members, at any depth, with their keys: each with the comma behind it, the last of its object with the one before. */
export function cut(envelope: Envelope, fields: readonly Field[]): Edit[] {
  const edits: Edit[] = []
  for (const field of fields) if (envelope.has(field)) edits.push(cutOne(envelope, field))
  if (edits.length === 0) return edits
  edits.sort((a, b) => a.start - b.start)
  for (let last = 0; last < edits.length; last++) dropCommaBefore(envelope.bytes, edits, last)
  return edits
}

function cutOne(envelope: Envelope, field: Field): Edit {
  const { bytes } = envelope
  const start = keyStart(bytes, envelope.startOf(field))
  const end = envelope.endOf(field)
  const behind = skip(bytes, end, 1)
  return { start, end: bytes[behind] === COMMA ? skip(bytes, behind + 1, 1) : end, text: '' }
}

/** When the last member of an object goes, so does the comma before it, and before those that go with it. */
function dropCommaBefore(bytes: Buffer, edits: Edit[], last: number): void {
  let at = last
  if (bytes[skip(bytes, edits[at]!.end, 1)] !== BRACE) return
  while (at > 0 && edits[at - 1]!.end === edits[at]!.start) at--
  const before = skip(bytes, edits[at]!.start - 1, -1)
  if (bytes[before] === COMMA) edits[at] = { ...edits[at]!, start: before }
}

/** From the first byte of a value back to the opening quote of its key; a quote inside a key is escaped. */
function keyStart(bytes: Buffer, valueStart: number): number {
  let i = bytes.lastIndexOf(QUOTE, valueStart - 1) - 1
  for (;;) {
    while (bytes[i] !== QUOTE) i--
    let escapes = 0
    while (bytes[i - 1 - escapes] === BACKSLASH) escapes++
    if (escapes % 2 === 0) return i
    i--
  }
}

function skip(bytes: Buffer, at: number, step: 1 | -1): number {
  let i = at
  while (bytes[i] === 0x20 || bytes[i] === 0x09 || bytes[i] === 0x0d) i += step
  return i
}

/** The line with its newline and all edits made; edits may come in any order and do not overlap. */
export function splice(envelope: Envelope, edits: readonly Edit[]): Buffer {
  const line = Buffer.allocUnsafeSlow(mostBytesOf(envelope, edits))
  return line.subarray(0, writeEdited(line, 0, envelope, edits))
}

/** What the edited line may have at the most: a character has up to three bytes. */
export function mostBytesOf({ start, end }: Envelope, edits: readonly Edit[]): number {
  let bytes = end - start + 1
  for (const { text } of edits) bytes += 3 * text.length
  return bytes
}

/** Writes the line with its newline and all edits made to `target`; returns the offset behind it. */
export function writeEdited(
  target: Buffer,
  from: number,
  { bytes, start, end }: Envelope,
  edits: readonly Edit[],
): number {
  let at = from
  let rest = start
  for (const edit of edits.length === 1 ? edits : [...edits].sort((a, b) => a.start - b.start)) {
    at = writeBytes(target, at, bytes, rest, edit.start)
    at = writeText(target, at, edit.text)
    rest = edit.end
  }
  at = writeBytes(target, at, bytes, rest, end)
  target[at] = NEWLINE
  return at + 1
}

/** Up to here a loop costs less than the call of a copy. */
const SHORT_BYTES = 64

function writeBytes(target: Buffer, at: number, bytes: Buffer, start: number, end: number): number {
  if (end - start > SHORT_BYTES) return at + bytes.copy(target, at, start, end)
  for (let i = start; i < end; i++) target[at++] = bytes[i]!
  return at
}

function writeText(target: Buffer, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code > LAST_ASCII || text.length > SHORT_BYTES) return at + target.write(text, at)
    target[at + i] = code
  }
  return at + text.length
}

/** The edits that cut elements of an array: when the last one goes, so does the comma before it. */
export function dropTrailingComma(bytes: Buffer, edits: Edit[], end: number): Edit[] {
  const last = edits.at(-1)
  if (last === undefined) return edits
  let behind = last.end
  while (behind < end && isSpace(bytes[behind]!)) behind++
  if (behind < end - 1) return edits
  let first = edits.length - 1
  let before = last.start - 1
  for (;;) {
    while (isSpace(bytes[before]!)) before--
    if (bytes[before] !== COMMA) return edits
    const previous = edits[first - 1]
    if (previous === undefined || previous.end !== before + 1) break
    first--
    before = edits[first]!.start - 1
  }
  edits[first] = { ...edits[first]!, start: before }
  return edits
}
