import { describe, expect, it } from 'vitest'
import type { Message } from './history.ts'
import { isOverflow, shorten, withoutNewestTurn } from './overflow.ts'

/** As the providers word it. */
const TOO_LONG: [provider: string, status: number, words: string][] = [
  ['OpenAI', 400, '{"error":{"message":"...","code":"context_length_exceeded"}}'],
  ['OpenAI, one string', 400, '{"error":{"code":"string_above_max_length"}}'],
  ['vLLM', 400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."],
  ['llama.cpp', 400, '{"error":{"type":"exceed_context_size_error","message":"the request exceeds the context size"}}'],
  ['Ollama', 400, 'the input length exceeds the context length'],
  ['LiteLLM', 400, 'litellm.ContextWindowExceededError: ...'],
  ['Bedrock', 400, 'Input is too long for requested model.'],
  ['Anthropic', 400, 'prompt is too long: 210000 tokens > 200000 maximum'],
  ['Gemini', 400, 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'],
  ['Groq', 400, 'Please reduce the length of the messages or completion.'],
  ['Mistral', 422, 'Prompt contains 40000 tokens, too large for model with 32768 maximum context length'],
  ['a proxy', 413, '<html>Request Entity Too Large</html>'],
  ['an error in a stream', 200, 'maximum context length'],
]

const OTHER: [what: string, status: number, words: string][] = [
  [
    'a number that is too large',
    400,
    'max_tokens is too large: 100000. This model supports at most 4096 completion tokens',
  ],
  ['a wrong field', 400, "Unrecognized request argument supplied: 'context'"],
  ['a rate', 429, 'Request too large for gpt-4o: maximum context length, tokens per minute'],
  ['a failing server', 500, 'maximum context length'],
  ['no such model', 404, 'The model `x` does not exist'],
]

describe('a refusal', () => {
  it.each(TOO_LONG)('of %s (%i) is understood as too long', (_provider, status, words) => {
    expect(isOverflow(status, words)).toBe(true)
  })

  it.each(OTHER)('for %s (%i) is something else', (_what, status, words) => {
    expect(isOverflow(status, words)).toBe(false)
  })
})

describe('a history', () => {
  const question = (content: string): Message => ({ role: 'user', content })
  const answer = (content: string): Message => ({ role: 'assistant', content })
  const called: Message = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
  }
  const result: Message = { role: 'tool', tool_call_id: 'c', content: 'x'.repeat(1_000) }

  it('is halved turn by turn until the newest question is alone', () => {
    const history = Array.from({ length: 16 }, (_, index) => [
      question(`${index}`.padEnd(10)),
      answer('y'.repeat(10)),
    ]).flat()
    history.push(question('newest'))
    const lengths: number[] = []
    while (shorten(history)) lengths.push(history.length)
    expect(history).toEqual([question('newest')])
    expect(lengths.length).toBeLessThanOrEqual(6)
  })

  it('keeps a call with its result, which becomes a note only when nothing older is left', () => {
    const history = [question('a'), answer('b'), question('look'), called, result]
    expect(shorten(history)).toBe(true)
    expect(history).toEqual([question('look'), called, result])
    expect(shorten(history)).toBe(true)
    expect(history).toMatchObject([question('look'), called, { role: 'tool', tool_call_id: 'c' }])
    expect(history[2]!.content!.length).toBeLessThan(200)
    expect(shorten(history)).toBe(false)
  })

  it('without its newest turn ends before its last question', () => {
    expect(withoutNewestTurn([question('a'), answer('b'), question('c'), called, result])).toEqual([
      question('a'),
      answer('b'),
    ])
  })
})
