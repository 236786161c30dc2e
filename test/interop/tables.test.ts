/** No table is without a bound, and none keeps what has gone (the promise; contract 3.3, 8.3). */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { isAlive } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'
import { call, DONE, greeted, mcpPool, timesHeard } from './mcp-peers.ts'
import { Stage } from './stage.ts'

const HELLO = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1 } }
const subscribe = (id: number, uri: string) => ({ jsonrpc: '2.0', id, method: 'resources/subscribe', params: { uri } })

describe('resource subscriptions', () => {
  test('one client may have 1,024; the next is told, and has room again when it lets one go', async () => {
    verifies('M16-bound')
    const bus = await startBus({ config: config(mcpPool('puppet', { protocol: 'mcp' })) })
    const [client, other] = await greeted(bus, 2)
    for (let n = 0; n < 1_200; n++) client!.send(subscribe(n, `file:///${n}`))
    const answers = await client!.take(1_200)
    const refused = answers.filter(({ error }) => error !== undefined)
    expect(refused).toHaveLength(1_200 - 1_024)
    for (const { error } of refused)
      expect(error).toMatchObject({ code: -32603, data: { reason: 'too_many_subscriptions', retryable: true } })
    expect(timesHeard(bus, 'resources/subscribe')).toBe(1_024)
    await client!.ask({ jsonrpc: '2.0', id: 'u', method: 'resources/unsubscribe', params: { uri: 'file:///0' } })
    expect(await client!.ask(subscribe(9_999, 'file:///again'))).toMatchObject({ result: {} })
    expect(await other!.ask(subscribe(1, 'file:///0'))).toMatchObject({ result: {} })
  })

  test('isolated: its own server keeps no more for it', async () => {
    verifies('M16-bound')
    const bus = await startBus({ config: config(mcpPool('puppet', { protocol: 'mcp', sharing: 'isolated' })) })
    const [client] = await greeted(bus, 1)
    for (let n = 0; n < 1_100; n++) client!.send(subscribe(n, `file:///${n}`))
    const answers = await client!.take(1_100)
    expect(answers.filter(({ error }) => error !== undefined)).toHaveLength(1_100 - 1_024)
  })

  test('thousands by one client: as many as the bound are kept, and the server hears of no more', () => {
    verifies('M16-bound')
    const stage = new Stage({ protocol: 'mcp' })
    stage.say(0, {
      id: stage.told(0, 'initialize').id,
      result: { protocolVersion: '2025-11-25', capabilities: { resources: {} } },
    })
    const client = stage.connect()
    for (let n = 0; n < 2_000; n++) {
      stage.send(client, subscribe(n, `file:///${n}`))
      const told = stage.told(0, 'resources/subscribe')
      if (told?.params.uri === `file:///${n}`) stage.say(0, { id: told.id, result: {} })
    }
    const answers = stage.atClient.get(client)!
    expect(answers).toHaveLength(2_000)
    expect(answers.filter(({ error }) => error === undefined)).toHaveLength(1_024)
    stage.leave(client)
    expect(stage.atWorker.get(0)!.filter(({ method }) => method === 'resources/unsubscribe')).toHaveLength(1_024)
  })

  test('those under way count: many at once come no further', () => {
    verifies('M16-bound')
    const stage = new Stage({ protocol: 'mcp' })
    stage.say(0, {
      id: stage.told(0, 'initialize').id,
      result: { protocolVersion: '2025-11-25', capabilities: { resources: {} } },
    })
    const client = stage.connect()
    for (let n = 0; n < 3_000; n++) stage.send(client, subscribe(n, `file:///${n}`))
    const heard = stage.atWorker.get(0)!.filter(({ method }) => method === 'resources/subscribe')
    for (const { id } of heard) stage.say(0, { id, result: {} })
    const granted = stage.atClient.get(client)!.filter(({ error }) => error === undefined)
    expect(granted.length).toBeLessThanOrEqual(1_024)
    expect(heard.length).toBeLessThanOrEqual(1_024)
  })
})

describe('requests of the bus itself', () => {
  test('cancels and closes that an agent never answers do not pile up', () => {
    verifies('8.1-own-requests')
    const stage = new Stage({ protocol: 'acp' })
    for (let n = 0; n < 400; n++) {
      const client = stage.connect()
      stage.send(client, HELLO)
      const close = { sessionCapabilities: { close: {} } }
      stage.say(0, { id: stage.told(0, 'initialize').id, result: { protocolVersion: 1, agentCapabilities: close } })
      stage.send(client, { jsonrpc: '2.0', id: 1, method: 'session/new', params: {} })
      stage.say(0, { id: stage.told(0, 'session/new').id, result: { sessionId: `s${n}` } })
      stage.leave(client)
      stage.advance(1_000)
      expect(stage.snapshot.workers[0]!.outstanding).toBeLessThan(100)
    }
    stage.advance(120_000)
    expect(stage.snapshot).toMatchObject({ outstanding: 0, sessions: 0, clients: 0 })
    expect(stage.snapshot.workers[0]!.outstanding).toBe(0)
  })
})

describe('isolated: numbers of workers', () => {
  test('clients that come and go use few of them, each process with a generation of its own', async () => {
    verifies('3.3-reused')
    const bus = await startBus({
      config: config(pool('echo', { sharing: 'isolated', instances: 1, max_instances: 4 })),
    })
    const generations = new Map<number, Set<number>>()
    for (let n = 0; n < 25; n++) {
      const client = await bus.connect()
      const { pid } = (await client.ask({ id: 1, method: 'm' })).result
      const own = (await bus.status()).workers.find((worker) => worker.pid === pid)!
      expect(own.id).toBeLessThan(8)
      const seen = generations.get(own.id) ?? new Set()
      expect(seen.has(own.generation)).toBe(false)
      generations.set(own.id, seen.add(own.generation))
      client.close()
      await eventually('its worker to end', () => !isAlive(pid))
    }
    const { stdout } = await bus.run(['status', '--json', '--control', bus.control])
    const ids = JSON.parse(stdout).workers.map(({ id }: { id: number }) => id)
    expect(Math.max(...ids)).toBeLessThan(8)
  })

  test('a thousand of them, one after the other and in crowds', () => {
    verifies('3.3-reused')
    const stage = new Stage({ protocol: 'plain', sharing: 'isolated', instances: 1, maxInstances: 8 })
    const ids = new Set<number>()
    for (let n = 0; n < 300; n++) {
      const clients = Array.from({ length: 1 + (n % 4) }, () => stage.connect())
      for (const client of clients) stage.send(client, { id: 1, method: 'm' })
      for (const { id } of stage.snapshot.workers) ids.add(id)
      for (const client of clients) stage.leave(client)
      for (const { worker, how } of stage.stops.splice(0)) if (how === 'end') stage.exit(worker)
      stage.advance(10)
    }
    expect(Math.max(...ids)).toBeLessThanOrEqual(16)
    expect(stage.snapshot.workers.length).toBeLessThanOrEqual(2)
  })
})

test('one slow request keeps no timer of the many that were answered', () => {
  verifies('8.1-request-timeout')
  const stage = new Stage({ protocol: 'plain' }, { requestTimeoutMs: 3_600_000 })
  const client = stage.connect()
  stage.send(client, { id: 'slow', method: 'm' })
  for (let n = 0; n < 5_000; n++) {
    stage.send(client, { id: n, method: 'm' })
    stage.say(0, { id: n, result: {} })
  }
  expect(stage.snapshot.outstanding).toBe(1)
  stage.advance(3_600_001)
  expect(stage.atClient.get(client)!.at(-1)).toMatchObject({
    id: 'slow',
    error: { data: { reason: 'request_timeout' } },
  })
})

test('a client that subscribes and lets go again and again is never refused', async () => {
  verifies('M16-bound')
  const bus = await startBus({ config: config(mcpPool('puppet', { protocol: 'mcp' })) })
  const [client] = await greeted(bus, 1)
  for (let n = 0; n < 1_500; n++) {
    client!.send(subscribe(n, `file:///${n % 7}`))
    client!.send({ jsonrpc: '2.0', id: `u${n}`, method: 'resources/unsubscribe', params: { uri: `file:///${n % 7}` } })
  }
  const answers = await client!.take(3_000)
  expect(answers.filter(({ error }) => error !== undefined)).toEqual([])
  client!.send(call('last', [DONE]))
  expect(await client!.answerTo('last')).toMatchObject({ result: {} })
})
