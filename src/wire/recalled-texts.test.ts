import fc from 'fast-check'
import { expect, test } from 'vitest'
import { recallText } from './recalled-texts.ts'

test('what is recalled is what stands there, whatever stood there before', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '-', '7'), maxLength: 6 })
  const long = fc.string({ unit: fc.constantFrom('x', 'y'), minLength: 60, maxLength: 70 })
  fc.assert(
    fc.property(fc.array(fc.oneof(text, long), { maxLength: 60 }), (all) => {
      for (const one of all) {
        const bytes = Buffer.from(`..${one}..`)
        expect(recallText(bytes, 2, 2 + one.length)).toBe(one)
      }
    }),
  )
})
