/** Clause 8.1: timeouts run from the arrival of a request, wherever it waits. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus, testWorkspace } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { rawPool } from './acp-peers.ts'
import { call, expectRefusal, hears, initializeLine, MODERN, mcpPool } from './mcp-peers.ts'
import { Stage } from './stage.ts'

const ACP_HELLO = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1 } }
const ACP_WELCOME = { protocolVersion: 1, agentCapabilities: {} }
const TIMEOUT = { requestTimeoutMs: 5_000 }

/** The reasons of the errors that a client has got, by id. */
function reasonsAt(stage: Stage, client: number): Record<string, string> {
  const errors = stage.atClient.get(client)!.filter(({ error }) => error !== undefined)
  return Object.fromEntries(errors.map(({ id, error }) => [id, error.data.reason]))
}

describe('a server that never answers the handshake of the bus', () => {
  const first = [
    ['initialize', initializeLine('x')],
    ['server/discover', { jsonrpc: '2.0', id: 'x', method: 'server/discover', params: { _meta: MODERN } }],
    ['a call of the stateless era', call('x', undefined, MODERN)],
  ] as const

  test.each(first)('found out by itself, first message %s: request_timeout', (_, message) => {
    verifies('8.1-arrival')
    for (const spec of [{}, { protocol: 'mcp' }, { protocol: 'mcp', sharing: 'lease' }] as const) {
      const stage = new Stage(spec, TIMEOUT)
      const client = stage.connect()
      stage.send(client, message)
      stage.advance(4_000)
      stage.send(client, call('y', undefined))
      stage.advance(999)
      expect(reasonsAt(stage, client)).toEqual({})
      stage.advance(2)
      expect(reasonsAt(stage, client)).toEqual({ x: 'request_timeout' })
      stage.advance(4_000)
      expect(reasonsAt(stage, client)).toEqual({ x: 'request_timeout', y: 'request_timeout' })
    }
  })

  test.each(first)('found out by itself, first message %s: hang_timeout_sec ends it, worker_stalled', (_, message) => {
    verifies('8.1-arrival', '7.2-hang')
    for (const sharing of ['shared', 'lease', 'isolated'] as const) {
      const stage = new Stage({ sharing, hangTimeoutMs: 15_000 })
      const client = stage.connect()
      stage.send(client, message)
      stage.advance(40_000)
      expect(stage.stops[0]).toEqual({ worker: 0, how: 'kill' })
      expect(reasonsAt(stage, client)).toEqual({ x: 'worker_stalled' })
    }
  })

  test.each(first)('found out by itself, first message %s: start_timeout_sec ends it', (_, message) => {
    verifies('8.1-arrival', '7.2-start-timeout')
    for (const spec of [{}, { protocol: 'mcp' }, { protocol: 'mcp', sharing: 'lease' }] as const) {
      const stage = new Stage({ ...spec, startTimeoutMs: 3_000 })
      const client = stage.connect()
      stage.send(client, message)
      stage.advance(12_000)
      stage.exit(0)
      stage.advance(30_000)
      expect(Object.keys(reasonsAt(stage, client))).toEqual(['x'])
    }
  })

  test('through the program, each of the three', async () => {
    verifies('8.1-arrival')
    const mute = (id: string, more: object) => mcpPool('puppet', { id, args: ['mute'], ...more })
    const pools = [
      mute('request', { limits: { request_timeout_sec: 1 } }),
      mute('hang', { hang_timeout_sec: 1 }),
      mute('start', { start_timeout_sec: 1 }),
    ]
    const bus = await startBus({ config: config(pools) })
    const client = await bus.connect()
    for (const { id } of pools) client.send({ ...initializeLine(id), pool: id })
    const reasons = new Map<string, string>()
    while (reasons.size < 3) {
      const { id, error } = await client.next(30_000)
      reasons.set(id, error.data.reason)
    }
    expect(reasons.get('request')).toBe('request_timeout')
    expect(reasons.get('hang')).toBe('worker_stalled')
    expect(['worker_stalled', 'worker_exited', 'no_worker']).toContain(reasons.get('start'))
  })
})

describe('an agent that is silent when initialize is repeated after its restart', () => {
  const begun = (spec: object, limits = {}) => {
    const stage = new Stage({ protocol: 'acp', ...spec }, limits)
    const client = stage.connect()
    stage.send(client, ACP_HELLO)
    stage.say(0, { id: stage.told(0, 'initialize').id, result: ACP_WELCOME })
    stage.exit(0)
    stage.advance(1_000)
    stage.send(client, { jsonrpc: '2.0', id: 'x', method: 'session/new', params: {} })
    return { stage, client }
  }

  test('request_timeout', () => {
    verifies('8.1-arrival')
    const { stage, client } = begun({}, TIMEOUT)
    stage.advance(4_999)
    expect(reasonsAt(stage, client)).toEqual({})
    stage.advance(2)
    expect(reasonsAt(stage, client)).toEqual({ x: 'request_timeout' })
    expect(stage.told(0, 'session/new')).toBeUndefined()
  })

  test('hang_timeout_sec ends it, worker_stalled', () => {
    verifies('8.1-arrival', '7.2-hang')
    const { stage, client } = begun({ hangTimeoutMs: 5_000 })
    stage.advance(7_000)
    expect(stage.stops.at(-1)).toEqual({ worker: 0, how: 'kill' })
    expect(reasonsAt(stage, client)).toEqual({ x: 'worker_stalled' })
  })

  test('the next generation that answers serves what comes then', () => {
    verifies('8.1-arrival')
    const { stage, client } = begun({}, TIMEOUT)
    stage.advance(6_000)
    stage.exit(0)
    stage.advance(1_000)
    stage.send(client, { jsonrpc: '2.0', id: 'y', method: 'session/new', params: {} })
    stage.say(0, { id: stage.told(0, 'initialize').id, result: ACP_WELCOME })
    stage.say(0, { id: stage.told(0, 'session/new').id, result: { sessionId: 's' } })
    expect(stage.atClient.get(client)!.at(-1)).toMatchObject({ id: 'y', result: { sessionId: 's' } })
  })

  test('through the program', async () => {
    verifies('8.1-arrival')
    const workspace = testWorkspace()
    const silent = workspace.path('silent')
    const bus = await startBus({
      config: config(rawPool({ args: [`silent=${silent}`], limits: { request_timeout_sec: 1 } })),
      workspace,
    })
    const client = await bus.connect()
    await client.ask(ACP_HELLO)
    workspace.write('silent', '')
    client.send({ jsonrpc: '2.0', method: 'die' })
    await hears(bus, 'the word', ({ method }) => method === 'die')
    await bus.statusWhere(
      'it is back',
      ({ workers: [worker] }) => worker!.generation === 2 && worker!.state === 'ready',
    )
    expectRefusal(await client.ask({ jsonrpc: '2.0', id: 'x', method: 'session/new', params: {} }), 'request_timeout')
  })
})

describe('a request that waits elsewhere', () => {
  test('for a lease', () => {
    verifies('8.1-arrival')
    const stage = new Stage({ protocol: 'mcp', sharing: 'lease' }, TIMEOUT)
    const [holder, waiter] = [stage.connect(), stage.connect()]
    stage.send(holder, initializeLine(0))
    stage.say(0, { id: stage.told(0, 'initialize').id, result: { protocolVersion: '2025-11-25', capabilities: {} } })
    stage.send(holder, call('held', undefined))
    stage.send(waiter, call('waits', undefined))
    stage.advance(5_001)
    expect(reasonsAt(stage, waiter)).toEqual({ waits: 'request_timeout' })
    expect(reasonsAt(stage, holder)).toEqual({ held: 'request_timeout' })
    expect(stage.snapshot.outstanding).toBe(0)
  })

  test('for a worker that backs off', () => {
    verifies('8.1-arrival')
    const stage = new Stage({ protocol: 'plain' }, TIMEOUT)
    for (let n = 0; n < 8; n++) {
      stage.exit(0)
      if (n < 7) stage.advance(31_000)
    }
    const client = stage.connect()
    stage.send(client, { id: 'x', method: 'm' })
    stage.advance(4_999)
    expect(stage.snapshot.workers[0]!.state).toBe('backing_off')
    stage.advance(2)
    expect(reasonsAt(stage, client)).toEqual({ x: 'request_timeout' })
  })

  test('for the handshake of another client, which decides what the agent speaks', () => {
    verifies('8.1-arrival')
    const stage = new Stage({ protocol: 'acp' }, TIMEOUT)
    const clients = [stage.connect(), stage.connect(), stage.connect()]
    for (const client of clients) stage.send(client, { ...ACP_HELLO, id: 'x', params: { protocolVersion: 2 } })
    stage.send(clients[2]!, { jsonrpc: '2.0', id: 'y', method: 'session/new', params: {} })
    stage.advance(5_001)
    for (const client of clients) expect(reasonsAt(stage, client)).toMatchObject({ x: 'request_timeout' })
    expect(reasonsAt(stage, clients[2]!)).toMatchObject({ y: 'request_timeout' })
  })
})
