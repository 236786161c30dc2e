/** How much a principal may ask for, over all its doors (contract 9.21). */
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { sharedHouse, UNKNOWN } from './access-harness.ts'

const LIMITED = { error: { code: -32603, data: { reason: 'rate_limited', retryable: true } } }
/** A server that takes batches, as those of its revision do. */
const MCP = {
  id: 'mcp',
  command: process.execPath,
  args: [fileURLToPath(new URL('../fixtures/mcp/puppet.mjs', import.meta.url))],
}
const CALL = { jsonrpc: '2.0', id: 1, method: 'm' }

describe('9.21 rates', () => {
  const house = sharedHouse({
    principals: {
      hourly: { rate: '3/h' },
      free: { rate: '2/h' },
      noisy: { rate: '2/h' },
      quick: { rate: '20/s' },
      back: { rate: '1/h' },
      pending: { max_pending: 2 },
      few: { max_connections: 2 },
      batch: { rate: '3/h' },
    },
    pools: [pool('echo'), pool('silent'), pool('raw-log', { id: 'logging', args: ['noted'] }), MCP],
    doors: ['tcp', 'unix'],
  })

  test('9.21 a bucket of N over all doors, then rate_limited with when to come again', async () => {
    verifies('9.21-rate')
    const tcp = await house().enter('hourly', { pool: 'echo' }, 'tcp')
    const unix = await house().enter('hourly', { pool: 'logging' }, 'unix')
    for (const client of [tcp, unix, tcp]) expect(await client.ask(CALL)).toMatchObject({ result: {} })
    for (const client of [tcp, unix]) {
      const answer = await client.ask({ ...CALL, method: 'one-too-many' })
      expect(answer).toMatchObject(LIMITED)
      expect(answer.error.data.retry_after_ms).toBeGreaterThan(1_000_000)
      expect(answer.error.data.retry_after_ms).toBeLessThanOrEqual(1_200_000)
    }
    expect(house().workspace.read('noted')).not.toContain('one-too-many')
  })

  test('9.21 answers, cancels, ping and notifications/initialized are free, and so is what the bus answers', async () => {
    verifies('9.21-free')
    const client = await house().enter('free', { pool: 'logging' })
    for (let n = 0; n < 20; n++) {
      client.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
      client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 99 } })
      client.send({ jsonrpc: '2.0', id: 'nobody asked', result: {} })
      await client.ask({ id: `who ${n}`, method: 'bus::whoami' })
      client.send({ jsonrpc: '2.0', id: `ping ${n}`, method: 'ping' })
    }
    await client.taken()
    for (const id of ['one', 'two']) expect(await client.ask({ ...CALL, id })).toMatchObject({ result: {} })
    expect(await client.ask({ ...CALL, id: 'three' })).toMatchObject(LIMITED)
  })

  test('9.21 notifications count, and those that are too many are dropped', async () => {
    verifies('9.21-notifications')
    const client = await house().enter('noisy', { pool: 'logging' })
    for (let n = 1; n <= 4; n++) client.send({ jsonrpc: '2.0', method: `notice-${n}` })
    await client.taken()
    const other = await house().enter('quick', { pool: 'logging' })
    await other.ask({ ...CALL, method: 'after-the-notices' })
    const heard = house().workspace.read('noted')
    expect(heard).toContain('notice-2')
    expect(heard).not.toContain('notice-3')
    expect((await house().bus.status()).dropped).toMatchObject({ rate_limited: 2 })
  })

  test('9.21 who waits as long as it was told is served', async () => {
    verifies('9.21-rate')
    const client = await house().enter('quick', { pool: 'echo' })
    const served = await eventually('a refusal', async () => {
      const answer = await client.ask(CALL)
      return answer.error === undefined ? undefined : answer
    })
    const waitMs = served.error.data.retry_after_ms
    expect(waitMs).toBeGreaterThan(0)
    expect(waitMs).toBeLessThanOrEqual(50)
    await new Promise((resolve) => setTimeout(resolve, waitMs + 5))
    expect(await client.ask(CALL)).toMatchObject({ result: {} })
  })

  test('9.21 who goes and comes again has no new bucket', async () => {
    verifies('9.21-rate')
    const first = await house().enter('back', { pool: 'echo' })
    expect(await first.ask(CALL)).toMatchObject({ result: {} })
    first.close()
    const again = async () => {
      const client = await house().enter('back', { pool: 'echo' })
      return client.ask(CALL)
    }
    expect(await again()).toMatchObject(LIMITED)
  })

  test('9.21 max_pending is over all connections: too_many_pending', async () => {
    verifies('9.21-pending')
    const [one, two] = [
      await house().enter('pending', { pool: 'silent' }, 'tcp'),
      await house().enter('pending', { pool: 'silent' }, 'unix'),
    ]
    one.send({ ...CALL, id: 'a' })
    await one.taken()
    two.send({ ...CALL, id: 'b' })
    await two.taken()
    for (const client of [one, two]) {
      const answer = await client.ask({ ...CALL, id: 'c' })
      expect(answer).toMatchObject({ error: { code: -32603, data: { reason: 'too_many_pending' } } })
    }
    one.close()
    await eventually('room', async () => {
      two.send({ ...CALL, id: 'd' })
      two.send({ id: 'mark', method: 'bus::whoami' })
      return (await two.next()).id === 'mark'
    })
  })

  test('9.21 max_connections is over all doors: too_many_clients, and room again when one goes', async () => {
    verifies('9.21-connections')
    const one = await house().enter('few', {}, 'tcp')
    await house().enter('few', {}, 'unix')
    for (const door of ['tcp', 'unix']) {
      const [third, answer] = await house().present('few', {}, door)
      expect(answer).toMatchObject({ error: { data: { reason: 'too_many_clients' } } })
      expect(await third.untilClosed()).toEqual([])
    }
    expect(await one.ask({ id: 1, method: 'bus::whoami' })).toMatchObject({ result: { principal: 'few' } })
    const fresh = { id: 2, method: 'bus::open', params: { token: house().tokens['few'] } }
    expect(await one.ask(fresh)).toMatchObject({ result: { principal: 'few' } })
    one.close()
    await eventually('room', async () => (await house().present('few', {}, 'tcp'))[1].result !== undefined)
  })

  test('9.21 each message of a batch counts', async () => {
    verifies('9.21-batch')
    const client = await house().enter('batch', { pool: 'mcp' })
    const version = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
    expect(await client.ask({ jsonrpc: '2.0', id: 'hello', method: 'initialize', params: version })).toMatchObject({
      result: { protocolVersion: '2025-03-26' },
    })
    client.send(JSON.stringify([1, 2, 3, 4].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/list' }))))
    const answers: { error?: { data?: { reason: string } } }[] = await client.next()
    // One of three went for the handshake.
    expect(answers.filter(({ error }) => error?.data?.reason === 'rate_limited')).toHaveLength(2)
    expect(answers).toHaveLength(4)
  })

  test('9.25 past 10 bad credentials a minute a refusal waits a second, and a good one does not', async () => {
    verifies('9.25-at-the-door')
    const strange = () => house().present(`sbus_${'x'.repeat(49)}`)
    await Promise.all(Array.from({ length: 10 }, strange))
    const began = performance.now()
    const slowed = strange()
    await house().enter('quick')
    const goodMs = performance.now() - began
    const [, answer] = await slowed
    expect(answer).toMatchObject(UNKNOWN)
    expect(performance.now() - began).toBeGreaterThan(900)
    expect(goodMs).toBeLessThan(performance.now() - began)
  })
})
