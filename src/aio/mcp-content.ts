/**
 * MCP content as AIO outputs, block by block. The native form is kept beside them by the caller; nothing is lost here.
 */
import { isObject, type JsonObject } from './json-object.ts'

export interface Output {
  readonly type: string
  readonly value: unknown
  readonly mimeType?: string
}

type Reader = (block: JsonObject) => Output | undefined

const media =
  (type: string): Reader =>
  (block) => ({ type, value: block['data'], ...mimeType(block) })

const READERS: ReadonlyMap<unknown, Reader> = new Map<unknown, Reader>([
  ['text', (block) => ({ type: 'text', value: block['text'] })],
  ['image', media('image')],
  ['audio', media('audio')],
  ['resource', (block) => readResource(block['resource'])],
  ['resource_link', (block) => ({ type: mediaType(block), value: block['uri'], ...mimeType(block) })],
])

/** `content` is a block or a list of them; blocks of an unknown type have no AIO form. */
export function readContent(content: unknown): readonly Output[] {
  const blocks = Array.isArray(content) ? content : [content]
  return blocks.flatMap((block) => (isObject(block) ? (READERS.get(block['type'])?.(block) ?? []) : []))
}

/** What resources/read lists, and what an embedded resource holds. */
export function readResource(resource: unknown): Output | undefined {
  if (!isObject(resource)) return undefined
  if (resource['text'] !== undefined) return { type: 'text', value: resource['text'], ...mimeType(resource) }
  if (resource['blob'] !== undefined)
    return { type: mediaType(resource), value: resource['blob'], ...mimeType(resource) }
  return undefined
}

export function readText(content: unknown): string {
  return readContent(content)
    .flatMap((output) => (output.type === 'text' && typeof output.value === 'string' ? [output.value] : []))
    .join('\n')
}

function mimeType(block: JsonObject): { readonly mimeType?: string } {
  return typeof block['mimeType'] === 'string' ? { mimeType: block['mimeType'] } : {}
}

/** Image, audio and video by what the server says that it is (contract 13.19); else a file. */
function mediaType({ mimeType: mime }: JsonObject): string {
  const kind = typeof mime === 'string' ? /^(image|audio|video)\//i.exec(mime)?.[1] : undefined
  return kind?.toLowerCase() ?? 'file'
}

const MIME_TYPES: readonly (readonly [RegExp, string])[] = [
  [/^application\/pdf\b/i, 'pdf'],
  [/^image\//i, 'image'],
  [/^audio\//i, 'audio'],
  [/^video\//i, 'video'],
  [/^text\//i, 'text'],
  [/^application\/(?:[\w.-]+\+)?json\b/i, 'json'],
]

/** The seed's `type` of a resource (spec N8). */
export function resourceType(mime: unknown): string {
  if (typeof mime !== 'string') return 'file'
  return MIME_TYPES.find(([pattern]) => pattern.test(mime))?.[1] ?? 'file'
}
