import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { stdioAgent } from '../../test/fixtures/aio/workbench.ts'
import type { Modality } from './agent-spec.ts'
import { isRefusal } from './faults.ts'
import { checkInputs, isBase64 } from './modalities.ts'

const agent = stdioAgent()

function reasonOf(params: unknown, accepts?: readonly Modality[]): unknown {
  const checked = checkInputs(accepts === undefined ? agent : stdioAgent({ modalities: accepts }), params)
  return isRefusal(checked) ? checked.fault.data : undefined
}

const one = (type: unknown, value: unknown) => ({ inputs: [{ type, value }] })

describe('inputs that pass', () => {
  it.each([
    ['empty text', one('text', '')],
    ['text', one('text', 'hello, wörld')],
    ['base64', one('image', 'aGVsbG8=')],
    ['base64 with two pads', one('audio', 'aGVsbA==')],
    ['unpadded length of four', one('video', 'aGVs')],
    ['an https URL', one('image', 'https://example.test/a.png?x=1#y')],
    ['an http URL', one('audio', 'http://example.test/a.mp3')],
    ['a data URL', one('image', 'data:image/png;base64,aGVs')],
    ['a data URL of text', one('file', 'data:text/plain;charset=utf-8,hello')],
    ['a JSON file', one('file', { a: 1 })],
    ['a JSON list', one('file', [1, 2])],
    ['a singular input', { input: { type: 'text', value: 'x' } }],
  ])('%s', (_title, params) => {
    verifies('N13-accepted')
    expect(reasonOf(params)).toBeUndefined()
  })

  it('puts a singular input where inputs belong and leaves the rest', () => {
    const checked = checkInputs(agent, { input: { type: 'text', value: 'x' }, temperature: 0 })
    expect(checked).toMatchObject({ params: { inputs: [{ type: 'text', value: 'x' }], temperature: 0 } })
  })
})

describe('inputs that are refused', () => {
  it.each([
    ['no params', undefined, 'missing_inputs'],
    ['no inputs', {}, 'missing_inputs'],
    ['an empty list', { inputs: [] }, 'missing_inputs'],
    ['no list', { inputs: 'x' }, 'missing_inputs'],
    ['an item that is no object', { inputs: ['x'] }, 'invalid_input'],
    ['an item without type', { inputs: [{ value: 'x' }] }, 'invalid_input'],
    ['an item without value', { inputs: [{ type: 'text' }] }, 'invalid_input'],
    ['a null value', one('text', null), 'invalid_input'],
    ['a type that is no string', one(5, 'x'), 'invalid_input'],
    ['an unknown type', one('smell', 'x'), 'unknown_modality'],
    ['a type of the prototype', one('__proto__', 'x'), 'unknown_modality'],
    ['text that is no string', one('text', 5), 'invalid_value'],
    ['empty media', one('image', ''), 'invalid_value'],
    ['base64 without padding', one('image', 'aGVsbG8'), 'invalid_value'],
    ['base64 with white space', one('image', 'aGVs bG8='), 'invalid_value'],
    ['base64 with a line break', one('image', 'aGVs\n'), 'invalid_value'],
    ['URL-safe base64', one('image', 'a-_s'), 'invalid_value'],
    ['padding in the middle', one('image', 'a=Vs'), 'invalid_value'],
    ['another scheme', one('image', 'file:///etc/passwd'), 'invalid_value'],
    ['an https URL without a host', one('image', 'https://'), 'invalid_value'],
    ['a URL with a space', one('image', 'https://a b/'), 'invalid_value'],
    ['a data URL with bad base64', one('image', 'data:image/png;base64,a'), 'invalid_value'],
    ['a data URL without comma', one('image', 'data:image/png'), 'invalid_value'],
    ['media that is no string', one('audio', {}), 'invalid_value'],
    ['a file that is a number', one('file', 5), 'invalid_value'],
  ])('%s', (_title, params, reason) => {
    verifies('N13-refused')
    expect(reasonOf(params)).toMatchObject({ reason })
  })

  it('says which input it was', () => {
    verifies('N13-refused')
    const params = {
      inputs: [
        { type: 'text', value: 'x' },
        { type: 'image', value: '?' },
      ],
    }
    expect(reasonOf(params)).toMatchObject({ reason: 'invalid_value', index: 1, type: 'image' })
  })

  it('says what the agent accepts', () => {
    verifies('N13-refused')
    expect(reasonOf(one('image', 'aGVs'), ['text', 'file'])).toEqual({
      reason: 'unsupported_modality',
      index: 0,
      got: 'image',
      accepts: ['text', 'file'],
    })
  })
})

describe('base64', () => {
  it('is what the standard alphabet writes, for any bytes', () => {
    fc.assert(fc.property(fc.uint8Array({ minLength: 1 }), (bytes) => isBase64(Buffer.from(bytes).toString('base64'))))
  })

  it('takes megabytes in one pass', () => {
    expect(isBase64('A'.repeat(8_000_000))).toBe(true)
    expect(isBase64(`${'A'.repeat(7_999_999)}-`)).toBe(false)
  })
})
