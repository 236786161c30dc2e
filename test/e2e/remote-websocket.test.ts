/** Clause 11.1: an upstream that takes a message per text frame. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { verifies } from '../conformance/verifies.ts'
import type { Message } from '../support/line-client.ts'
import { busPair, testAuthority } from '../support/tls.ts'
import { eventually } from '../support/waiting.ts'
import { startNear } from './remote-harness.ts'

const ask = (id: unknown, more: object = {}): Message => ({ jsonrpc: '2.0', id, method: 'm', ...more })

interface Frames {
  readonly url: string
  readonly headers: Record<string, unknown>[]
  readonly sockets: WebSocket[]
  readonly server: WebSocketServer
}

async function serve(
  take: (message: Message, socket: WebSocket, text: string) => void,
  options: object = {},
): Promise<Frames> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false, ...options })
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })
  const frames: Frames = {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/rpc?k=secret`,
    headers: [],
    sockets: [],
    server,
  }
  server.on('connection', (socket, request) => {
    frames.headers.push(request.headers)
    frames.sockets.push(socket)
    socket.on('message', (data) => take(JSON.parse(String(data)), socket, String(data)))
  })
  return frames
}

test('a message per frame, of any layout, with the headers of the pool', async () => {
  verifies('11.1-websocket', '11.6-header')
  const heard: string[] = []
  const frames = await serve(({ id }, socket, text) => {
    heard.push(text)
    socket.send(`{\n  "jsonrpc": "2.0",\r\n  "id": ${JSON.stringify(id)}, "result": "a\\nb" }`)
  })
  const bus = await startNear({ url: frames.url, headers: { 'X-Key': 'k' }, token: 't' })
  const client = await bus.connect()
  client.send('{"jsonrpc":"2.0", "id":"x" ,"method":"m","params":{"ü":1.50}}')
  expect((await client.nextLine()).toString()).toBe('{   "jsonrpc": "2.0",    "id": "x", "result": "a\\nb" }')
  expect(heard).toEqual(['{"jsonrpc":"2.0", "id":"x" ,"method":"m","params":{"ü":1.50}}'])
  expect(frames.headers[0]).toMatchObject({
    'x-key': 'k',
    authorization: 'Bearer t',
    'stdio-bus-via': expect.stringMatching(/^[\w-]{36}$/),
  })
  const { workers } = await bus.status()
  expect(workers[0]).toMatchObject({ pid: null, address: frames.url.replace('?k=secret', '') })
})

test('what is no message harms nobody: binary frames, junk, line breaks inside strings', async () => {
  const frames = await serve(({ id }, socket) => {
    socket.send(Buffer.from('{"jsonrpc":"2.0","id":1,"result":"binary"}'))
    socket.send('junk')
    socket.send(`{"jsonrpc":"2.0","id":${id},"result":"a\n{\\"jsonrpc\\":\\"2.0\\"}"}`)
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, result: 'right' }))
  })
  const bus = await startNear({ url: frames.url })
  const client = await bus.connect()
  expect((await client.ask(ask(1))).result).toBe('right')
  expect((await bus.status()).dropped).toMatchObject({ junk_line: 1 })
})

test('one that breaks off, or sends too much, is told with why, and connected to again', async () => {
  verifies('11.4-broken-off')
  const frames = await serve(({ id, method }, socket) => {
    if (method === 'close') return socket.close(1011)
    if (method === 'big') return socket.send(JSON.stringify({ jsonrpc: '2.0', id, result: 'x'.repeat(300_000) }))
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, result: 'fine' }))
  })
  const bus = await startNear({ url: frames.url, limits: { max_input_buffer: 200_000 } })
  const client = await bus.connect()
  expect((await client.ask(ask(1, { method: 'close' }))).error.data).toMatchObject({
    reason: 'worker_exited',
    why: expect.stringContaining('closed the connection (1011)'),
  })
  expect((await client.ask(ask(2))).result).toBe('fine')
  expect((await client.ask(ask(3, { method: 'big' }))).error.data).toMatchObject({
    reason: 'worker_exited',
    why: expect.stringContaining('longer than max_input_buffer'),
  })
  expect((await client.ask(ask(4))).result).toBe('fine')
})

test('over TLS; refused credentials park it', async () => {
  verifies('11.2-refused')
  const { cert, key } = busPair()
  const https = createServer({ cert: readFileSync(cert), key: readFileSync(key) })
  const server = new WebSocketServer({
    server: https,
    verifyClient: ({ req }: { req: { headers: Record<string, unknown> } }) =>
      req.headers['authorization'] === 'Bearer right',
  })
  server.on('connection', (socket) =>
    socket.on('message', (data) => socket.send(String(data).replace('"method":"m"', '"result":1'))),
  )
  await new Promise<void>((resolve) => https.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const client of server.clients) client.terminate()
    https.close()
  })
  const url = `wss://localhost:${(https.address() as AddressInfo).port}/`
  const right = await startNear({ url, token: 'right', ca: testAuthority().ca })
  expect((await (await right.connect()).ask(ask(1))).result).toBe(1)
  const wrong = await startNear({ url, token: 'wrong', ca: testAuthority().ca })
  const { workers } = await wrong.statusWhere('it is parked', (status) => status.workers[0]?.state === 'parked')
  expect(workers[0]).toMatchObject({ restarts: 0, last_error: expect.stringContaining('HTTP 401') })
})

test('a slow reader makes the upstream wait', async () => {
  const count = 3_000
  let sent = 0
  const frames = await serve(({ id }, socket) => {
    const pad = 'x'.repeat(4_000)
    const more = (): void => {
      while (sent < count && socket.bufferedAmount < 100_000)
        socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'n', params: { n: sent++, pad }, sessionId: 's' }))
      if (sent < count) setTimeout(more, 5)
      else socket.send(JSON.stringify({ jsonrpc: '2.0', id, result: 'end' }))
    }
    more()
  })
  const bus = await startNear({ url: frames.url })
  const client = await bus.connect()
  client.pause()
  client.send(ask(1, { sessionId: 's' }))
  await eventually('it to be held up', async () => (await bus.status()).queue_bytes > 1_000_000)
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(sent).toBeLessThan(count)
  client.resume()
  for (let n = 0; n < count; n++) expect((await client.next()).params.n).toBe(n)
  expect((await client.next()).result).toBe('end')
})
