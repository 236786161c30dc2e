/** Nodes that are killed, frozen or told to go, and a broker that is (contract 14.7, 14.8). */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startServers, withNats } from '../support/nats.ts'
import { pool } from '../support/pools.ts'
import { eventually, sleep } from '../support/waiting.ts'
import { ECHO, startNode, startPair, untilReachable } from './nodes.ts'

const ask = (id: unknown, more: object = {}) => ({ jsonrpc: '2.0', id, method: 'x', ...more })
const lostAt = (node: string) => ({ error: { code: -32603, data: { reason: 'node_lost', retryable: true, node } } })

withNats(7, () => {
  describe('a node that is killed', () => {
    test('costs what its workers owe, once, and is back at once when it is there again', async () => {
      verifies('14.7-lost', '14.7-new-requests', '14.7-back')
      const slow = pool('slow', { args: ['60000'] })
      const { nats, a, b } = await startPair({ pools: [ECHO, slow] }, { pools: [pool('echo', { id: 'own' })] })
      const client = await a.connect()
      for (let n = 0; n < 5; n++) client.send(ask(n, { pool: 'slow' }))
      expect(await client.ask(ask('here', { pool: 'own' }))).toHaveProperty('result')
      const killedMs = Date.now()
      b.kill()
      const answers = await client.take(5)
      expect(Date.now() - killedMs).toBeLessThan(4_500)
      for (const [n, answer] of answers.entries()) expect(answer).toMatchObject({ id: n, ...lostAt('n2') })
      expect(await client.ask(ask('new', { pool: 'slow' }))).toMatchObject(lostAt('n2'))
      expect(await client.ask(ask('at', { pool: 'slow@n2' }))).toMatchObject(lostAt('n2'))
      expect(await client.ask(ask('own', { pool: 'own' }))).toHaveProperty('result')
      await client.staysQuiet(50)
      await startNode(nats, 'n2', { pools: [ECHO, slow] })
      await untilReachable(a, 'echo', 3_000)
      expect(await client.ask(ask('again', { pool: 'echo' }))).toHaveProperty('result')
    })

    test('takes its clients with it: a worker elsewhere is told', async () => {
      verifies('14.7-clients')
      const { a, b } = await startPair({ pools: [ECHO, pool('asks')] })
      const client = await a.connect()
      client.send(ask(1, { pool: 'asks', sessionId: 's' }))
      await client.next()
      a.kill()
      await b.statusWhere('nobody is there', ({ clients, outstanding }) => clients === 0 && outstanding === 0)
      const own = await b.connect()
      // Its question was answered for the client that has gone.
      expect(await own.ask(ask(2, { pool: 'asks', method: 'said' }))).toMatchObject({ result: { waiting: 0 } })
    })
  })

  test('a node that was frozen finds that it was given up: its late answers reach nobody', async () => {
    verifies('14.5-epochs', '14.7-frozen')
    const { a, b } = await startPair({ pools: [ECHO, pool('slow')] })
    const client = await a.connect()
    client.send(ask(1, { pool: 'slow', params: { ms: 1_800 } }))
    const idle = await a.connect()
    expect(await idle.ask(ask('idle', { pool: 'echo' }))).toHaveProperty('result')
    await b.statusWhere('the streams are there', ({ clients }) => clients >= 2)
    b.signal('SIGSTOP')
    expect(await client.next(6_000)).toMatchObject({ id: 1, ...lostAt('n2') })
    b.signal('SIGCONT')
    await untilReachable(a, 'echo')
    // Its workers were not frozen, and it was not late for itself.
    await b.statusWhere('the given up are gone', ({ clients }) => clients === 0)
    await client.staysQuiet(200)
    expect(await client.ask(ask(2, { pool: 'echo' }))).toHaveProperty('result')
    expect(await idle.ask(ask('idle 2', { pool: 'echo' }))).toHaveProperty('result')
  })

  test('a node that is told to go delivers what is owed, and nobody sees it lost', async () => {
    verifies('14.7-leaving')
    const { nats, a, b } = await startPair({ pools: [ECHO, pool('slow')] })
    const client = await a.connect()
    const owed = await a.connect()
    owed.send(ask(1, { pool: 'slow', params: { ms: 3_000 } }))
    await b.statusWhere('it is owed', ({ outstanding }) => outstanding === 1)
    const exit = b.stop('SIGTERM')
    await eventually('the node to be known to leave', async () => {
      const answer = await client.ask(ask('new', { pool: 'echo' }))
      return answer.error?.data.reason === 'shutting_down'
    })
    await startNode(nats, 'n3', { pools: [ECHO] })
    await untilReachable(a, 'echo')
    expect(await client.ask(ask('other', { pool: 'echo' }))).toHaveProperty('result')
    expect(await owed.next()).toHaveProperty('result')
    expect((await exit).code).toBe(0)
    await sleep(2_500)
    expect(await client.ask(ask('gone', { pool: 'slow' }))).toMatchObject({
      error: { data: { reason: 'unknown_pool' } },
    })
    expect(a.log.text).not.toContain('node is lost')
  })

  describe('a break of NATS', () => {
    test('shorter than lost_after_ms loses, doubles and fails nothing', async () => {
      verifies('14.8-short-break')
      const { nats, a } = await startPair({ pools: [ECHO, pool('asks')] }, { cluster: { lost_after_ms: 5_000 } })
      const client = await a.connect()
      const asked = await a.connect()
      asked.send(ask(1, { pool: 'asks', sessionId: 's' }))
      const question = await asked.next()
      const count = 3_000
      let sent = 0
      const load = setInterval(() => {
        for (let n = 0; n < 10 && sent < count; n++)
          client.send(ask(sent++, { pool: 'echo', params: { pad: 'x'.repeat(200) } }))
      }, 10)
      await sleep(500)
      await nats.stop('SIGKILL')
      await sleep(400)
      await nats.start()
      const answers = await client.take(count, 20_000)
      clearInterval(load)
      expect(answers.map(({ id }) => id)).toEqual([...Array(count).keys()])
      expect(answers.every(({ result }) => result !== undefined)).toBe(true)
      asked.send({ jsonrpc: '2.0', id: question.id, result: 'still here' })
      expect(await asked.next()).toMatchObject({ id: 1, result: { said: 'still here' } })
      await client.staysQuiet(100)
    })

    test('that is a change from one server to another of three loses, doubles and fails nothing', async () => {
      verifies('14.8-failover')
      const servers = await startServers(3)
      const cluster = { nats: servers.map(({ url }) => url), lost_after_ms: 5_000 }
      const [a] = await Promise.all([
        startNode(servers[0]!, 'n1', { cluster }),
        startNode(servers[0]!, 'n2', { pools: [ECHO], cluster }),
      ])
      await untilReachable(a, 'echo', 15_000)
      const client = await a.connect()
      const count = 2_000
      let sent = 0
      const load = setInterval(() => {
        for (let n = 0; n < 10 && sent < count; n++) client.send(ask(sent++, { pool: 'echo' }))
      }, 10)
      for (const server of servers.slice(0, 2)) {
        await sleep(500)
        await server.stop('SIGKILL')
      }
      const answers = await client.take(count, 20_000)
      clearInterval(load)
      expect(answers.map(({ id }) => id)).toEqual([...Array(count).keys()])
      expect(answers.every(({ result }) => result !== undefined)).toBe(true)
    }, 40_000)

    test('longer is the loss of all others, told at once, and over within a second of its return', async () => {
      verifies('14.8-long-break')
      const { nats, a, b } = await startPair({ pools: [ECHO, pool('slow')] }, { pools: [pool('echo', { id: 'own' })] })
      const client = await a.connect()
      client.send(ask(1, { pool: 'slow', params: { ms: 60_000 } }))
      await b.statusWhere('it is owed', ({ outstanding }) => outstanding === 1)
      await nats.stop()
      expect(await client.next()).toMatchObject({ id: 1, ...lostAt('n2') })
      const askedMs = Date.now()
      expect(await client.ask(ask(2, { pool: 'echo' }))).toMatchObject(lostAt('n2'))
      expect(Date.now() - askedMs).toBeLessThan(1_000)
      expect(await client.ask(ask(3, { pool: 'own' }))).toHaveProperty('result')
      await nats.start()
      await untilReachable(a, 'echo', 3_000)
      await b.statusWhere('what was given up is gone', ({ outstanding }) => outstanding === 0)
    })
  })
})
