/** Clause 8.3: time in which the bus itself did not run counts against nobody. */
import { describe, expect, test } from 'vitest'
import { type Bus, startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { sleep } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

async function stopFor(bus: Bus, ms: number): Promise<void> {
  bus.signal('SIGSTOP')
  await sleep(ms)
  bus.signal('SIGCONT')
}

describe('a bus that was stopped', () => {
  test('8.3 a deadline shortly before it goes on: what came meanwhile is read first', async () => {
    verifies('8.3-absent')
    const bus = await startBus({ config: config(pool('slow', { hang_timeout_sec: 0 }), { request_timeout_sec: 3 }) })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', params: { ms: 1_000 } })
    await client.taken()
    await stopFor(bus, 3_400)
    expect(await client.answerTo(1)).toMatchObject({ result: { echo: { ms: 1_000 } } })
  })

  test('8.3 a deadline that it did not miss is put off by as much', async () => {
    verifies('8.3-absent')
    const bus = await startBus({ config: config(pool('slow'), { request_timeout_sec: 5 }) })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', params: { ms: 6_500 } })
    await client.taken()
    await stopFor(bus, 4_000)
    expect(await client.answerTo(1)).toMatchObject({ result: { echo: { ms: 6_500 } } })
  })

  test('8.3 again and again: no worker is ended, no request fails, nobody is closed', async () => {
    verifies('8.3-absent', 'promise-one-answer')
    const limits = {
      request_timeout_sec: 3,
      backpressure_timeout_sec: 2,
      blocking_timeout_sec: 2,
      max_output_queue: 65_536,
    }
    const pools = [pool('slow', { hang_timeout_sec: 2 }), pool('floods', { hang_timeout_sec: 2 })]
    const bus = await startBus({ config: config(pools, limits, { default_pool: 'slow' }) })
    const before = (await bus.allReady()).workers.map(({ pid, generation }) => [pid, generation])
    const [client, reader] = [await bus.connect(), await bus.connect()]
    for (let n = 1; n <= 2; n++) {
      const [answer, last] = [`a${n}`, `f${n}`]
      client.send({ id: answer, method: 'm', params: { ms: 800 } })
      reader.send({ id: last, method: 'm', pool: 'floods', sessionId: 's', params: { count: 500, bytes: 1_000 } })
      await Promise.all([client.taken(), reader.taken()])
      reader.pause()
      bus.signal('SIGSTOP')
      await sleep(3_500)
      reader.resume()
      bus.signal('SIGCONT')
      expect(await client.answerTo(answer)).toMatchObject({ result: {} })
      expect(await reader.answerTo(last)).toMatchObject({ result: {} })
    }
    const { workers, clients, refused } = await bus.status()
    expect(workers.map(({ pid, generation }) => [pid, generation])).toEqual(before)
    expect(clients).toBe(2)
    expect(Object.keys(refused)).not.toContain('request_timeout')
  })
})
