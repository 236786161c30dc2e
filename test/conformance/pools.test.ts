/** Clause 6.3: how a message finds its pool. */
import { describe, expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import { connectUnix } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { verifies } from './verifies.ts'

const named = (id: string, more = {}) => pool('echo', { id, args: [id], ...more })
const TWO = [named('red'), named('blue')]

describe('two pools', () => {
  const bus = sharedBus({ config: config(TWO) })

  test('6.3 a top-level pool chooses', async () => {
    verifies('6.3-pool-field')
    const client = await bus().connect()
    for (const name of ['red', 'blue', 'red']) {
      expect(await client.ask({ id: 1, method: 'm', pool: name })).toMatchObject({ result: { worker: name } })
    }
  })

  test('6.3 a nested pool does not', async () => {
    verifies('6.3-pool-required', '4.2.2-look-alikes')
    const client = await bus().connect()
    const answer = await client.ask({ id: 1, method: 'm', params: { pool: 'red' } })
    expect(answer).toMatchObject({ error: { data: { reason: 'pool_required' } } })
  })

  test('6.3 without a choice the answer is pool_required and names the pools', async () => {
    verifies('6.3-pool-required', 'promise-one-answer', 'promise-error-shape')
    const client = await bus().connect()
    const { error } = await client.ask({ id: 'a', method: 'm' })
    expect(error).toMatchObject({ code: -32600, message: expect.any(String), data: { reason: 'pool_required' } })
    expect(JSON.stringify(error)).toContain('red')
    expect(JSON.stringify(error)).toContain('blue')
    expect(await client.ask({ id: 'b', method: 'm', pool: 'red' })).toMatchObject({ result: {} })
  })

  test('6.3 an unknown pool is -32601 unknown_pool', async () => {
    verifies('6.3-unknown-pool')
    const client = await bus().connect()
    const answer = await client.ask({ id: 1, method: 'm', pool: 'green' })
    expect(answer).toMatchObject({ id: 1, error: { code: -32601, data: { reason: 'unknown_pool' } } })
  })

  test('6.3 a session stays with its worker whatever pool is said later', async () => {
    verifies('6.3-session-stays')
    const client = await bus().connect()
    const ask = (more: object) => client.ask({ id: 1, method: 'm', sessionId: 'stays', ...more })
    expect(await ask({ pool: 'red' })).toMatchObject({ result: { worker: 'red' } })
    for (const more of [{ pool: 'blue' }, {}, { pool: 'green' }]) {
      expect(await ask(more)).toMatchObject({ result: { worker: 'red' } })
    }
  })

  test('6.3 bus::open chooses for the connection, is consumed, and a pool field still wins', async () => {
    verifies('6.3-open')
    const client = await bus().connect()
    client.send({ method: 'bus::open', params: { pool: 'blue' } })
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: { worker: 'blue' } })
    expect(await client.ask({ id: 2, method: 'm', pool: 'red' })).toMatchObject({ result: { worker: 'red' } })
    expect(await client.ask({ id: 3, method: 'm' })).toMatchObject({ result: { worker: 'blue' } })
    expect(client.lines).toHaveLength(3)
  })

  test('6.3 bus::open of one client is not that of another', async () => {
    verifies('6.3-open')
    const [opened, other] = [await bus().connect(), await bus().connect()]
    opened.send({ method: 'bus::open', params: { pool: 'blue' } })
    await opened.ask({ id: 1, method: 'm' })
    expect(await other.ask({ id: 1, method: 'm' })).toMatchObject({ error: { data: { reason: 'pool_required' } } })
  })
})

describe('other choices', () => {
  test('6.3 bus::open never reaches a worker, nor does any other method of the bus', async () => {
    verifies('6.3-open', '6.3-bus-methods')
    const bus = await startBus({ config: config(pool('raw-log', { args: ['log'] })) })
    const client = await bus.connect()
    client.send({ method: 'bus::open', params: { pool: 'raw-log' } })
    client.send({ method: 'bus::nothing' })
    expect(await client.ask({ id: 1, method: 'bus::nonsense' })).toMatchObject({ id: 1, error: { code: -32601 } })
    await client.ask({ id: 2, method: 'm' })
    expect(bus.workspace.lines('log')).toHaveLength(1)
    expect(bus.workspace.read('log')).not.toContain('bus::')
  })

  test('6.3 the methods of the bus are its own in every spelling', async () => {
    verifies('6.3-bus-methods', '4.2.2-by-value')
    const bus = await startBus({ config: config(pool('raw-log', { args: ['log'] })) })
    const client = await bus.connect()
    client.send('{"id":1,"method":"\\u0062us::nonsense"}')
    expect(await client.next()).toMatchObject({ id: 1, error: { code: -32601 } })
    expect(bus.workspace.read('log')).toBe('')
  })

  test("6.3 a listener's own pool, which bus::open and a pool field overrule", async () => {
    verifies('6.3-listener')
    const bus = await startBus({
      config: config(TWO, {}, { default_pool: 'red', listen: { unix: [{ path: 'x.sock', pool: 'blue' }, 'y.sock'] } }),
      doors: [],
    })
    const client = await connectUnix(bus.workspace.path('x.sock'))
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: { worker: 'blue' } })
    expect(await client.ask({ id: 2, method: 'm', pool: 'red' })).toMatchObject({ result: { worker: 'red' } })
    const plain = await connectUnix(bus.workspace.path('y.sock'))
    expect(await plain.ask({ id: 3, method: 'm' })).toMatchObject({ result: { worker: 'red' } })
  })

  test('6.3 default_pool is used when nothing else is said', async () => {
    verifies('6.3-default-pool')
    const bus = await startBus({ config: config(TWO, {}, { default_pool: 'blue' }) })
    const client = await bus.connect()
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: { worker: 'blue' } })
    expect(await client.ask({ id: 2, method: 'm', pool: 'red' })).toMatchObject({ result: { worker: 'red' } })
  })

  test('6.3 the only pool needs no name', async () => {
    verifies('6.3-only-pool')
    const bus = await startBus({ config: config(named('red')) })
    const client = await bus.connect()
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: { worker: 'red' } })
    expect(await client.ask({ id: 2, method: 'm', pool: 'red' })).toMatchObject({ result: { worker: 'red' } })
    const wrong = await client.ask({ id: 3, method: 'm', pool: 'blue' })
    expect(wrong).toMatchObject({ error: { data: { reason: 'unknown_pool' } } })
  })

  test('6.3 each pool takes its own turns', async () => {
    verifies('6.1-no-session', '6.3-pool-field')
    const pools = [named('red', { instances: 2 }), named('blue', { instances: 2 })]
    const bus = await startBus({ config: config(pools) })
    await bus.allReady()
    const client = await bus.connect()
    const pids: Record<string, number[]> = { red: [], blue: [] }
    for (const name of ['red', 'blue', 'red', 'blue', 'blue', 'red', 'red', 'blue']) {
      pids[name]!.push((await client.ask({ id: 1, method: 'm', pool: name })).result.pid)
    }
    for (const [a, b, c, d] of Object.values(pids)) {
      expect(a).not.toBe(b)
      expect([c, d]).toEqual([a, b])
    }
  })

  test('6.3 a notification that has no pool is dropped and counted', async () => {
    verifies('6.3-pool-required', 'promise-not-silent')
    const bus = await startBus({ config: config(TWO) })
    const client = await bus.connect()
    client.send({ method: 'm' })
    client.send({ method: 'm', pool: 'green' })
    await client.ask({ id: 1, method: 'm', pool: 'red' })
    expect(client.lines).toHaveLength(1)
    const { dropped } = await bus.status()
    expect(Object.values(dropped).reduce((sum, count) => sum + count, 0)).toBe(2)
  })
})
