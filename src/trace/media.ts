/**
 * Replaces base64 media by its type, size and hash, and leaves everything else as it is.
 *
 * A trace says which picture went where without holding the picture (spec T6). Three spellings are known: AIO
 * `{type, value}`, MCP `{type, data}` and `{blob}`, and data URLs anywhere. A URL is never followed.
 */
import { createHash } from 'node:crypto'

const MEDIA_TYPES = new Set(['image', 'audio', 'video', 'file'])
const NOT_BASE64 = /[^A-Za-z0-9+/]/
const DATA_URL = /^data:([a-z]+)\/([A-Za-z0-9.+-]+)[^,]*;base64,/
const MAX_PREFIX = 256

type Item = Record<string, unknown>

/** The keys that hold media content, with the type of an item that does not name its own. */
const CONTENT_KEYS = [
  { key: 'value', fallback: undefined },
  { key: 'data', fallback: undefined },
  { key: 'blob', fallback: 'file' },
] as const

/** The item without its content but with size and hash, or undefined when it holds no media. */
export function digestItem(item: Item): Item | undefined {
  for (const { key, fallback } of CONTENT_KEYS) {
    const content = item[key]
    const type = typeof item['type'] === 'string' && MEDIA_TYPES.has(item['type']) ? item['type'] : fallback
    if (type === undefined || typeof content !== 'string') continue
    const { [key]: _, ...rest } = item
    const url = digestText(content)
    if (url) return { ...url, ...rest, type }
    if (isBase64(content)) return { ...rest, type, ...digest(content) }
  }
  return undefined
}

/** What stands for a data URL that is a value of its own; undefined for any other text. */
export function digestText(text: string): Item | undefined {
  if (!text.startsWith('data:')) return undefined
  const [prefix, kind = '', subtype] = DATA_URL.exec(text.slice(0, MAX_PREFIX)) ?? []
  if (prefix === undefined) return undefined
  const type = MEDIA_TYPES.has(kind) ? kind : 'file'
  return { type, mimeType: `${kind}/${subtype}`, ...digest(text.slice(prefix.length)) }
}

/** Cheap to ask, and wrong only in the harmless direction: text without any of these marks holds no media. */
export function mayHoldMedia(json: string): boolean {
  if (json.includes('"blob"') || json.includes('base64') || json.includes('\\u')) return true
  if (!json.includes('"value"') && !json.includes('"data"')) return false
  for (const type of MEDIA_TYPES) if (json.includes(`"${type}"`)) return true
  return false
}

/** Looks for the first character that does not belong: a pattern that matches the whole would keep a stack as long as the media. */
function isBase64(text: string): boolean {
  if (text === '' || text.length % 4 !== 0) return false
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  return !NOT_BASE64.test(padding === 0 ? text : text.slice(0, -padding))
}

function digest(base64: string): { bytes: number; sha256: string } {
  const content = Buffer.from(base64, 'base64')
  return { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') }
}
