/**
 * Turns the blocks of an ACP prompt into the content of one Chat Completions message, and back for a replay.
 *
 * It opens no resource and fetches no link. Invariant: no block is dropped in silence, and the order is kept.
 */
import type { ContentBlock } from '@agentclientprotocol/sdk'

export type TextPart = { readonly type: 'text'; readonly text: string }
export type ImagePart = { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
export type UserContent = string | ReadonlyArray<TextPart | ImagePart>

/** The content for the endpoint: one string, or parts when vision is on and there is an image. */
export function toUserContent(blocks: readonly ContentBlock[], vision: boolean): UserContent {
  if (!vision || !blocks.some((block) => block.type === 'image')) return blocks.map(toText).join('\n')
  return blocks.map((block) => (block.type === 'image' ? toImagePart(block) : { type: 'text', text: toText(block) }))
}

type Worded = { [Type in ContentBlock['type']]: (block: Extract<ContentBlock, { type: Type }>) => string }

const words: Worded = {
  text: (block) => block.text,
  resource_link: (block) => `[Resource: ${block.name}] ${block.uri}`,
  resource: ({ resource }) => `[Resource: ${resource.uri}]${'text' in resource ? `\n${resource.text}` : ''}`,
  image: (block) => `[Image: ${block.mimeType}]`,
  audio: (block) => `[Audio: ${block.mimeType}]`,
}

/** A block in words; a kind of block that nobody knows yet is named, not dropped. */
export function toText(block: ContentBlock): string {
  const word = Object.hasOwn(words, block.type) ? (words[block.type] as (block: ContentBlock) => string) : undefined
  return word ? word(block) : `[${block.type}]`
}

function toImagePart(block: { mimeType: string; data: string }): ImagePart {
  return { type: 'image_url', image_url: { url: `data:${block.mimeType};base64,${block.data}` } }
}

const dataUrl = /^data:([^;,]+);base64,(.*)$/s

/** The blocks that show a kept message again. */
export function toBlocks(content: UserContent): ContentBlock[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.map((part): ContentBlock => {
    if (part.type === 'text') return { type: 'text', text: part.text }
    const [, mimeType = 'image/*', data = ''] = dataUrl.exec(part.image_url.url) ?? []
    return { type: 'image', mimeType, data }
  })
}

/** Two contents one after the other, as one. */
export function joinContents(first: UserContent, second: UserContent): UserContent {
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n\n${second}`
  return [...toParts(first), ...toParts(second)]
}

function toParts(content: UserContent): ReadonlyArray<TextPart | ImagePart> {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

/** The plain text of a content, for a title. */
export function plainText(content: UserContent): string {
  if (typeof content === 'string') return content
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ')
}
