/** Whom another node has judged is narrowed here, never widened (contract 14.9). */
import { expect, test } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { identityFromNode } from './open-doors.ts'

const coming = (pools: string[], more: object = {}) => ({
  pool: 'p',
  principal: 'ann',
  name: 'ann',
  pools,
  vias: [],
  ...more,
})

test.each([
  [['*'], ['p', 'q'], ['p', 'q']],
  [['p'], ['*'], ['p']],
  [['p*'], ['q*', 'p'], ['p']],
  [['q'], ['p'], []],
  [['p'], ['q'], []],
])('with %j from there and %j here it may use %j', (there, here, both) => {
  verifies('14.9-narrowed')
  expect(identityFromNode(coming(there), 'n1', { role: 'admin', pools: here }).rights).toEqual({
    role: 'user',
    pools: both,
  })
})

test('without an entry here it is as it was carried, and a user', () => {
  verifies('14.9-principal')
  const identity = identityFromNode(coming(['p'], { tools: { deny: ['x'] } }), 'n1')
  expect(identity).toMatchObject({ principal: 'ann', rights: { role: 'user', pools: ['p'], tools: { deny: ['x'] } } })
})
