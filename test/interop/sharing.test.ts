/** Clause 6.7: how the workers of a pool are divided among clients. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { isAlive } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'
import {
  call,
  DONE,
  expectRefusal,
  greeted,
  heard,
  hears,
  initializeLine,
  MODERN,
  mcpPool,
  settled,
  shakeHands,
  timesHeard,
} from './mcp-peers.ts'

const puppet = (more = {}) => config(mcpPool('puppet', { protocol: 'mcp', ...more }))
const pidOf = async (client: { ask(message: object): Promise<{ result: { pid: number } }> }) =>
  (await client.ask(call('pid', undefined))).result.pid

describe('shared', () => {
  test('clients are spread over the workers, and each stays with the one that it initialised', async () => {
    verifies('6.6-sticky', '6.7.1-spread')
    const bus = await startBus({ config: puppet({ instances: 2 }) })
    await bus.allReady()
    const clients = await greeted(bus, 4)
    const pids = await Promise.all(clients.map(pidOf))
    expect(new Set(pids).size).toBe(2)
    expect(await Promise.all(clients.map(pidOf))).toEqual(pids)
    expect(timesHeard(bus, 'initialize')).toBe(2)
  })
})

describe('isolated', () => {
  test('a worker for each client, started when it comes, kept warm before, ended with it', async () => {
    verifies('6.7.2-own-worker', '6.7.2-warm')
    const bus = await startBus({ config: puppet({ sharing: 'isolated', instances: 1, max_instances: 4 }) })
    const [warm] = (await bus.allReady()).workers
    const clients = await greeted(bus, 3)
    const pids = await Promise.all(clients.map(pidOf))
    expect(new Set(pids).size).toBe(3)
    expect(pids).toContain(warm!.pid)
    await bus.statusWhere(
      'a spare is warm',
      ({ workers }) => workers.filter(({ state }) => state === 'ready').length === 4,
    )
    clients[0]!.close()
    await eventually('its worker to end', () => !isAlive(pids[0]!))
    expect([isAlive(pids[1]!), isAlive(pids[2]!)]).toEqual([true, true])
    expect(await pidOf(clients[1]!)).toBe(pids[1])
  })

  test('each client shakes hands with its own worker: its capabilities, its revision, its errors', async () => {
    verifies('6.7.2-passes', 'M5-isolated')
    const bus = await startBus({ config: puppet({ sharing: 'isolated', instances: 2 }) })
    const [one, other] = [await bus.connect(), await bus.connect()]
    await one!.ask(initializeLine('a', '2024-11-05', { sampling: {} }))
    await other!.ask(initializeLine('b', '2025-06-18', { roots: {} }))
    const seen = heard(bus).map(({ id, params }) => [id, params.protocolVersion, params.capabilities])
    expect(seen).toContainEqual(['a', '2024-11-05', { sampling: {} }])
    expect(seen).toContainEqual(['b', '2025-06-18', { roots: {} }])
  })

  test('at max_instances the next client gets no_worker at once; when one goes there is room again', async () => {
    verifies('6.7.2-max')
    const bus = await startBus({ config: puppet({ sharing: 'isolated', instances: 0, max_instances: 2 }) })
    const [one, two] = await greeted(bus, 2)
    const third = await bus.connect()
    expectRefusal(await third.ask(initializeLine(0)), 'no_worker')
    two!.close()
    await shakeHands(third, 1)
    expect(await pidOf(third)).not.toBe(await pidOf(one!))
  })

  test('a worker that dies is replaced: errors once, initialize repeated once, and the client goes on', async () => {
    verifies('6.7.2-replaced')
    const bus = await startBus({ config: puppet({ sharing: 'isolated', instances: 1 }) })
    const [client] = await greeted(bus, 1)
    const before = await pidOf(client!)
    client!.send(call(1, []))
    await hears(bus, 'the call', ({ id }) => id === 1)
    process.kill(before, 'SIGKILL')
    expectRefusal(await client!.answerTo(1), 'worker_exited')
    expect(await pidOf(client!)).not.toBe(before)
    expect(timesHeard(bus, 'initialize')).toBe(2)
    expect(timesHeard(bus, 'notifications/initialized')).toBe(2)
    expect(heard(bus).filter(({ id }) => id === 1)).toHaveLength(1)
  })

  test('a host that asks for the era first gets the answer of its own worker, and goes on with either', async () => {
    const discover = { jsonrpc: '2.0', id: 'd', method: 'server/discover', params: { _meta: MODERN } }
    const legacy = await startBus({ config: config(mcpPool('puppet', { sharing: 'isolated' })) })
    const host = await legacy.connect()
    expect(await host.ask(discover)).toMatchObject({ error: { code: -32601, message: 'Method not found' } })
    expect((await shakeHands(host)).serverInfo.name).toBe('puppet')
    expect((await host.ask(call(1, undefined))).result.echo.name).toBe('tool')
    const dual = await startBus({
      config: config(mcpPool('puppet', { args: ['dual'], sharing: 'isolated', instances: 2 })),
    })
    const [modern, old] = [await dual.connect(), await dual.connect()]
    expect((await modern!.ask(discover)).result.resultType).toBe('complete')
    expect((await modern!.ask(call(1, undefined, MODERN))).result.resultType).toBe('complete')
    expect((await shakeHands(old!)).serverInfo.name).toBe('puppet')
  })
})

describe('lease', () => {
  test('the server is offered what all clients of the pool can do; what the holder cannot is answered for it', async () => {
    verifies('M5-lease')
    const bus = await startBus({ config: puppet({ sharing: 'lease' }) })
    const clients = [await bus.connect(), await bus.connect()]
    const offers = [
      { sampling: { tools: {}, context: {} }, elicitation: { form: {}, url: {} }, roots: { listChanged: true } },
      { sampling: { tools: {} }, elicitation: { form: {} } },
    ]
    for (const [n, client] of clients.entries()) await client.ask(initializeLine(0, '2025-11-25', offers[n]!))
    const { pid } = (await bus.status()).workers[0]!
    process.kill(pid, 'SIGKILL')
    await bus.statusWhere(
      'it is back',
      ({ workers: [worker] }) => worker!.generation === 2 && worker!.state === 'ready',
    )
    await settled(...clients)
    const told = heard(bus).filter(({ method }) => method === 'initialize')
    expect(told.at(-1).params.capabilities).toEqual({ sampling: { tools: {} }, elicitation: { form: {} } })
    const questions = ['sampling/createMessage', 'elicitation/create', 'roots/list'].map((method) => ({
      id: method,
      method,
    }))
    clients[1]!.send(call('c', [...questions, DONE]))
    const asked = (await clients[1]!.take(3)).map(({ method, id }) => method ?? id)
    expect(asked).toEqual(['sampling/createMessage', 'elicitation/create', 'c'])
    const answer = await hears(bus, 'the answer', ({ id, method }) => id === 'roots/list' && method === undefined)
    expect(answer).toMatchObject({ error: { code: -32601, data: { reason: 'not_offered' } } })
  })

  test('a server that was offered more by the first client asks the second for nothing that it cannot do', async () => {
    verifies('M5-lease')
    const bus = await startBus({ config: puppet({ sharing: 'lease' }) })
    const [able, unable, silent] = [await bus.connect(), await bus.connect(), await bus.connect()]
    await able.ask(initializeLine(0, '2025-11-25', { sampling: {}, roots: {} }))
    await settled(able)
    expect(heard(bus).find(({ method }) => method === 'initialize').params.capabilities).toEqual({
      sampling: {},
      roots: {},
    })
    await unable.ask(initializeLine(0, '2025-11-25', {}))
    for (const [n, client] of [unable, silent].entries()) {
      client.send(call('c', [{ id: `s${n}`, method: 'sampling/createMessage', params: {} }, DONE]))
      expect(await client.answerTo('c')).toMatchObject({ result: {} })
      const answer = await hears(bus, 'the answer', ({ id }) => id === `s${n}`)
      expect(answer).toMatchObject({ error: { code: -32601 } })
      expect(client.lines.some((line) => line.includes('sampling'))).toBe(false)
    }
    able.send(call('c', [{ id: 'able', method: 'sampling/createMessage', params: {} }, DONE]))
    expect(await able.next()).toMatchObject({ id: 'able', method: 'sampling/createMessage' })
  })

  test('the handshake and other answers of the bus take no lease', async () => {
    const bus = await startBus({ config: puppet({ sharing: 'lease' }) })
    const clients = await greeted(bus, 4)
    for (const client of clients)
      expect((await client.ask({ jsonrpc: '2.0', id: 'p', method: 'ping' })).result).toEqual({})
  })

  test('nor do they wait for one: a client that comes while another works is welcomed at once', async () => {
    verifies('6.7.3-local')
    const bus = await startBus({ config: puppet({ sharing: 'lease' }) })
    const [holder, other] = await greeted(bus, 2)
    holder!.send(call('held', []))
    await hears(bus, 'the call', ({ id }) => id === 'held')
    other!.send(call('waits', [DONE]))
    await bus.statusWhere('it waits', ({ outstanding }) => outstanding === 2)
    const late = await bus.connect()
    expect((await shakeHands(late)).serverInfo.name).toBe('puppet')
    for (const client of [late, other!])
      expect((await client.ask({ jsonrpc: '2.0', id: 'p', method: 'ping' })).result).toEqual({})
    expect(timesHeard(bus, 'initialize')).toBe(1)
  })

  test('first in, first out; the holder’s new requests queue behind whoever waits', async () => {
    verifies('6.7.3-order')
    const bus = await startBus({ config: puppet({ sharing: 'lease' }) })
    const [one, two, three] = await greeted(bus, 3)
    const calls = () => heard(bus).filter(({ method }) => method === 'tools/call')
    one!.send(call('one-1', []))
    one!.send(call('one-2', [DONE]))
    await one!.answerTo('one-2')
    two!.send(call('two', [DONE]))
    two!.send({ jsonrpc: '2.0', id: 'still-here', method: 'x' })
    await bus.statusWhere('two wait', ({ outstanding }) => outstanding === 3)
    three!.send(call('three', [DONE]))
    await bus.statusWhere('three wait', ({ outstanding }) => outstanding === 4)
    one!.send(call('one-3', [DONE]))
    await bus.statusWhere('four wait', ({ outstanding }) => outstanding === 5)
    expect(calls().map(({ id }) => id)).toEqual(['one-1', 'one-2'])
    one!.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'one-1' } })
    await Promise.all([two!.answerTo('two'), three!.answerTo('three'), one!.answerTo('one-3')])
    expect(calls().map(({ id }) => id)).toEqual(['one-1', 'one-2', 'two', 'three', 'one-3'])
  })

  test('a lease ends with its client, and with its worker', async () => {
    verifies('6.7.3-ends')
    const bus = await startBus({ config: puppet({ sharing: 'lease' }) })
    const [one, two, three] = await greeted(bus, 3)
    one!.send(call('held', []))
    await hears(bus, 'the call', ({ id }) => id === 'held')
    two!.send(call('next', []))
    one!.close()
    await hears(bus, 'the next', ({ id }) => id === 'next')
    three!.send(call('last', [DONE]))
    await bus.statusWhere('it waits', ({ outstanding }) => outstanding === 2)
    process.kill((await bus.status()).workers[0]!.pid, 'SIGKILL')
    expectRefusal(await two!.answerTo('next'), 'worker_exited')
    expect((await three!.answerTo('last')).result).toEqual({ content: [] })
  })

  test('workers are leased side by side; a client that has waited gets whichever is free', async () => {
    const bus = await startBus({ config: puppet({ sharing: 'lease', instances: 2 }) })
    await bus.allReady()
    const [one, two, three] = await greeted(bus, 3)
    one!.send(call('one', []))
    two!.send(call('two', []))
    await hears(bus, 'both', () => timesHeard(bus, 'tools/call') === 2)
    three!.send(call('three', undefined))
    await bus.statusWhere('it waits', ({ outstanding }) => outstanding === 3)
    two!.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'two' } })
    expect((await three!.answerTo('three')).result.echo.name).toBe('tool')
  })

  test('a task is asked for at the worker that runs it', async () => {
    verifies('6.7.3-task')
    const bus = await startBus({ config: puppet({ sharing: 'lease', instances: 3 }) })
    await bus.allReady()
    const [owner, other] = await greeted(bus, 2)
    owner!.send(call(1, ['{"jsonrpc":"2.0","id":$ID,"result":{"task":{"taskId":"t","status":"working"}}}']))
    await owner!.answerTo(1)
    const pids = new Set<number>()
    for (let n = 0; n < 4; n++) {
      await settled(other!)
      const about = { jsonrpc: '2.0', id: n, method: 'tasks/get', params: { taskId: 't' } }
      pids.add((await owner!.ask(about)).result.pid)
    }
    expect(pids.size).toBe(1)
  })

  test('long-lived subscriptions are refused', async () => {
    verifies('6.7.3-subscriptions')
    const legacy = await startBus({ config: puppet({ sharing: 'lease' }) })
    const [client] = await greeted(legacy, 1)
    const subscribe = { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: 'a:/' } }
    expectRefusal(await client!.ask(subscribe), 'not_with_lease')
    const modern = await startBus({ config: puppet({ args: ['modern'], sharing: 'lease', era: 'modern' }) })
    const listener = await modern.connect()
    const listen = { jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params: { _meta: MODERN } }
    expectRefusal(await listener.ask(listen), 'not_with_lease')
  })
})
