/** Spec A1: what a pool speaks is learnt from its workers; a client that comes to the wrong pool changes nothing for anybody. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { config } from '../support/pools.ts'
import { rawPool } from './acp-peers.ts'
import { call, initializeLine, MODERN, mcpPool } from './mcp-peers.ts'

const acpHello = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'initialize', params: { protocolVersion: 1 } })

/** What a stranger says, and two more requests, each of which is answered somehow. */
const STRANGERS: readonly (readonly [string, (id: number) => Message])[] = [
  ['an initialize with a string', (id) => initializeLine(id, '2025-03-26')],
  ['a request with _meta of the stateless era', (id) => call(id, undefined, MODERN)],
  ['server/discover', (id) => ({ jsonrpc: '2.0', id, method: 'server/discover', params: { _meta: MODERN } })],
]

async function intrude(client: LineClient, first: (id: number) => Message): Promise<void> {
  await client.ask(first(1))
  client.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  await client.ask({ jsonrpc: '2.0', id: 2, method: 'tools/list', params: {} })
  await client.ask(call(3, undefined))
}

async function expectAcp(client: LineClient): Promise<void> {
  expect(await client.ask(acpHello(10))).toMatchObject({ result: { protocolVersion: 1 } })
  const { result } = await client.ask({ jsonrpc: '2.0', id: 11, method: 'session/new', params: { cwd: '/' } })
  const params = { sessionId: result.sessionId, prompt: [{ type: 'text', text: 'hello' }] }
  const turn = await client.ask({ jsonrpc: '2.0', id: 12, method: 'session/prompt', params })
  expect(turn).toMatchObject({ result: { stopReason: 'end_turn', text: 'hello' } })
}

describe.each([
  ['configured', { protocol: 'acp' }],
  ['found out by itself', {}],
])('an ACP pool, %s', (_, more) => {
  test.each(STRANGERS)('is what it was after %s', async (_, first) => {
    verifies('A1-stranger')
    const bus = await startBus({ config: config(rawPool({ ...more, instances: 2 })) })
    const before = await bus.connect()
    await expectAcp(before)
    const strangers = [await bus.connect(), await bus.connect(), await bus.connect()]
    for (const stranger of strangers) await intrude(stranger, first)
    for (const client of [await bus.connect(), await bus.connect()]) await expectAcp(client)
    await expectAcp(before)
    for (const stranger of strangers) stranger.close()
    await expectAcp(await bus.connect())
    expect((await bus.status()).workers.map(({ restarts }) => restarts)).toEqual([0, 0])
  })

  test.each(STRANGERS)('serves its first client though %s came before', async (_, first) => {
    verifies('A1-stranger')
    const bus = await startBus({ config: config(rawPool({ ...more, instances: 1 })) })
    const stranger = await bus.connect()
    await intrude(stranger, first)
    await expectAcp(await bus.connect())
    await intrude(stranger, first)
    await expectAcp(await bus.connect())
  })
})

test('an agent that answers whatever it is asked is not taken for a server of the stateless era', async () => {
  verifies('A1-stranger')
  const bus = await startBus({ config: config(rawPool({ args: ['agrees'] })) })
  await intrude(await bus.connect(), (id) => initializeLine(id, '2025-03-26'))
  await expectAcp(await bus.connect())
})

test.each([[['lenient']], [['lenient', 'once']]])(
  'an agent that welcomes whoever comes is no server (%j)',
  async (args) => {
    verifies('A1-stranger')
    const bus = await startBus({ config: config(rawPool({ args })) })
    const stranger = await bus.connect()
    const { error } = await stranger.ask(initializeLine(1, '2025-03-26'))
    expect(error).toMatchObject({ code: -32600, data: { reason: 'protocol_mismatch' } })
    await intrude(stranger, (id) => initializeLine(id, '2025-03-26'))
    await expectAcp(await bus.connect())
    await expectAcp(await bus.connect())
  },
)

describe.each([
  ['configured', { protocol: 'mcp' }],
  ['found out by itself', {}],
])('an MCP pool, %s', (_, more) => {
  test.each([
    ['handshake', 'legacy', initializeLine(0), call(1, undefined)],
    ['stateless', 'modern', call(0, undefined, MODERN), call(1, undefined, MODERN)],
  ])('of the %s era is what it was after an initialize with a number', async (_, mode, hello, next) => {
    verifies('A1-stranger')
    const bus = await startBus({ config: config(mcpPool('puppet', { args: [mode], ...more })) })
    const stranger = await bus.connect()
    const intruding = async () => {
      await stranger.ask(acpHello(1))
      await stranger.ask({ jsonrpc: '2.0', id: 2, method: 'session/new', params: { cwd: '/', mcpServers: [] } })
      await stranger.ask({ jsonrpc: '2.0', id: 3, method: 'session/list', params: {} })
    }
    await intruding()
    for (let n = 0; n < 2; n++) {
      const client = await bus.connect()
      expect(await client.ask(hello)).toMatchObject({ result: {} })
      expect(await client.ask(next)).toMatchObject({ result: { echo: { name: 'tool' } } })
      await intruding()
    }
    expect((await bus.status()).workers[0]!.restarts).toBe(0)
  })
})
