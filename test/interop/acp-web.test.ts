/** Real ACP clients over HTTP and WebSocket, and what those get who do not speak as they do (contract 10.13, 10.14). */
import { createHttpStream } from '@agentclientprotocol/sdk/experimental/http-client'
import { createWebSocketStream } from '@agentclientprotocol/sdk/experimental/ws-client'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { ask, WebSocketPeer } from '../support/web.ts'
import { type AcpClient, acpClientOn, acpPool, agentHears } from './acp-peers.ts'

const INITIALIZE = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1 } }

function startAgent(): Promise<Bus> {
  return startBus({ config: config(acpPool()), doors: ['http'] })
}

function overHttp(bus: Bus): AcpClient {
  const stream = createHttpStream(bus.url('/acp'))
  return acpClientOn(stream, () => void stream.writable.close().catch(() => {}))
}

function overWebSocket(bus: Bus): AcpClient {
  const stream = createWebSocketStream(bus.url('/acp').replace(/^http/, 'ws'), { WebSocket: WebSocket as never })
  return acpClientOn(stream, () => void stream.writable.close().catch(() => {}))
}

test.each([
  ['HTTP', overHttp],
  ['WebSocket', overWebSocket],
])('10.13 the SDK over %s: sessions, updates before answers, questions, loading, going', async (_name, open) => {
  verifies('10.13-flow', '10.13-websocket', '10.13-ends')
  const bus = await startAgent()
  const clients = [open(bus), open(bus)]
  for (const client of clients) await client.initialize()
  const ids = await Promise.all(clients.map((client) => client.newSession()))
  await Promise.all(clients.map((client, n) => client.prompt(ids[n]!, `echo hello ${n}`)))
  for (const [n, client] of clients.entries())
    expect(client.updates).toEqual([{ sessionId: ids[n], text: `hello ${n}` }])
  await clients[0]!.prompt(ids[0]!, 'permission')
  expect(clients[0]!.shown(ids[0]!)).toMatch(/permission: selected yes$/)
  await clients[1]!.load('saved-1')
  await clients[1]!.prompt('saved-1', 'echo again')
  expect(clients[1]!.shown('saved-1')).toMatch(/again$/)
  const before = (await bus.status()).clients
  clients[0]!.leave()
  await agentHears(
    bus,
    'the end of its session',
    ({ method, params }) => method === 'session/close' && params?.sessionId === ids[0],
  )
  expect(before).toBe(2)
  await bus.statusWhere('one client is left', (status) => status.clients === 1)
})

test('10.13 what does not fit is refused', async () => {
  verifies('10.13-refusals')
  const bus = await startAgent()
  const post = async (body: unknown, headers: Record<string, string> = {}) => {
    const { status, text } = await ask(bus.url('/acp'), { body: body as object, headers })
    return text === '' ? status : [status, JSON.parse(text).error.data.reason]
  }
  const opened = await ask(bus.url('/acp'), { body: INITIALIZE })
  expect(opened.status).toBe(200)
  expect(opened.json).toMatchObject({ id: 0, result: { protocolVersion: 1 } })
  const id = String(opened.headers['acp-connection-id'])
  const named = { 'acp-connection-id': id }
  const ping = { jsonrpc: '2.0', id: 1, method: 'session/list', params: {} }
  const prompt = { jsonrpc: '2.0', id: 2, method: 'session/prompt', params: { sessionId: 's', prompt: [] } }
  expect(await post(ping)).toEqual([400, 'connection_required'])
  expect(await post(ping, { 'acp-connection-id': 'f'.repeat(32) })).toEqual([404, 'unknown_connection'])
  expect(await post(INITIALIZE, named)).toEqual([400, 'initialized_before'])
  expect(await post([ping], named)).toEqual([501, 'no_batches'])
  expect(await post(prompt, named)).toEqual([400, 'session_required'])
  expect(await post(prompt, { ...named, 'acp-session-id': 'other' })).toEqual([400, 'session_required'])
  expect(await post(ping, named)).toBe(202)
  const get = await ask(bus.url('/acp'), { headers: { ...named, accept: 'application/json' } })
  expect(get.status).toBe(406)
  expect((await ask(bus.url('/acp'), { headers: { accept: 'text/event-stream' } })).status).toBe(400)
  expect((await ask(bus.url('/acp'), { method: 'DELETE', headers: named })).status).toBe(202)
  expect(await post(ping, named)).toEqual([404, 'unknown_connection'])
  expect((await bus.status()).clients).toBe(0)
})

test('10.14 ACP over WebSocket has an id of its connection, and ignores binary frames', async () => {
  verifies('10.13-websocket')
  const bus = await startAgent()
  const peer = new WebSocketPeer(bus.url('/acp'))
  const opened = peer.opened()
  expect((await peer.upgradeHeaders)['acp-connection-id']).toMatch(/^[0-9a-f]{32}$/)
  await opened
  peer.socket.send(Buffer.from('{}'))
  peer.socket.send(JSON.stringify(INITIALIZE))
  expect(await peer.take(1)).toMatchObject([{ id: 0, result: { protocolVersion: 1 } }])
})
