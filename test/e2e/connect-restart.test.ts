/** The bus goes and comes back under a host that notices nothing but errors for what was in flight (contract 6.10). */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { call, initializeLine, mcpPool } from '../interop/mcp-peers.ts'
import { type Bus, startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { eventually, sleep } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'
import { type Shim, startShim } from './connect-harness.ts'

interface Scene {
  readonly workspace: Workspace
  readonly shim: Shim
  readonly bus: Bus
  again(): Promise<Bus>
}

async function scene(pools: object | object[], ...args: string[]): Promise<Scene> {
  const workspace = testWorkspace()
  const again = () => startBus({ config: config(pools, { drain_timeout_sec: 1 }), workspace })
  const bus = await again()
  const shim = startShim(workspace, '--unix', workspace.path('bus.sock'), ...args)
  return { workspace, shim, bus, again }
}

async function killed(bus: Bus): Promise<void> {
  bus.kill()
  await bus.exit
}

const gone = { code: -32603, data: { reason: 'bus_gone', retryable: true } }

describe('6.10 a bus that goes', () => {
  test('what is pending fails, what is asked meanwhile waits and is answered by the next bus', async () => {
    verifies('6.10.4-pending')
    const { shim, bus, again } = await scene(pool('slow'), '--pool', 'slow')
    for (const id of [1, 'two', 3.5]) shim.host.send({ id, method: 'x', params: { ms: 60_000 } })
    const before = await shim.host.ask({ id: 'quick', method: 'x', params: { ms: 1 } })
    await killed(bus)
    const failed = await shim.host.take(3)
    expect(failed.map(({ id, error }) => [id, error.code, error.data])).toEqual(
      [1, 'two', 3.5].map((id) => [id, gone.code, gone.data]),
    )
    const waits = shim.host.ask({ id: 1, method: 'x', params: { ms: 1 } }, 10_000)
    await again()
    const after = await waits
    expect(after.result.pid).not.toBe(before.result.pid)
    shim.host.endWriting()
    expect((await shim.ended()).code).toBe(0)
    expect(await shim.said).toMatch(/the bus has gone.*failed: 3.*\n.*the bus is back/)
  })

  test('requests that came in one array fail one by one, and the end of input waits for those of another', async () => {
    verifies('6.10.4-pending', '6.10.2-eof')
    const { shim, bus, again } = await scene(mcpPool('puppet', { protocol: 'mcp' }))
    await shim.host.ask(initializeLine(0, '2025-03-26'))
    shim.host.send([call(1, []), call('two', [])])
    await shim.host.ask(call(3, undefined))
    await killed(bus)
    expect(await shim.host.take(2)).toMatchObject([1, 'two'].map((id) => ({ id, error: gone })))
    await shim.hasLostBus()
    shim.host.send([call(4, undefined), call(5, undefined)])
    shim.host.endWriting()
    await again()
    expect(await shim.host.next(10_000)).toMatchObject([
      { id: 4, result: {} },
      { id: 5, result: {} },
    ])
    expect((await shim.ended()).code).toBe(0)
  })

  test('the end of input while it is away: what waits is still asked and answered', async () => {
    const { shim, bus, again } = await scene(pool('echo'))
    await shim.host.ask({ id: 1, method: 'x' })
    await killed(bus)
    await shim.hasLostBus()
    shim.host.send({ id: 2, method: 'x' })
    shim.host.endWriting()
    await sleep(200)
    await again()
    expect((await shim.host.next(10_000)).id).toBe(2)
    expect((await shim.ended()).code).toBe(0)
  })

  test('the end of input while it is away and nothing waits: exit 0 at once', async () => {
    const { shim, bus } = await scene(pool('echo'))
    await shim.host.ask({ id: 1, method: 'x' })
    await killed(bus)
    await shim.hasLostBus()
    shim.host.endWriting()
    expect((await shim.ended(2_000)).code).toBe(0)
  })

  test('a host that writes on and on is held, not buffered, and nothing of it is lost', async () => {
    verifies('6.10.4-held')
    const { shim, bus, again } = await scene(pool('echo'))
    await shim.host.ask({ id: 'first', method: 'x' })
    await killed(bus)
    await shim.hasLostBus()
    const count = 300
    for (let id = 0; id < count; id++) shim.host.send({ id, method: 'x', params: { pad: 'y'.repeat(20_000) } })
    await sleep(300)
    expect(shim.child.stdin!.writableLength).toBeGreaterThan(1_000_000)
    await again()
    expect((await shim.host.take(count, 15_000)).map(({ id }) => id)).toEqual([...Array(count).keys()])
  })

  test('a bus that shuts down in order answers itself, and is found again as well', async () => {
    const { shim, bus, again } = await scene([pool('slow'), pool('silent')], '--pool', 'slow')
    shim.host.send({ id: 1, method: 'x', pool: 'silent' })
    await shim.host.ask({ id: 'quick', method: 'x', params: { ms: 1 } })
    await bus.stop()
    expect(await shim.host.next()).toMatchObject({ id: 1, error: { data: { reason: 'shutting_down' } } })
    await again()
    expect((await shim.host.ask({ id: 2, method: 'x', params: { ms: 1 } }, 10_000)).result.echo).toEqual({ ms: 1 })
  })
})

describe('6.10 the introduction', () => {
  const acp = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } }
  const info = { name: 'host', version: '1' }
  const mcp = {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: info },
  }

  function heard(workspace: Workspace): Array<{ id?: unknown; method: string; params?: unknown }> {
    return workspace.lines('heard').map((line) => JSON.parse(line))
  }

  async function recorded(protocol: string): Promise<Scene> {
    const workspace = testWorkspace()
    const pools = pool('raw-log', { args: [workspace.path('heard')], protocol })
    const again = () => startBus({ config: config(pools), workspace })
    const bus = await again()
    return { workspace, bus, again, shim: startShim(workspace, '--unix', workspace.path('bus.sock')) }
  }

  test('initialize that was answered is said again before anything else, and its answer is kept back', async () => {
    verifies('6.10.4-introduction')
    const { workspace, shim, bus, again } = await recorded('plain')
    await shim.host.ask(acp)
    await killed(bus)
    await shim.hasLostBus()
    shim.host.send({ id: 1, method: 'session/new', params: {} })
    workspace.write('heard', '')
    await again()
    expect((await shim.host.next(10_000)).id).toBe(1)
    const [initialize, next] = heard(workspace)
    expect(initialize).toMatchObject({ method: 'initialize', params: acp.params })
    expect(next).toMatchObject({ id: 1, method: 'session/new' })
    await shim.host.staysQuiet()
  })

  test('MCP: initialized follows it', async () => {
    verifies('6.10.4-introduction')
    const { workspace, shim, bus, again } = await recorded('plain')
    await shim.host.ask(mcp)
    shim.host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await eventually('initialized at the worker', () => heard(workspace).length === 2)
    await killed(bus)
    workspace.write('heard', '')
    await again()
    const all = await eventually('both lines', () => heard(workspace).length >= 2 && heard(workspace), 10_000)
    expect(all.map(({ method }) => method)).toEqual(['initialize', 'notifications/initialized'])
    expect((await shim.host.ask({ id: 1, method: 'ping' })).id).toBe(1)
  })

  test('initialize that was not answered fails like any request and is not repeated', async () => {
    verifies('6.10.4-once')
    const workspace = testWorkspace()
    const pools = pool('raw-log', { args: [workspace.path('heard'), 'silent'], protocol: 'plain' })
    const bus = await startBus({ config: config(pools), workspace })
    const shim = startShim(workspace, '--unix', workspace.path('bus.sock'))
    shim.host.send(acp)
    await eventually('initialize at the worker', () => heard(workspace).length === 1)
    await killed(bus)
    expect(await shim.host.next()).toMatchObject({ id: 0, error: gone })
    workspace.write('heard', '')
    await startBus({ config: config(pools), workspace })
    shim.host.send({ method: 'notes/only' })
    await eventually('the notification', () => heard(workspace).length > 0, 10_000)
    expect(heard(workspace).map(({ method }) => method)).toEqual(['notes/only'])
  })
})

test('6.5 the answer to a question of the old bus is not taken for the answer to a new one with its id', async () => {
  const { shim, bus, again } = await scene(pool('asks', { args: ['q'] }))
  shim.host.send({ id: 1, method: 'do', sessionId: 's' })
  expect(await shim.host.next()).toMatchObject({ id: 'q', method: 'question' })
  await killed(bus)
  expect(await shim.host.next()).toMatchObject({ id: 1, error: gone })
  shim.host.send({ id: 2, method: 'do', sessionId: 's' })
  await again()
  const question = await shim.host.next(10_000)
  expect(question).toMatchObject({ method: 'question' })
  expect(question.id).not.toBe('q')
  shim.host.send({ id: 'q', result: 'late' })
  shim.host.send({ id: question.id, result: 'right' })
  expect(await shim.host.next()).toMatchObject({ id: 2, result: { said: 'right' } })
})
