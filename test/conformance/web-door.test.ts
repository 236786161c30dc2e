/** The HTTP door: whom it serves, what it takes, and what it answers (contract 10.1 to 10.5, 10.15, 10.18). */
import { request } from 'node:http'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { oneshot } from '../e2e/aio-harness.ts'
import { mcpPool } from '../interop/mcp-peers.ts'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { ask, JSON_HEADERS } from '../support/web.ts'
import { verifies } from './verifies.ts'

const HELLO = { jsonrpc: '2.0', id: 1, method: 'hello' }

async function startWeb(worker = pool('echo'), http: object = {}, more: object = {}) {
  const doors = { listen: { http: { address: '127.0.0.1:0', ...http } } }
  return startBus({ config: { ...config(worker), ...doors, ...more }, doors: [] })
}

/** Raw bytes to the door, and all that comes back until it closes. */
function speak(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(text))
    let heard = ''
    socket.on('data', (chunk) => {
      heard += chunk
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(heard))
  })
}

test('10.1 paths, pools and methods that are not there', async () => {
  verifies('10.1-paths')
  const bus = await startWeb()
  expect(bus.addresses[0]).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  expect((await ask(bus.url('/nowhere'))).status).toBe(404)
  expect((await ask(bus.url('/rpc/%ff'), { body: HELLO })).status).toBe(404)
  const unknown = await ask(bus.url('/rpc/nope'), { body: HELLO })
  expect([unknown.status, unknown.json.error.data.reason]).toEqual([404, 'unknown_pool'])
  const wrong = await ask(bus.url('/rpc'), { method: 'PUT', body: HELLO })
  expect([wrong.status, wrong.headers.allow]).toEqual([405, 'POST'])
  const slashed = await ask(bus.url('/rpc/'), { body: HELLO })
  expect([slashed.status, slashed.json.result.method]).toEqual([200, 'hello'])
})

const BODY = JSON.stringify(HELLO)
const TYPE = 'Content-Type: application/json'
const LENGTH = `Content-Length: ${BODY.length}`
const CHUNKS = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`

test.each([
  ['a length and chunks', ['Host: localhost', TYPE, LENGTH, 'Transfer-Encoding: chunked'], BODY, '400 bad_envelope'],
  ['two lengths', ['Host: localhost', TYPE, LENGTH, 'Content-Length: 4'], BODY, '400 bad_envelope'],
  ['a length with a sign', ['Host: localhost', TYPE, `Content-Length: +${BODY.length}`], BODY, '400 bad_envelope'],
  [
    'a coding before chunks',
    ['Host: localhost', TYPE, 'Transfer-Encoding: gzip, chunked'],
    CHUNKS,
    '415 wrong_media_type',
  ],
  ['a folded line', ['Host: localhost', TYPE, LENGTH, 'X-A: b', ' c'], BODY, '400 bad_envelope'],
  [
    'a space before the colon',
    ['Host: localhost', `${TYPE}`, `Content-Length : ${BODY.length}`],
    BODY,
    '400 bad_envelope',
  ],
  ['two hosts', ['Host: localhost', 'Host: evil', TYPE, LENGTH], BODY, '400 bad_envelope'],
  ['no host', [TYPE, LENGTH], BODY, '403 wrong_host'],
  [
    'two credentials',
    ['Host: localhost', TYPE, LENGTH, 'Authorization: Bearer a', 'Authorization: Bearer b'],
    BODY,
    '400 bad_envelope',
  ],
  ['two types', ['Host: localhost', TYPE, 'Content-Type: text/plain', LENGTH], BODY, '400 bad_envelope'],
  [
    'an endless name of a chunk',
    ['Host: localhost', TYPE, 'Transfer-Encoding: chunked'],
    `1;${'x'.repeat(20_000)}\r\n`,
    '413 bad_envelope',
  ],
  [
    'headers behind two thousand',
    ['Host: localhost', TYPE, LENGTH, ...Array(2_500).fill('A:'), 'Content-Encoding: gzip'],
    BODY,
    '415 wrong_media_type',
  ],
])('10.1 %s', async (_name, head, body, expected) => {
  verifies('10.1-heads')
  const bus = await startWeb()
  const heard = await speak(bus.url(), `POST /rpc HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${body}`)
  const [, status] = /^HTTP\/1\.1 (\d+)/.exec(heard) ?? []
  expect(`${status} ${/"reason":"(\w+)"/.exec(heard)?.[1]}`).toBe(expected)
  expect(heard).toMatch(/^connection: close\r$/im)
  expect((await ask(bus.url('/rpc'), { body: HELLO })).status).toBe(200)
})

test.each([
  ['a target that is a whole URL', 'http://localhost/rpc', ['Host: evil', LENGTH], BODY, 200],
  ['one of another host', 'http://evil/rpc', ['Host: localhost', LENGTH], BODY, 403],
  ['an offer of HTTP/2', '/rpc', ['Host: localhost', LENGTH, 'Connection: Upgrade', 'Upgrade: h2c'], BODY, 200],
  ['an expectation that nobody knows', '/rpc', ['Host: localhost', LENGTH, 'Expect: wonders'], BODY, 200],
  [
    'a body in the smallest of chunks',
    '/rpc',
    ['Host: localhost', 'Transfer-Encoding: chunked'],
    [...BODY.padEnd(20_000)]
      .map((byte) => `1\r\n${byte}\r\n`)
      .join('')
      .concat('0\r\n\r\n'),
    200,
  ],
])('10.1 %s', async (_name, target, head, body, status) => {
  verifies('10.1-heads', '10.3-bounds')
  const bus = await startWeb()
  const next = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
  const heard = await speak(
    bus.url(),
    `POST ${target} HTTP/1.1\r\n${[TYPE, ...head].join('\r\n')}\r\n\r\n${body}${next}`,
  )
  expect(heard).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  // What follows on the same connection is read as what it is.
  if (status === 200) expect(heard).toMatch(/"method":"hello"[\s\S]*HTTP\/1\.1 200 OK[\s\S]*ok\n/)
})

test.each([
  ['a head that cannot be read', ['Content-Length: 1', 'Content-Length: 2'], 400],
  ['a head that asks whether its body is wanted', [LENGTH, 'Expect: 100-continue', 'Connection: close'], 200],
])('10.1 %s waits for the answers to those before it', async (_name, head, status) => {
  verifies('10.1-heads')
  const bus = await startWeb(pool('slow'))
  const before = `POST /rpc HTTP/1.1\r\nHost: localhost\r\n${TYPE}\r\n${LENGTH}\r\n\r\n${BODY}`
  const heard = await speak(
    bus.url(),
    `${before}POST /rpc HTTP/1.1\r\nHost: localhost\r\n${TYPE}\r\n${head.join('\r\n')}\r\n\r\n${BODY}`,
  )
  const answers = heard.replace('HTTP/1.1 100 Continue\r\n\r\n', '').split(/(?=HTTP\/1\.1 )/)
  expect(answers.map((answer) => Number(answer.slice(9, 12)))).toEqual([200, status])
  for (const answer of answers) expect(() => JSON.parse(answer.split('\r\n\r\n')[1]!)).not.toThrow()
})

test('10.2 Host and Origin', async () => {
  verifies('10.2-host', '10.2-origin', '10.2-cors')
  const bus = await startWeb(pool('echo'), { hosts: ['bus.local'], origins: ['https://app.example.com'] })
  const as = async (headers: Record<string, string>) => {
    const { status, text } = await ask(bus.url('/rpc'), { body: HELLO, headers })
    return status === 200 ? 200 : `${status} ${JSON.parse(text).error.data.reason}`
  }
  expect(await as({ host: 'localhost:1' })).toBe(200)
  expect(await as({ host: '[::1]' })).toBe(200)
  expect(await as({ host: 'BUS.local.' })).toBe(200)
  expect(await as({ host: 'evil.example.com' })).toBe('403 wrong_host')
  expect(await as({ host: 'localhost.evil.com' })).toBe('403 wrong_host')
  const host = new URL(bus.url()).host
  expect(await as({ origin: `http://${host}` })).toBe(200)
  expect(await as({ origin: 'http://127.0.0.1:1' })).toBe('403 wrong_origin')
  expect(await as({ origin: 'null' })).toBe('403 wrong_origin')
  expect(await as({ origin: 'https://app.example.com' })).toBe(200)
  expect(await as({ origin: 'https://app.example.com.evil.com' })).toBe('403 wrong_origin')

  const cors = await ask(bus.url('/rpc'), { body: HELLO, headers: { origin: 'https://app.example.com' } })
  expect(cors.headers).toMatchObject({ 'access-control-allow-origin': 'https://app.example.com', vary: 'Origin' })
  expect(cors.headers['access-control-allow-credentials']).toBeUndefined()
  const own = await ask(bus.url('/rpc'), { body: HELLO, headers: { origin: `http://${host}` } })
  expect(own.headers['access-control-allow-origin']).toBeUndefined()
  const preflight = await ask(bus.url('/rpc'), {
    method: 'OPTIONS',
    headers: { origin: 'https://app.example.com', 'access-control-request-headers': 'mcp-param-x, x-other' },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers['access-control-allow-methods']).toBe('POST')
  expect(preflight.headers['access-control-allow-headers']).toMatch(/Authorization.*mcp-param-x$/)
})

test('10.3 heads, bodies and connections are bounded, and nobody else notices', async () => {
  verifies('10.3-bounds')
  const bus = await startWeb(pool('echo'), { max_connections: 4 }, { limits: { max_input_buffer: 2_000 } })
  expect(await speak(bus.url(), `GET /rpc HTTP/1.1\r\nHost: localhost\r\nX: ${'a'.repeat(17_000)}\r\n\r\n`)).toMatch(
    /^HTTP\/1.1 431 /,
  )
  const declared = `POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5000000\r\n\r\n`
  const unread = await speak(bus.url(), declared)
  expect(unread).toMatch(/^HTTP\/1.1 413 [\s\S]*[Cc]onnection: close[\s\S]*message_too_large/)
  const chunked = await ask(bus.url('/rpc'), {
    headers: { ...JSON_HEADERS, 'transfer-encoding': 'chunked' },
    method: 'POST',
    body: Buffer.from(JSON.stringify({ ...HELLO, params: 'x'.repeat(3_000) })),
  }).catch((error) => error)
  expect(chunked.status ?? chunked.code).toBeOneOf([413, 'EPIPE', 'ECONNRESET'])
  const slow = speak(bus.url(), 'POST /rpc HTTP/1.1\r\nHost: local')
  expect((await ask(bus.url('/rpc'), { body: HELLO })).status).toBe(200)
  expect(await slow).toMatch(/^HTTP\/1.1 408 /)
  const held = Array.from({ length: 4 }, () => connect(Number(new URL(bus.url()).port), '127.0.0.1'))
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(await speak(bus.url(), 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')).toMatch(
    /^HTTP\/1.1 503 [\s\S]*too_many_connections/,
  )
  for (const socket of held) socket.destroy()
})

test.each([
  ['a declared length', {}, '/rpc', 413],
  ['chunks', { 'transfer-encoding': 'chunked' }, '/rpc', 413],
  ['another type', { 'content-type': 'text/plain' }, '/rpc', 415],
  ['a path that is not there', {}, '/nowhere', 404],
])('10.3 whoever is still sending hears why it is refused: %s', async (_name, headers, path, status) => {
  verifies('10.3-bounds')
  const bus = await startWeb(pool('echo'), {}, { limits: { max_input_buffer: 2_000 } })
  const body = Buffer.alloc(4_000_000, 0x20)
  for (let i = 0; i < 8; i++) expect((await ask(bus.url(path), { body, headers })).status).toBe(status)
})

test('10.3 whoever goes on sending what nobody reads is cut off', async () => {
  verifies('10.3-bounds')
  const bus = await startWeb(pool('echo'), {}, { limits: { max_input_buffer: 2_000 } })
  const { hostname, port } = new URL(bus.url())
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write(
    'POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n',
  )
  const drip = setInterval(() => socket.write(' '), 50)
  let heard = ''
  socket.on('data', (chunk) => {
    heard += chunk
  })
  await new Promise((resolve) => socket.once('close', resolve))
  clearInterval(drip)
  expect(heard).toMatch(/^HTTP\/1.1 413 [\s\S]*message_too_large/)
})

test('10.4 what is refused before a path can serve it is refused in the same words', async () => {
  verifies('10.4-bodies')
  const bus = await startWeb()
  const heads = ['Host: localhost', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
  const upgrade = (method: string, key: string) =>
    speak(bus.url(), `${method} /ws HTTP/1.1\r\n${heads.join('\r\n')}\r\nSec-WebSocket-Key: ${key}\r\n\r\n`)
  expect(await upgrade('GET', 'short')).toMatch(
    /^HTTP\/1.1 400 [\s\S]*application\/json[\s\S]*nosniff[\s\S]*"bad_envelope"/,
  )
  const posted = await upgrade('POST', 'AAAAAAAAAAAAAAAAAAAAAA==')
  expect(posted).toMatch(/^HTTP\/1.1 405 [\s\S]*allow: GET\r[\s\S]*"wrong_method"/)
  const proxied = await speak(bus.url(), 'CONNECT example.com:80 HTTP/1.1\r\nHost: example.com\r\n\r\n')
  expect(proxied).toMatch(/^HTTP\/1.1 405 [\s\S]*Allow: [\s\S]*"wrong_method"/)
  expect((await bus.status()).refused).toEqual({ bad_envelope: 1, wrong_method: 2 })
})

const KEY = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='
const UPGRADE = ['Host: localhost', 'Connection: Upgrade']

test.each([
  ['a WebSocket', `GET /ws HTTP/1.1\r\n${[...UPGRADE, 'Upgrade: websocket', KEY].join('\r\n')}\r\n\r\n`, 400],
  [
    'an upgrade that is refused',
    `GET /rpc HTTP/1.1\r\n${[...UPGRADE, 'Upgrade: websocket'].join('\r\n')}\r\n\r\n`,
    404,
  ],
  [
    'an offer of HTTP/2',
    `GET /rpc HTTP/1.1\r\n${[...UPGRADE, 'Connection: close', 'Upgrade: h2c'].join('\r\n')}\r\n\r\n`,
    405,
  ],
  ['what is for a proxy', 'CONNECT example.com:80 HTTP/1.1\r\nHost: example.com\r\n\r\n', 405],
])('10.1 %s behind a request waits for the answer to that', async (_name, head, status) => {
  verifies('10.1-heads')
  const bus = await startWeb(pool('silent', { limits: { request_timeout_sec: 1 } }))
  const first = `POST /rpc HTTP/1.1\r\n${['Host: localhost', TYPE, LENGTH].join('\r\n')}\r\n\r\n${BODY}`
  const heard = await speak(bus.url(), first + head)
  expect([...heard.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, each]) => Number(each))).toEqual([504, status])
  expect((await ask(bus.url('/healthz'))).status).toBe(200)
})

test('10.4 a body is one message of any layout, in JSON', async () => {
  verifies('10.4-bodies')
  const bus = await startWeb()
  const post = (body: string | Buffer, headers: Record<string, string> = {}) => ask(bus.url('/rpc'), { body, headers })
  const spread = await post('{\r\n "id" : 7,\n\t"method":\n"a\\nb" , "params": "é"\n}\n')
  expect(spread.json).toMatchObject({ id: 7, result: { method: 'a\nb', echo: 'é' } })
  const refused = async (body: string | Buffer, headers: Record<string, string> = {}) => {
    const { status, json } = await post(body, headers)
    return [status, json.error.data.reason, json.id]
  }
  expect(await refused('{"id":1,"method":"m"')).toEqual([400, 'not_json', null])
  expect(await refused(Buffer.from([0x7b, 0xff, 0x7d]))).toEqual([400, 'not_json', null])
  expect(await refused('{"id":1,"method":"a\nb"}')).toEqual([400, 'not_json', null])
  expect(await refused('')).toEqual([400, 'not_json', null])
  expect(await refused('{"id":"q"}')).toEqual([400, 'bad_envelope', 'q'])
  expect(await refused('[{"id":1,"method":"m"}]')).toEqual([400, 'bad_envelope', null])
  expect(await refused('{}', { 'content-type': 'text/plain' })).toEqual([415, 'wrong_media_type', null])
  expect(await refused('{}', { 'content-type': 'application/json; charset=latin1' })).toEqual([
    415,
    'wrong_media_type',
    null,
  ])
  expect(await refused('{}', { 'content-encoding': 'gzip' })).toEqual([415, 'wrong_media_type', null])
})

test("10.15 /rpc: one request, the worker's answer or the status of what the bus says", async () => {
  verifies('10.15-rpc')
  const silent = pool('silent', { limits: { request_timeout_sec: 1 } })
  const pools = [pool('echo'), pool('dies-on-request', { id: 'mortal' }), silent]
  const bus = await startBus({ config: config(pools, {}, { default_pool: 'echo' }), doors: ['http'] })
  expect((await ask(bus.url('/rpc'), { body: { method: 'n' } })).status).toBe(202)
  const dead = await ask(bus.url('/rpc/mortal'), { body: { ...HELLO, method: 'die' } })
  expect([dead.status, dead.json.id, dead.json.error.data.reason]).toEqual([502, 1, 'worker_exited'])
  const late = await ask(bus.url('/rpc/silent'), { body: HELLO })
  expect([late.status, late.json.error.data.reason]).toEqual([504, 'request_timeout'])
  const streamed = await ask(bus.url('/rpc'), { body: HELLO, headers: { accept: 'text/event-stream' } })
  expect(streamed.headers['content-type']).toBe('text/event-stream')
  expect(streamed.text).toMatch(/^data: \{.*"result".*\}\n\n$/)
  expect((await ask(bus.url('/rpc'), { body: HELLO, headers: { accept: 'image/png' } })).status).toBe(406)
})

test('10.18 health and metrics; 10.17 a bus that ends', async () => {
  verifies('10.18-health', '10.17-shutdown')
  const bus = await startWeb()
  const anyHost = { headers: { host: 'evil.example.com' } }
  expect((await ask(bus.url('/healthz'), anyHost)).status).toBe(200)
  expect((await ask(bus.url('/readyz'), anyHost)).status).toBe(200)
  expect((await ask(bus.url('/readyz/nope'), anyHost)).status).toBe(503)
  expect((await ask(bus.url('/metrics'))).text).toMatch(/^stdio_bus_clients 0$/m)
  expect((await bus.status()).refused).toEqual({})
  await ask(bus.url('/nowhere'))
  expect((await bus.status()).refused).toEqual({ not_found: 1 })
  expect(await bus.stop()).toEqual({ code: 0, signal: null })
})

test('10.15 what an aggregate refuses is an answer of the bus, and has its status', async () => {
  verifies('10.15-rpc')
  const pools = [mcpPool('puppet', { id: 'one' }), { id: 'all', members: ['one'] }]
  const bus = await startBus({ config: config(pools as never, {}, { default_pool: 'all' }), doors: ['http'] })
  const called = async (method: string, params: object) => {
    const { status, json } = await ask(bus.url('/rpc'), { body: { jsonrpc: '2.0', id: 7, method, params } })
    return [status, json.id, json.error.data.reason]
  }
  expect(await called('tools/call', { name: 'nowhere' })).toEqual([404, 7, 'unknown_tool'])
  expect(await called('tools/list', { cursor: 'none' })).toEqual([400, 7, 'bad_cursor'])
  expect((await bus.status()).refused).toEqual({ unknown_tool: 1, bad_cursor: 1 })
})

test.each([
  ['JSON', 'application/json'],
  ['streams', 'text/event-stream'],
])(
  '10.15 a connection that closes cancels all that was asked on it, one behind the other: %s',
  async (_name, accept) => {
    verifies('10.15-rpc')
    const bus = await startWeb(pool('silent'))
    const { hostname, port } = new URL(bus.url())
    const socket = connect(Number(port), hostname)
    const head = ['Host: localhost', TYPE, LENGTH, `Accept: ${accept}`].join('\r\n')
    socket.write(`POST /rpc HTTP/1.1\r\n${head}\r\n\r\n${BODY}`.repeat(5))
    await expect.poll(async () => (await bus.status()).clients).toBe(5)
    socket.destroy()
    await expect.poll(async () => (await bus.status()).clients).toBe(0)
    expect((await bus.status()).web).toMatchObject({ connections: 0, streams: 0 })
  },
)

test('10.18 connections, sessions and streams are counted while they last, refusals once, wherever they are made', async () => {
  verifies('10.18-health')
  const pools = [pool('silent'), pool('dies-on-request', { id: 'mortal' })]
  const bus = await startBus({ config: config(pools, {}, { default_pool: 'silent' }), doors: ['http'] })
  const counted = async () => {
    const { text } = await ask(bus.url('/metrics'))
    return Object.fromEntries(
      [...text.matchAll(/^stdio_bus_(\w+(?:\{reason[^}]*\})?) (\d+)$/gm)].map(([, name, n]) => [name, Number(n)]),
    )
  }
  expect(await counted()).toMatchObject({
    web_connections: 1,
    web_streams: 0,
    web_mcp_sessions: 0,
    web_acp_connections: 0,
  })
  const sent = request(bus.url('/rpc'), { method: 'POST', headers: { ...JSON_HEADERS, accept: 'text/event-stream' } })
  sent.on('error', () => {})
  const streaming = new Promise((resolve) => sent.once('response', resolve))
  sent.end(JSON.stringify(HELLO))
  await streaming
  expect(await counted()).toMatchObject({ web_streams: 1 })
  sent.destroy()
  for (let i = 0; i < 2; i++) await ask(bus.url('/rpc/mortal'), { body: { ...HELLO, method: 'die' } })
  expect(await counted()).toMatchObject({ 'refused_total{reason="worker_exited"}': 2, web_streams: 0 })
})

test('10.15 what the gateway refuses is an answer of the bus, and has its status; what an agent says is 200', async () => {
  verifies('10.15-rpc')
  const refusing = `process.stdin.on('data', (line) => {
    const data = { reason: 'unknown_agent' }
    process.stdout.write(JSON.stringify({ id: JSON.parse(line).id, error: { code: -32601, message: 'mine', data } }) + '\\n')
  })`
  const dying = "process.stdin.on('data', () => process.exit(1))"
  const pools = [
    pool('echo'),
    oneshot('slow', 'hang', { timeout_ms: 300 }),
    oneshot('wrong', 'spoken_error'),
    oneshot('frail', 'crash'),
    { id: 'dying', command: process.execPath, args: ['-e', dying], aio: { type: 'stdio' } },
    { id: 'rude', command: process.execPath, args: ['-e', refusing], aio: { type: 'stdio' } },
  ]
  const bus = await startBus({ config: config(pools as never, {}, { default_pool: 'echo', aio: {} }), doors: ['http'] })
  const called = async (method: string, params?: object, id: unknown = 7) => {
    const { status, json, headers } = await ask(bus.url('/rpc'), { body: { jsonrpc: '2.0', id, method, params } })
    expect(json.id).toEqual(id)
    return [status, json.error.data.reason, headers['retry-after']].filter((each) => each !== undefined)
  }
  const inputs = [{ type: 'text', value: 'hello' }]
  expect(await called('nobody::input', { inputs })).toEqual([404, 'unknown_agent'])
  expect(await called('nobody::input', { inputs }, 1.5)).toEqual([404, 'unknown_agent'])
  expect(await called('bus::nothing')).toEqual([404, 'unknown_method'])
  expect(await called('slow::input', { inputs: [] })).toEqual([400, 'missing_inputs'])
  expect(await called('slow::input', { inputs: [1] })).toEqual([400, 'invalid_input'])
  expect(await called('slow::input', { inputs })).toEqual([500, 'agent_timeout'])
  expect(await called('frail::input', { inputs })).toEqual([502, 'worker_exited'])
  expect(await called('dying::input', { inputs })).toEqual([502, 'worker_exited'])
  expect(await called('wrong::input', { inputs })).toEqual([200, 'agent_error'])
  expect(await called('rude::input', { inputs })).toEqual([200, 'unknown_agent'])
})
