import fc from 'fast-check'
import { expect, test } from 'vitest'
import { printable, printableProse } from './printable.ts'

test.each([
  ['\x1b[2Jred\x07 \x9b', '\\u001b[2Jred\\u0007 \\u009b'],
  ['a\r\nb\tc\x7f', 'a\\u000d\\u000ab\\u0009c\\u007f'],
  ['\u202eevil\u2066 \u2028', '\\u202eevil\\u2066 \\u2028'],
  ['pay\u200bpal\ufeff\u00ad', 'pay\\u200bpal\\ufeff\\u00ad'],
  ['half \ud800 of one', 'half \\ud800 of one'],
  ['ünï 漢字 😀 \ufffd "\\"', 'ünï 漢字 😀 \ufffd "\\"'],
])('%j is shown as %j', (text, shown) => expect(printable(text)).toBe(shown))

test('prose keeps its lines and its script', () => {
  expect(printableProse('a\n\tb 👩‍👩‍👧 می‌خواهم\r\x1b')).toBe('a\n\tb 👩‍👩‍👧 می‌خواهم\\u000d\\u001b')
})

test('whatever a peer writes, nothing unprintable comes out, and what prints stays', () => {
  const text = fc.string({ unit: fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\ud800', '\x1b', '\u202e')) })
  fc.assert(
    fc.property(text, (written) => {
      for (const shown of [printable(written), printableProse(written)]) {
        expect(shown).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/)
        expect(Buffer.from(shown).toString()).toBe(shown)
        expect(printable(printable(written))).toBe(printable(written))
      }
      expect(printable(written)).not.toMatch(/[\n\t\u200b-\u200f\ufeff]/)
    }),
  )
})
