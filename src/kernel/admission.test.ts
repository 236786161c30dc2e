import { expect, test } from 'vitest'
import { ANNA, BERT, identityOf, KernelRig } from '../../test/support/kernel-rig.ts'
import { FIXED, type Limits } from './limits.ts'
import type { Identity } from './rights.ts'
import type { ClientId } from './vocabulary.ts'

/** A bus without pools: who is in, and what it hears. */
class Door extends KernelRig {
  constructor(limits: Partial<Limits> = {}) {
    super({ pools: [], limits, hasAccess: true })
  }

  arrive(client: ClientId): void {
    this.connects(client, { door: 'tcp', mustProve: true, from: 'here' })
  }

  show(client: ClientId, id: number, end = '\n'): void {
    const line = { id, method: 'bus::open', params: { token: 't' } }
    this.apply({ type: 'client-received', client, bytes: Buffer.from(`${JSON.stringify(line)}${end}`) })
  }

  judge(client: ClientId, identity: Identity): void {
    this.apply({ type: 'client-judged', client, identity })
  }

  get reasons(): unknown[] {
    return [ANNA, BERT].flatMap((client) => this.all(client)).map(({ id, error }) => [id, error?.data.reason])
  }
}

test('a fresh credential of a lone client does not make the bus forget what its principal may', () => {
  const door = new Door()
  const anna = identityOf('anna', { maxConnections: 1, rate: { count: 1, perMs: 1_000 } })
  door.arrive(ANNA)
  door.show(ANNA, 1)
  door.judge(ANNA, anna)
  door.show(ANNA, 2)
  door.judge(ANNA, anna)
  door.arrive(BERT)
  door.show(BERT, 3)
  door.judge(BERT, anna)
  expect(door.reasons).toEqual([
    [1, undefined],
    [2, undefined],
    [3, 'too_many_clients'],
  ])
})

test('the second line is no first line: another principal does not take over, a bad credential changes nothing', () => {
  const door = new Door()
  door.arrive(ANNA)
  door.show(ANNA, 1)
  door.judge(ANNA, identityOf('anna'))
  door.show(ANNA, 2)
  door.judge(ANNA, identityOf('bert'))
  door.show(ANNA, 3)
  door.apply({ type: 'client-judged', client: ANNA, refusal: { reason: 'unauthenticated' } })
  expect(door.reasons).toEqual([
    [1, undefined],
    [2, 'not_allowed'],
    [3, 'unauthenticated'],
  ])
  expect(door.did('admitted')).toHaveLength(1)
  expect(door.did('close-client')).toEqual([])
})

test.each(['', '\n'])('who shows its credential and ends is answered, with %j at the end of its line too', (end) => {
  const door = new Door()
  door.arrive(ANNA)
  door.show(ANNA, 1, end)
  door.apply({ type: 'client-ended', client: ANNA })
  expect(door.did('judge')).toHaveLength(1)
  door.judge(ANNA, identityOf('anna'))
  expect(door.reasons).toEqual([[1, undefined]])
  expect(door.did('close-client')).toHaveLength(1)
})

test('whoever is not judged in time is answered, goes, and is not let in by a late verdict', () => {
  const door = new Door()
  door.arrive(ANNA)
  door.show(ANNA, 1)
  door.stalled.add(ANNA)
  door.pass(FIXED.admissionMs)
  door.judge(ANNA, identityOf('anna'))
  expect(door.reasons).toEqual([[1, 'unauthenticated']])
  expect(door.did('admitted')).toEqual([])
})

test('whoever is refused twice over hears of it once', () => {
  const door = new Door({ maxClients: 0 })
  for (const client of [ANNA, BERT]) door.stalled.add(client)
  door.connects(ANNA, { door: 'tcp', identity: identityOf('a', { maxConnections: 0 }) })
  door.arrive(BERT)
  door.pass(FIXED.admissionMs)
  expect(door.reasons).toEqual([
    [null, 'too_many_clients'],
    [null, 'too_many_clients'],
  ])
})

test('whoever is being judged when the bus ends is answered', () => {
  const door = new Door({ drainTimeoutMs: 10 })
  door.arrive(ANNA)
  door.show(ANNA, 1)
  door.apply({ type: 'shutdown', at: 'leisure' })
  door.pass(10)
  expect(door.reasons).toEqual([[1, 'shutting_down']])
})

test('whoever does not read that its credential has ended is gone all the same', () => {
  const door = new Door()
  door.arrive(ANNA)
  door.show(ANNA, 1)
  door.judge(ANNA, identityOf('anna'))
  door.stalled.add(ANNA)
  door.apply({ type: 'client-revoked', client: ANNA, isExpired: false })
  expect(door.did('close-client')).toEqual([])
  door.pass(FIXED.revokedMs)
  expect(door.did('close-client')).toHaveLength(1)
})
