/**
 * How deep a line of JSON is nested, without parsing it: what is nested beyond reason cannot be written again.
 */
const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Far above any sensible message, far below what a JSON library can write. */
export const MAX_NESTING = 1_000

/** `line` is well-formed JSON. */
export function isNestedTooDeep(line: Uint8Array): boolean {
  let depth = 0
  for (let at = 0; at < line.length; at++) {
    const byte = line[at]!
    if (byte === QUOTE) at = endOfString(line, at)
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      depth += 1
      if (depth > MAX_NESTING) return true
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth -= 1
  }
  return false
}

function endOfString(line: Uint8Array, from: number): number {
  let at = from + 1
  while (at < line.length && line[at] !== QUOTE) at += line[at] === BACKSLASH ? 2 : 1
  return at
}
