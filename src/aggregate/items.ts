/**
 * One page of a member's list as items, and an item as clients of the aggregate see it (contract 13.6).
 *
 * An item keeps all its fields, as they were spelled; only what must change is spliced. What has no name, is no object, or
 * is nested beyond what can be written again, is no item.
 */
import { elementsOf, hasKey, type Member, memberOf, membersOf, type Span } from '../wire/json-array.ts'
import { OPEN_OBJECT } from '../wire/json-text.ts'
import { isNestedTooDeep } from '../wire/nesting.ts'
import { type Edit, editBytes, insertInto } from '../wire/splice.ts'
import { mended } from './sound-fields.ts'

export interface Item {
  /** Its own name. */
  readonly name: string
  /** Of a resource its URI, of a template the template; else undefined. */
  readonly uri: string | undefined
  /** As the member spelled it, if hosts can read all of it. */
  readonly raw: Buffer
  readonly isMended: boolean
}

export interface Page {
  readonly items: readonly Item[]
  readonly nextCursor: string | undefined
  /** Entries that are none. */
  readonly odd: number
  /** Entries of which no host could read all. */
  readonly mended: number
}

export const POOL_KEY = 'stdio-bus/pool'
export const NAME_KEY = 'stdio-bus/name'

type Fields = Readonly<Record<string, unknown>>

/** `key` is the name of the list in the result, `uriKey` where an item says its URI, `most` how many are read. */
export interface PageFormat {
  readonly key: string
  readonly uriKey: string | undefined
  readonly most: number
}

export function readPage(line: Buffer, result: Span, { key, uriKey, most }: PageFormat): Page | undefined {
  const list = memberOf(line, result.start, result.end, key)
  if (list === undefined || line[list.start] !== OPEN_ARRAY) return undefined
  const items: Item[] = []
  let odd = 0
  let mendedCount = 0
  for (const { start, end } of elementsOf(line, list.start, list.end)) {
    if (items.length + odd >= most) break
    const item = readItem(Buffer.from(line.subarray(start, end)), key, uriKey)
    if (item === undefined) odd++
    else items.push(item)
    if (item?.isMended) mendedCount++
  }
  const cursor = memberOf(line, result.start, result.end, 'nextCursor')
  const next: unknown = cursor === undefined ? undefined : JSON.parse(line.utf8Slice(cursor.start, cursor.end))
  return { items, nextCursor: typeof next === 'string' ? next : undefined, odd, mended: mendedCount }
}

const OPEN_ARRAY = 0x5b

function readItem(raw: Buffer, list: string, uriKey: string | undefined): Item | undefined {
  if (raw[0] !== OPEN_OBJECT || isNestedTooDeep(raw)) return undefined
  const fields = fieldsOf(raw)
  const { name } = fields
  const uri = uriKey === undefined ? undefined : fields[uriKey]
  if (typeof name !== 'string' || (uriKey !== undefined && typeof uri !== 'string')) return undefined
  if (name === '' && uriKey === undefined) return undefined
  const readable = mended(list, fields)
  const text = readable === undefined ? withoutDoubles(raw, fields) : Buffer.from(JSON.stringify(cleaned(readable)))
  return { name, uri: uri as string | undefined, raw: text, isMended: readable !== undefined }
}

export function fieldsOf(raw: Buffer): Fields {
  return JSON.parse(raw.utf8Slice()) as Fields
}

/** A reader may take either of two members with one key: whoever writes such an item has it written anew. */
function withoutDoubles(raw: Buffer, fields: Fields): Buffer {
  const members = [...membersOf(raw, 0, raw.length)]
  const isDouble = members.length !== Object.keys(fields).length
  return isDouble || hasOurKeys(fields) ? Buffer.from(JSON.stringify(cleaned(fields))) : raw
}

function hasOurKeys({ _meta }: Fields): boolean {
  return typeof _meta === 'object' && _meta !== null && (POOL_KEY in _meta || NAME_KEY in _meta)
}

/** Whose it is says the bus alone. */
function cleaned(fields: Fields): Fields {
  if (!hasOurKeys(fields)) return fields
  const { [POOL_KEY]: _pool, [NAME_KEY]: _name, ...meta } = fields['_meta'] as Fields
  return { ...fields, _meta: meta }
}

/** The item as it is listed: under this name, and telling whose it is. */
export function dressItem({ raw, name }: Item, pool: string, listed: string | undefined): Buffer {
  const edits: Edit[] = []
  const whose = `${JSON.stringify(POOL_KEY)}:${JSON.stringify(pool)},${JSON.stringify(NAME_KEY)}:${JSON.stringify(name)}`
  const named = find(raw, 'name')!
  const meta = find(raw, '_meta')
  if (listed !== undefined) edits.push({ start: named.start, end: named.end, text: JSON.stringify(listed) })
  const added: string[] = []
  if (find(raw, 'title') === undefined) added.push(`"title":${JSON.stringify(name)}`)
  if (meta === undefined) added.push(`"_meta":{${whose}}`)
  else if (raw[meta.start] === OPEN_OBJECT) edits.push(insertInto(raw, meta.start, whose))
  else edits.push({ start: meta.start, end: meta.end, text: `{${whose}}` })
  if (added.length > 0) edits.push(insertInto(raw, 0, added.join(',')))
  return editBytes(raw, edits)
}

function find(raw: Buffer, key: string): Member | undefined {
  for (const member of membersOf(raw, 0, raw.length)) if (hasKey(raw, member, key)) return member
  return undefined
}
