/**
 * Shows a kept history again, as the updates a client would have seen.
 *
 * Pure. Invariant: the order is that of the history, and no tool call is left open.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import { toBlocks } from './content.ts'
import type { AssistantMessage, Message, UserMessage } from './history.ts'
import { maxUpdateChars, split } from './reading.ts'

export function* replay(history: readonly Message[]): Generator<SessionUpdate> {
  for (const [index, message] of history.entries()) {
    if (message.role === 'user') {
      yield* replayQuestion(message)
    }
    if (message.role === 'assistant') yield* replayAnswer(message, history.slice(index + 1))
  }
}

function* replayQuestion(message: UserMessage): Generator<SessionUpdate> {
  for (const block of toBlocks(message.content)) {
    const blocks = block.type === 'text' ? [...split(block.text)].map((text) => ({ ...block, text })) : [block]
    for (const content of blocks) yield { sessionUpdate: 'user_message_chunk', content }
  }
}

function* replayAnswer(message: AssistantMessage, later: readonly Message[]): Generator<SessionUpdate> {
  for (const text of split(message.content ?? '')) {
    yield { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }
  }
  for (const call of message.tool_calls ?? []) {
    const result = later.find((other) => other.role === 'tool' && other.tool_call_id === call.id)
    const text = typeof result?.content === 'string' ? result.content.slice(0, maxUpdateChars) : ''
    yield {
      sessionUpdate: 'tool_call',
      toolCallId: call.id,
      title: call.function.name,
      kind: 'other',
      status: 'completed',
      content: [{ type: 'content', content: { type: 'text', text } }],
    }
  }
}
