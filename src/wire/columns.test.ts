import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clip, cutAt, displayWidth, pad } from './columns.ts'

describe('columns', () => {
  it.each([
    ['abc', 3],
    ['日本', 4],
    ['e\u0301', 1],
    ['🚀', 2],
    ['a\u200db', 2],
    ['├─●', 3],
  ])('%j takes %i', (text, width) => {
    expect(displayWidth(text)).toBe(width)
  })

  it('cuts between characters, and loses none', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '日', '🚀', '\u0301', ' ') })
    fc.assert(
      fc.property(text, fc.nat(12), (given, columns) => {
        const [head, tail] = cutAt(given, columns)
        expect(head + tail).toBe(given)
        expect(displayWidth(head)).toBeLessThanOrEqual(columns)
        expect(displayWidth(clip(given, columns))).toBeLessThanOrEqual(columns)
        expect(displayWidth(pad(given, columns))).toBe(columns)
      }),
      { numRuns: 300 },
    )
  })
})
