/** Contract 8.3: whatever a peer makes the bus keep is counted, bounded, and paid for by whoever causes it. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { agent } from '../e2e/aio-harness.ts'
import { type Bus, startBus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { rawPool } from './acp-peers.ts'
import { call, hears, initializeLine, mcpPool, shakeHands } from './mcp-peers.ts'

const KIB = 1_024
const QUEUE = 64 * KIB
const LINE = 8 * KIB
const PAD = 'x'.repeat(LINE)
/** A line that is taken in one piece, what the system holds for it, and what a row costs. */
const SLACK = 4 * LINE
const TOTAL = KIB * KIB
const LIMITS = { max_output_queue: QUEUE }

/** Whatever the client still had to send when the bus stopped reading from it. */
const isHeldBack = (client: LineClient) => client.output.writableLength > 0

interface Scene {
  readonly config: object
  /** Everything is ready for a client whose requests wait. */
  begin(bus: Bus): Promise<LineClient>
  /** The request with which it floods. */
  request(id: number): Message
}

const WAITING: Record<string, Scene> = {
  'for a server that does not answer its handshake': {
    config: config(mcpPool('puppet', { args: ['mute'] }), LIMITS),
    begin: (bus) => bus.connect(),
    request: (id) => ({ ...initializeLine(id), pad: PAD }),
  },
  'for a lease': {
    config: config(mcpPool('puppet', { sharing: 'lease', protocol: 'mcp' }), LIMITS),
    begin: async (bus) => {
      const [holder, client] = [await bus.connect(), await bus.connect()]
      await shakeHands(holder)
      await shakeHands(client)
      holder.send(call('held', []))
      await hears(bus, 'the call', ({ id }) => id === 'held')
      return client
    },
    request: (id) => ({ ...call(id, undefined), pad: PAD }),
  },
  'for a worker that is starting': {
    config: config(mcpPool('puppet', { args: ['mute'], protocol: 'mcp' }), LIMITS),
    begin: (bus) => bus.connect(),
    request: (id) => ({ ...call(id, undefined), pad: PAD }),
  },
}

describe.each(Object.entries(WAITING))('lines that wait %s', (_, scene) => {
  test('count in queue_bytes and pause their source', async () => {
    verifies('8.3-waiting')
    const bus = await startBus({ config: scene.config })
    const client = await scene.begin(bus)
    for (let id = 1; id <= 500; id++) client.send(scene.request(id))
    const full = await bus.statusWhere('they are counted', ({ queue_bytes }) => queue_bytes > QUEUE)
    expect(full.queue_bytes).toBeLessThanOrEqual(QUEUE + SLACK)
    expect(isHeldBack(client)).toBe(true)
  })
})

test('lines of two clients that wait count against max_total_buffer, and both are served in the end', async () => {
  verifies('8.3-waiting', '8.3-total')
  const limits = { max_output_queue: 8 * KIB * KIB, max_total_buffer: TOTAL, blocking_timeout_sec: 60 }
  const bus = await startBus({ config: config(mcpPool('puppet', { sharing: 'lease', protocol: 'mcp' }), limits) })
  const [holder, ...clients] = [await bus.connect(), await bus.connect(), await bus.connect()]
  for (const client of [holder, ...clients]) await shakeHands(client!)
  holder!.send(call('held', []))
  await hears(bus, 'the call', ({ id }) => id === 'held')
  for (const client of clients) for (let id = 1; id <= 300; id++) client.send({ ...call(id, undefined), pad: PAD })
  const { queue_bytes } = await bus.statusWhere('they are counted', (status) => status.queue_bytes > TOTAL / 2)
  expect(queue_bytes).toBeLessThanOrEqual(TOTAL + SLACK)
  expect(clients.every(isHeldBack)).toBe(true)
  holder!.close()
  for (const client of clients) expect(await client.take(300, 15_000)).toHaveLength(300)
})

describe('a client that calls and does not read the answers', () => {
  const CALLS: Record<string, (id: number) => object> = {
    'the bus itself': (id) => ({ id, method: 'bus::help' }),
    'a method that the bus does not have': (id) => ({ id, method: 'bus::nothing', params: {} }),
    'an agent': (id) => ({ id, method: 'a::big', params: { bytes: 2_000 } }),
    'an agent that is not there': (id) => ({ id, method: 'nobody::input', params: {} }),
  }

  test.each(Object.entries(CALLS))('%s: it is paused, and gets every answer when it reads', async (_, message) => {
    verifies('8.3-calls')
    const COUNT = 4_000
    const bus = await startBus({ config: config(agent('a'), { ...LIMITS, max_pending_per_client: COUNT }) })
    const [client, other] = [await bus.connect(), await bus.connect()]
    client.pause()
    for (let id = 1; id <= COUNT; id++) client.send(message(id))
    const full = await bus.statusWhere('its queue is full', ({ queue_bytes }) => queue_bytes > QUEUE / 2)
    // Beyond the limit comes what the calls of one read are answered with, however fast the machine reads.
    expect(full.queue_bytes).toBeLessThanOrEqual(8 * QUEUE)
    expect(await other.ask({ id: 1, method: 'bus::help' })).toMatchObject({ result: {} })
    expect((await bus.status()).queue_bytes).toBeLessThanOrEqual(8 * QUEUE)
    client.resume()
    const ids = new Set((await client.take(COUNT, 15_000)).map(({ id }) => id))
    expect(ids.size).toBe(COUNT)
  })
})

test('a worker that calls agents and does not read the answers holds back itself and them, then is ended', async () => {
  verifies('8.3-calls', '8.3-worker-timeout')
  const flood = `process.stdin.pause(); let n = 0
    const more = () => { while (n < 20000 && process.stdout.write(JSON.stringify({ id: n++, method: 'a::big', params: { bytes: 2000 } }) + '\\n')); }
    process.stdout.on('drain', more); more()`
  const pools = [
    agent('a'),
    { id: 'flood', command: process.execPath, args: ['-e', flood], instances: 1, restart: 'never' },
    pool('echo', { id: 'echo' }),
  ]
  const limits = { ...LIMITS, backpressure_timeout_sec: 3 }
  const bus = await startBus({ config: config(pools, limits, { default_pool: 'echo' }) })
  const client = await bus.connect()
  const full = await bus.statusWhere('its queue is full', ({ workers }) =>
    workers.some((each) => each.pool === 'flood' && each.queue_bytes > QUEUE / 2),
  )
  expect(full.queue_bytes).toBeLessThanOrEqual(8 * QUEUE)
  expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
  const isEnded = async () => {
    const { queue_bytes, workers } = await bus.status()
    expect(queue_bytes).toBeLessThanOrEqual(8 * QUEUE)
    return workers.every((each) => each.pool !== 'flood' || each.state === 'stopped')
  }
  await eventually('it to be ended', isEnded)
  expect(await client.ask({ id: 2, method: 'a::pid' })).toMatchObject({ result: expect.anything() })
})

test('an agent that is silent after its restart: what waits for it is counted too', async () => {
  verifies('8.3-waiting')
  const bus = await startBus({ config: config(rawPool({ args: ['silent=silent'] }), LIMITS) })
  const client = await bus.connect()
  await client.ask({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1 } })
  bus.workspace.write('silent', '')
  client.send({ jsonrpc: '2.0', method: 'die' })
  await bus.statusWhere('it is back', ({ workers: [worker] }) => worker!.generation === 2 && worker!.state === 'ready')
  for (let id = 1; id <= 200; id++) client.send({ jsonrpc: '2.0', id, method: 'session/new', params: { pad: PAD } })
  const full = await bus.statusWhere('they are counted', ({ queue_bytes }) => queue_bytes > QUEUE)
  expect(full.queue_bytes).toBeLessThanOrEqual(QUEUE + SLACK)
  expect(isHeldBack(client)).toBe(true)
})
