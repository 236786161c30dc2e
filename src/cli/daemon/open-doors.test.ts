/** Whom another node has judged is narrowed here, never widened (contract 14.9). */
import { expect, test } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { openingFor, readOpening, writeOpening } from '../../cluster/opening.ts'
import { identityFromNode } from './open-doors.ts'

const coming = (pools: string[], more: object = {}) => ({
  pool: 'p',
  principal: 'ann',
  name: 'ann',
  role: 'user' as const,
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

test('an observer is one everywhere, nobody is more than a user, and an entry here can make anybody an observer', () => {
  verifies('14.9-principal', '14.9-narrowed')
  const home = { node: 'n1', local: undefined, busId: 'b' }
  const roleOf = (role: 'admin' | 'user' | 'observer', own?: 'user' | 'observer') => {
    const rights = { role, pools: ['*'] }
    const opening = readOpening(writeOpening(openingFor('p', { principal: 'x', name: 'x', rights, vias: [] }, home))!)!
    return identityFromNode(opening, 'n1', own && { role: own, pools: ['*'] }).rights.role
  }
  expect([roleOf('admin'), roleOf('user'), roleOf('observer')]).toEqual(['user', 'user', 'observer'])
  expect([roleOf('user', 'observer'), roleOf('observer', 'user')]).toEqual(['observer', 'observer'])
  const forged = (role: unknown) =>
    readOpening(Buffer.from(JSON.stringify({ pool: 'p', principal: 'x', name: 'x', pools: ['*'], vias: [], role })))
      ?.role
  expect([forged('admin'), forged('root'), forged(undefined), forged('__proto__')]).toEqual([
    'user',
    undefined,
    undefined,
    undefined,
  ])
})
