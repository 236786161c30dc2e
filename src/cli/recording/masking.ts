/**
 * A line without its payload: what a router may look at stays, everything else is painted over byte for byte.
 *
 * The masked line is as long as the line, is JSON exactly if the line is, and leads the kernel to the same decisions. It
 * keeps the values of the routing fields wherever their keys stand, and no other text or number.
 */
import { Envelope, SHAPE } from '../../wire/envelope.ts'
import { FIELD_TREE, type FieldNode } from '../../wire/fields.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const MINUS = 0x2d
const LOWER_U = 0x75
const PAINT = 0x78
const ZERO = 0x30
const ONE = 0x31
const JUNK = 0x7a

/** Keys beside the routing fields that the kernel looks for in handshakes, lists, tasks and credentials. */
const OTHER_KEYS = [
  'agentCapabilities',
  'sessionCapabilities',
  'capabilities',
  'supportedVersions',
  'session',
  'mcpServers',
  'token',
]
const OTHER_FIELDS = ['jsonrpc', 'close', 'type', 'status']

/** Keys whose text or number is kept, and keys of which only the name is. */
const FIELDS: ReadonlySet<string> = new Set([...keysBelow(FIELD_TREE, false), ...OTHER_FIELDS])
const KEYS: ReadonlySet<string> = new Set([...FIELDS, ...keysBelow(FIELD_TREE, true), ...OTHER_KEYS])
const envelope = new Envelope()

function keysBelow({ byLength }: FieldNode, isParent: boolean): string[] {
  return byLength.flatMap((nodes) =>
    (nodes ?? []).flatMap((node) => [
      ...(node.hasChildren === isParent ? [node.key.toString()] : []),
      ...keysBelow(node, isParent),
    ]),
  )
}

/** `line` is without its newline; a line that is not JSON says nothing but its length. */
export function maskLine(line: Buffer): Buffer {
  if (isBlank(line)) return line
  const isJson = envelope.read(line, 0, line.length) !== SHAPE.notJson
  return isJson ? maskJson(line) : Buffer.alloc(line.length, JUNK)
}

/** The beginning of a line that was never finished, or was too long; its id may count (contract 8.2). */
export function maskBeginning(line: Buffer): Buffer {
  return maskJson(line)
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}

function maskJson(line: Buffer): Buffer {
  const bytes = Buffer.from(line)
  let isKept = false
  let at = 0
  while (at < bytes.length) {
    const byte = bytes[at]!
    if (byte === QUOTE) {
      const end = endOfString(bytes, at)
      isKept = isFollowedByColon(bytes, end) ? maskKey(bytes, at, end) : maskText(bytes, at, end, isKept)
      at = end
    } else if (byte === MINUS || isDigit(byte)) {
      const end = endOfNumber(bytes, at)
      if (!isKept) paintNumber(bytes, at, end)
      isKept = false
      at = end
    } else {
      if (byte !== COLON && byte > 0x20) isKept = false
      at++
    }
  }
  return bytes
}

/** Returns whether the value behind the key is kept. */
function maskKey(bytes: Buffer, start: number, end: number): boolean {
  const key = decode(bytes, start, end)
  if (!KEYS.has(key)) paintText(bytes, start + 1, end - 1)
  return FIELDS.has(key)
}

function maskText(bytes: Buffer, start: number, end: number, isKept: boolean): false {
  if (!isKept) paintText(bytes, start + 1, end - 1)
  return false
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= 0x39
}

/** Behind the closing quote, or the end of the bytes. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = start + 1; at < bytes.length; at++) {
    if (bytes[at] === BACKSLASH) at++
    else if (bytes[at] === QUOTE) return at + 1
  }
  return bytes.length + 1
}

function isFollowedByColon(bytes: Buffer, from: number): boolean {
  let at = from
  while (at < bytes.length && bytes[at]! <= 0x20) at++
  return bytes[at] === COLON
}

/** A key by value; one that is not even a string of JSON is nobody's. */
function decode(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString('utf8', start + 1, end - 1)
  if (!text.includes('\\')) return text
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    return text
  }
}

function endOfNumber(bytes: Buffer, start: number): number {
  let at = start
  while (at < bytes.length && /[-+.\deE]/.test(String.fromCharCode(bytes[at]!))) at++
  return at
}

/** A zero stays, for it decides whether a number is one. */
function paintNumber(bytes: Buffer, start: number, end: number): void {
  for (let at = start; at < end; at++) if (isDigit(bytes[at]!) && bytes[at] !== ZERO) bytes[at] = ONE
}

function paintText(bytes: Buffer, start: number, end: number): void {
  const stop = Math.min(end, bytes.length)
  let at = start
  while (at < stop) at += bytes[at] === BACKSLASH ? paintEscape(bytes, at, stop) : paintCharacter(bytes, at, stop)
}

function paintEscape(bytes: Buffer, start: number, stop: number): number {
  if (bytes[start + 1] !== LOWER_U) return 2
  for (let at = start + 2; at < Math.min(start + 6, stop); at++) bytes[at] = ZERO
  return 6
}

/** A character of several bytes becomes another of as many. */
function paintCharacter(bytes: Buffer, start: number, stop: number): number {
  const lead = bytes[start]!
  const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  if (start + length > stop) bytes.fill(PAINT, start, stop)
  else STAND_INS[length - 1]!.copy(bytes, start)
  return length
}

const STAND_INS: readonly Buffer[] = ['x', '\u00a4', '\u20ac', '\u{1f600}'].map((text) => Buffer.from(text))
