/**
 * Shows a kept history again, as the updates a client would have seen.
 *
 * Pure. Invariant: the order is that of the history, and no tool call is left open.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import { toBlocks } from './content.ts'
import type { AssistantMessage, Message } from './history.ts'
import { split } from './reading.ts'

export function* replay(history: readonly Message[]): Generator<SessionUpdate> {
  for (const [index, message] of history.entries()) {
    if (message.role === 'user') {
      for (const content of toBlocks(message.content)) yield { sessionUpdate: 'user_message_chunk', content }
    }
    if (message.role === 'assistant') yield* replayAnswer(message, history.slice(index + 1))
  }
}

function* replayAnswer(message: AssistantMessage, later: readonly Message[]): Generator<SessionUpdate> {
  for (const text of split(message.content ?? '')) {
    yield { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }
  }
  for (const call of message.tool_calls ?? []) {
    const result = later.find((other) => other.role === 'tool' && other.tool_call_id === call.id)
    const text = typeof result?.content === 'string' ? result.content : ''
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
