import fc from 'fast-check'
import { expect, test } from 'vitest'
import { spellTime } from './calendar.ts'

const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

test('a moment is spelled as everybody spells it', () => {
  fc.assert(
    fc.property(fc.integer({ min: -62_000_000_000_000, max: LAST_MS }), (ms) => {
      expect(spellTime(ms)).toBe(new Date(ms).toISOString())
    }),
  )
})

test.each([0, LAST_MS, Date.UTC(2024, 1, 29), Date.UTC(2100, 1, 28, 23, 59), Date.UTC(2000, 2, 1)])('%d', (ms) => {
  expect(spellTime(ms + 0.7)).toBe(new Date(ms).toISOString())
})
