/** What was entered so far, as JSON: changed by making it anew, left out is absent. Names of peers are only ever own properties. */
import { isRawNumber } from '../exact.ts'

export type Path = readonly (string | number)[]
export type Properties = Readonly<Record<string, unknown>>

/** Text in a field that is not a value of its kind yet; it is never sent. */
export class Unread {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toJSON(): string {
    return this.text
  }
}

export function isObject(value: unknown): value is Properties {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Unread) &&
    !isRawNumber(value)
  )
}

export function isNumber(value: unknown): boolean {
  return typeof value === 'number' || isRawNumber(value)
}

/** An own property or element; undefined: there is none. */
export function own(value: unknown, key: string | number): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
  return (value as Record<string | number, unknown>)[key]
}

export function valueAt(root: unknown, path: Path): unknown {
  return path.reduce(own, root)
}

/** Another root with this value there; undefined leaves a property out, and takes an element away. */
export function withValue(root: unknown, path: Path, value: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return value
  const changed = withValue(own(root, key), rest, value)
  if (typeof key === 'number') {
    const list = Array.isArray(root) ? root : []
    return changed === undefined ? list.toSpliced(key, 1) : [...list.slice(0, key), changed, ...list.slice(key + 1)]
  }
  const entries = Object.entries(isObject(root) ? root : {})
  const at = entries.findIndex(([name]) => name === key)
  if (changed === undefined) entries.splice(at, at < 0 ? 0 : 1)
  else if (at < 0) entries.push([key, changed])
  else entries[at] = [key, changed]
  return Object.fromEntries(entries)
}

/** A name for a place, unlike that of any other. */
export function pointerOf(path: Path): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** What a value is, as JSON Schema calls it. */
export function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (isNumber(value)) return 'number'
  if (isObject(value)) return 'object'
  return value instanceof Unread ? 'text' : typeof value
}

/** As text that is the same for equal values, whatever the order of their properties. */
export function canonical(value: unknown): string {
  try {
    return JSON.stringify(value, (_key, each) =>
      isObject(each) ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1))) : each,
    )
  } catch {
    // Deeper than the browser goes: equal to nothing but itself.
    return ''
  }
}
