/** What a message holds beside text: images, sounds, resources and links, each as far as it is safe to show (contract 15.17). */
import { Preformatted } from '../parts/preformatted.tsx'
import { brief, bytes, shown } from '../text.ts'
import type { Block } from './entries.ts'
import { Link } from './markdown.tsx'

const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
const SOUNDS = ['audio/wav', 'audio/mpeg', 'audio/ogg', 'audio/webm', 'audio/mp4']
const MAX_MEDIA_CHARS = (32 * 1024 * 1024 * 4) / 3
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

export function Blocks({ blocks }: { readonly blocks: readonly Block[] }) {
  return (
    <>
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} />
      ))}
    </>
  )
}

export function BlockView({ block }: { readonly block: Block }) {
  if (block.type === 'text') return <p class="prose">{shown(block['text'])}</p>
  if (block.type === 'image' || block.type === 'audio') return <Media block={block} />
  if (block.type === 'resource_link')
    return (
      <p>
        <Link label={brief(block['name'] ?? block['uri'])} target={brief(block['uri'], 2_000)} />
      </p>
    )
  if (block.type === 'resource') return <Resource resource={block['resource'] ?? {}} />
  return <p class="quiet">[{brief(block.type)}]</p>
}

function Media({ block: { type, mimeType, data } }: { readonly block: Block }) {
  const known = type === 'image' ? IMAGES : SOUNDS
  const isSafe = known.includes(mimeType) && typeof data === 'string' && data.length <= MAX_MEDIA_CHARS
  if (!isSafe || !BASE64.test(data))
    return (
      <p class="quiet">
        [{type} of type {brief(mimeType)}, not shown]
      </p>
    )
  const source = `data:${mimeType};base64,${data}`
  // biome-ignore lint/a11y/useMediaCaption: there are none
  if (type === 'audio') return <audio controls src={source} />
  return <img class="media" src={source} alt={`${mimeType}, ${bytes((data.length * 3) / 4)}`} />
}

function Resource({ resource }: { readonly resource: Readonly<Record<string, unknown>> }) {
  return (
    <details>
      <summary>{brief(resource['uri'])}</summary>
      {typeof resource['text'] === 'string' ? (
        <Preformatted>{shown(resource['text'])}</Preformatted>
      ) : (
        <p class="quiet">not text</p>
      )}
    </details>
  )
}
