/** Clauses 3.4, 6.4, 7.3: whose a session is, and when it ends. */
import { describe, expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { verifies } from './verifies.ts'

const NOT_OWNED = { error: { code: -32002, data: { reason: 'session_not_owned' } } }

describe('whose it is', () => {
  const bus = sharedBus({ config: config(pool('notifies', { instances: 2 })) })
  let count = 0

  test("6.4 another client's session is refused", async () => {
    verifies('6.4-not-owned', '3.4-one-owner', 'promise-error-shape')
    const [owner, thief] = [await bus().connect(), await bus().connect()]
    await owner.ask({ id: 1, method: 'm', sessionId: 'one' })
    expect(await thief.ask({ id: 1, method: 'm', sessionId: 'one' })).toMatchObject({ id: 1, ...NOT_OWNED })
    await thief.staysQuiet(50)
    expect(await thief.ask({ id: 2, method: 'm' })).toMatchObject({ result: {} })
  })

  test.each([
    ['in another spelling', '{"id":1,"method":"m","sessionId":"T\\u0057O"}'],
    ['in params', '{"id":1,"method":"m","params":{"sessionId":"TWO"}}'],
    ['in params beside one of its own', '{"id":1,"method":"m","sessionId":"own","params":{"sessionId":"TWO"}}'],
    ['at top level beside one of its own', '{"id":1,"method":"m","sessionId":"TWO","params":{"sessionId":"own"}}'],
    ['by load', '{"id":1,"method":"session/load","params":{"sessionId":"TWO"}}'],
    ['with another pool', '{"id":1,"method":"m","sessionId":"TWO","pool":"notifies"}'],
  ])('6.4 it is refused %s', async (_, line) => {
    verifies('6.4-not-owned', '4.2.2-two-sessions')
    const [owner, thief] = [await bus().connect(), await bus().connect()]
    const name = `TWO${++count}`
    await owner.ask({ id: 1, method: 'm', sessionId: name })
    thief.send(line.replace('O"', `O${count}"`))
    expect(await thief.next()).toMatchObject({ id: 1, ...NOT_OWNED })
  })

  test('6.4 it is not taken over: the owner keeps it and its notifications', async () => {
    verifies('6.4-never-taken-over')
    const [owner, thief] = [await bus().connect(), await bus().connect()]
    const before = await owner.ask({ id: 1, method: 'm', sessionId: 'three' })
    await thief.ask({ id: 1, method: 'm', sessionId: 'three' })
    thief.send({ method: 'note', sessionId: 'three' })
    owner.send({ id: 2, method: 'm', sessionId: 'three' })
    const after = await owner.answerTo(2)
    expect(after.result.pid).toBe(before.result.pid)
    expect(owner.lines).toHaveLength(4)
    expect(thief.lines).toHaveLength(1)
  })

  test('4.2.2 top-level and params session may differ when both are its own or new', async () => {
    verifies('4.2.2-two-sessions')
    const client = await bus().connect()
    const both = { id: 1, method: 'm', sessionId: 'outer', params: { sessionId: 'inner' } }
    const first = await client.ask(both)
    const again = await client.ask({ ...both, id: 2 })
    expect(again.result.pid).toBe(first.result.pid)
    expect(await (await bus().connect()).ask({ id: 1, method: 'm', sessionId: 'outer' })).toMatchObject(NOT_OWNED)
  })
})

describe('when it ends', () => {
  test.each(['close', 'reset'] as const)('3.4 a session ends with its client (%s)', async (way) => {
    verifies('3.4-ends-with-client', '7.3-sessions-end')
    const bus = await startBus({ config: config(pool('echo')), doors: ['tcp'] })
    const first = await bus.connect()
    await first.ask({ id: 1, method: 'm', sessionId: 's' })
    first[way]()
    await bus.statusWhere('the client is gone', ({ clients, sessions }) => clients === 0 && sessions === 0)
    const second = await bus.connect()
    expect(await second.ask({ id: 1, method: 'm', sessionId: 's' })).toMatchObject({ result: {} })
  })

  test('3.4 a session ends with its worker', async () => {
    verifies('3.4-ends-with-worker', '7.1-session-lost')
    const bus = await startBus({ config: config(pool('dies-on-request')) })
    const [client, other] = [await bus.connect(), await bus.connect()]
    await client.ask({ id: 1, method: 'm', sessionId: 's' })
    await client.ask({ id: 2, method: 'die', sessionId: 's' })
    expect((await bus.status()).sessions).toBe(0)
    expect(await client.ask({ id: 3, method: 'm', sessionId: 's' })).toMatchObject({
      id: 3,
      error: { code: -32002, data: { reason: 'session_lost' } },
    })
    expect(await client.ask({ id: 5, method: 'm', sessionId: 'new' })).toMatchObject({ result: {} })
    expect(await other.ask({ id: 1, method: 'm', sessionId: 's' })).toMatchObject({ result: {} })
  })

  test('7.1 a lost session named in params is lost as well', async () => {
    verifies('7.1-session-lost')
    const bus = await startBus({ config: config(pool('dies-on-request')) })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'm', params: { sessionId: 's' } })
    await client.ask({ id: 2, method: 'die' })
    expect(await client.ask({ id: 3, method: 'm', params: { sessionId: 's' } })).toMatchObject({
      error: { code: -32002, data: { reason: 'session_lost' } },
    })
  })

  test('7.1 a session on a living worker is not lost when another worker dies', async () => {
    verifies('7.1-session-lost')
    const bus = await startBus({ config: config(pool('dies-on-request', { instances: 2 })) })
    await bus.allReady()
    const client = await bus.connect()
    const first = await client.ask({ id: 1, method: 'm', sessionId: 'a' })
    const second = await client.ask({ id: 2, method: 'm', sessionId: 'b' })
    expect(first.result.pid).not.toBe(second.result.pid)
    await client.ask({ id: 3, method: 'die', sessionId: 'a' })
    expect((await client.ask({ id: 4, method: 'm', sessionId: 'b' })).result.pid).toBe(second.result.pid)
  })
})
