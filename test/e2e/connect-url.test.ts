/** `connect --url`: how it begins and ends, with a server that does what the test says. */
import { chmodSync } from 'node:fs'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { initializeLine } from '../interop/mcp-peers.ts'
import { runBus, testWorkspace } from '../support/bus.ts'
import { startShim, startShimWith } from './connect-harness.ts'
import { freePort, HttpPuppet, handshakeServer, json, result, type Serve } from './remote-harness.ts'

const call = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'x' } })
const answer: Serve = ({ message }, response) => json(response, result(message.id, { said: 'x' }))

test('messages that are sent in one go arrive in the order that the server needs', async () => {
  verifies('11-connect-url')
  const puppet = await HttpPuppet.start(handshakeServer(answer))
  const { host, child, ended } = startShim(testWorkspace(), '--url', puppet.url)
  for (const each of [initializeLine(0), { jsonrpc: '2.0', method: 'notifications/initialized' }, call(1)])
    host.send(each)
  child.stdin!.end()
  expect((await host.answerTo(1)).result).toEqual({ said: 'x' })
  expect((await ended()).code).toBe(0)
  const posts = puppet.seen.filter(({ method }) => method === 'POST')
  expect(posts.map(({ message }) => message.method)).toEqual(['initialize', 'notifications/initialized', 'tools/call'])
  expect(posts.map(({ headers }) => headers['mcp-session-id'])).toEqual([undefined, 's-1', 's-1'])
  expect(posts.some(({ headers }) => 'stdio-bus-via' in headers)).toBe(false)
  expect(puppet.times('DELETE')).toHaveLength(1)
})

test('nobody there: the first request hears of it, exit 1', async () => {
  verifies('11-connect-url')
  const url = `http://127.0.0.1:${await freePort()}/mcp`
  const { host, ended, said } = startShim(testWorkspace(), '--url', url)
  expect((await host.ask(initializeLine(0))).error).toMatchObject({ code: -32603, data: { reason: 'bus_unavailable' } })
  expect((await ended()).code).toBe(1)
  expect(await said).toContain(`${url}: nobody listens there`)
})

test('one that goes and comes back is told the introduction again; what was pending fails', async () => {
  verifies('11-connect-url')
  const port = await freePort()
  const silent: Serve = () => {}
  const first = await HttpPuppet.start(handshakeServer(silent), port)
  const { host, child, ended } = startShim(testWorkspace(), '--url', first.url)
  await host.ask(initializeLine(0))
  host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  host.send(call(1))
  await expect.poll(() => first.times('tools/call').length).toBe(1)
  await first.stop()
  expect((await host.answerTo(1)).error.data).toMatchObject({ retryable: true })
  expect((await host.ask(call(2))).error.data).toMatchObject({ reason: 'no_worker', retryable: true })
  const second = await HttpPuppet.start(handshakeServer(answer, 's-2'), port)
  expect((await host.ask(call(3))).result).toEqual({ said: 'x' })
  expect(second.times('initialize')).toHaveLength(1)
  child.stdin!.end()
  expect((await ended()).code).toBe(0)
})

test('refused: its request is told, then exit 1 at once; the token is sent as a bearer and shown nowhere', async () => {
  const workspace = testWorkspace()
  const puppet = await HttpPuppet.start((_seen, response) => void response.writeHead(401).end())
  const file = workspace.writeOwn('token', 'hush-hush\n')
  const { host, ended, said } = startShim(workspace, '--url', puppet.url, '--token-file', file)
  expect((await host.ask(initializeLine(0))).error.data).toMatchObject({ reason: 'upstream_failed', status: 401 })
  expect((await ended()).code).toBe(1)
  expect(puppet.seen[0]!.headers.authorization).toBe('Bearer hush-hush')
  expect(await said).toContain('it refuses the credentials (HTTP 401)')
  expect(await said).not.toContain('hush')
  chmodSync(file, 0o644)
  const open = startShimWith(workspace, {}, '--url', puppet.url, '--token-file', file)
  expect((await open.ended()).code).toBe(2)
})

test.each([
  [['--url', 'ftp://x/'], 'takes an http://'],
  [['--url', 'nonsense'], 'takes an http://'],
  [['--url', 'http://a:b@h/'], 'no user and no password'],
  [['--url', 'http://h/', '--unix', 'x'], '--url and --unix name different buses'],
  [['--url', 'http://h/', '--pool', 'x'], '/mcp/POOL'],
  [['--url', 'http://h/', '--ca', 'x'], 'go with an https://'],
])('%j is exit 2', async (args, said) => {
  const { code, stderr } = await runBus(['connect', ...args], { workspace: testWorkspace() })
  expect(code).toBe(2)
  expect(stderr).toContain(said)
})
