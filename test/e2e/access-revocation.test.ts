/** A connection lives no longer than its credential, and a reload changes who may be there (contract 9.5, 9.10, 7.5). */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { House, NOT_ALLOWED, startHouse, UNKNOWN } from './access-harness.ts'

const HELD = { pools: [pool('silent'), pool('echo')] }

describe('9.5 the end of a credential', () => {
  test('9.5 revoked: every outstanding request is refused, then the end; others stay', async () => {
    verifies('9.5-revoked')
    const house = await startHouse({ ...HELD, principals: { alice: {}, bob: {} }, doors: ['tcp', 'unix'] })
    const clients = await Promise.all(['tcp', 'unix'].map((door) => house.enter('alice', { pool: 'silent' }, door)))
    const bob = await house.enter('bob', { pool: 'echo' })
    for (const client of clients) {
      for (const id of [1, 'two', 3]) client.send({ id, method: 'm' })
      await client.taken()
    }
    await house.change((rows) => rows.delete('alice'))
    for (const client of clients) {
      const last = await client.untilClosed()
      expect(last.map(({ id }) => id).sort()).toEqual([1, 3, null, 'two'].sort())
      for (const answer of last) expect(answer).toMatchObject(UNKNOWN)
      for (const answer of last) expect(answer.error.data).not.toHaveProperty('why')
    }
    expect(await bob.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
  })

  test('9.5 one of several tokens is revoked: who came with it goes, who came with another stays', async () => {
    verifies('9.5-revoked')
    const house = await startHouse()
    const first = await house.enter('alice')
    const other = house.give('alice')
    await house.change(() => {})
    const second = await house.enter(other)
    await house.change((rows) => rows.get('alice')!.tokens.shift())
    await first.untilClosed()
    expect(await second.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
  })

  test('9.5 expired: the same, saying so, within a second; who has shown a fresh one stays', async () => {
    verifies('9.5-expired', '9.3-later')
    const house = await startHouse(HELD)
    const expiresAtMs = Math.ceil(Date.now() / 1_000) * 1_000 + 2_000
    const short = house.give('alice', { expires: new Date(expiresAtMs).toISOString() })
    await house.change(() => {})
    const client = await house.enter(short, { pool: 'silent' })
    const extended = await house.enter(short, { pool: 'echo' })
    const fresh = { id: 'fresh', method: 'bus::open', params: { token: house.tokens['alice'] } }
    expect(await extended.ask(fresh)).toMatchObject({ result: { principal: 'alice' } })
    client.send({ id: 1, method: 'm' })
    const last = await client.untilClosed()
    const lateMs = Date.now() - expiresAtMs
    expect(last).toMatchObject([
      { id: 1, error: { data: { reason: 'unauthenticated', why: 'expired' } } },
      { id: null },
    ])
    expect(lateMs).toBeGreaterThanOrEqual(0)
    expect(await extended.ask({ id: 2, method: 'm' })).toMatchObject({ result: {} })
    const [, again] = await house.present(short)
    expect(again).toMatchObject({ error: { data: { why: 'expired' } } })
  })

  test('9.5 a token that was shown again and is refused changes nothing for the connection', async () => {
    verifies('9.3-later')
    const house = await startHouse()
    const old = house.give('alice')
    await house.change(() => {})
    const client = await house.enter('alice')
    await house.change((rows) => rows.get('alice')!.tokens.pop())
    expect(await client.ask({ id: 1, method: 'bus::open', params: { token: old } })).toMatchObject(UNKNOWN)
    expect(await client.ask({ id: 2, method: 'm' })).toMatchObject({ result: {} })
  })
})

describe('9.10 a reload', () => {
  test('9.10 that brings access ends those who have proved nothing, and one without it lets them in again', async () => {
    verifies('9.10-reload')
    const workspace = testWorkspace()
    const house = new House(workspace, { alice: {} })
    const open = config(pool('echo'))
    const closed = { ...open, access: { file: 'access.json' } }
    house.bus = await startBus({ config: open, doors: ['tcp', 'unix'], workspace })
    const reload = async (next: object) => {
      workspace.write('bus.json', next)
      expect(await house.bus.run(['reload', '--control', house.bus.control])).toMatchObject({ code: 0 })
    }
    const anybody = await house.knock()
    const local = await house.knock('unix')
    expect(await anybody.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    expect(await local.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    await reload(closed)
    expect(await anybody.untilClosed()).toMatchObject([{ id: null, ...UNKNOWN }])
    expect(await local.ask({ id: 2, method: 'm' })).toMatchObject({ result: {} })
    const stranger = await house.knock()
    expect(await stranger.ask({ id: 1, method: 'm' })).toMatchObject(UNKNOWN)
    const alice = await house.enter('alice')
    await reload(open)
    // Whoever proved something by a file that is gone proves it no more.
    expect(await alice.untilClosed()).toMatchObject([UNKNOWN])
    const again = await house.knock()
    expect(await again.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
  })

  test('9.10 that says what anonymous may do holds for those who are in', async () => {
    verifies('9.10-reload')
    const workspace = testWorkspace()
    const pools = [pool('echo'), pool('slow', { args: ['0'] })]
    const bus = await startBus({ config: config(pools), doors: ['tcp'], workspace })
    const client = await bus.connect()
    const other = await bus.connect()
    const ask = (id: string, name: string) => client.ask({ id, pool: name, method: 'm' })
    expect(await ask('before', 'slow')).toMatchObject({ result: {} })
    for (const anonymous of [{ pools: ['echo'] }, { pools: ['slow'] }]) {
      workspace.write('bus.json', config(pools, {}, { access: { anonymous } }))
      expect(await bus.run(['reload', '--control', bus.control])).toMatchObject({ code: 0 })
      const [allowed] = anonymous.pools
      for (const name of ['echo', 'slow'])
        expect(await ask(`${allowed} ${name}`, name)).toMatchObject(name === allowed ? { result: {} } : NOT_ALLOWED)
    }
    expect((await other.ask({ id: 'who', method: 'bus::whoami' })).result).toMatchObject({ pools: ['slow'] })
  })

  test('9.10 whose access file is mistaken is refused, and everybody stays', async () => {
    verifies('9.10-reload')
    const house = await startHouse()
    const alice = await house.enter('alice')
    const other = house.workspace.write('bus.json', config(pool('echo'), {}, { access: { file: 'none.json' } }))
    const done = await house.bus.run(['reload', '--control', house.bus.control])
    expect(done).toMatchObject({ code: 2, stderr: expect.stringContaining('token add') })
    expect(other).toBeTruthy()
    expect(await alice.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    await house.enter('alice')
  })
})
