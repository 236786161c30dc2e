import fc from 'fast-check'
import { expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { payloadKeeper } from './payload.ts'

const SECRET = 'S3CRET-never-shown'

/** The same letters in any case. */
const spelled = (key: string) =>
  fc
    .array(fc.boolean(), { minLength: key.length, maxLength: key.length })
    .map((upper) => [...key].map((char, index) => (upper[index] ? char.toUpperCase() : char.toLowerCase())).join(''))

const { value: document } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.jsonValue({ maxDepth: 1 }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.string({ maxLength: 6 }), tie('value'), { maxKeys: 3 }),
    spelled('api_key').map((key) => ({ [key]: SECRET })),
    spelled('password').map((key) => ({ [key]: [SECRET, { nested: SECRET }] })),
    spelled('password').map((key) => JSON.stringify({ [key]: SECRET })),
  ),
}))

it('no value of a configured key survives, wherever it is and however the key is spelled', () => {
  verifies('T6-redact')
  const keep = payloadKeeper({ redact: ['password', 'API_Key'], payloadBytes: 1_000_000 })
  fc.assert(
    fc.property(document, (value) => {
      const kept = keep(JSON.stringify(value)).text
      expect(kept).not.toContain(SECRET)
      expect(() => JSON.parse(kept)).not.toThrow()
    }),
    { numRuns: 500 },
  )
})

it('without keys and media a payload is kept as it is', () => {
  const keep = payloadKeeper({ redact: [], payloadBytes: 1_000_000 })
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value)
      expect(JSON.parse(keep(text).text)).toEqual(JSON.parse(text))
    }),
  )
})

it('what is kept is valid JSON and bounded, whatever the limit', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.integer({ min: 0, max: 200 }), (value, payloadBytes) => {
      const { text } = payloadKeeper({ redact: ['a'], payloadBytes })(JSON.stringify(value))
      JSON.parse(text)
      // The head may need escapes: at worst every byte becomes six.
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(payloadBytes * 6 + 60)
    }),
  )
})
