import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { type Message, toRequestMessages, trim } from './history.ts'
import { replay } from './replay.ts'

const asked = (content: string): Message => ({ role: 'user', content })
const answered = (content: string): Message => ({ role: 'assistant', content })
const called: Message = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
}
const found: Message = { role: 'tool', tool_call_id: 'c', content: 'found' }

describe('history', () => {
  it('puts the system prompt first and joins questions without an answer', () => {
    expect(toRequestMessages('Be brief.', [asked('a'), asked('b'), answered('c'), asked('d')])).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'a\n\nb' },
      { role: 'assistant', content: 'c' },
      { role: 'user', content: 'd' },
    ])
  })

  it('drops whole turns from the front, never a call without its result', () => {
    verifies('O4-whole-turns')
    const history = [asked('1234'), called, found, answered('12'), asked('5678'), answered('56')]
    expect(trim(history, 1000)).toBe(0)
    expect(trim(history, 6)).toBe(4)
    expect(history).toEqual([asked('5678'), answered('56')])
    expect(trim(history, 1)).toBe(0)
  })

  it('is shown again in its order, with the results of its calls', () => {
    expect([...replay([asked('a'), called, found, answered('b')])]).toMatchObject([
      { sessionUpdate: 'user_message_chunk', content: { text: 'a' } },
      { sessionUpdate: 'tool_call', title: 'look', status: 'completed', content: [{ content: { text: 'found' } }] },
      { sessionUpdate: 'agent_message_chunk', content: { text: 'b' } },
    ])
  })
})
