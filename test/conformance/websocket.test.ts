/** WebSocket: a text frame is a message (contract 10.14). */
import { expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { WebSocketPeer } from '../support/web.ts'
import { verifies } from './verifies.ts'

async function open(limits = {}) {
  const bus = await startBus({ config: config(pool('echo'), limits), doors: ['http'] })
  const peer = new WebSocketPeer(bus.url('/ws'))
  await peer.opened()
  return { bus, peer }
}

test('10.14 frames are messages, of any layout, in order', async () => {
  verifies('10.14-frames')
  const { peer } = await open()
  for (let id = 1; id <= 500; id++) peer.socket.send(`{"id":${id},\n"method":"m"}`)
  expect((await peer.take(500)).map(({ id }) => id)).toEqual(Array.from({ length: 500 }, (_, index) => index + 1))
  peer.socket.close()
})

test.each([
  ['not JSON', '{', 1007, 'not_json', -32700],
  ['a line break in a string', '{"id":1,"method":"a\nb"}', 1007, 'not_json', -32700],
  ['nothing', ' ', 1007, 'not_json', -32700],
  ['no message', '{"id":"x"}', 1008, 'bad_envelope', -32600],
  ['too large', `{"id":1,"method":"${'x'.repeat(3_000)}"}`, 1009, 'message_too_large', -32600],
])('10.14 %s: the error as a frame, then the code with the reason', async (_name, frame, code, reason, rpcCode) => {
  verifies('10.14-codes')
  const { peer } = await open({ max_input_buffer: 2_000 })
  peer.socket.send(frame)
  expect(await peer.take(1)).toMatchObject([{ error: { code: rpcCode, data: { reason } } }])
  expect(await peer.closed).toEqual({ code, reason })
})

test('10.14 pings of somebody who does not read are answered by the last of them', async () => {
  verifies('10.14-pings')
  const { peer } = await open()
  const pongs: string[] = []
  peer.socket.on('pong', (data) => pongs.push(String(data)))
  peer.socket.ping('one')
  await expect.poll(() => pongs).toEqual(['one'])
  peer.socket.pause()
  const COUNT = 50_000
  for (let number = 1; number <= COUNT; number++) peer.socket.ping(String(number).padEnd(125))
  peer.socket.resume()
  await expect.poll(() => pongs.at(-1)?.trim(), { timeout: 20_000 }).toBe(String(COUNT))
  expect(pongs.length).toBeLessThan(COUNT / 2)
  peer.socket.send('{"id":1,"method":"m"}')
  expect(await peer.take(1)).toMatchObject([{ id: 1 }])
})

test('10.14 one client too many: the error as a frame, then 1013', async () => {
  verifies('10.14-codes')
  const { bus, peer } = await open({ max_clients: 1 })
  const second = new WebSocketPeer(bus.url('/ws'))
  expect(await second.take(1)).toMatchObject([{ error: { data: { reason: 'too_many_clients' } } }])
  expect(await second.closed).toEqual({ code: 1013, reason: 'too_many_clients' })
  peer.socket.send('{"id":1,"method":"m"}')
  expect(await peer.take(1)).toMatchObject([{ id: 1 }])
})

test('10.14 binary frames, and the end of the bus', async () => {
  verifies('10.14-codes', '10.17-shutdown')
  const { bus, peer } = await open()
  const binary = new WebSocketPeer(bus.url('/ws'))
  await binary.opened()
  binary.socket.send(Buffer.from('{}'))
  expect((await binary.closed).code).toBe(1003)
  peer.socket.send('{"id":1,"method":"m"}')
  await peer.take(1)
  bus.signal('SIGTERM')
  expect(await peer.closed).toEqual({ code: 1001, reason: 'shutting_down' })
  expect(await bus.exit).toEqual({ code: 0, signal: null })
})

test('10.2 an upgrade of another origin or host is refused', async () => {
  verifies('10.2-origin')
  const { bus } = await open()
  for (const headers of [{ origin: 'https://evil.example.com' }, { host: 'evil.example.com' }])
    await expect(new WebSocketPeer(bus.url('/ws'), { headers }).opened()).rejects.toThrow('status 403')
  await expect(new WebSocketPeer(bus.url('/rpc')).opened()).rejects.toThrow('status 404')
  await expect(new WebSocketPeer(bus.url('/ws/nope')).opened()).rejects.toThrow('status 404')
})
