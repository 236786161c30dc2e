/** What ends a request, a subscription or a worker of a pool that speaks a protocol, and what the worker hears of it. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { call, expectRefusal, greeted, heard, hears, MODERN, mcpPool, settled } from './mcp-peers.ts'

const puppet = (more = {}) => mcpPool('puppet', { protocol: 'mcp', ...more })
const isCancel = ({ method }: { method?: string }) =>
  method === 'notifications/cancelled' || method === '$/cancel_request'

describe('the end of input of a client that speaks a protocol means that it has gone', () => {
  test('MCP: what it asked for is cancelled', async () => {
    verifies('4.1.2-dialect-eof')
    const bus = await startBus({ config: config(puppet()) })
    const [client] = await greeted(bus, 1)
    client!.send(call('held', []))
    await hears(bus, 'the call', ({ id }) => id === 'held')
    client!.endWriting()
    expect((await hears(bus, 'the cancel', isCancel)).params.requestId).toBe('held')
    await bus.statusWhere('it has gone', ({ clients }) => clients === 0)
  })

  test('ACP: its turn is cancelled', async () => {
    verifies('4.1.2-dialect-eof')
    const bus = await startBus({ config: config(puppet({ protocol: 'acp' })) })
    const client = await bus.connect()
    const answer = (result: object) => [JSON.stringify({ jsonrpc: '2.0', id: 0, result }).replace('"id":0', '"id":$ID')]
    const ask = (id: number, method: string, params: object) => ({ jsonrpc: '2.0', id, method, params })
    await client.ask(ask(1, 'initialize', { protocolVersion: 1, say: answer({ protocolVersion: 1 }) }))
    await client.ask(ask(2, 'session/new', { say: answer({ sessionId: 's' }) }))
    client.send(ask(3, 'session/prompt', { sessionId: 's', say: [] }))
    await hears(bus, 'the prompt', ({ method }) => method === 'session/prompt')
    client.endWriting()
    expect((await hears(bus, 'the cancel', ({ method }) => method === 'session/cancel')).params.sessionId).toBe('s')
  })
})

test('of the same id twice a cancel means the newest', async () => {
  verifies('4.2.3-cancel-newest')
  const bus = await startBus({ config: config(puppet()) })
  const [client] = await greeted(bus, 1)
  for (const name of ['older', 'newer', 'newest']) client!.send(call(7, [], { name }))
  const newest = await hears(bus, 'all three', ({ params }) => params?._meta?.name === 'newest')
  client!.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } })
  expect((await hears(bus, 'the cancel', isCancel)).params.requestId).toBe(newest.id)
  await settled(client!)
  expect(heard(bus).filter(isCancel)).toHaveLength(1)
})

test.each([
  ['MCP', puppet(), greeted],
  [
    'ACP',
    puppet({ protocol: 'acp' }),
    async (bus: Parameters<typeof greeted>[0]) => {
      const client = await bus.connect()
      const say = ['{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":1}}']
      await client.ask({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1, say } })
      return [client]
    },
  ],
])('%s: the worker is sent the cancel of a request that has timed out', async (_, pool, join) => {
  verifies('8.1-timeout-cancel')
  const bus = await startBus({ config: config(pool, { request_timeout_sec: 1 }) })
  const [client] = await join(bus, 1)
  client!.send(call('late', []))
  expectRefusal(await client!.answerTo('late', 10_000), 'request_timeout')
  expect((await hears(bus, 'the cancel', isCancel)).params.requestId).toBe('late')
})

test('a subscription is ended with worker_exited when its server ends', async () => {
  verifies('M22-exited')
  const bus = await startBus({ config: config(puppet({ args: ['modern'], era: 'modern' })) })
  const client = await bus.connect()
  client.send({ jsonrpc: '2.0', id: 'sub', method: 'subscriptions/listen', params: { _meta: MODERN, say: [] } })
  await hears(bus, 'the listen', ({ id }) => id === 'sub')
  process.kill((await bus.status()).workers[0]!.pid, 'SIGKILL')
  expectRefusal(await client.answerTo('sub'), 'worker_exited')
})

test('a worker that is not ready within start_timeout_sec is ended and started again', async () => {
  verifies('7.2-start-timeout')
  const bus = await startBus({ config: config(puppet({ args: ['mute'], start_timeout_sec: 1 })) })
  await bus.statusWhere('it is started again', ({ workers }) => workers[0]!.generation > 1, 15_000)
  expect(bus.log.text).toContain('start_timeout_sec')
})
