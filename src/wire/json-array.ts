/**
 * Where the elements of an array and the members of an object lie, in text that is known to be JSON. Only keys are decoded.
 */
import { skipSpace, skipValue } from './json-text.ts'

const COMMA = 0x2c
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

/** Where the value of an object's last member with this key lies. */
export function memberOf(bytes: Buffer, start: number, end: number, key: string): Span | undefined {
  let found: Span | undefined
  for (let at = skipSpace(bytes, start + 1, end); at < end - 1; ) {
    const keyEnd = skipValue(bytes, at, end)
    const value = skipSpace(bytes, skipSpace(bytes, keyEnd, end) + 1, end)
    const valueEnd = skipValue(bytes, value, end)
    if (JSON.parse(bytes.utf8Slice(at, keyEnd)) === key) found = { start: value, end: valueEnd }
    at = skipSpace(bytes, skipSpace(bytes, valueEnd, end) + 1, end)
  }
  return found
}
