/** Clauses 7.1 and 7.3: what is owed when a worker or a client goes. */
import { describe, expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { isAlive } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const EXITED = { code: -32603, data: { reason: 'worker_exited' } }

describe('a worker goes', () => {
  test('7.1 every outstanding request of it is answered, at every client', async () => {
    verifies('7.1-worker-exited', 'promise-one-answer', 'promise-error-shape')
    const bus = await startBus({ config: config(pool('dies-on-request')) })
    const clients = [await bus.connect(), await bus.connect()]
    for (const client of clients) for (const id of [1, 'two', 3.5]) client.send({ id, method: 'wait' })
    for (const client of clients) await client.taken()
    clients[0]!.send({ id: 'last', method: 'die', params: { code: 9 } })
    const answers = [await clients[0]!.take(4), await clients[1]!.take(3)]
    expect(answers.map((list) => list.map((each) => each.id))).toEqual([
      expect.arrayContaining([1, 'two', 3.5, 'last']),
      expect.arrayContaining([1, 'two', 3.5]),
    ])
    for (const answer of answers.flat()) expect(answer).toMatchObject({ jsonrpc: '2.0', error: EXITED })
    for (const client of clients) await client.staysQuiet(50)
    expect((await bus.status()).outstanding).toBe(0)
  })

  test('7.1 the error says the exit code', async () => {
    verifies('7.1-worker-exited')
    const bus = await startBus({ config: config(pool('dies-on-request')) })
    const { error } = await (await bus.connect()).ask({ id: 1, method: 'die', params: { code: 42 } })
    expect(error).toMatchObject(EXITED)
    expect(JSON.stringify(error.data)).toContain('42')
  })

  test('7.1 or the signal', async () => {
    verifies('7.1-worker-exited')
    const bus = await startBus({ config: config(pool('dies-on-request')) })
    const { error } = await (await bus.connect()).ask({ id: 1, method: 'die', params: { signal: 'SIGKILL' } })
    expect(error).toMatchObject(EXITED)
    expect(JSON.stringify(error.data)).toContain('SIGKILL')
  })

  test('7.1 what it wrote before dying is delivered first', async () => {
    verifies('7.1-last-words')
    const bus = await startBus({ config: config(pool('last-words')) })
    const client = await bus.connect()
    client.send({ id: 'waits', method: 'wait' })
    client.send({ id: 'speaks', method: 'm', sessionId: 's', params: { count: 500 } })
    const lines = await client.take(502)
    expect(lines.slice(0, 500).map((each) => each.params.n)).toEqual(Array.from({ length: 500 }, (_, n) => n))
    expect(lines[500]).toMatchObject({ id: 'speaks', result: 'last words' })
    expect(lines[501]).toMatchObject({ id: 'waits', error: EXITED })
  })

  test('7.1 a stdout that stays open holds the errors up for at most 1 s', async () => {
    verifies('7.1-last-words-bound', '7.1-group-ended')
    const bus = await startBus({ config: config(pool('leaves-stdout-open')) })
    const client = await bus.connect()
    const { result } = await client.ask({ id: 1, method: 'm' })
    const began = Date.now()
    expect(await client.ask({ id: 2, method: 'die' })).toMatchObject({ error: EXITED })
    expect(Date.now() - began).toBeLessThan(2_000)
    await eventually('the grandchild to be gone', () => !isAlive(result.grandchild), 6_000)
  })

  test('7.1 a lost session is told of once; then its name is new and goes to the next worker', async () => {
    verifies('7.1-told-once', '7.1-session-lost', '6.1-new-session')
    const bus = await startBus({ config: config(pool('dies-on-request', { instances: 2 })) })
    await bus.allReady()
    const client = await bus.connect()
    const { pid } = (await client.ask({ id: 1, method: 'm', sessionId: 's' })).result
    await client.ask({ id: 2, method: 'die', sessionId: 's' })
    const lost = { code: -32002, data: { reason: 'session_lost', sessionId: 's' } }
    expect(await client.ask({ id: 3, method: 'm', sessionId: 's' })).toMatchObject({ error: lost })
    const { result } = await client.ask({ id: 4, method: 'm', sessionId: 's' })
    expect(result.pid).not.toBe(pid)
    expect((await client.ask({ id: 5, method: 'm', sessionId: 's' })).result.pid).toBe(result.pid)
    await client.ask({ id: 6, method: 'die', sessionId: 's' })
    expect(await client.ask({ id: 7, method: 'm', sessionId: 's' })).toMatchObject({ error: lost })
    expect(await client.ask({ id: 8, method: 'm', sessionId: 's' })).toMatchObject({ result: {} })
  })

  test('7.1 each of several sessions is told of, in params too; a notification is not told', async () => {
    verifies('7.1-told-once', 'promise-not-silent')
    const bus = await startBus({ config: config(pool('dies-on-request')) })
    const [client, other] = [await bus.connect(), await bus.connect()]
    for (const name of ['a', 'b', 'c']) await client.ask({ id: name, method: 'm', sessionId: name })
    await client.ask({ id: 1, method: 'die' })
    client.send({ method: 'm', sessionId: 'a' })
    client.send({ method: 'm', params: { sessionId: 'b' } })
    const isLost = (sessionId: string) => ({ error: { data: { reason: 'session_lost', sessionId } } })
    expect(await client.ask({ id: 2, method: 'm', sessionId: 'a' })).toMatchObject(isLost('a'))
    expect(await client.ask({ id: 3, method: 'm', params: { sessionId: 'b' } })).toMatchObject(isLost('b'))
    expect(await client.ask({ id: 4, method: 'm', sessionId: 'a', params: { sessionId: 'c' } })).toMatchObject(
      isLost('c'),
    )
    for (const name of ['a', 'b', 'c'])
      expect(await client.ask({ id: name, method: 'm', sessionId: name })).toMatchObject({ result: {} })
    expect((await bus.status()).dropped).toEqual({ session_lost: 2 })
    expect(await other.ask({ id: 5, method: 'm', sessionId: 'a' })).toMatchObject({
      error: { data: { reason: 'session_not_owned' } },
    })
  })

  test('7.1 a stdout that ends counts as exit', async () => {
    verifies('7.1-stdout-eof', '7.1-worker-exited')
    const bus = await startBus({ config: config(pool('closes-stdout')) })
    const client = await bus.connect()
    const { result } = await client.ask({ id: 1, method: 'm' })
    expect(await client.ask({ id: 2, method: 'close' })).toMatchObject({ error: { code: -32603 } })
    await eventually('the old process to be gone', () => !isAlive(result.pid), 8_000)
    expect((await client.ask({ id: 3, method: 'm' })).result.pid).not.toBe(result.pid)
  })

  test('7.1 a stdin that breaks counts as exit', async () => {
    verifies('7.1-broken-stdin')
    const bus = await startBus({ config: config(pool('closes-stdin')) })
    const client = await bus.connect()
    const { pid } = (await bus.allReady()).workers[0]!
    client.send({ id: 1, method: 'm' })
    const resend = setInterval(() => client.send({ method: 'poke' }), 50)
    try {
      expect(await client.answerTo(1)).toMatchObject({ error: { code: -32603 } })
    } finally {
      clearInterval(resend)
    }
    await eventually('the old process to be gone', () => !isAlive(pid), 8_000)
  })

  test('7.1 clients of other workers do not notice', async () => {
    verifies('7.1-worker-exited')
    const bus = await startBus({ config: config([pool('dies-on-request'), pool('slow')]) })
    const [client, other] = [await bus.connect(), await bus.connect()]
    other.send({ id: 1, method: 'm', pool: 'slow', params: { ms: 400 } })
    await client.ask({ id: 1, method: 'die', pool: 'dies-on-request' })
    expect(await other.next()).toMatchObject({ id: 1, result: {} })
    expect(other.lines).toHaveLength(1)
  })
})

describe('a client goes', () => {
  test('7.3 late answers are discarded and counted', async () => {
    verifies('7.3-late-answers', 'promise-not-silent')
    const bus = await startBus({ config: config(pool('slow')), doors: ['tcp'] })
    const client = await bus.connect()
    for (const id of [1, 2, 3]) client.send({ id, method: 'm', params: { ms: 1_000 } })
    await client.taken()
    client.reset()
    const counted = (counts: Record<string, number>) => Object.values(counts).reduce((sum, count) => sum + count, 0)
    const status = await bus.statusWhere('they are counted', ({ dropped }) => counted(dropped) === 3)
    expect(status).toMatchObject({ clients: 0, outstanding: 0 })
  })

  test('7.3 its questions are answered with an error: the worker does not wait', async () => {
    verifies('7.3-questions')
    const bus = await startBus({ config: config([pool('asks'), pool('raw-log', { args: ['log'] })]), doors: ['tcp'] })
    const [client, other] = [await bus.connect(), await bus.connect()]
    client.send({ id: 1, method: 'm', pool: 'asks', sessionId: 's' })
    expect(await client.next()).toMatchObject({ method: 'question', sessionId: 's' })
    client.reset()
    const noneWaits = async () => {
      const { result } = await other.ask({ id: 1, method: 'said', pool: 'asks' })
      return result.waiting === 0
    }
    expect(await eventually('the question to be answered', noneWaits)).toBe(true)
  })

  test('7.3 a question for a client that has gone is answered with an error', async () => {
    verifies('7.3-questions')
    const bus = await startBus({ config: config(pool('asks')), doors: ['tcp'] })
    const [client, other] = [await bus.connect(), await bus.connect()]
    client.send({ id: 1, method: 'm', sessionId: 's', params: { ms: 500 } })
    await client.taken()
    client.reset()
    await bus.statusWhere('the client is gone', (status) => status.clients === 1)
    const noneWaits = async () => (await other.ask({ id: 1, method: 'said' })).result.waiting === 0
    expect(await eventually('the question to be answered', noneWaits)).toBe(true)
  })

  test('6.5 the answer of a client goes back to the worker that asked, whatever the ids', async () => {
    verifies('6.5-worker-requests', '6.5-unasked')
    const bus = await startBus({ config: config(pool('asks', { args: ['1'] })) })
    const clients = [await bus.connect(), await bus.connect()]
    for (const [n, client] of clients.entries()) {
      client.send({ id: 1, method: 'm', sessionId: `s${n}` })
      const question = await client.next()
      expect(question).toMatchObject({ method: 'question', sessionId: `s${n}` })
      client.send({ id: 'unasked', result: 0 })
      client.send({ id: question.id, result: `from ${n}` })
      expect(await client.next()).toMatchObject({ id: 1, result: { said: `from ${n}`, error: null } })
    }
    expect(Object.values((await bus.status()).dropped)).toEqual([2])
  })
})
