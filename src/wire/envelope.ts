/**
 * Reads the envelope of one line: proves that it is JSON, and notes where its routing fields lie.
 *
 * One pass, no objects: a reader is filled anew for every line and holds offsets into the bytes it was given. It decides
 * what kind of message a line is (contract 3.5, 4.3) and nothing about where it goes. Values are decoded only when asked.
 */
import { FIELD, FIELD_NAMES, type Field } from './fields.ts'
import { isDigit, MINUS, QUOTE, skipSpace } from './json-text.ts'
import {
  NOTE_COUNT,
  NOTE_ENDS,
  NOTE_ID_IS_INTEGER,
  NOTE_PLAIN,
  NOTE_REPEATED,
  NOTE_STARTS,
  NOTE_TWICE,
  NOWHERE,
  VERDICT_OBJECT,
  VERDICT_OTHER,
  VERDICT_UNSURE,
} from './layout.ts'
import { isCommonInteger, notedInteger, scanLine } from './line-scan.ts'
import { recallText } from './recalled-texts.ts'
import { isScanned, scanAhead, scanFast, scanner } from './scanner.ts'

export const SHAPE = { notJson: 0, bad: 1, request: 2, notification: 3, response: 4 } as const
export type Shape = (typeof SHAPE)[keyof typeof SHAPE]

/** An id by value: equal ids are the same key, `5` and `"5"` are not; integers that no double can hold are bigints. */
export type IdKey = number | string | bigint

/** How the value of a field begins. */
export type ValueType = 'absent' | 'string' | 'number' | 'null' | 'other'

const LOWER_N = 0x6e
const OPEN_ARRAY = 0x5b
const MAX_ID_BYTES = 1024
export const BAD_PARAMS_SESSION = 'params.sessionId must be a string of at most 1 KiB'
const NO_BYTES = Buffer.alloc(0)

/** Whose notes lie in the memory of the scanner. */
let reader: Envelope | undefined

/** Where the line ends that begins at `start` of the lent chunk, if that is known from reading it; NOWHERE otherwise. */
export function readAhead(chunk: Buffer, start: number): number {
  return reader !== undefined || scanner === undefined ? NOWHERE : scanAhead(scanner, chunk, start)
}

export class Envelope {
  bytes: Buffer = NO_BYTES
  start = 0
  end = 0
  /** Why the shape is `bad`, for the one who sent it. */
  problem = ''
  /** What the line last read is. */
  shape: Shape = SHAPE.notJson
  #notes: Int32Array = new Int32Array(NOTE_COUNT)

  /** Reads `bytes[start, end)`; white space around the message is tolerated. */
  read(bytes: Buffer, start: number, end: number): Shape {
    // Of a chunk the lines come one after the other: what stays the same is not written again.
    if (this.bytes !== bytes) this.bytes = bytes
    this.start = start
    this.end = end
    this.shape = this.#judge(this.#scan(bytes, start, end))
    return this.shape
  }

  #judge(verdict: number): Shape {
    if (verdict === VERDICT_OBJECT) return this.#classify()
    return verdict === VERDICT_OTHER ? this.#bad('a message is one JSON object') : SHAPE.notJson
  }

  /** The same line with a copy of its bytes and of what was read: it outlives the chunk in which it came. */
  keep(): Envelope {
    const kept = new Envelope()
    kept.bytes = Buffer.from(this.bytes.subarray(this.start, this.end + 1))
    kept.end = this.end - this.start
    kept.shape = this.shape
    kept.#notes = this.#notes.slice()
    for (let slot = 0; slot < FIELD_NAMES.length; slot++) {
      if (kept.#notes[NOTE_STARTS + slot] === -1) continue
      kept.#notes[NOTE_STARTS + slot]! -= this.start
      kept.#notes[NOTE_ENDS + slot]! -= this.start
    }
    return kept
  }

  #scan(bytes: Buffer, start: number, end: number): number {
    if (scanner === undefined) return scanLine(bytes, start, end, this.#notes)
    if (reader !== this) this.#claim(scanner.notes)
    if (isScanned(bytes, start, end)) return VERDICT_OBJECT
    const verdict = scanFast(scanner, bytes, start, end)
    return verdict === VERDICT_UNSURE ? scanLine(bytes, start, end, this.#notes) : verdict
  }

  /** Nobody will ask for what was read any more: its notes need not be kept when the next line is read elsewhere. */
  release(): void {
    if (reader === this) reader = undefined
  }

  /** There is one scanner for all: whoever had it keeps a copy of its notes. */
  #claim(notes: Int32Array): void {
    if (reader !== undefined) reader.#notes = reader.#notes.slice()
    reader = this
    this.#notes = notes
  }

  /** The bytes of the line alone, and where the value of a field lies in them. */
  copy(): Buffer {
    return Buffer.from(this.bytes.subarray(this.start, this.end))
  }

  partOf(copy: Buffer, field: Field): Buffer | undefined {
    if (!this.has(field)) return undefined
    return copy.subarray(this.startOf(field) - this.start, this.endOf(field) - this.start)
  }

  /** The line is an array: of messages, perhaps. */
  get isArray(): boolean {
    return this.bytes[skipSpace(this.bytes, this.start, this.end)] === OPEN_ARRAY
  }

  has(field: Field): boolean {
    return this.startOf(field) !== -1
  }

  /** The offset of the value's first byte, or -1; a string begins with its quote. */
  startOf(field: Field): number {
    return this.#notes[NOTE_STARTS + field]!
  }

  endOf(field: Field): number {
    return this.#notes[NOTE_ENDS + field]!
  }

  typeOf(field: Field): ValueType {
    const at = this.startOf(field)
    if (at === -1) return 'absent'
    const byte = this.bytes[at]!
    if (byte === QUOTE) return 'string'
    if (byte === MINUS || isDigit(byte)) return 'number'
    return byte === LOWER_N ? 'null' : 'other'
  }

  /** The value of a string field; undefined when it is absent or no string. */
  text(field: Field): string | undefined {
    const at = this.startOf(field)
    if (at === -1 || this.bytes[at] !== QUOTE) return undefined
    if (this.#notes[NOTE_PLAIN + field] === 1) return recallText(this.bytes, at + 1, this.endOf(field) - 1)
    return JSON.parse(this.bytes.utf8Slice(at, this.endOf(field)))
  }

  /** Whether the field is a string that its bytes spell as they are: ASCII without escapes. */
  isPlain(field: Field): boolean {
    return this.#notes[NOTE_PLAIN + field] === 1
  }

  /** Whether a field that may stand twice does; the last one counts. */
  isRepeated(field: Field): boolean {
    return (this.#notes[NOTE_REPEATED]! & (1 << field)) !== 0
  }

  /** The value of a field that holds an id or a token (string or number), by value. */
  key(field: Field): IdKey | undefined {
    if (field === FIELD.id && this.#notes[NOTE_ID_IS_INTEGER] === 1) return notedInteger(this.#notes)
    const at = this.startOf(field)
    if (at === -1) return undefined
    if (this.bytes[at] === QUOTE) return this.text(field)
    return this.typeOf(field) === 'number' ? readNumber(this.bytes.latin1Slice(at, this.endOf(field))) : undefined
  }

  /** A value as it was spelled. */
  spelling(field: Field): string {
    if (field === FIELD.id && this.#notes[NOTE_ID_IS_INTEGER] === 1) return String(notedInteger(this.#notes))
    return this.bytes.utf8Slice(this.startOf(field), this.endOf(field))
  }

  /** The spelling of the id, unless it is the one that its value has anyway. */
  unusualIdSpelling(): string | undefined {
    if (this.#notes[NOTE_ID_IS_INTEGER] === 1) return undefined
    const at = this.startOf(FIELD.id)
    if (this.bytes[at] === QUOTE && this.#notes[NOTE_PLAIN + FIELD.id] === 1) return undefined
    return this.bytes.utf8Slice(at, this.endOf(FIELD.id))
  }

  /** Whether a JSON library may spell this id or token differently when it gives it back (contract 4.2.3). */
  isOdd(field: Field): boolean {
    if (field === FIELD.id && this.#notes[NOTE_ID_IS_INTEGER] === 1) return false
    const at = this.startOf(field)
    if (this.bytes[at] === QUOTE) return this.#notes[NOTE_PLAIN + field] === 0 && hasLoneSurrogate(this.text(field)!)
    return !isCommonInteger(this.bytes, at, this.endOf(field))
  }

  #classify(): Shape {
    const twice = this.#notes[NOTE_TWICE]!
    if (twice !== -1) return this.#bad(`the field ${FIELD_NAMES[twice]} stands twice`)
    if (this.has(FIELD.sessionId) && !this.#isShortString(FIELD.sessionId))
      return this.#bad('sessionId must be a string of at most 1 KiB')
    if (this.has(FIELD.pool) && this.bytes[this.startOf(FIELD.pool)] !== QUOTE)
      return this.#bad('pool must be a string')
    const isResponse = this.#isSet(FIELD.result) || this.#isSet(FIELD.error)
    if (this.has(FIELD.method)) return this.#classifyCall(isResponse)
    if (isResponse || this.has(FIELD.result) || this.has(FIELD.error)) return this.#classifyResponse()
    return this.#bad('a message has a method, a result or an error')
  }

  #classifyCall(isResponse: boolean): Shape {
    if (this.bytes[this.startOf(FIELD.method)] !== QUOTE) return this.#bad('method must be a string')
    if (isResponse) return this.#bad('a message with a method has no result and no error')
    if (!this.has(FIELD.id)) return SHAPE.notification
    return this.#isId() ? SHAPE.request : this.#bad('id must be a number or a string of at most 1 KiB')
  }

  #classifyResponse(): Shape {
    if (!this.has(FIELD.id)) return this.#bad('a response has an id')
    const nullId = this.typeOf(FIELD.id) === 'null' && this.#isSet(FIELD.error)
    return nullId || this.#isId() ? SHAPE.response : this.#bad('id must be a number or a string of at most 1 KiB')
  }

  /** Present, and not null. */
  #isSet(field: Field): boolean {
    const at = this.startOf(field)
    return at !== -1 && this.bytes[at] !== LOWER_N
  }

  #isId(): boolean {
    if (this.#notes[NOTE_ID_IS_INTEGER] === 1) return true
    const type = this.typeOf(FIELD.id)
    if (type === 'number') return this.endOf(FIELD.id) - this.startOf(FIELD.id) <= MAX_ID_BYTES
    return type === 'string' && this.#isShortString(FIELD.id)
  }

  #isShortString(field: Field): boolean {
    const at = this.startOf(field)
    return this.bytes[at] === QUOTE && this.endOf(field) - at <= MAX_ID_BYTES + 2
  }

  /** `params.sessionId`, when a client names one, must be what a session id can be (contract 4.2.2). */
  get hasBadParamsSession(): boolean {
    return this.has(FIELD.paramsSessionId) && !this.#isShortString(FIELD.paramsSessionId)
  }

  /** The id of a message that is refused, as it was spelled, or `null` when it has none that could be read. */
  idSpelling(): string {
    if (this.#notes[NOTE_TWICE] === FIELD.id || !this.has(FIELD.id) || !this.#isId()) return 'null'
    return this.bytes.utf8Slice(this.startOf(FIELD.id), this.endOf(FIELD.id))
  }

  #bad(problem: string): Shape {
    this.problem = problem
    return SHAPE.bad
  }
}

function readNumber(text: string): number | bigint {
  const value = Number(text)
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(text) ? value : BigInt(text)
}

function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}
