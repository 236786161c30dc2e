/** Clause 8.3: full queues pause their sources, nothing is dropped, and only the stuck peer is closed. */
import { describe, expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { isAlive } from '../support/processes.ts'
import { eventually, sleep } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const KIB = 1_024
const QUEUE = 64 * KIB
const FLOOD = { count: 4_000, bytes: 4_000 }

/** A queue that is stuck holds at least half its limit: below that its sources are released. */
const isFull = (status: { queue_bytes: number }): boolean => status.queue_bytes >= QUEUE / 2

const flood = (id: unknown, sessionId: string, more = {}) => ({ id, method: 'm', sessionId, params: FLOOD, ...more })

describe('a slow client', () => {
  test.each(['unix', 'tcp'] as const)(
    '8.3 at the %s door it gets everything, in order, when it reads again',
    async (door) => {
      verifies('8.3-nothing-dropped', '8.3-pauses')
      const bus = await startBus({ config: config(pool('floods'), { max_output_queue: QUEUE }), doors: [door] })
      const client = await bus.connect()
      client.pause()
      client.send(flood(1, 's'))
      await bus.statusWhere('the queue is full', isFull)
      client.resume()
      const lines = await client.take(FLOOD.count + 1, 15_000)
      expect(lines.slice(0, -1).every((each, n) => each.params.n === n)).toBe(true)
      expect(lines.at(-1)).toMatchObject({ id: 1 })
      expect((await bus.status()).dropped).toEqual({})
    },
  )

  test('8.3 its queue is bounded by the limit and one line per source', async () => {
    verifies('8.3-bound', '8.3-pauses')
    const bus = await startBus({ config: config(pool('floods', { instances: 2 }), { max_output_queue: QUEUE }) })
    const client = await bus.connect()
    client.pause()
    for (const name of ['a', 'b']) client.send(flood(name, name))
    await bus.statusWhere('the queue is full', isFull)
    for (let look = 0; look < 3; look++) {
      await sleep(100)
      expect((await bus.status()).queue_bytes).toBeLessThanOrEqual(QUEUE + 2 * (FLOOD.bytes + 200))
    }
  })

  test('8.3 it is read in fits and starts and still loses nothing', async () => {
    verifies('8.3-nothing-dropped', '8.3-pauses')
    const bus = await startBus({ config: config(pool('floods'), { max_output_queue: QUEUE }) })
    const client = await bus.connect()
    client.send(flood(1, 's'))
    for (let n = 0; n < 10; n++) {
      client.pause()
      await sleep(20)
      client.resume()
      await sleep(5)
    }
    const lines = await client.take(FLOOD.count + 1, 15_000)
    expect(lines.slice(0, -1).every((each, n) => each.params.n === n)).toBe(true)
  })

  test('8.3 it is closed after backpressure_timeout_sec, and its worker lives', async () => {
    verifies('8.3-client-timeout', '8.1-override')
    const limits = { max_output_queue: QUEUE, backpressure_timeout_sec: 1 }
    const bus = await startBus({ config: config([pool('floods'), pool('echo')], limits) })
    const [stuck, other] = [await bus.connect(), await bus.connect()]
    stuck.pause()
    stuck.send(flood(1, 's', { pool: 'floods' }))
    const before = await bus.statusWhere('the queue is full', isFull)
    await bus.statusWhere('the stuck client is closed', (status) => status.clients === 1)
    const after = await bus.status()
    expect(after.workers.map((each) => [each.pid, each.restarts])).toEqual(before.workers.map((each) => [each.pid, 0]))
    expect(await other.ask({ id: 1, method: 'm', pool: 'echo' })).toMatchObject({ result: {} })
    expect(await other.ask({ id: 2, method: 'm', pool: 'floods' }, 10_000)).toMatchObject({ result: {} })
  })

  test('8.3 one that reads in time is not closed', async () => {
    verifies('8.3-client-timeout')
    const limits = { max_output_queue: QUEUE, backpressure_timeout_sec: 2 }
    const bus = await startBus({ config: config(pool('floods'), limits) })
    const client = await bus.connect()
    client.pause()
    client.send(flood(1, 's'))
    await sleep(800)
    client.resume()
    expect(await client.answerTo(1, 15_000)).toMatchObject({ id: 1 })
    await client.staysQuiet(100)
  })

  test('8.3 one that holds up a worker that others use is closed after blocking_timeout_sec', async () => {
    verifies('8.3-blocking')
    const limits = { max_output_queue: QUEUE, backpressure_timeout_sec: 60, blocking_timeout_sec: 1 }
    const bus = await startBus({ config: config(pool('floods'), limits) })
    const [stuck, other] = [await bus.connect(), await bus.connect()]
    stuck.pause()
    stuck.send(flood(1, 's'))
    await bus.statusWhere('the queue is full', isFull)
    const began = Date.now()
    expect(await other.ask({ id: 1, method: 'm', sessionId: 'mine', params: { count: 1 } }, 8_000)).toMatchObject({
      result: {},
    })
    expect(Date.now() - began).toBeGreaterThan(500)
    expect((await bus.status()).clients).toBe(1)
  })

  test('8.3 one whose worker nobody else uses has backpressure_timeout_sec', async () => {
    verifies('8.3-blocking')
    const limits = { max_output_queue: QUEUE, backpressure_timeout_sec: 60, blocking_timeout_sec: 1 }
    const bus = await startBus({ config: config([pool('floods'), pool('echo')], limits) })
    const [stuck, other] = [await bus.connect(), await bus.connect()]
    stuck.pause()
    stuck.send(flood(1, 's', { pool: 'floods' }))
    expect(await other.ask({ id: 1, method: 'm', pool: 'echo' })).toMatchObject({ result: {} })
    await sleep(2_000)
    expect((await bus.status()).clients).toBe(2)
    stuck.resume()
    expect(await stuck.answerTo(1, 15_000)).toMatchObject({ id: 1 })
  })

  test('8.3 every outstanding request has room for its error line, however full the queue', async () => {
    verifies('8.3-reserved', 'promise-one-answer')
    const pools = [pool('floods'), pool('dies-on-request')]
    const bus = await startBus({ config: config(pools, { max_output_queue: QUEUE }) })
    const client = await bus.connect()
    for (let id = 1; id <= 200; id++) client.send({ id, method: 'wait', pool: 'dies-on-request' })
    const { workers } = await bus.statusWhere('they are outstanding', (status) => status.outstanding === 200)
    client.pause()
    client.send(flood('flood', 's', { pool: 'floods' }))
    await bus.statusWhere('the queue is full', isFull)
    process.kill(workers.find((each) => each.pool === 'dies-on-request')!.pid, 'SIGKILL')
    await bus.statusWhere('the worker has gone', (status) => status.outstanding === 1)
    client.resume()
    const lines = await client.take(FLOOD.count + 201, 15_000)
    const errors = lines.filter((each) => each.error !== undefined)
    expect(errors.map((each) => each.id).sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, n) => n + 1))
  })
})

describe.each([
  ['default', {}],
  ['fifo', { pipes: 'fifo' }],
])('a slow worker over %s pipes', (_kind, pipes) => {
  const slow: typeof pool = (name, options) => pool(name, { ...pipes, ...options })

  test('8.3 the clients that fill its queue are paused, and everything is answered in the end', async () => {
    verifies('8.3-pauses', '8.3-nothing-dropped', 'promise-one-answer')
    const limits = { max_output_queue: QUEUE }
    const bus = await startBus({ config: config(slow('reads-late', { args: ['1500'] }), limits) })
    const clients = [await bus.connect(), await bus.connect()]
    const pad = 'x'.repeat(4_000)
    for (let n = 0; n < 500; n++) {
      for (const client of clients) client.send({ id: n, method: 'm', params: { n, pad } })
    }
    const status = await bus.statusWhere('the queue is full', ({ workers }) => workers[0]!.queue_bytes >= QUEUE / 2)
    expect(status.workers[0]!.queue_bytes).toBeLessThanOrEqual(QUEUE + 2 * 4_200)
    for (const client of clients) {
      const answers = await client.take(500, 15_000)
      expect(answers.every((each, n) => each.id === n && each.result.n === n)).toBe(true)
    }
  })

  test('8.3 a stuck worker is ended and restarted, worker_stalled; its clients are not closed', async () => {
    verifies('8.3-worker-timeout', '8.3-innocent', 'promise-one-answer')
    const limits = { max_output_queue: QUEUE, backpressure_timeout_sec: 1 }
    const bus = await startBus({ config: config([slow('never-reads'), slow('echo')], limits) })
    const pid = (await bus.allReady()).workers.find((each) => each.pool === 'never-reads')!.pid
    const client = await bus.connect()
    const pad = 'x'.repeat(4_000)
    for (let id = 1; id <= 200; id++) client.send({ id, method: 'm', pool: 'never-reads', params: pad })
    const first = await client.next(6_000)
    expect(first).toMatchObject({ id: 1, error: { code: -32603, data: { reason: 'worker_stalled' } } })
    await eventually('the stuck process to be gone', () => !isAlive(pid), 8_000)
    expect(client.isClosed).toBe(false)
  })

  test('8.3 clients of other workers are unharmed', async () => {
    verifies('8.3-pauses', '3.1-non-blocking')
    const bus = await startBus({ config: config([slow('never-reads'), slow('echo')], { max_output_queue: QUEUE }) })
    const [filling, other] = [await bus.connect(), await bus.connect()]
    const pad = 'x'.repeat(4_000)
    for (let id = 1; id <= 300; id++) filling.send({ id, method: 'm', pool: 'never-reads', params: pad })
    for (let id = 1; id <= 20; id++) {
      expect(await other.ask({ id, method: 'm', pool: 'echo' }, 3_000)).toMatchObject({ result: {} })
    }
  })

  test("8.3 a paused client's clock stands still", async () => {
    verifies('8.3-innocent')
    const limits = { max_output_queue: QUEUE, backpressure_timeout_sec: 3, half_close_timeout_sec: 1 }
    const bus = await startBus({ config: config(slow('reads-late', { args: ['2000'] }), limits) })
    const client = await bus.connect()
    const pad = 'x'.repeat(4_000)
    for (let n = 0; n < 300; n++) client.send({ id: n, method: 'm', params: { n, pad } })
    const answers = await client.take(300, 10_000)
    expect(answers.every((each, n) => each.result.n === n)).toBe(true)
  })
})

describe('all together', () => {
  test('8.3 above max_total_buffer the largest holders are paused, then closed; others go on', async () => {
    verifies('8.3-total')
    const limits = {
      max_output_queue: 8 * KIB * KIB,
      max_total_buffer: 512 * KIB,
      backpressure_timeout_sec: 6,
      blocking_timeout_sec: 6,
    }
    const bus = await startBus({ config: config([pool('floods', { instances: 2 }), pool('echo')], limits) })
    const [one, two, other] = [await bus.connect(), await bus.connect(), await bus.connect()]
    for (const [n, client] of [one, two].entries()) {
      client.pause()
      client.send(flood(1, `s${n}`, { pool: 'floods' }))
    }
    const full = await bus.statusWhere('the buffers are full', (status) => status.queue_bytes > 300 * KIB)
    expect(full.queue_bytes).toBeLessThanOrEqual(512 * KIB + 2 * (64 + 16) * KIB)
    expect(await other.ask({ id: 1, method: 'm', pool: 'echo' }, 5_500)).toMatchObject({ result: {} })
    await bus.statusWhere('a holder is closed', (status) => status.clients < 3, 14_000)
    expect(await other.ask({ id: 2, method: 'm', pool: 'echo' })).toMatchObject({ result: {} })
  }, 40_000)
})
