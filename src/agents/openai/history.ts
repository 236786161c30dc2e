/**
 * What a session remembers, in the words of the Chat Completions interface.
 *
 * It never talks to anybody. Invariant: a message with tool calls is followed by the result of each of them.
 */
import { joinContents, type UserContent } from './content.ts'

export interface ToolCallMessage {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

export type UserMessage = { readonly role: 'user'; readonly content: UserContent }
export type AssistantMessage = {
  readonly role: 'assistant'
  readonly content: string | null
  readonly tool_calls?: readonly ToolCallMessage[]
}
export type ToolMessage = { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }
export type Message = UserMessage | AssistantMessage | ToolMessage
export type RequestMessage = Message | { readonly role: 'system'; readonly content: string }

/** The messages of a request: the system prompt, then what was said; questions in a row become one. */
export function toRequestMessages(systemPrompt: string | undefined, history: readonly Message[]): RequestMessage[] {
  const messages: RequestMessage[] = systemPrompt === undefined ? [] : [{ role: 'system', content: systemPrompt }]
  for (const message of history) {
    const last = messages.at(-1)
    if (last?.role === 'user' && message.role === 'user') {
      messages[messages.length - 1] = { role: 'user', content: joinContents(last.content, message.content) }
    } else {
      messages.push(message)
    }
  }
  return messages
}

/** How many characters a message holds, near enough for a bound. */
export function sizeOf(message: Message): number {
  if (message.role === 'user' && typeof message.content !== 'string') {
    return message.content.reduce(
      (sum, part) => sum + (part.type === 'text' ? part.text : part.image_url.url).length,
      0,
    )
  }
  const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
  const chars = calls.reduce((sum, call) => sum + call.function.name.length + call.function.arguments.length, 0)
  return (message.content?.length ?? 0) + chars
}

/** Drops whole turns from the front until the rest is within `maxChars`; the newest turn always stays. */
export function trim(history: Message[], maxChars: number): number {
  let chars = history.reduce((sum, message) => sum + sizeOf(message), 0)
  let cut = 0
  for (let next = nextTurn(history, 1); chars > maxChars && next !== -1; next = nextTurn(history, next + 1)) {
    for (; cut < next; cut++) chars -= sizeOf(history[cut]!)
  }
  history.splice(0, cut)
  return cut
}

function nextTurn(history: readonly Message[], from: number): number {
  return history.findIndex((message, index) => index >= from && message.role === 'user')
}

/** The messages without calls that lack a result and results that lack their call, as a crash may leave them. */
export function mend(history: readonly Message[]): Message[] {
  const mended: Message[] = []
  let round: Message[] = []
  let missing = new Set<string>()
  for (const message of history) {
    if (message.role === 'tool') {
      if (missing.delete(message.tool_call_id)) round.push(message)
      if (round.length > 0 && missing.size === 0) mended.push(...round.splice(0))
      continue
    }
    round = []
    missing = new Set(message.role === 'assistant' ? message.tool_calls?.map(({ id }) => id) : [])
    if (missing.size > 0) round.push(message)
    else mended.push(message)
  }
  return mended
}
