/**
 * Inputs of AIO as content blocks of ACP, and blocks of an agent's message as outputs (contract 13.14).
 *
 * What an agent has not said that it takes is refused, not dropped. A URL is never fetched: the agent gets a link.
 */

import type { PromptCapabilities } from './acp-peer.ts'
import type { Modality } from './agent-spec.ts'
import { type Refusal, refuse } from './faults.ts'
import { isObject, type JsonObject } from './json-object.ts'
import { type Output, readContent } from './mcp-content.ts'

/** What media is taken to be where nobody says. */
const MIME_TYPES: Readonly<Record<string, string>> = {
  image: 'image/png',
  audio: 'audio/wav',
  video: 'video/mp4',
  file: 'application/octet-stream',
}

/** `inputs` have been checked. */
export function blocksOf(inputs: readonly JsonObject[], takes: PromptCapabilities): readonly JsonObject[] | Refusal {
  const blocks: JsonObject[] = []
  for (const [index, input] of inputs.entries()) {
    const block = blockOf(input, index, takes)
    if (block === undefined)
      return refuse('unsupported_modality', { index, got: input['type'], accepts: modalitiesOf(takes) })
    blocks.push(block)
  }
  return blocks
}

/** What such an agent takes by value; a link to anything it takes anyway. */
export function modalitiesOf({ image, audio, embeddedContext }: PromptCapabilities): readonly Modality[] {
  return [
    'text',
    ...(image ? ['image' as const] : []),
    ...(audio ? ['audio' as const] : []),
    ...(embeddedContext ? ['file' as const] : []),
  ]
}

function blockOf(input: JsonObject, index: number, takes: PromptCapabilities): JsonObject | undefined {
  const { type, value } = input
  const kind = String(type)
  if (kind === 'text') return { type: 'text', text: value }
  if (typeof value === 'string' && /^https?:/i.test(value)) return linkTo(input, value)
  if (kind === 'image' || kind === 'audio') return takes[kind] ? { type: kind, ...mediaOf(input) } : undefined
  if (!takes.embeddedContext || kind === 'video') return undefined
  const name = typeof input['name'] === 'string' ? input['name'] : String(index)
  // Half a character has no code in a URI: it becomes one that stands for it.
  const uri = `input:///${encodeURIComponent(Buffer.from(name).toString())}`
  if (typeof value !== 'string')
    return { type: 'resource', resource: { uri, mimeType: 'application/json', text: JSON.stringify(value) } }
  const { data, mimeType } = mediaOf(input)
  return { type: 'resource', resource: { uri, mimeType, blob: data } }
}

function linkTo({ mimeType, name }: JsonObject, uri: string): JsonObject {
  const title = typeof name === 'string' ? name : (new URL(uri).pathname.split('/').at(-1) ?? '')
  return {
    type: 'resource_link',
    uri,
    name: title === '' ? uri : title,
    ...(typeof mimeType === 'string' && { mimeType }),
  }
}

/** A data URL says what it is; else the input may. */
function mediaOf({ type, value, mimeType }: JsonObject): { readonly data: string; readonly mimeType: string } {
  const text = String(value)
  const url = /^data:([^;,]*)[^,]*?(;base64)?,(.*)$/is.exec(text)
  const said = typeof mimeType === 'string' ? mimeType : undefined
  const usual = MIME_TYPES[String(type)]!
  if (url === null) return { data: text, mimeType: said ?? usual }
  const data = url[2] === undefined ? bytesIn(url[3]!).toString('base64') : url[3]!
  return { data, mimeType: said ?? (url[1] || usual) }
}

/** Of the body of a data URL: what is no code of a byte is itself. */
function bytesIn(body: string): Buffer {
  const latin = Buffer.from(body).toString('latin1')
  const decoded = latin.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(decoded, 'latin1')
}

/** What an agent says, as it comes: text is joined, other blocks stand between in their order. */
export class SpokenOutputs {
  readonly #outputs: Output[] = []
  #bytes = 0

  /** Of all blocks together. */
  get bytes(): number {
    return this.#bytes
  }

  /** The outputs of one block. */
  add(content: unknown): readonly Output[] {
    const outputs = readContent(content)
    this.#bytes += Buffer.byteLength(JSON.stringify(content))
    for (const output of outputs) {
      const last = this.#outputs.at(-1)
      const isMore = output.type === 'text' && last?.type === 'text' && typeof last.value === 'string'
      if (isMore) this.#outputs[this.#outputs.length - 1] = { ...last, value: last.value + String(output.value) }
      else this.#outputs.push(output)
    }
    return outputs
  }

  get all(): readonly Output[] {
    return this.#outputs
  }

  get text(): string {
    return this.#outputs.flatMap(({ type, value }) => (type === 'text' ? [String(value)] : [])).join('')
  }
}

/** The block of an update that is part of the agent's message. */
export function spokenIn(update: JsonObject): unknown {
  return update['sessionUpdate'] === 'agent_message_chunk' && isObject(update['content'])
    ? update['content']
    : undefined
}
