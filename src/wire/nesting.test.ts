import { expect, test } from 'vitest'
import { isNestedTooDeep, MAX_NESTING, readWritable } from './nesting.ts'

const nested = (depth: number): Buffer => Buffer.from(`${'{"a":['.repeat(depth / 2)}${']}'.repeat(depth / 2)}`)

test.each([
  [MAX_NESTING - 2, false],
  [MAX_NESTING, false],
  [MAX_NESTING + 2, true],
])('%i levels: %s', (depth, isTooDeep) => {
  expect(isNestedTooDeep(nested(depth))).toBe(isTooDeep)
})

test('brackets in strings and neighbours do not count', () => {
  expect(isNestedTooDeep(Buffer.from(JSON.stringify({ a: '"[\\'.repeat(2_000) })))).toBe(false)
  expect(isNestedTooDeep(Buffer.from(JSON.stringify(Array.from({ length: 2_000 }, () => [{}]))))).toBe(false)
})

test('what is read to be written again can be written, however deep it is', () => {
  const deep = nested(200_000)
  expect(() => JSON.stringify(JSON.parse(deep.toString()))).toThrow(RangeError)
  expect(JSON.stringify(readWritable(deep))).toMatch(/^(\{"a":\[)+"\[nested too deep\]"(\]\})+$/)
  const sound = { a: [1, 'two', null, { '"\\"': '\\"[' }] }
  expect(readWritable(Buffer.from(JSON.stringify(sound)))).toEqual(sound)
})
