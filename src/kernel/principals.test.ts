/** What a principal uses up, over all its connections (contract 9.21). */
import { describe, expect, it } from 'vitest'
import { identityOf } from '../../test/support/kernel-rig.ts'
import type { Client } from './peers.ts'
import { Principals } from './principals.ts'
import type { Identity, Rights } from './rights.ts'

const identity = (rights: Partial<Rights>): Identity => identityOf('alice', rights)

const somebody = (pendingCount = 0): Client => ({ owner: undefined, pendingCount }) as unknown as Client

function table(): { readonly principals: Principals; at(ms: number): void } {
  let nowMs = 0
  const principals = new Principals(() => nowMs)
  const at = (ms: number): void => void (nowMs = ms)
  return { principals, at }
}

describe('9.21 a rate', () => {
  const TEN_A_SECOND = identity({ rate: { count: 10, perMs: 1_000 } })

  it('is a bucket: so many at once, then one in its share of the time, and never more than the bucket', () => {
    const { principals } = table()
    const client = somebody()
    principals.join(client, TEN_A_SECOND)
    const row = client.owner!
    for (let n = 0; n < 10; n++) expect(row.spend(0)).toBe(0)
    expect(row.spend(0)).toBe(100)
    expect(row.spend(50)).toBe(50)
    expect(row.spend(100)).toBe(0)
    expect(row.spend(100)).toBe(100)
    for (let n = 0; n < 10; n++) expect(row.spend(1_000_000)).toBe(0)
    expect(row.spend(1_000_000)).toBe(100)
  })

  it('is one for all connections, and nobody gets a new one by coming again', () => {
    const { principals, at } = table()
    const [one, other, again] = [somebody(), somebody(), somebody()]
    principals.join(one, TEN_A_SECOND)
    principals.join(other, TEN_A_SECOND)
    expect(one.owner).toBe(other.owner)
    for (let n = 0; n < 10; n++) expect((n % 2 === 0 ? one : other).owner!.spend(0)).toBe(0)
    principals.leave(one)
    principals.leave(other)
    principals.join(again, TEN_A_SECOND)
    expect(again.owner!.spend(0)).toBeGreaterThan(0)
    principals.leave(again)
    at(2_000)
    principals.join(again, TEN_A_SECOND)
    for (let n = 0; n < 10; n++) expect(again.owner!.spend(2_000)).toBe(0)
  })
})

describe('9.21 a rate that changes', () => {
  const perSecond = (count: number): Rights => identity({ rate: { count, perMs: 1_000 } }).rights
  const rowOf = (count: number) => {
    const client = somebody()
    table().principals.join(client, identity(perSecond(count)))
    return client.owner!
  }
  const spent = (row: ReturnType<typeof rowOf>, nowMs: number): number => {
    let count = 0
    while (row.spend(nowMs) === 0) count++
    return count
  }

  it('has the more in it when it is raised: only what was used is missing', () => {
    const row = rowOf(2)
    expect(spent(row, 0)).toBe(2)
    row.adopt(perSecond(1_000), 0)
    expect(spent(row, 0)).toBe(998)
  })

  it('has no more than a full bucket when it is lowered', () => {
    const row = rowOf(100)
    expect(row.spend(0)).toBe(0)
    row.adopt(perSecond(5), 0)
    expect(spent(row, 0)).toBe(5)
  })

  it('has come back until then as fast as it did, and is the same when it stays the same', () => {
    const row = rowOf(10)
    expect(spent(row, 0)).toBe(10)
    row.adopt(perSecond(10), 500)
    row.adopt(perSecond(20), 500)
    expect(spent(row, 500)).toBe(15)
  })

  it('is a whole bucket for who had no bound', () => {
    const client = somebody()
    table().principals.join(client, identity({}))
    client.owner!.adopt(perSecond(3), 7_000)
    expect(spent(client.owner!, 7_000)).toBe(3)
  })
})

describe('9.21 connections and requests', () => {
  it('there are no more connections than it may have, until one goes', () => {
    const { principals } = table()
    const [one, other, third] = [somebody(), somebody(), somebody()]
    const two = identity({ maxConnections: 2 })
    expect(principals.join(one, two)).toBe(true)
    expect(principals.join(other, two)).toBe(true)
    expect(principals.join(third, two)).toBe(false)
    expect(principals.join(one, two)).toBe(true)
    principals.leave(other)
    expect(principals.join(third, two)).toBe(true)
  })

  it('what is pending counts over all of them', () => {
    const { principals } = table()
    const [one, other] = [somebody(2), somebody(3)]
    for (const client of [one, other]) principals.join(client, identity({}))
    expect(one.owner!.pendingCount).toBe(5)
  })
})

describe('9.1 a client and the row of its principal', () => {
  it('stands in one row: who becomes another leaves the first', () => {
    const { principals } = table()
    const client = somebody()
    principals.join(client, identity({ rate: { count: 1, perMs: 1_000 } }))
    const first = client.owner!
    principals.join(client, identityOf('bob'))
    expect([first.clients.size, client.owner!.id, client.owner!.clients.size]).toEqual([0, 'bob', 1])
    expect(principals.find('alice')).toBeUndefined()
  })

  it('has the rights that its latest credential brings', () => {
    const { principals } = table()
    const [one, other] = [somebody(), somebody()]
    principals.join(one, identity({ pools: ['old'] }))
    principals.join(other, identity({ pools: ['new'] }))
    expect([one.owner!.mayName('old'), one.owner!.mayName('new')]).toEqual([false, true])
  })

  it('needs a look at its messages where it has a bound, or is an observer', () => {
    const isUnbound = (rights: Partial<Rights>): boolean => {
      const client = somebody()
      table().principals.join(client, identity(rights))
      return client.owner!.isUnbound
    }
    expect([isUnbound({}), isUnbound({ role: 'admin' })]).toEqual([true, true])
    const bound = [{ role: 'observer' as const }, { pools: ['p'] }, { maxPending: 1 }, { environmentFor: ['p'] }]
    expect(bound.map(isUnbound)).toEqual([false, false, false, false])
  })
})
