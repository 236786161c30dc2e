import fc from 'fast-check'
import { expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { payloadKeeper } from './payload.ts'
import { PROMPT_HEAD_CHARS, promptIn } from './prompt-text.ts'

it.each([
  [{ sessionId: 's', prompt: [{ type: 'text', text: 'clean up' }] }, 'clean up'],
  [
    {
      prompt: [
        { type: 'image', data: 'x' },
        { type: 'text', text: 'what is this?' },
      ],
    },
    'what is this?',
  ],
  [{ inputs: [{ type: 'text', value: 'sum' }] }, 'sum'],
  [{ input: 'plain' }, 'plain'],
  [{ messages: [{ role: 'user', content: 'hi' }] }, 'hi'],
  [{ prompt: [{ type: 'text', text: ' two\nlines "quoted" \u00e4 ' }] }, 'two lines "quoted" ä'],
  [{ name: 'area', arguments: { x: 1 } }, undefined],
  [{ prompt: [] }, undefined],
  [null, undefined],
])('%j asks %j', (input, prompt) => {
  verifies('T9-prompt')
  expect(promptIn(input === null ? null : JSON.stringify(input))).toBe(prompt)
})

it('is found at the beginning of what was cut, wherever that was', () => {
  const text = fc.string({ unit: fc.constantFrom('a', '"', '\\', 'ä', '🚀', '\n') })
  fc.assert(
    fc.property(text, fc.integer({ min: 60, max: 120 }), (tail, payloadBytes) => {
      const whole = JSON.stringify({ sessionId: 's', prompt: [{ type: 'text', text: `begin ${tail}` }] })
      const kept = payloadKeeper({ payloadBytes, redact: [] })(whole).text
      expect(promptIn(kept.slice(0, PROMPT_HEAD_CHARS))).toMatch(/^begin/)
    }),
  )
  expect(promptIn(JSON.stringify({ prompt: 'x'.repeat(10_000) }).slice(0, PROMPT_HEAD_CHARS))).toHaveLength(201)
})

it('shows nothing that is secret', () => {
  const kept = payloadKeeper({ payloadBytes: 1_000, redact: ['prompt'] })('{"prompt":[{"type":"text","text":"hush"}]}')
  expect(promptIn(kept.text)).toBe('[redacted]')
})

it('takes whatever a peer has made look like a cut payload', () => {
  const text = fc.string({ unit: fc.constantFrom('"', '\\', 'prompt', ':', '{', 'u00', 'q', 'text', '\n') })
  fc.assert(
    fc.property(text, (head) => {
      const found = promptIn(JSON.stringify({ truncated: true, bytes: 1, head }))
      expect(found === undefined || found.length <= 201).toBe(true)
    }),
    { numRuns: 2_000 },
  )
  expect(promptIn(JSON.stringify({ truncated: true, bytes: 1, head: '{"prompt":"\\q' }))).toBeUndefined()
})
