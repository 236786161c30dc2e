/** Clause 4.2.2: which fields are read, and how they are compared. */
import { describe, expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import type { LineClient } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { verifies } from './verifies.ts'

describe('what is read', () => {
  const bus = sharedBus({ config: config(pool('echo', { instances: 3 })) })
  let count = 0
  const pidOf = async (client: LineClient, message: Record<string, unknown>): Promise<number> =>
    (await client.ask({ id: Math.random().toString(), method: 'm', ...message })).result.pid

  test.each([
    ['a string', 'x'],
    ['an empty string', ''],
    ['zero', 0],
    ['a negative number', -7],
    ['a large number', 2 ** 53 - 1],
  ])('4.2.2 an id may be %s', async (_, id) => {
    verifies('4.2.2-routing-fields')
    expect(await (await bus().connect()).ask({ id, method: 'm' })).toMatchObject({ id })
  })

  test.each([
    ['no jsonrpc', '{"id":1,"method":"m"}'],
    ['another jsonrpc', '{"jsonrpc":"1.0","id":1,"method":"m"}'],
    ['jsonrpc of another type', '{"jsonrpc":2,"id":1,"method":"m"}'],
    ['params of any type', '{"id":1,"method":"m","params":"text"}'],
    ['an empty method', '{"id":1,"method":""}'],
    ['unknown fields', '{"zzz":[{}],"id":1,"method":"m"}'],
    ['a null result beside a method', '{"id":1,"method":"m","result":null,"error":null}'],
  ])('4.2.2 %s is not validated', async (_, line) => {
    verifies('4.2.2-no-validation')
    const client = await bus().connect()
    client.send(line)
    expect(await client.next()).toMatchObject({ id: 1, result: {} })
  })

  test('4.2.2 params.sessionId keeps a session on its worker', async () => {
    verifies('4.2.2-params-session')
    const client = await bus().connect()
    const pids = new Set<number>()
    for (let n = 0; n < 6; n++) pids.add(await pidOf(client, { params: { sessionId: 'by-params' } }))
    expect(pids.size).toBe(1)
    expect(pids).toContain(await pidOf(client, { sessionId: 'by-params' }))
  })

  test('4.2.2 a session is the same in every spelling', async () => {
    verifies('4.2.2-by-value')
    const client = await bus().connect()
    const pid = await pidOf(client, { sessionId: 'SA/😀' })
    for (const spelling of ['S\\u0041/😀', '\\u0053A\\/\\ud83d\\ude00', '\\u0053\\u0041\\u002f\\uD83D\\uDE00']) {
      client.send(`{"id":"x","method":"m","sessionId":"${spelling}"}`)
      expect((await client.next()).result.pid).toBe(pid)
    }
    expect(await bus().status()).toMatchObject({ workers: expect.any(Array) })
  })

  test.each([
    [
      'sessionId',
      '{"id":"x","method":"m","params":{"deep":{"sessionId":"L"},"list":[{"sessionId":"L"}]},"x":{"sessionId":"L"}}',
    ],
    ['sessionId in a string', '{"id":"x","method":"m","params":"{\\"sessionId\\":\\"L\\"}"}'],
    ['session_id and SessionId', '{"id":"x","method":"m","session_id":"L","SessionId":"L","sessionID":"L"}'],
  ])('4.2.2 a nested or similar %s never counts', async (_, line) => {
    verifies('4.2.2-look-alikes')
    const client = await bus().connect()
    const name = `L${++count}`
    await pidOf(client, { sessionId: name })
    const pids = new Set<number>()
    for (let n = 0; n < 3; n++) {
      client.send(line.replaceAll('"L', `"${name}`))
      pids.add((await client.next()).result.pid)
    }
    expect(pids.size).toBe(3)
  })

  test('4.2.2 nested ids and methods never count', async () => {
    verifies('4.2.2-look-alikes')
    const client = await bus().connect()
    client.send('{"params":{"id":"wrong","method":"wrong","result":1,"error":{}},"method":"right","id":"right"}')
    expect(await client.next()).toMatchObject({ id: 'right', result: { method: 'right' } })
  })

  test('4.2.2 the key itself is compared by value', async () => {
    verifies('4.2.2-by-value')
    const client = await bus().connect()
    client.send('{"\\u0069d":1,"m\\u0065thod":"m"}')
    expect(await client.next()).toMatchObject({ id: 1, result: { method: 'm' } })
  })
})

describe('answers', () => {
  test.each([
    ['a string', '"A\\u0042"', '"\\u0041B"'],
    ['a number', '5', '5.0'],
    ['a number with an exponent', '500', '5e2'],
  ])('4.2.2 the answer to %s is found in another spelling', async (_, asked, answered) => {
    verifies('4.2.2-by-value')
    const bus = await startBus({ config: config(pool('obeys')) })
    const client = await bus.connect()
    client.send(`{"id":${asked},"method":"m","params":${JSON.stringify({ write: `{"id":${answered},"result":1}\n` })}}`)
    expect((await client.next()).id).toEqual(JSON.parse(asked))
  })

  test('4.2.2 5 and "5" are two requests', async () => {
    verifies('4.2.2-types-differ')
    const bus = await startBus({ config: config(pool('answers-in-reverse', { args: ['2'] })) })
    const client = await bus.connect()
    client.send({ id: 5, method: 'm', params: 'number' })
    client.send({ id: '5', method: 'm', params: 'string' })
    const answers = await client.take(2)
    expect(answers.map((each) => [each.id, each.result.echo])).toEqual([
      ['5', 'string'],
      [5, 'number'],
    ])
  })

  test('4.2.2 an answer to "5" does not answer 5', async () => {
    verifies('4.2.2-types-differ', 'promise-not-silent')
    const bus = await startBus({ config: config(pool('obeys')) })
    const client = await bus.connect()
    client.send({ id: 5, method: 'm', params: { write: '{"id":"5","result":"wrong"}\n{"id":5,"result":"right"}\n' } })
    expect(await client.next()).toMatchObject({ id: 5, result: 'right' })
    const { dropped } = await bus.status()
    expect(Object.values(dropped).reduce((sum, count) => sum + count, 0)).toBe(1)
  })
})

describe('sizes', () => {
  const bus = sharedBus({ config: config(pool('echo')) })

  test.each([1_023, 1_024])('4.2.2 an id of %i bytes is an id', async (bytes) => {
    verifies('4.2.2-id-length')
    const id = 'i'.repeat(bytes)
    expect((await (await bus().connect()).ask({ id, method: 'm' })).id).toBe(id)
  })

  test('4.2.2 an id of 1,025 bytes is a bad envelope', async () => {
    verifies('4.2.2-id-length')
    const client = await bus().connect()
    client.send({ id: 'i'.repeat(1_025), method: 'm' })
    expect(await client.untilClosed()).toMatchObject([{ error: { code: -32600, data: { reason: 'bad_envelope' } } }])
  })

  test.each([1_023, 1_024])('4.2.2 a session id of %i bytes is a session id', async (bytes) => {
    verifies('4.2.2-session-length')
    const client = await bus().connect()
    const sessionId = `${bytes}`.padEnd(bytes, 's')
    expect((await client.ask({ id: 1, method: 'm', sessionId })).sessionId).toBe(sessionId)
    expect(await client.ask({ id: 2, method: 'm', params: { sessionId } })).toMatchObject({ result: {} })
  })

  test.each([
    ['top-level', { sessionId: 's'.repeat(1_025) }],
    ['params', { params: { sessionId: 's'.repeat(1_025) } }],
  ])('4.2.2 a %s session id of 1,025 bytes is a bad envelope', async (_, fields) => {
    verifies('4.2.2-session-length')
    const client = await bus().connect()
    client.send({ id: 1, method: 'm', ...fields })
    expect(await client.untilClosed()).toMatchObject([{ id: 1, error: { data: { reason: 'bad_envelope' } } }])
  })

  test('4.2.2 long session ids that share a prefix are different sessions', async () => {
    verifies('4.2.2-by-value')
    const [one, other] = [await bus().connect(), await bus().connect()]
    const prefix = 'p'.repeat(1_000)
    expect(await one.ask({ id: 1, method: 'm', sessionId: `${prefix}1` })).toMatchObject({ result: {} })
    expect(await other.ask({ id: 1, method: 'm', sessionId: `${prefix}2` })).toMatchObject({ result: {} })
  })
})
