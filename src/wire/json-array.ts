/**
 * Where the elements of an array lie, in text that is known to be JSON. Nothing is decoded.
 */
import { skipSpace, skipValue } from './json-text.ts'

const COMMA = 0x2c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d

export interface Element {
  readonly start: number
  readonly end: number
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
