/**
 * Replaces or cuts values of a line without parsing it again; every other byte stays as it was (contract 4.2.3).
 */
import type { Envelope } from '../wire/envelope.ts'
import type { Field } from '../wire/fields.ts'

export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: Buffer
}

const NOTHING = Buffer.alloc(0)
const COMMA = 0x2c
const BRACE = 0x7d
const QUOTE = 0x22
const BACKSLASH = 0x5c

export function replace(envelope: Envelope, field: Field, text: string | Buffer): Edit {
  return {
    start: envelope.startOf(field),
    end: envelope.endOf(field),
    text: typeof text === 'string' ? Buffer.from(text) : text,
  }
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
  return { start, end: bytes[behind] === COMMA ? skip(bytes, behind + 1, 1) : end, text: NOTHING }
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
  const { bytes, start, end } = envelope
  const parts: Buffer[] = []
  let at = start
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    parts.push(bytes.subarray(at, edit.start), edit.text)
    at = edit.end
  }
  parts.push(bytes.subarray(at, end), NEWLINE)
  return Buffer.concat(parts)
}

const NEWLINE = Buffer.from('\n')
