/** Adds a member to JSON text, at any depth, and leaves every other byte as it was. */
import { memberOf } from './json-array.ts'
import { CLOSE_OBJECT, OPEN_OBJECT, skipSpace } from './json-text.ts'

/** `value` is JSON. What is there already stays, unless `replaces`; what is no object on the way is replaced by one. */
export function withMember(text: Buffer, path: readonly string[], value: string, replaces = false): Buffer {
  const [key, ...rest] = path
  const open = skipSpace(text, 0, text.length)
  if (key === undefined || text[open] !== OPEN_OBJECT) return Buffer.from(nested(path, value))
  const found = memberOf(text, 0, text.length, key)
  if (found === undefined) return insert(text, open + 1, `${JSON.stringify(key)}:${nested(rest, value)}`)
  if (rest.length === 0 && !replaces) return text
  const inner = text.subarray(found.start, found.end)
  const changed = rest.length === 0 ? Buffer.from(value) : withMember(inner, rest, value, replaces)
  return Buffer.concat([text.subarray(0, found.start), changed, text.subarray(found.end)])
}

function nested(path: readonly string[], value: string): string {
  return path.reduceRight((inner, key) => `{${JSON.stringify(key)}:${inner}}`, value)
}

function insert(text: Buffer, at: number, member: string): Buffer {
  const isEmpty = text[skipSpace(text, at, text.length)] === CLOSE_OBJECT
  return Buffer.concat([text.subarray(0, at), Buffer.from(isEmpty ? member : `${member},`), text.subarray(at)])
}
