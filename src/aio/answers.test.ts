import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { readAnswer, readPartial } from './answers.ts'

const text = { type: 'text', value: 'hi' }

describe('answers in the spellings in use', () => {
  it.each([
    ['a plain result', { id: 1, result: { a: 1 } }, { result: { a: 1 } }],
    ['a null result', { id: 1, result: null }, { result: null }],
    ['a result beside a null error', { id: 1, result: 5, error: null }, { result: 5 }],
    ['outputs', { jsonrpc: '2.0', id: 1, trace_id: 'x', outputs: [text] }, { result: { outputs: [text] } }],
    ['output only', { id: 1_700_000_000_000, output: text }, { result: { outputs: [text] } }],
    ['a string output', { output: 'hi' }, { result: { outputs: [text] } }],
    ['outputs and more', { outputs: [text], usage: 3 }, { result: { outputs: [text], usage: 3 } }],
    [
      'an envelope in result',
      { id: 1, result: { jsonrpc: '2.0', id: 7, output: text } },
      { result: { outputs: [text] } },
    ],
    [
      'an envelope in an envelope',
      { result: { jsonrpc: '2.0', result: { jsonrpc: '2.0', result: 1 } } },
      { result: 1 },
    ],
    [
      'a result that only looks like one',
      { result: { jsonrpc: '2.0', note: 1 } },
      { result: { jsonrpc: '2.0', note: 1 } },
    ],
    [
      'an error',
      { error: { code: -32601, message: 'no', data: 1 } },
      { error: { code: -32601, message: 'no', data: 1 } },
    ],
    [
      'an error in a nested envelope',
      { result: { jsonrpc: '2.0', error: { code: 5, message: 'x' } } },
      { error: { code: 5, message: 'x' } },
    ],
    ['an error without code', { error: {} }, { error: { code: -32603, message: 'The agent failed' } }],
  ])('%s', (_title, message, answer) => {
    verifies('N12-spellings')
    expect(readAnswer(message)).toEqual(answer)
  })

  it.each([
    ['output', { output: { type: 'error', message: '503 no model', error_code: 503 } }],
    ['the only one of outputs', { outputs: [{ type: 'error', message: '503 no model', error_code: 503 }] }],
    ['output in result', { result: { output: { type: 'error', message: '503 no model', error_code: 503 } } }],
  ])('an error spoken as %s is an error', (_title, message) => {
    verifies('N12-spellings')
    expect(readAnswer(message)).toEqual({
      error: {
        code: -32603,
        message: '503 no model',
        data: { reason: 'agent_error', retryable: false, error_code: 503 },
      },
    })
  })

  it('an error that is a string is the message', () => {
    expect(readAnswer({ error: 'boom' })).toMatchObject({ error: { code: -32603, message: 'boom' } })
  })

  it.each([[{}], [{ id: 1 }], [{ id: 1, error: null }], [{ text: 'bare' }]])('%j is no answer', (message) => {
    expect(readAnswer(message)).toBeUndefined()
  })
})

describe('partials', () => {
  it.each([
    [{ id: 1, partial: true, outputs: [text] }],
    [{ id: 1, partial: true, result: { outputs: [text] } }],
    [{ id: 1, partial: true, output: text }],
  ])('%j has one output', (message) => {
    expect(readPartial(message)).toEqual([text])
  })

  it.each([[{ id: 1, outputs: [text] }], [{ id: 1, partial: false, outputs: [text] }], [{ partial: 'true' }]])(
    '%j is none',
    (message) => {
      expect(readPartial(message)).toBeUndefined()
    },
  )
})
