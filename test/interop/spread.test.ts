/** Contract 6.6: sessions that are spread over the workers of a pool, and the pool that serves in place of another. */
import { rmSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus, testWorkspace } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { heardByAgents, rawPool } from './acp-peers.ts'
import { call, expectRefusal, initializeLine, mcpPool, shakeHands } from './mcp-peers.ts'
import { Stage } from './stage.ts'

const request = (id: unknown, method: string, params: object = {}) => ({ jsonrpc: '2.0', id, method, params })
const HELLO = request(0, 'initialize', { protocolVersion: 1, clientCapabilities: { terminal: true } })

async function newSession(client: LineClient, id: unknown = 'n'): Promise<string> {
  return (await client.ask(request(id, 'session/new', { cwd: '/', mcpServers: [] }))).result.sessionId
}

function prompt(client: LineClient, sessionId: string, text = 'hello'): Promise<Message> {
  return client.ask(request(`p-${text}`, 'session/prompt', { sessionId, prompt: [{ type: 'text', text }] }))
}

const workerOf = (sessionId: string) => Number(sessionId.split('-')[1])

describe('balance: session', () => {
  const three = (more = {}) => config(rawPool({ instances: 3, balance: 'session', ...more }))

  async function spread(bus: Bus): Promise<{ client: LineClient; sessions: string[] }> {
    await bus.allReady()
    const client = await bus.connect()
    await client.ask(HELLO)
    const sessions = [await newSession(client), await newSession(client), await newSession(client)]
    return { client, sessions }
  }

  test('the sessions of one client reach all workers, each of which has heard initialize first', async () => {
    verifies('6.6-balance')
    const bus = await startBus({ config: three() })
    const { client, sessions } = await spread(bus)
    expect(new Set(sessions.map(workerOf)).size).toBe(3)
    for (const session of [...sessions, ...sessions].reverse())
      expect((await prompt(client, session)).result).toMatchObject({ sessionId: session, pid: workerOf(session) })
    for (const pid of sessions.map(workerOf)) {
      const said = heardByAgents(bus).filter((each) => each.pid === pid)
      expect(said[0]).toMatchObject({ method: 'initialize', params: HELLO.params })
      expect(said.filter(({ method }) => method === 'initialize')).toHaveLength(1)
    }
    expect(client.lines.filter((line) => line.includes('"protocolVersion"'))).toHaveLength(1)
  })

  test('sessions asked for all at once are spread too, and nothing comes before initialize', async () => {
    verifies('6.6-balance')
    const bus = await startBus({ config: three({ args: ['once'] }) })
    await bus.allReady()
    const clients = [await bus.connect(), await bus.connect()]
    for (const client of clients) {
      client.send(HELLO)
      for (let n = 1; n <= 6; n++) client.send(request(n, 'session/new', { cwd: '/', mcpServers: [] }))
    }
    for (const client of clients) {
      const answers = (await client.take(7)).filter(({ id }) => id !== 0)
      expect(new Set(answers.map(({ result }) => workerOf(result.sessionId))).size).toBe(3)
    }
    for (const { pid } of (await bus.status()).workers)
      expect(heardByAgents(bus).find((each) => each.pid === pid)).toMatchObject({ method: 'initialize' })
  })

  test('a worker that dies takes only its own sessions with it', async () => {
    verifies('6.6-balance', 'A15-lost')
    const bus = await startBus({ config: three() })
    const { client, sessions } = await spread(bus)
    const [lost, ...kept] = sessions as [string, string, string]
    process.kill(workerOf(lost), 'SIGKILL')
    await bus.statusWhere('it is back', ({ workers }) =>
      workers.every(({ state, pid }) => state === 'ready' && pid !== workerOf(lost)),
    )
    expectRefusal(await prompt(client, lost), 'session_lost')
    for (const session of kept) expect((await prompt(client, session)).result.sessionId).toBe(session)
    const fresh = [await newSession(client), await newSession(client), await newSession(client)]
    for (const session of fresh) expect((await prompt(client, session)).result.sessionId).toBe(session)
    expect(new Set(fresh.map(workerOf)).size).toBe(3)
  })

  test('session/list says that it is partial, or lists them all', async () => {
    verifies('A7-partial')
    const bus = await startBus({ config: three() })
    const { client, sessions } = await spread(bus)
    const { result } = await client.ask(request('l', 'session/list'))
    const listed: string[] = result.sessions.map(({ sessionId }: Message) => sessionId)
    for (const id of listed) expect(sessions).toContain(id)
    if (listed.length < 3) expect(JSON.stringify(result._meta)).toMatch(/partial/)
  })

  test('balance: connection keeps one client on one worker, and its list is whole', async () => {
    verifies('6.6-balance', 'A7-partial')
    const bus = await startBus({ config: three({ balance: 'connection' }) })
    const { client, sessions } = await spread(bus)
    expect(new Set(sessions.map(workerOf)).size).toBe(1)
    const { result } = await client.ask(request('l', 'session/list'))
    expect(result.sessions.map(({ sessionId }: Message) => sessionId)).toEqual(sessions)
  })

  test('a client that leaves has its turns cancelled on every worker', async () => {
    verifies('6.6-balance', 'A14-told')
    const bus = await startBus({ config: three({ args: ['newest=2'] }) })
    await bus.allReady()
    const client = await bus.connect()
    await client.ask({ ...HELLO, params: { protocolVersion: 2 } })
    const sessions = [await newSession(client), await newSession(client), await newSession(client)]
    for (const session of sessions) await prompt(client, session)
    client.close()
    await eventually('all three to be told', () => {
      const told = heardByAgents(bus).filter(({ method }) => method === 'session/close')
      return told.length === 3 && told.every(({ pid, params }) => workerOf(params.sessionId) === pid)
    })
  })
})

describe('fallback', () => {
  const NEVER = { restart: 'never' }
  const dead = (id: string, more = {}) => ({
    id,
    command: process.execPath,
    args: ['-e', 'process.exit(1)'],
    instances: 1,
    ...NEVER,
    ...more,
  })
  const allStopped = (bus: Bus, id: string) =>
    bus.statusWhere(`${id} has no worker`, ({ workers }) =>
      workers.filter(({ pool }) => pool === id).every(({ state }) => state === 'stopped' || state === 'parked'),
    )

  test('a pool without workers: another serves, through a chain, requests and sessions', async () => {
    verifies('6.6-fallback')
    const pools = [dead('a', { fallback: 'b' }), dead('b', { fallback: 'c' }), pool('echo', { id: 'c', args: ['c'] })]
    const bus = await startBus({ config: config(pools, {}, { default_pool: 'a' }) })
    await allStopped(bus, 'a')
    await allStopped(bus, 'b')
    const client = await bus.connect()
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: { worker: 'c' } })
    expect(await client.ask({ id: 2, method: 'm', sessionId: 's' })).toMatchObject({ result: { worker: 'c' } })
    expect(await client.ask({ id: 3, method: 'm', sessionId: 's', pool: 'a' })).toMatchObject({
      result: { worker: 'c' },
    })
  })

  test('where the last one has none either: no_worker', async () => {
    verifies('6.6-fallback', '7.2-no-worker')
    const bus = await startBus({ config: config([dead('a', { fallback: 'b' }), dead('b')], {}, { default_pool: 'a' }) })
    await allStopped(bus, 'a')
    await allStopped(bus, 'b')
    expectRefusal(await (await bus.connect()).ask({ id: 1, method: 'm' }), 'no_worker')
  })

  test('ACP: the worker of the other pool hears initialize first; back at the first when that is well', async () => {
    verifies('6.6-fallback')
    const workspace = testWorkspace()
    const mark = workspace.write('ill', '')
    const ill = `const { existsSync } = require('node:fs'); if (existsSync(${JSON.stringify(mark)})) process.exit(1); import(process.argv[1])`
    const well = rawPool()
    const first = { ...rawPool({ id: 'first', fallback: 'second', protocol: 'acp' }), args: ['-e', ill, well.args[0]] }
    const limits = { max_restarts: 1, restart_window_sec: 3 }
    const pools = [{ ...first, limits }, rawPool({ id: 'second', protocol: 'acp' })]
    const bus = await startBus({ config: config(pools, {}, { default_pool: 'first' }), workspace })
    await allStopped(bus, 'first')
    const client = await bus.connect()
    expect(await client.ask(HELLO)).toMatchObject({ result: { protocolVersion: 1 } })
    const session = await newSession(client)
    const second = (await bus.status()).workers.find((each) => each.pool === 'second')!.pid
    expect(workerOf(session)).toBe(second)
    rmSync(mark)
    await bus.statusWhere('the first is well', ({ workers }) => workers.every(({ state }) => state === 'ready'), 15_000)
    expect((await prompt(client, session)).result.pid).toBe(second)
    const back = await newSession(client)
    expect(workerOf(back)).not.toBe(second)
    expect((await prompt(client, back)).result.pid).toBe(workerOf(back))
    for (const pid of [second, workerOf(back)]) {
      const said = heardByAgents(bus).filter((each) => each.pid === pid)
      expect(said[0]).toMatchObject({ method: 'initialize', params: HELLO.params })
    }
  })

  test('ACP: a client that was welcomed by the first goes on at the other, which hears initialize first', async () => {
    verifies('6.6-fallback')
    const pools = [
      rawPool({ id: 'first', fallback: 'second', protocol: 'acp', ...NEVER }),
      rawPool({ id: 'second', protocol: 'acp' }),
    ]
    const bus = await startBus({ config: config(pools, {}, { default_pool: 'first' }) })
    const client = await bus.connect()
    await client.ask(HELLO)
    const lost = await newSession(client)
    process.kill(workerOf(lost), 'SIGKILL')
    await allStopped(bus, 'first')
    expectRefusal(await prompt(client, lost), 'session_lost')
    const session = await newSession(client)
    expect(workerOf(session)).not.toBe(workerOf(lost))
    expect((await prompt(client, session)).result.sessionId).toBe(session)
    const said = heardByAgents(bus).filter(({ pid }) => pid === workerOf(session))
    expect(said.map(({ method }) => method)).toEqual(['initialize', 'session/new', 'session/prompt'])
  })

  test('MCP: calls go on at the other pool', async () => {
    verifies('6.6-fallback')
    const pools = [
      mcpPool('puppet', { id: 'first', fallback: 'second', ...NEVER }),
      mcpPool('puppet', { id: 'second' }),
    ]
    const bus = await startBus({ config: config(pools, {}, { default_pool: 'first' }) })
    const client = await bus.connect()
    await shakeHands(client)
    const { pid } = (await client.ask(call(1, undefined))).result
    process.kill(pid, 'SIGKILL')
    await allStopped(bus, 'first')
    const { result } = await client.ask(call(2, undefined))
    expect(result.pid).not.toBe(pid)
    expect((await client.ask(call(3, undefined))).result.pid).toBe(result.pid)
  })

  test('a reload gives and takes it, and a pool of the same name that is well serves again', async () => {
    verifies('6.6-fallback', '7.5-reload')
    const other = pool('echo', { id: 'b', args: ['b'] })
    const write = (first: object) => config([first, other], {}, { default_pool: 'a' })
    const bus = await startBus({ config: write(dead('a')) })
    await allStopped(bus, 'a')
    const client = await bus.connect()
    const reload = async (first: object) => {
      bus.workspace.write('bus.json', write(first))
      expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    }
    expectRefusal(await client.ask({ id: 1, method: 'm' }), 'no_worker')
    await reload(dead('a', { fallback: 'b' }))
    await allStopped(bus, 'a')
    expect(await client.ask({ id: 2, method: 'm' })).toMatchObject({ result: { worker: 'b' } })
    await reload(pool('echo', { id: 'a', args: ['a'], fallback: 'b' }))
    await bus.statusWhere('a is well', ({ workers }) => workers.some((w) => w.pool === 'a' && w.state === 'ready'))
    expect(await client.ask({ id: 3, method: 'm' })).toMatchObject({ result: { worker: 'a' } })
    await reload(dead('a'))
    await allStopped(bus, 'a')
    expectRefusal(await client.ask({ id: 4, method: 'm' }), 'no_worker')
  })

  test('whoever waits for a worker that will not come is served by the other pool', () => {
    verifies('6.6-fallback')
    const stage = new Stage([
      { id: 'a', protocol: 'mcp', fallback: 'b', restart: 'never' },
      { id: 'b', protocol: 'mcp' },
    ])
    const client = stage.connect()
    stage.send(client, initializeLine('x'))
    expect(stage.snapshot.outstanding).toBe(1)
    stage.exit(0)
    stage.advance(1_000)
    const welcome = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'b', version: '1' } }
    stage.say(1, { id: stage.told(1, 'initialize').id, result: welcome })
    expect(stage.atClient.get(client)).toMatchObject([{ id: 'x', result: welcome }])
  })
})

test('max_instances: the refusal says that it was reached', async () => {
  verifies('6.7.2-says')
  const bus = await startBus({
    config: config(pool('echo', { sharing: 'isolated', instances: 0, max_instances: 1 })),
  })
  const [first, second] = [await bus.connect(), await bus.connect()]
  await first.ask({ id: 1, method: 'm' })
  const { error } = await second.ask({ id: 1, method: 'm' })
  expect(error).toMatchObject({ code: -32603, data: { reason: 'no_worker', retryable: true } })
  expect(JSON.stringify(error)).toMatch(/max_instances/)
})
