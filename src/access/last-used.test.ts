import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LastUsed } from './last-used.ts'

test('the entries used last are there, and never more than twice as many', () => {
  const key = fc.integer({ min: 0, max: 12 }).map(String)
  const step = fc.record({ does: fc.constantFrom('get', 'set', 'delete'), key })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 60 }), (least, steps) => {
      const table = new LastUsed<number>(least)
      const model = new Map<string, number>()
      for (const [at, { does, key }] of steps.entries()) {
        const known = model.get(key)
        if (does === 'delete') table.delete(key)
        if (does === 'set') table.set(key, at)
        const found = table.get(key)
        if (does === 'delete') expect(found).toBeUndefined()
        if (does === 'set') expect(found).toBe(at)
        if (does === 'get' && [...model.keys()].slice(-least).includes(key)) expect(found).toBe(known)
        if (does === 'get' && found !== undefined) expect(found).toBe(known)
        model.delete(key)
        if (found !== undefined) model.set(key, found)
        expect(table.size).toBeLessThanOrEqual(2 * least)
      }
    }),
  )
})
