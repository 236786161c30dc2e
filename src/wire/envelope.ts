/**
 * Reads the envelope of one line: proves that it is JSON, and notes where its routing fields lie.
 *
 * One pass, no objects: a reader is filled anew for every line and holds offsets into the bytes it was given. It decides
 * what kind of message a line is (contract 3.5, 4.3) and nothing about where it goes. Values are decoded only when asked.
 */
import { FIELD, FIELD_NAMES, FIELD_TREE, type Field, type FieldNode, ONCE_BELOW } from './fields.ts'
import {
  BROKEN,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  lastStringPlain,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  skipString,
  skipValue,
} from './json-text.ts'

export const SHAPE = { notJson: 0, bad: 1, request: 2, notification: 3, response: 4 } as const
export type Shape = (typeof SHAPE)[keyof typeof SHAPE]

/** An id by value: equal ids are the same key, `5` and `"5"` are not; integers that no double can hold are bigints. */
export type IdKey = number | string | bigint

/** How the value of a field begins. */
export type ValueType = 'absent' | 'string' | 'number' | 'null' | 'other'

const LOWER_N = 0x6e
const MINUS = 0x2d
const MAX_ID_BYTES = 1024
const SLOTS = FIELD_NAMES.length
const NO_BYTES = Buffer.alloc(0)

export class Envelope {
  bytes: Buffer = NO_BYTES
  start = 0
  end = 0
  /** Why the shape is `bad`, for the one who sent it. */
  problem = ''
  readonly #starts = new Int32Array(SLOTS)
  readonly #ends = new Int32Array(SLOTS)
  readonly #plain = new Uint8Array(SLOTS)
  #twice = -1

  /** Reads `bytes[start, end)`; white space around the message is tolerated. */
  read(bytes: Buffer, start: number, end: number): Shape {
    this.bytes = bytes
    this.start = start
    this.end = end
    this.#starts.fill(-1)
    this.#twice = -1
    const at = skipSpace(bytes, start, end)
    if (at >= end) return SHAPE.notJson
    const isObject = bytes[at] === OPEN_OBJECT
    const behind = isObject ? this.#readObject(bytes, at, end, FIELD_TREE) : skipValue(bytes, at, end)
    if (behind === BROKEN || skipSpace(bytes, behind, end) !== end) return SHAPE.notJson
    return isObject ? this.#classify() : this.#bad('a message is one JSON object')
  }

  has(field: Field): boolean {
    return this.#starts[field] !== -1
  }

  /** The offset of the value's first byte; a string begins with its quote. */
  startOf(field: Field): number {
    return this.#starts[field]!
  }

  endOf(field: Field): number {
    return this.#ends[field]!
  }

  typeOf(field: Field): ValueType {
    const at = this.#starts[field]!
    if (at === -1) return 'absent'
    const byte = this.bytes[at]!
    if (byte === QUOTE) return 'string'
    if (byte === MINUS || (byte >= 0x30 && byte <= 0x39)) return 'number'
    return byte === LOWER_N ? 'null' : 'other'
  }

  /** The value of a string field; undefined when it is absent or no string. */
  text(field: Field): string | undefined {
    const at = this.#starts[field]!
    if (at === -1 || this.bytes[at] !== QUOTE) return undefined
    if (this.#plain[field] === 1) return this.bytes.latin1Slice(at + 1, this.#ends[field]! - 1)
    return JSON.parse(this.bytes.utf8Slice(at, this.#ends[field]))
  }

  /** The value of a field that holds an id or a token (string or number), by value. */
  key(field: Field): IdKey | undefined {
    const at = this.#starts[field]!
    if (at === -1) return undefined
    if (this.bytes[at] === QUOTE) return this.text(field)
    return this.typeOf(field) === 'number' ? readNumber(this.bytes, at, this.#ends[field]!) : undefined
  }

  /** The bytes of a value as they were spelled, copied. */
  spelling(field: Field): Buffer {
    return Buffer.from(this.bytes.subarray(this.#starts[field], this.#ends[field]))
  }

  /** Whether a JSON library may spell this id or token differently when it gives it back (contract 4.2.3). */
  isOdd(field: Field): boolean {
    const at = this.#starts[field]!
    if (this.bytes[at] === QUOTE) return this.#plain[field] === 0 && hasLoneSurrogate(this.text(field)!)
    return !isCanonicalInteger(this.bytes, at, this.#ends[field]!)
  }

  #readObject(bytes: Buffer, at: number, end: number, node: FieldNode): number {
    let i = skipSpace(bytes, at + 1, end)
    if (i < end && bytes[i] === CLOSE_OBJECT) return i + 1
    for (;;) {
      if (i >= end || bytes[i] !== QUOTE) return BROKEN
      const keyStart = i + 1
      i = skipString(bytes, i, end)
      if (i === BROKEN) return BROKEN
      const child = lastStringPlain
        ? findChild(node, bytes, keyStart, i - 1)
        : findEscaped(node, bytes, keyStart, i - 1)
      if (i >= end || bytes[i] !== COLON) i = skipSpace(bytes, i, end)
      if (i >= end || bytes[i] !== COLON) return BROKEN
      i = skipSpace(bytes, i + 1, end)
      i = child === undefined ? skipValue(bytes, i, end) : this.#note(bytes, i, end, child)
      if (i === BROKEN) return BROKEN
      i = skipSpace(bytes, i, end)
      if (i >= end) return BROKEN
      if (bytes[i] === CLOSE_OBJECT) return i + 1
      if (bytes[i] !== COMMA) return BROKEN
      i = skipSpace(bytes, i + 1, end)
    }
  }

  #note(bytes: Buffer, at: number, end: number, node: FieldNode): number {
    if (at >= end) return BROKEN
    const behind =
      node.hasChildren && bytes[at] === OPEN_OBJECT ? this.#readObject(bytes, at, end, node) : skipValue(bytes, at, end)
    if (behind === BROKEN || node.slot === -1) return behind
    if (node.slot < ONCE_BELOW && this.#starts[node.slot] !== -1) this.#twice = node.slot
    this.#starts[node.slot] = at
    this.#ends[node.slot] = behind
    this.#plain[node.slot] = lastStringPlain ? 1 : 0
    return behind
  }

  #classify(): Shape {
    const starts = this.#starts
    if (this.#twice !== -1) return this.#bad(`the field ${FIELD_NAMES[this.#twice]} stands twice`)
    if (starts[FIELD.sessionId] !== -1 && !this.#isShortString(FIELD.sessionId))
      return this.#bad('sessionId must be a string of at most 1 KiB')
    if (starts[FIELD.pool] !== -1 && this.bytes[starts[FIELD.pool]!] !== QUOTE)
      return this.#bad('pool must be a string')
    const isResponse = this.#isSet(FIELD.result) || this.#isSet(FIELD.error)
    if (starts[FIELD.method] !== -1) return this.#classifyCall(isResponse)
    if (isResponse || starts[FIELD.result] !== -1 || starts[FIELD.error] !== -1) return this.#classifyResponse()
    return this.#bad('a message has a method, a result or an error')
  }

  #classifyCall(isResponse: boolean): Shape {
    if (this.bytes[this.#starts[FIELD.method]!] !== QUOTE) return this.#bad('method must be a string')
    if (isResponse) return this.#bad('a message with a method has no result and no error')
    if (this.#starts[FIELD.id] === -1) return SHAPE.notification
    return this.#isId() ? SHAPE.request : this.#bad('id must be a number or a string of at most 1 KiB')
  }

  #classifyResponse(): Shape {
    if (this.#starts[FIELD.id] === -1) return this.#bad('a response has an id')
    const nullId = this.typeOf(FIELD.id) === 'null' && this.#isSet(FIELD.error)
    return nullId || this.#isId() ? SHAPE.response : this.#bad('id must be a number or a string of at most 1 KiB')
  }

  /** Present, and not null. */
  #isSet(field: Field): boolean {
    const at = this.#starts[field]!
    return at !== -1 && this.bytes[at] !== LOWER_N
  }

  #isId(): boolean {
    const type = this.typeOf(FIELD.id)
    if (type !== 'string' && type !== 'number') return false
    return this.#ends[FIELD.id]! - this.#starts[FIELD.id]! <= MAX_ID_BYTES + 2
  }

  #isShortString(field: Field): boolean {
    const at = this.#starts[field]!
    return this.bytes[at] === QUOTE && this.#ends[field]! - at <= MAX_ID_BYTES + 2
  }

  /** `params.sessionId`, when a client names one, must be what a session id can be (contract 4.2.2). */
  get hasBadParamsSession(): boolean {
    return this.#starts[FIELD.paramsSessionId] !== -1 && !this.#isShortString(FIELD.paramsSessionId)
  }

  /** The id of a message that is refused, as it was spelled, or `null` when it has none that could be read. */
  idSpelling(): string {
    if (this.#twice === FIELD.id || !this.has(FIELD.id) || !this.#isId()) return 'null'
    return this.bytes.utf8Slice(this.#starts[FIELD.id], this.#ends[FIELD.id])
  }

  #bad(problem: string): Shape {
    this.problem = problem
    return SHAPE.bad
  }
}

function findChild(node: FieldNode, bytes: Buffer, start: number, end: number): FieldNode | undefined {
  const candidates = node.byLength[end - start]
  if (candidates === undefined) return undefined
  for (const candidate of candidates) if (equals(candidate.key, bytes, start)) return candidate
  return undefined
}

function equals(key: Buffer, bytes: Buffer, start: number): boolean {
  for (let i = 0; i < key.length; i++) if (key[i] !== bytes[start + i]) return false
  return true
}

/** A key with escapes is decoded and looked up by value. */
function findEscaped(node: FieldNode, bytes: Buffer, start: number, end: number): FieldNode | undefined {
  const key = Buffer.from(JSON.parse(bytes.utf8Slice(start - 1, end + 1)) as string)
  return findChild(node, key, 0, key.length)
}

/** Digits without sign trouble, leading zeros or more than a double can hold: every library writes it the same. */
function isCanonicalInteger(bytes: Buffer, start: number, end: number): boolean {
  const first = bytes[start] === MINUS ? start + 1 : start
  if (end - first > 15 || (first !== start && bytes[first] === 0x30)) return false
  for (let i = first; i < end; i++) if (bytes[i]! < 0x30 || bytes[i]! > 0x39) return false
  return true
}

function readNumber(bytes: Buffer, start: number, end: number): number | bigint {
  if (!isCanonicalInteger(bytes, start, end)) return readOddNumber(bytes.latin1Slice(start, end))
  const first = bytes[start] === MINUS ? start + 1 : start
  let value = 0
  for (let i = first; i < end; i++) value = value * 10 + bytes[i]! - 0x30
  return first === start ? value : -value
}

function readOddNumber(text: string): number | bigint {
  const value = Number(text)
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(text) ? value : BigInt(text)
}

function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}
