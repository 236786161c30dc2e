import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Generations } from './generations.ts'

test('the newest half of the limit is always there, never more than the limit', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 200 }), (keys) => {
      const gone = new Set<string>()
      const map = new Generations<number>(10, (key) => gone.add(key))
      for (const key of keys) {
        map.set(String(key), key)
        gone.delete(String(key))
      }
      const distinct = [...new Set(keys.map(String).reverse())]
      for (const key of distinct.slice(0, 5)) expect(map.get(key)).toBe(Number(key))
      const known = distinct.filter((key) => map.has(key))
      expect(known.length).toBeLessThanOrEqual(10)
      for (const key of distinct) expect(map.has(key)).toBe(!gone.has(key))
    }),
  )
})

test('what is asked for stays', () => {
  const map = new Generations<number>(4)
  map.set('hot', 1)
  for (let n = 0; n < 100; n++) {
    map.set(String(n), n)
    expect(map.get('hot')).toBe(1)
  }
})
