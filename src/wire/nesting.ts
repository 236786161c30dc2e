/**
 * How deep JSON is nested, without parsing it: what is nested beyond reason can be read, and cannot be written again.
 */
const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Far above any sensible message, far below what a JSON library can write. */
export const MAX_NESTING = 1_000
/** Of what is deeper so many levels are kept. */
const KEPT_LEVELS = 100
const TOO_DEEP = '[nested too deep]'

/** `json` is well-formed. */
export function isNestedTooDeep(json: Buffer): boolean {
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]!
    if (byte === QUOTE) at = endOfString(json, at)
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      depth += 1
      if (depth > MAX_NESTING) return true
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth -= 1
  }
  return false
}

/** What it says, so that it can be written again: of what is nested beyond reason only the upper levels. */
export function readWritable(json: Buffer): unknown {
  const value: unknown = JSON.parse(json.utf8Slice())
  return isNestedTooDeep(json) ? upperLevels(value, 0) : value
}

function upperLevels(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth === KEPT_LEVELS) return TOO_DEEP
  if (Array.isArray(value)) return value.map((item) => upperLevels(item, depth + 1))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, upperLevels(item, depth + 1)]))
}

function endOfString(json: Buffer, from: number): number {
  let end = json.indexOf(QUOTE, from + 1)
  while (end !== -1 && isEscaped(json, end)) end = json.indexOf(QUOTE, end + 1)
  return end === -1 ? json.length : end
}

function isEscaped(json: Buffer, at: number): boolean {
  let first = at
  while (json[first - 1] === BACKSLASH) first--
  return (at - first) % 2 === 1
}
