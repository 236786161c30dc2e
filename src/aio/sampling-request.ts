/**
 * What an MCP server asks of a model (`sampling/createMessage`), as a prompt for an ACP agent, and its answer back
 * (contract 13.16).
 *
 * The request is of a peer: everything in it is looked at, and what does not fit is told.
 */
import { isRefusal, type Refusal, refuse } from './faults.ts'
import { isObject, type JsonObject, objectOr } from './json-object.ts'
import { isBase64 } from './modalities.ts'

const MAX_BYTES = 1_048_576
const ROLES: ReadonlySet<unknown> = new Set(['user', 'assistant'])

export interface SamplingRequest {
  /** Inputs of a call, in order: the system prompt, then the messages. */
  readonly inputs: readonly JsonObject[]
  /** For agents that obey it: how long, how free, where to stop. */
  readonly wishes: JsonObject
}

export function readSampling(params: unknown): SamplingRequest | Refusal {
  const given = objectOr(params)
  const bytes = Buffer.byteLength(JSON.stringify(given))
  if (bytes > MAX_BYTES) return refuse('payload_too_large', { bytes, limit: MAX_BYTES })
  const wishes = readWishes(given)
  if (isRefusal(wishes)) return wishes
  const { messages, systemPrompt } = given
  if (!Array.isArray(messages) || messages.length === 0) return wrong('messages', 'a list of messages')
  const isDialogue = messages.some((message) => objectOr(message)['role'] === 'assistant')
  const inputs: JsonObject[] = systemPrompt === undefined ? [] : [{ type: 'text', value: systemPrompt }]
  for (const message of messages) {
    const said = readMessage(message, isDialogue)
    if (isRefusal(said)) return said
    inputs.push(...said)
  }
  return inputs.length === 0 ? wrong('messages', 'messages that say something') : { inputs, wishes }
}

function readWishes(given: JsonObject): JsonObject | Refusal {
  const { maxTokens, temperature, stopSequences, systemPrompt } = given
  if (!Number.isSafeInteger(maxTokens) || (maxTokens as number) < 1) return wrong('maxTokens', 'a whole number above 0')
  if (temperature !== undefined && !Number.isFinite(temperature)) return wrong('temperature', 'a number')
  if (stopSequences !== undefined && !isTexts(stopSequences)) return wrong('stopSequences', 'a list of strings')
  if (systemPrompt !== undefined && typeof systemPrompt !== 'string') return wrong('systemPrompt', 'a string')
  if (given['tools'] !== undefined) return wrong('tools', 'left out: tools were not offered')
  return {
    maxTokens,
    ...(temperature === undefined ? {} : { temperature }),
    ...(stopSequences === undefined ? {} : { stopSequences }),
  }
}

/** Who said it is told where not everything is the user's. */
function readMessage(message: unknown, isDialogue: boolean): readonly JsonObject[] | Refusal {
  const { role, content } = objectOr(message)
  if (!ROLES.has(role)) return wrong('messages', 'messages of "user" or "assistant"')
  const blocks = Array.isArray(content) ? content : [content]
  const inputs: JsonObject[] = []
  for (const [index, block] of blocks.entries()) {
    const input = readBlock(block)
    if (input === undefined) return wrong('messages', 'messages of text, images or audio in base64')
    const isNamed = isDialogue && index === 0
    if (isNamed && input['type'] === 'text') inputs.push({ type: 'text', value: `${role}: ${input['value']}` })
    else inputs.push(...(isNamed ? [{ type: 'text', value: `${role}:` }] : []), input)
  }
  return inputs
}

function readBlock(block: unknown): JsonObject | undefined {
  if (!isObject(block)) return undefined
  const { type, text, data, mimeType } = block
  if (type === 'text') return typeof text === 'string' ? { type, value: text } : undefined
  if (type !== 'image' && type !== 'audio') return undefined
  // A server cannot send a model to an address in the place of data.
  if (typeof data !== 'string' || !isBase64(data) || typeof mimeType !== 'string') return undefined
  return { type, value: data, mimeType }
}

const STOP_REASONS: ReadonlyMap<string, string> = new Map([
  ['end_turn', 'endTurn'],
  ['max_tokens', 'maxTokens'],
])

/** `stopReason` of ACP as MCP spells it. */
export function samplingResult(model: string, text: string, stopReason: string): JsonObject {
  const why = STOP_REASONS.get(stopReason) ?? stopReason
  return { role: 'assistant', content: { type: 'text', text }, model, stopReason: why }
}

function wrong(param: string, expected: string): Refusal {
  return refuse('invalid_param', { param, expected })
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
