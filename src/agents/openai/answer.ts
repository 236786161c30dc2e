/**
 * Collects the chunks of one answer: its text, its tool calls, why it ended and what it cost.
 *
 * It shows nothing to anybody. Invariant: what an endpoint can make it hold is bounded.
 */
import { randomUUID } from 'node:crypto'
import type { CallFragment, Chunk } from './chunk.ts'
import { EndpointLost } from './event-stream.ts'
import type { ToolCallMessage } from './history.ts'

export const maxAnswerChars = 32 * 1024 * 1024
export const maxCalls = 128

interface OpenCall {
  readonly key: number | string
  id: string
  name: string
  arguments: string
}

export class Answer {
  text = ''
  finish: string | undefined
  totalTokens: number | undefined
  readonly #calls: OpenCall[] = []
  #chars = 0

  add(chunk: Chunk): void {
    this.#chars += chunk.text.length
    this.text += chunk.text
    for (const fragment of chunk.calls) this.#addFragment(fragment)
    this.finish = chunk.finish ?? this.finish
    this.totalTokens = chunk.totalTokens ?? this.totalTokens
    if (this.#chars > maxAnswerChars) throw new EndpointLost(`an answer of more than ${maxAnswerChars} characters`)
  }

  /** The calls, each with an id of its own: endpoints leave ids out or repeat them. */
  calls(): ToolCallMessage[] {
    const taken = new Set<string>()
    return this.#calls.map((call) => {
      const id = call.id !== '' && !taken.has(call.id) ? call.id : `call_${randomUUID()}`
      taken.add(id)
      return { id, type: 'function', function: { name: call.name, arguments: call.arguments } }
    })
  }

  #addFragment(fragment: CallFragment): void {
    this.#chars += fragment.name.length + fragment.arguments.length
    const call = this.#callOf(fragment)
    call.id ||= fragment.id ?? ''
    call.name += fragment.name
    call.arguments += fragment.arguments
  }

  #callOf(fragment: CallFragment): OpenCall {
    const last = this.#calls.at(-1)
    const key = fragment.index ?? fragment.id ?? last?.key ?? 0
    const known = this.#calls.find((call) => call.key === key)
    if (known) return known
    if (this.#calls.length === maxCalls) throw new EndpointLost(`an answer of more than ${maxCalls} tool calls`)
    const call = { key, id: '', name: '', arguments: '' }
    this.#calls.push(call)
    return call
  }
}
