/** Spec A2, A3, A12 and A14 where the version matters: agents that take initialize once only, and clients of two versions. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { config } from '../support/pools.ts'
import { agentHears, heardByAgents, rawPool } from './acp-peers.ts'
import { expectRefusal } from './mcp-peers.ts'

const hello = (id: unknown, protocolVersion: number) => ({
  jsonrpc: '2.0',
  id,
  method: 'initialize',
  params: { protocolVersion, info: { name: 'c', version: '1' }, capabilities: {} },
})
const request = (id: unknown, method: string, params: object = {}) => ({ jsonrpc: '2.0', id, method, params })

async function initialised(bus: Bus, version: number, id: unknown = 0): Promise<[LineClient, Message]> {
  const client = await bus.connect()
  const { result } = await client.ask(hello(id, version))
  return [client, result]
}

/** A turn has begun; in version 2 it goes on after its answer. */
async function inTurn(client: LineClient): Promise<string> {
  const { sessionId } = (await client.ask(request('n', 'session/new', { cwd: '/', mcpServers: [] }))).result
  await client.ask(request('p', 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'go' }] }))
  return sessionId
}

describe.each([
  ['configured', { protocol: 'acp' }],
  ['found out by itself', {}],
])('an agent that takes initialize once only, %s', (_, more) => {
  test.each([1, 2])('version %d: later clients get the first welcome, with their own ids', async (version) => {
    verifies('A2-once')
    const bus = await startBus({ config: config(rawPool({ args: ['once', `newest=${version}`], ...more })) })
    const [first, welcome] = await initialised(bus, version, 'first')
    expect(welcome.protocolVersion).toBe(version)
    for (const id of [7, 'again', 7]) {
      const client = await bus.connect()
      expect(await client.ask(hello(id, version))).toEqual({ jsonrpc: '2.0', id, result: welcome })
      expect((await client.ask(request(1, 'session/new'))).result.sessionId).toMatch(/^s\d/)
    }
    first.close()
    expect((await initialised(bus, version))[1]).toEqual(welcome)
  })

  test.each([1, 2])('version %d: many who come at once share one handshake', async (version) => {
    verifies('A2-once')
    const bus = await startBus({ config: config(rawPool({ args: ['once', `newest=${version}`], ...more })) })
    const clients = await Promise.all(Array.from({ length: 5 }, () => bus.connect()))
    for (const [n, client] of clients.entries()) client.send(hello(n, version))
    const answers = await Promise.all(clients.map((client, n) => client.answerTo(n)))
    for (const { result } of answers) expect(result).toMatchObject({ protocolVersion: version })
  })

  test.each([1, 2])('version %d: a restarted one is greeted again, once, and serves everybody', async (version) => {
    verifies('A2-once', 'A2-repeated')
    const bus = await startBus({ config: config(rawPool({ args: ['once', `newest=${version}`], ...more })) })
    const [[one], [two]] = [await initialised(bus, version), await initialised(bus, version)]
    process.kill((await bus.allReady()).workers[0]!.pid, 'SIGKILL')
    await bus.statusWhere('it is back', ({ workers: [w] }) => w!.generation === 2 && w!.state === 'ready')
    for (const client of [one, two, one]) {
      const { result } = await client.ask(request('n', 'session/new'))
      expect(result).toMatchObject({ sessionId: expect.any(String) })
    }
    expect((await initialised(bus, version))[1].protocolVersion).toBe(version)
    if (version === 1) return
    const { pid } = (await bus.status()).workers[0]!
    expect(heardByAgents(bus).filter((each) => each.pid === pid && each.method === 'initialize')).toHaveLength(1)
  })
})

describe('clients of two versions', () => {
  test('never share a worker where there are two', async () => {
    verifies('A3-apart')
    const bus = await startBus({ config: config(rawPool({ args: ['once', 'newest=2'], instances: 2 })) })
    await bus.allReady()
    const pids = new Map<number, Set<number>>([
      [1, new Set()],
      [2, new Set()],
    ])
    for (const version of [1, 2, 2, 1, 2, 1, 1]) {
      const [client, welcome] = await initialised(bus, version)
      expect(welcome.protocolVersion).toBe(version)
      const { result } = await client.ask(request(1, 'session/echo'))
      expect(result.version).toBe(version)
      pids.get(version)!.add(result.pid)
    }
    expect([...pids.get(1)!].filter((pid) => pids.get(2)!.has(pid))).toEqual([])
  })

  test.each([
    [1, 2],
    [2, 1],
  ])('one worker that speaks %d: a client of %d is told protocol_mismatch, the others go on', async (first, second) => {
    verifies('A3-mismatch')
    const bus = await startBus({ config: config(rawPool({ args: ['newest=2'] })) })
    const [client] = await initialised(bus, first)
    const other = await bus.connect()
    for (let n = 0; n < 3; n++) expectRefusal(await other.ask(hello(n, second)), 'protocol_mismatch')
    expect((await client.ask(request(1, 'session/echo'))).result.version).toBe(first)
    expect((await initialised(bus, first))[1].protocolVersion).toBe(first)
    expect(heardByAgents(bus).filter(({ params }) => params?.protocolVersion === second)).toEqual([])
  })

  test('one that comes with the other at the same moment is told so too', async () => {
    verifies('A3-mismatch')
    const bus = await startBus({ config: config(rawPool({ args: ['newest=2'] })) })
    const [one, two] = [await bus.connect(), await bus.connect()]
    one.send(hello(1, 1))
    await one.taken()
    expectRefusal(await two.ask(hello(2, 2)), 'protocol_mismatch')
    expect(await one.answerTo(1)).toMatchObject({ result: { protocolVersion: 1 } })
  })

  test('share an agent that answers 1 whatever it is asked for', async () => {
    verifies('A3-older')
    const bus = await startBus({ config: config(rawPool({ args: ['newest=1'] })) })
    const clients: LineClient[] = []
    for (const version of [2, 1, 2, 1]) {
      const [client, welcome] = await initialised(bus, version)
      expect(welcome.protocolVersion).toBe(1)
      clients.push(client)
    }
    for (const client of clients) expect((await client.ask(request(1, 'session/echo'))).result.version).toBe(1)
  })

  test('share it also after its restart', async () => {
    verifies('A3-older')
    const bus = await startBus({ config: config(rawPool({ args: ['newest=1'] })) })
    const clients = [(await initialised(bus, 2))[0], (await initialised(bus, 1))[0]]
    process.kill((await bus.allReady()).workers[0]!.pid, 'SIGKILL')
    await bus.statusWhere('it is back', ({ workers: [w] }) => w!.generation === 2 && w!.state === 'ready')
    for (const client of [clients[1]!, clients[0]!, clients[1]!])
      expect((await client.ask(request(1, 'session/echo'))).result.version).toBe(1)
  })
})

describe('version 2: a client that leaves in the middle of a turn', () => {
  test.each([
    ['leaves', (client: LineClient) => client.close()],
    ['ends its input', (client: LineClient) => client.endWriting()],
  ])('and %s: the agent gets session/cancel and session/close', async (_, leave) => {
    verifies('A14-v2', '7.3-worker-told')
    const bus = await startBus({ config: config(rawPool({ args: ['once', 'newest=2'] })) })
    const [stays, [goes]] = [(await initialised(bus, 2))[0], await initialised(bus, 2)]
    const kept = await inTurn(stays)
    const left = await inTurn(goes)
    leave(goes)
    for (const method of ['session/cancel', 'session/close'])
      await agentHears(bus, method, (m) => m.method === method && m.params.sessionId === left)
    const told = heardByAgents(bus).filter(({ method }) => method === 'session/cancel' || method === 'session/close')
    expect(told.map(({ method }) => method)).toEqual(['session/cancel', 'session/close'])
    expect(told.some(({ params }) => params.sessionId === kept)).toBe(false)
  })
})

describe('what an agent says once per process', () => {
  const isStatus = ({ method }: Message) => method === '_auth/status_update'

  test.each([1, 2])('version %d: is told to every client that comes later, after its welcome', async (version) => {
    verifies('A12-remembered')
    const bus = await startBus({ config: config(rawPool({ args: ['status', `newest=${version}`] })) })
    for (let n = 0; n < 3; n++) {
      const client = await bus.connect()
      client.send(hello(n, version))
      const [welcome, status] = await client.take(2)
      expect(welcome).toMatchObject({ id: n, result: { protocolVersion: version } })
      expect(status).toMatchObject({ method: '_auth/status_update', params: { status: 'signed in' } })
      await client.ask(request('n', 'session/new'))
      const heard = client.lines.map((line) => JSON.parse(line.toString())).filter(isStatus)
      expect(heard).toHaveLength(1)
    }
  })

  test.each([[['status']], [['status', 'once']]])(
    'is told to those who came together once, after their welcome (%j)',
    async (args) => {
      verifies('A12-remembered', '6.8-everyone')
      const bus = await startBus({ config: config(rawPool({ args })) })
      await bus.allReady()
      const clients = [await bus.connect(), await bus.connect(), await bus.connect()]
      for (const client of clients) client.send(hello(1, 1))
      for (const client of clients) {
        await client.ask(request('n', 'session/new'))
        const heard = client.lines.map((line) => JSON.parse(line.toString()))
        expect(heard.map(({ id, method }) => id ?? method)).toEqual([1, '_auth/status_update', 'n'])
      }
    },
  )

  test('is forgotten with its process', async () => {
    verifies('A12-remembered')
    const bus = await startBus({ config: config(rawPool({ args: ['status'] })) })
    const [client] = await initialised(bus, 1)
    const old = (await bus.allReady()).workers[0]!.pid
    process.kill(old, 'SIGKILL')
    await bus.statusWhere('it is back', ({ workers: [w] }) => w!.generation === 2 && w!.state === 'ready')
    await client.ask(request('n', 'session/new'))
    const late = await bus.connect()
    late.send(hello(0, 1))
    const [, status] = await late.take(2)
    expect(status.params.pid).not.toBe(old)
  })
})
