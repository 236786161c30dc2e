import fc from 'fast-check'
import { expect, test } from 'vitest'
import { OddIds } from './odd-ids.ts'

test('a final reply has the spelling back, once', () => {
  const odd = new OddIds()
  const id = odd.lend('1', '1.50')
  expect(odd.spell('1', { jsonrpc: '2.0', id, result: 1 })).toBe('{"id":1.50,"jsonrpc":"2.0","result":1}')
  expect(odd.spell('1', { id: '1.50', result: 1 })).toBe('{"id":"1.50","result":1}')
})

test('partials have it too, and do not end it', () => {
  const odd = new OddIds()
  const id = odd.lend('1', '1e2')
  const partial = { method: 'a::partial', params: { id, seq: 1 }, trace_id: 't' }
  expect(JSON.parse(odd.spell('1', partial))).toEqual({
    method: 'a::partial',
    params: { id: 100, seq: 1 },
    trace_id: 't',
  })
  expect(odd.spell('1', { id })).toBe('{"id":1e2}')
})

test('another caller, and one that has gone, get nothing', () => {
  const odd = new OddIds()
  const id = odd.lend('1', '1.0')
  expect(odd.spell('2', { id })).toBe(JSON.stringify({ id }))
  odd.forget('1')
  expect(odd.spell('1', { id })).toBe(JSON.stringify({ id }))
})

test('however many ids are open, each reply finds its own spelling', () => {
  const spellings = fc.array(
    fc.integer({ min: 0, max: 9 }).map((n) => `${n}.${'0'.repeat(n % 3)}5`),
    { maxLength: 30 },
  )
  fc.assert(
    fc.property(spellings, (all) => {
      const odd = new OddIds()
      const lent = all.map((spelling) => ({ spelling, id: odd.lend('1', spelling) }))
      for (const { spelling, id } of lent.reverse()) expect(odd.spell('1', { id })).toBe(`{"id":${spelling}}`)
    }),
  )
})
