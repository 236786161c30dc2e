/**
 * sampling.start and sampling.step: conversations that the bus remembers for agents that do not.
 *
 * MCP has no sampling request towards a server. A configured tool stands in for it; without one `sampling/createMessage`
 * is tried, which an agent made for AIO may know. A conversation belongs to one caller and one agent, and grows only by
 * exchanges that succeeded. Bounded: conversations per caller, their age, and their size.
 */
import type { McpAgent, UrlAgent } from './agent-spec.ts'
import { type Refusal, refuse } from './faults.ts'
import { isObject, type JsonObject, objectOr } from './json-object.ts'
import { readText } from './mcp-content.ts'
import type { NativeRequest } from './mcp-translate.ts'

const MAX_PER_CALLER = 1_000
const MAX_AGE_MS = 3_600_000
const MAX_BYTES_PER_CALLER = 64 * 1024 * 1024
const DEFAULT_MAX_TOKENS = 1_024

interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: { readonly type: 'text'; readonly text: string }
}

interface Conversation {
  readonly agent: string
  messages: readonly Message[]
  bytes: number
  usedAtMs: number
}

export interface SamplingTurn {
  readonly id: string
  readonly request: NativeRequest
  /** Takes the agent's reply into the conversation. */
  readonly keep: (result: JsonObject) => void
}

const say = (role: Message['role'], text: string): Message => ({ role, content: { type: 'text', text } })

export class Samplings {
  readonly #byCaller = new Map<string, Map<string, Conversation>>()
  readonly #nowMs: () => number
  #issued = 0

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** The native request for one turn; the conversation is kept only when the turn succeeds. */
  turn(callerKey: string, agent: McpAgent | UrlAgent, method: string, params: JsonObject): SamplingTurn | Refusal {
    this.#expire(callerKey)
    const found = method === 'sampling.start' ? undefined : this.#find(callerKey, agent, params['sampling_id'])
    if (found !== undefined && 'fault' in found) return found
    const text = readPrompt(params)
    if (typeof text !== 'string') return text
    const id = found?.id ?? `sampling-${++this.#issued}`
    const messages = [...(found?.conversation.messages ?? []), say('user', text)]
    const bytes = messages.reduce((sum, message) => sum + message.content.text.length, 0)
    if (bytes > agent.maxPayloadBytes) return refuse('payload_too_large', { bytes, limit: agent.maxPayloadBytes })
    const keep = (result: JsonObject): void => this.#keep(callerKey, id, agent.name, text, readReply(result))
    return { id, request: nativeRequest(agent, messages, params), keep }
  }

  forget(callerKey: string): void {
    this.#byCaller.delete(callerKey)
  }

  #find(
    callerKey: string,
    agent: McpAgent | UrlAgent,
    id: unknown,
  ): { id: string; conversation: Conversation } | Refusal {
    if (id === undefined) return refuse('missing_param', { param: 'sampling_id', expected: ['"sampling_id"'] })
    const conversation = typeof id === 'string' ? this.#byCaller.get(callerKey)?.get(id) : undefined
    if (conversation === undefined || conversation.agent !== agent.name) {
      return refuse('unknown_sampling', typeof id === 'string' ? { sampling_id: id } : {})
    }
    return { id: id as string, conversation }
  }

  #keep(callerKey: string, id: string, agent: string, asked: string, replied: string): void {
    const own = this.#byCaller.get(callerKey) ?? new Map<string, Conversation>()
    this.#byCaller.set(callerKey, own)
    const conversation = own.get(id) ?? { agent, messages: [], bytes: 0, usedAtMs: 0 }
    conversation.messages = [...conversation.messages, say('user', asked), say('assistant', replied)]
    conversation.bytes += 2 * (asked.length + replied.length)
    conversation.usedAtMs = this.#nowMs()
    own.delete(id)
    own.set(id, conversation)
    evict(own)
  }

  #expire(callerKey: string): void {
    const own = this.#byCaller.get(callerKey)
    if (own === undefined) return
    const oldest = this.#nowMs() - MAX_AGE_MS
    for (const [id, conversation] of own) {
      if (conversation.usedAtMs > oldest) break
      own.delete(id)
    }
  }
}

/** The map is in order of use, so the first is the one that was left alone longest. */
function evict(own: Map<string, Conversation>): void {
  let bytes = [...own.values()].reduce((sum, conversation) => sum + conversation.bytes, 0)
  for (const [id, conversation] of own) {
    if (own.size <= MAX_PER_CALLER && bytes <= MAX_BYTES_PER_CALLER) return
    bytes -= conversation.bytes
    own.delete(id)
  }
}

function readPrompt(params: JsonObject): string | Refusal {
  if (typeof params['prompt'] === 'string') return params['prompt']
  const { input } = params
  if (input === undefined) return refuse('missing_param', { param: 'input', expected: ['"input" or "prompt"'] })
  if (typeof input === 'string') return input
  if (!isObject(input) || typeof input['type'] !== 'string') return refuse('invalid_input', { index: 0 })
  if (input['type'] !== 'text')
    return refuse('unsupported_modality', { index: 0, got: input['type'], accepts: ['text'] })
  return typeof input['value'] === 'string'
    ? input['value']
    : refuse('invalid_value', { index: 0, type: 'text', expected: 'a string' })
}

function nativeRequest(agent: McpAgent | UrlAgent, messages: readonly Message[], params: JsonObject): NativeRequest {
  const tool = agent.sampling?.tool
  if (tool !== undefined) {
    return { method: 'tools/call', params: { name: tool, arguments: { messages } }, target: tool }
  }
  const { maxTokens } = params
  const tokens = Number.isSafeInteger(maxTokens) && (maxTokens as number) > 0 ? maxTokens : DEFAULT_MAX_TOKENS
  return { method: 'sampling/createMessage', params: { messages, maxTokens: tokens } }
}

function readReply(result: JsonObject): string {
  const text = readText(result['content'])
  return text === '' ? readText(objectOr(result['message'])['content']) : text
}
