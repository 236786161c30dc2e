/** Clauses 6.1, 6.2, 4.2.3: which worker gets a line, which client gets the answer, and that both get it as it was. */
import { describe, expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const total = (counts: Record<string, number>): number => Object.values(counts).reduce((sum, count) => sum + count, 0)

describe('client to worker', () => {
  test('6.1 without a session the workers take turns', async () => {
    verifies('6.1-no-session')
    const bus = await startBus({ config: config(pool('echo', { instances: 3 })) })
    await bus.allReady()
    const client = await bus.connect()
    const pids: number[] = []
    for (let id = 0; id < 9; id++) pids.push((await client.ask({ id, method: 'm' })).result.pid)
    expect(new Set(pids.slice(0, 3)).size).toBe(3)
    expect(pids).toEqual([...pids.slice(0, 3), ...pids.slice(0, 3), ...pids.slice(0, 3)])
  })

  test('6.1 new sessions take turns, known ones stay', async () => {
    verifies('6.1-new-session', '6.1-known-session', '3.4-one-worker')
    const bus = await startBus({ config: config(pool('echo', { instances: 3 })) })
    await bus.allReady()
    const client = await bus.connect()
    const pidOf = async (sessionId: string) => (await client.ask({ id: 1, method: 'm', sessionId })).result.pid
    const first = [await pidOf('a'), await pidOf('b'), await pidOf('c')]
    expect(new Set(first).size).toBe(3)
    for (let round = 0; round < 3; round++) {
      expect([await pidOf('a'), await pidOf('b'), await pidOf('c')]).toEqual(first)
    }
    expect((await bus.status()).sessions).toBe(3)
  })

  test('6.1 a notification makes and follows a session too', async () => {
    verifies('6.1-new-session', '6.1-known-session')
    const bus = await startBus({ config: config(pool('notifies', { instances: 3 })) })
    const client = await bus.connect()
    client.send({ method: 'hello', sessionId: 's', params: { n: 1 } })
    expect(await client.next()).toMatchObject({ method: 'news', sessionId: 's', params: { of: { n: 1 } } })
    const pids = new Set<number>()
    for (let id = 1; id <= 4; id++) pids.add((await client.ask({ id, method: 'm', sessionId: 's' })).result.pid)
    expect(pids.size).toBe(1)
  })

  test('6.1 a request is recorded until it is answered', async () => {
    verifies('6.1-outstanding')
    const bus = await startBus({ config: config(pool('slow')) })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', params: { ms: 2_500 } })
    client.send({ method: 'note' })
    const during = await bus.statusWhere('one is outstanding', (status) => status.outstanding === 1)
    expect(during.workers[0]!.outstanding).toBe(1)
    await client.next()
    expect((await bus.status()).outstanding).toBe(0)
  })

  test('6.1 a worker that is not ready is skipped', async () => {
    verifies('6.1-next-ready', '7.2-parked')
    const limits = { max_restarts: 0 }
    const bus = await startBus({ config: config(pool('dies-on-request', { instances: 3 }), limits) })
    await bus.allReady()
    const client = await bus.connect()
    await client.ask({ id: 'x', method: 'die' })
    await bus.statusWhere('one is parked', ({ workers }) => workers.some((each) => each.state === 'parked'))
    const pids: number[] = []
    for (let id = 0; id < 6; id++) pids.push((await client.ask({ id, method: 'm' })).result.pid)
    expect(new Set(pids).size).toBe(2)
    expect(pids).toEqual([pids[0], pids[1], pids[0], pids[1], pids[0], pids[1]])
  })
})

describe('worker to client', () => {
  test('6.2 an answer goes to the client that asked, whatever the order', async () => {
    verifies('6.2-answers', 'promise-one-answer', '3.5-response')
    const bus = await startBus({ config: config(pool('answers-in-reverse', { args: ['4'] })) })
    const clients = await Promise.all([1, 2, 3, 4].map(() => bus.connect()))
    for (const [n, client] of clients.entries()) client.send({ id: 'same', method: 'm', params: n })
    for (const [n, client] of clients.entries()) {
      expect(await client.next()).toMatchObject({ id: 'same', result: { echo: n } })
    }
    for (const client of clients) await client.staysQuiet(50)
  })

  test('6.2 errors of a worker are answers like any other', async () => {
    verifies('6.2-answers', '3.5-response')
    const bus = await startBus({ config: config(pool('obeys')) })
    const client = await bus.connect()
    const line = '{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no","data":[1]}}'
    client.send({ id: 1, method: 'm', params: { write: `${line}\n` } })
    expect((await client.nextLine()).toString()).toBe(line)
  })

  test('6.2 a notification with a session goes to its owner only', async () => {
    verifies('6.2-by-session')
    const bus = await startBus({ config: config(pool('notifies')) })
    const [owner, other] = [await bus.connect(), await bus.connect()]
    await other.ask({ id: 1, method: 'm', sessionId: 'theirs' })
    owner.send({ id: 1, method: 'm', sessionId: 'mine' })
    expect(await owner.take(2)).toMatchObject([{ method: 'news', sessionId: 'mine' }, { id: 1 }])
    expect(other.lines).toHaveLength(2)
    await other.staysQuiet(100)
  })

  test('6.2 the owner gets it whoever caused it', async () => {
    verifies('6.2-by-session')
    const bus = await startBus({ config: config(pool('notifies')) })
    const [owner, other] = [await bus.connect(), await bus.connect()]
    await owner.ask({ id: 1, method: 'm', sessionId: 'mine' })
    expect(await other.ask({ id: 1, method: 'm', params: { to: 'mine' } })).toMatchObject({ result: {} })
    expect(await owner.next()).toMatchObject({ method: 'news', sessionId: 'mine', params: { of: { to: 'mine' } } })
    expect(other.lines).toHaveLength(1)
  })

  test.each([
    ['no session', null],
    ['an unknown session', 'nobody'],
  ])('6.2 a notification with %s is discarded, counted and warned of', async (_, to) => {
    verifies('6.2-discard', 'promise-not-silent')
    const bus = await startBus({ config: config(pool('notifies')) })
    const clients = [await bus.connect(), await bus.connect()]
    expect(await clients[0]!.ask({ id: 1, method: 'm', params: { to } })).toMatchObject({ id: 1 })
    for (const client of clients) expect(client.lines.length).toBeLessThan(2)
    expect(total((await bus.status()).dropped)).toBe(1)
    await eventually('a warning', () => bus.log.warnings().length > 0)
  })

  test('6.2 the second of two answers is discarded and counted', async () => {
    verifies('6.2-discard', 'promise-one-answer', 'promise-not-silent')
    const bus = await startBus({ config: config(pool('answers-twice')) })
    const client = await bus.connect()
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: { time: 1 } })
    await client.staysQuiet(100)
    expect(total((await bus.status()).dropped)).toBe(1)
  })

  test('6.2 answers nobody asked for are discarded and counted', async () => {
    verifies('6.2-discard', 'promise-not-silent')
    const bus = await startBus({ config: config(pool('answers-unknown-ids')) })
    const client = await bus.connect()
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
    expect(client.lines).toHaveLength(1)
    expect(total((await bus.status()).dropped)).toBe(2)
  })
})

describe('bytes', () => {
  const ODD = [
    '{ "method" : "m" , "id" : 1 , "params" : { "b" : 1.50 , "a" : 1e3, "a" : 2 } }',
    '{"params":["\\u00e9\\/","é",1E+2,-0,12345678901234567890],"id":2,"method":"m\\u006d"}',
    '{"jsonrpc":"2.0","id":3,"method":"m","sessionId":"s","trace_id":"t","pool":"raw-log","agentId":null}',
    '{"id":4,"method":"\u2028\u2029\u0085","params":{"":{"":[]}}}\t ',
  ]

  test.each(ODD)('4.2.3 a plain worker gets every byte of %s', async (line) => {
    verifies('4.2.3-unchanged', '4.2.3-plain-every-byte')
    const bus = await startBus({ config: config(pool('raw-log', { args: ['log'] })) })
    const client = await bus.connect()
    client.send(line)
    expect(await client.next()).toMatchObject({ result: {} })
    expect(bus.workspace.read('log')).toBe(`${line}\n`)
  })

  test.each([
    '{ "result" : { "b" : 1.50 , "a" : 1e3, "a" : 2 } , "id" : 1, "jsonrpc":"2.0" }',
    '{"id":1,"result":["\\u00e9\\/","é",1E+2,-0,12345678901234567890,"\u2028"],"extra":{"id":5}}',
    '{"sessionId":"s","id":1,"error":{"code":1.0,"message":"\\ud800"}}  ',
  ])('4.2.3 a client gets every byte of %s', async (line) => {
    verifies('4.2.3-unchanged')
    const bus = await startBus({ config: config(pool('obeys')) })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', params: { write: `${line}\n` } })
    expect((await client.nextLine()).toString()).toBe(line)
  })

  test('4.2.3 a notification to a client keeps every byte', async () => {
    verifies('4.2.3-unchanged')
    const bus = await startBus({ config: config(pool('obeys')) })
    const client = await bus.connect()
    const line = '{ "params":{"x":1.0} ,"sessionId":"\\u0073", "method":"n" }'
    client.send({ id: 1, method: 'm', sessionId: 's', params: { write: `${line}\n` } })
    expect((await client.nextLine()).toString()).toBe(line)
  })
})
