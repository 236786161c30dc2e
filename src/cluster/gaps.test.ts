/** Which streams of another node have not come yet (contract 14.9). */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { Gaps } from './gaps.ts'

test('knows what a set of the numbers would, as long as it has room', () => {
  verifies('14.9-bounds')
  const step = fc.oneof(
    fc.record({ jump: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ take: fc.integer({ min: 0, max: 60 }) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const gaps = new Gaps(1_000)
      const model = new Set<number>()
      let highest = 0
      for (const each of steps) {
        if ('take' in each) {
          expect(gaps.take(each.take)).toBe(model.delete(each.take))
        } else {
          gaps.add(highest + 1, highest + each.jump - 1)
          for (let n = 1; n < each.jump; n++) model.add(highest + n)
          highest += each.jump
        }
        expect(gaps.count).toBe(model.size)
        for (let n = 0; n <= highest; n++) expect(gaps.has(n)).toBe(model.has(n))
      }
    }),
  )
})

test('has never more ranges than it may', () => {
  verifies('14.9-bounds')
  const gaps = new Gaps(2)
  gaps.add(1, 1_000_000_000)
  expect([gaps.take(5), gaps.isFull]).toEqual([true, true])
  expect([gaps.take(7), gaps.take(1), gaps.take(1_000_000_000), gaps.take(5)]).toEqual([false, true, true, false])
  gaps.add(2_000_000_000, 2_000_000_001)
  expect(gaps.has(2_000_000_000)).toBe(false)
  gaps.clear()
  expect(gaps.count).toBe(0)
})
