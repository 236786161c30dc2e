/**
 * Where the elements of an array and the members of an object lie, in text that is known to be JSON. Only keys are decoded.
 */
import { CLOSE_OBJECT, OPEN_OBJECT, skipSpace, skipValue } from './json-text.ts'

const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d

export interface Span {
  readonly start: number
  readonly end: number
}

export interface Element extends Span {
  /** Includes the comma behind. */
  readonly cutEnd: number
}

/** White space before the array is tolerated; of what is no array there are no elements. */
export function* elementsOf(bytes: Buffer, start: number, end: number): Generator<Element> {
  const open = skipSpace(bytes, start, end)
  if (bytes[open] !== OPEN_ARRAY) return
  let at = open + 1
  for (;;) {
    at = skipSpace(bytes, at, end)
    if (at >= end || bytes[at] === CLOSE_ARRAY) return
    const behind = skipValue(bytes, at, end)
    const next = skipSpace(bytes, behind, end)
    const hasComma = bytes[next] === COMMA
    yield { start: at, end: behind, cutEnd: hasComma ? next + 1 : behind }
    if (!hasComma) return
    at = next + 1
  }
}

export interface Member extends Span {
  readonly keyStart: number
  readonly keyEnd: number
}

/** White space before the object is tolerated; of what is no object there are no members. */
export function* membersOf(bytes: Buffer, start: number, end: number): Generator<Member> {
  const open = skipSpace(bytes, start, end)
  if (bytes[open] !== OPEN_OBJECT) return
  let at = skipSpace(bytes, open + 1, end)
  while (at < end && bytes[at] !== CLOSE_OBJECT) {
    const keyEnd = skipValue(bytes, at, end)
    const value = skipSpace(bytes, skipSpace(bytes, keyEnd, end) + 1, end)
    const valueEnd = skipValue(bytes, value, end)
    yield { keyStart: at, keyEnd, start: value, end: valueEnd }
    const behind = skipSpace(bytes, valueEnd, end)
    if (bytes[behind] !== COMMA) return
    at = skipSpace(bytes, behind + 1, end)
  }
}

/** Compared by value; `key` is ASCII. */
export function hasKey(bytes: Buffer, { keyStart, keyEnd }: Member, key: string): boolean {
  const start = keyStart + 1
  const end = keyEnd - 1
  if (end - start === key.length && isSpelledAt(bytes, start, key)) return true
  for (let at = start; at < end; at++)
    if (bytes[at] === BACKSLASH) return JSON.parse(bytes.utf8Slice(keyStart, keyEnd)) === key
  return false
}

function isSpelledAt(bytes: Buffer, start: number, key: string): boolean {
  for (let i = 0; i < key.length; i++) if (bytes[start + i] !== key.charCodeAt(i)) return false
  return true
}

/** Where the value of an object's last member with this key lies. */
export function memberOf(bytes: Buffer, start: number, end: number, key: string): Span | undefined {
  let found: Span | undefined
  for (const member of membersOf(bytes, start, end)) if (hasKey(bytes, member, key)) found = member
  return found
}
