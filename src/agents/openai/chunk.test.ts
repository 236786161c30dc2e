import { describe, expect, it } from 'vitest'
import { Answer, maxAnswerChars, maxCalls } from './answer.ts'
import { isDone, parseChunk } from './chunk.ts'

const chunkOf = (value: unknown) => parseChunk(JSON.stringify(value))!

describe('chunk', () => {
  it('reads text, thoughts, the end and usage', () => {
    expect(chunkOf({ choices: [{ delta: { content: 'a' } }] })).toMatchObject({ text: 'a', thought: '' })
    expect(chunkOf({ choices: [{ delta: { reasoning_content: 'a' } }] }).thought).toBe('a')
    expect(chunkOf({ choices: [{ delta: { reasoning: 'a' } }] }).thought).toBe('a')
    expect(chunkOf({ choices: [{ delta: { reasoning: 'a', reasoning_content: 'a' } }] }).thought).toBe('a')
    expect(chunkOf({ choices: [{ delta: {}, finish_reason: 'stop' }] }).finish).toBe('stop')
    expect(chunkOf({ choices: [], usage: { total_tokens: 5 } }).totalTokens).toBe(5)
    expect(chunkOf({ usage: { prompt_tokens: 2, completion_tokens: 3 } }).totalTokens).toBe(5)
    expect(chunkOf({ choices: [{ delta: { content: [{ type: 'text', text: 'a' }, { text: 'b' }] } }] }).text).toBe('ab')
  })

  it.each([
    [{ error: { message: 'gone' } }, 'gone'],
    [{ error: 'gone' }, 'gone'],
    [{ error: {} }, 'The endpoint reported an error without a message.'],
    [{ error: null }, undefined],
    [{}, undefined],
  ])('reads %j as the error %j', (value, error) => {
    expect(chunkOf(value).error).toBe(error)
  })

  it.each(['{', '5', 'null', '"text"', '[]', ''])('takes %j as no chunk', (data) => {
    expect(parseChunk(data)).toBeUndefined()
  })

  it.each([
    { choices: null },
    { choices: [null] },
    { choices: [{ delta: null }] },
    { choices: [{ delta: { content: 5 } }] },
  ])('survives %j', (value) => {
    expect(chunkOf(value)).toMatchObject({ text: '', thought: '', calls: [] })
  })

  it('knows the mark of the end', () => {
    expect([isDone('[DONE]'), isDone(' [DONE]\r'), isDone('[done]')]).toEqual([true, true, false])
  })
})

describe('answer', () => {
  const call = (fields: Record<string, unknown>) => chunkOf({ choices: [{ delta: { tool_calls: [fields] } }] })

  it('puts the pieces of calls together by index', () => {
    const answer = new Answer()
    answer.add(call({ index: 0, id: 'a', function: { name: 'one', arguments: '{"x"' } }))
    answer.add(call({ index: 1, id: 'b', function: { name: 'two', arguments: '{}' } }))
    answer.add(call({ index: 0, function: { arguments: ':1}' } }))
    expect(answer.calls()).toEqual([
      { id: 'a', type: 'function', function: { name: 'one', arguments: '{"x":1}' } },
      { id: 'b', type: 'function', function: { name: 'two', arguments: '{}' } },
    ])
  })

  it('tells calls apart by id when there is no index', () => {
    const answer = new Answer()
    answer.add(call({ id: 'a', function: { name: 'one', arguments: '{}' } }))
    answer.add(call({ id: 'b', function: { name: 'two', arguments: '{' } }))
    answer.add(call({ function: { arguments: '}' } }))
    expect(answer.calls().map((one) => one.function)).toEqual([
      { name: 'one', arguments: '{}' },
      { name: 'two', arguments: '{}' },
    ])
  })

  it('gives every call an id of its own', () => {
    const answer = new Answer()
    answer.add(call({ index: 0, id: 'same', function: { name: 'one' } }))
    answer.add(call({ index: 1, id: 'same', function: { name: 'two' } }))
    answer.add(call({ index: 2, function: { name: 'three' } }))
    const ids = answer.calls().map((one) => one.id)
    expect(new Set(ids).size).toBe(3)
    expect(ids).not.toContain('')
  })

  it('holds no more than its bounds', () => {
    const long = new Answer()
    long.add(chunkOf({ choices: [{ delta: { content: 'x'.repeat(maxAnswerChars) } }] }))
    expect(() => long.add(chunkOf({ choices: [{ delta: { content: 'x' } }] }))).toThrow('more than')
    const many = new Answer()
    for (let index = 0; index < maxCalls; index++) many.add(call({ index }))
    expect(() => many.add(call({ index: maxCalls }))).toThrow('tool calls')
  })
})
