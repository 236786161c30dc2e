import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { IdKey } from './envelope.ts'
import { IdTable } from './id-table.ts'

const key: fc.Arbitrary<IdKey> = fc.oneof(
  fc.integer({ min: -5, max: 40 }),
  fc.constantFrom(1.5, 2 ** 40, 2 ** 53 - 1, -(2 ** 40)),
  fc.constantFrom('1', '2', '', 'a'.repeat(300), 'b1000000000'),
  fc.constantFrom(9007199254740993n, 12345678901234567890n),
)
const step = fc.record({ do: fc.constantFrom('set', 'delete', 'get' as const), key, row: fc.nat() })

test('does what a Map does, whatever comes and goes', () => {
  fc.assert(
    fc.property(fc.integer(), fc.array(step, { maxLength: 400 }), (seed, steps) => {
      const table = new IdTable<number>(seed)
      const map = new Map<IdKey, number>()
      for (const { do: what, key, row } of steps) {
        if (what === 'set') {
          table.set(key, row)
          map.set(key, row)
        }
        if (what === 'delete') expect(table.delete(key)).toBe(map.delete(key))
        expect(table.get(key)).toBe(map.get(key))
        expect(table.has(key)).toBe(map.has(key))
        expect(table.size).toBe(map.size)
      }
      expect([...table.values()].sort()).toEqual([...map.values()].sort())
    }),
  )
})

test('grows with what it holds and shrinks again', () => {
  const table = new IdTable<number>(7)
  for (let id = 0; id < 50_000; id++) table.set(id, id)
  for (let id = 0; id < 50_000; id++) expect(table.get(id)).toBe(id)
  for (let id = 0; id < 50_000; id++) table.delete(id)
  expect(table.size).toBe(0)
  expect([...table.values()]).toEqual([])
})
