/** MCP servers at URLs, called by name: both SDKs as processes, and a puppet for what goes wrong (contract 13.17). */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { EVERYTHING } from '../interop/mcp-peers.ts'
import { type Bus, startBus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { eventually } from '../support/waiting.ts'
import { callsOf } from './aio-harness.ts'
import { event, events, freePort, HttpPuppet, handshakeServer, json, result, type Serve } from './remote-harness.ts'

const MODERN_SERVER = fileURLToPath(new URL('../fixtures/mcp/http-server.mjs', import.meta.url))
const SECRET = 'Bearer very-secret-token'

let lastId = 0

function ask(client: LineClient, method: string, params: object = {}, more: object = {}): Promise<Message> {
  return client.ask({ jsonrpc: '2.0', id: ++lastId, method, params, ...more })
}

const tool = (client: LineClient, args: object = {}, more: object = {}) =>
  ask(client, 'far::tools.call', { tool: 't', args, ...more })

async function busWith(url: string, more: object = {}): Promise<{ bus: Bus; client: LineClient }> {
  const agents = [{ name: 'far', type: 'mcp', url, headers: { authorization: SECRET }, ...more }]
  const config = { pools: [{ id: 'echo', agent: 'echo' }], agents, aio: { store: { path: 'traces.db' } } }
  const bus = await startBus({ config })
  return { bus, client: await bus.connect() }
}

describe.each([
  ['the first SDK', [EVERYTHING, 'streamableHttp']],
  ['the second SDK', [MODERN_SERVER]],
])('a server of %s', (_which, args) => {
  let child: ChildProcess
  let url: string
  beforeAll(async () => {
    const port = await freePort()
    url = `http://127.0.0.1:${port}/mcp`
    child = spawn(process.execPath, args, { env: { ...process.env, PORT: String(port) }, stdio: 'ignore' })
    const isUp = () =>
      fetch(url).then(
        () => true,
        () => false,
      )
    await eventually('the server to listen', isUp, 30_000)
  }, 40_000)
  afterAll(() => void child.kill('SIGKILL'))

  test('has the methods of an MCP pool', async () => {
    verifies('13.17-methods')
    const { client } = await busWith(url)
    const { result: help } = await ask(client, 'far::help')
    expect(help).toMatchObject({ type: 'mcp', mcp: { tools: true }, methods: expect.arrayContaining(['tools.call']) })
    const { result: listed } = await ask(client, 'far::tools.list')
    expect(listed.tools.map(({ id }: { id: string }) => id)).toContain('echo')
    const called = await ask(client, 'far::tools.call', { tool: 'echo', args: { message: 'hello' } })
    expect(called.result.outputs[0].value).toMatch(/hello/)
    const [call] = await callsOf(client, called.trace_id)
    expect(call).toMatchObject({ agent: 'far', type: 'mcp', protocol: 'mcp', status: 'ok' })
    expect((await ask(client, 'far::input')).error).toMatchObject({ data: { reason: 'input_not_available_on_mcp' } })
  })
})

/** A server whose tool answers by its arguments. */
const SERVE: Serve = handshakeServer(({ message, headers }, response) => {
  const { arguments: args = {}, _meta: meta } = message.params
  if (message.method === 'tools/list')
    return json(response, result(message.id, { tools: [{ name: 't', inputSchema: {} }] }))
  if (args.status !== undefined) return json(response, args.body ?? '{}', args.status)
  if (args.reset) return void response.destroy()
  if (args.hang) return
  if (args.html) return void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
  if (args.progress) {
    events(response)
    const params = { progressToken: meta.progressToken, progress: 1, total: 2, message: 'half' }
    event(response, { jsonrpc: '2.0', method: 'notifications/progress', params })
    event(response, { jsonrpc: '2.0', id: 'q', method: 'roots/list' })
    event(response, result(message.id, { content: [{ type: 'text', text: 'done' }] }))
    return void response.end()
  }
  json(response, result(message.id, { content: [{ type: 'text', text: `${headers.authorization}` }] }))
})

describe('a server', () => {
  test('is introduced once for all callers, and again after a session it has lost, with the call', async () => {
    verifies('13.17-methods', '13.17-session')
    const puppet = await HttpPuppet.start(SERVE)
    const { bus, client } = await busWith(puppet.url)
    const other = await bus.connect()
    await Promise.all([tool(client), tool(other)])
    expect(puppet.times('initialize')).toHaveLength(1)
    let isLost = true
    puppet.serve((seen, response) => {
      if (isLost && seen.message?.method === 'tools/call') {
        isLost = false
        return json(response, '{}', 404)
      }
      SERVE(seen, response)
    })
    expect((await tool(client)).result.outputs).toHaveLength(1)
    expect(puppet.times('initialize')).toHaveLength(2)
  })

  test('of the stateless era alone is found out', async () => {
    verifies('13.17-methods')
    const serve: Serve = ({ message }, response) => {
      const { id, method, params } = message
      if (method === 'initialize')
        return json(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }, 400)
      const supported = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }
      if (method === 'server/discover') return json(response, result(id, { resultType: 'complete', ...supported }))
      const version = params._meta['io.modelcontextprotocol/protocolVersion']
      json(response, result(id, { resultType: 'complete', content: [{ type: 'text', text: version }] }))
    }
    const puppet = await HttpPuppet.start(serve)
    const { client } = await busWith(puppet.url)
    expect((await tool(client)).result.outputs).toEqual([{ type: 'text', value: '2026-07-28' }])
    expect(puppet.times('tools/call')[0]!.headers).toMatchObject({ 'mcp-method': 'tools/call', 'mcp-name': 't' })
  })

  test('echoes no header into an answer, a trace or a log', async () => {
    verifies('13.17-failures')
    const puppet = await HttpPuppet.start(SERVE)
    const { bus, client } = await busWith(puppet.url)
    const answer = await tool(client)
    expect(puppet.times('tools/call')[0]!.headers.authorization).toBe(SECRET)
    expect(answer.result.outputs[0].value).toContain('[redacted]')
    const seen = [answer, await callsOf(client, answer.trace_id), bus.log.lines]
    expect(JSON.stringify(seen)).not.toContain('very-secret-token')
  })

  test('tells progress, and its questions are refused', async () => {
    const puppet = await HttpPuppet.start(SERVE)
    const { client } = await busWith(puppet.url)
    const { result: answer } = await tool(client, { progress: true }, { _meta: { progressToken: 'p' } })
    expect(answer.outputs).toEqual([{ type: 'text', value: 'done' }])
    const partials = client.lines
      .map((line) => JSON.parse(line.toString()))
      .filter(({ method }) => method === 'far::partial')
    expect(partials).toMatchObject([{ params: { seq: 1, progress: 1, total: 2, outputs: [{ value: 'half' }] } }])
    const refused = () => puppet.seen.find(({ message }) => message?.id === 'q')?.message
    expect(await eventually('the refusal', refused)).toMatchObject({ error: { code: -32601 } })
  })

  test.each([
    [{ status: 401 }, 'agent_unauthorized'],
    [{ status: 403 }, 'agent_unauthorized'],
    [{ status: 500 }, 'agent_http_error'],
    [{ html: true }, 'agent_invalid_response'],
    [{ reset: true }, 'agent_unreachable'],
  ])('that does %j is %s', async (args, reason) => {
    verifies('13.17-failures')
    const puppet = await HttpPuppet.start(SERVE)
    const { client } = await busWith(puppet.url)
    expect((await tool(client, args)).error).toMatchObject({ code: -32603, data: { reason } })
    expect((await tool(client)).result.outputs).toHaveLength(1)
  })

  test.each<[string, Serve, string]>([
    ['wants other credentials', (_seen, response) => json(response, '{}', 401), 'agent_unauthorized'],
    ['forbids', (_seen, response) => json(response, '{}', 403), 'agent_unauthorized'],
    ['is no MCP server', (_seen, response) => void response.writeHead(200).end('hello'), 'agent_invalid_response'],
    ['knows no such path', (_seen, response) => void response.writeHead(404).end('no'), 'agent_invalid_response'],
    ['fails', (_seen, response) => void response.writeHead(503).end(), 'agent_http_error'],
    ['breaks off', (_seen, response) => void response.destroy(), 'agent_unreachable'],
  ])('that %s at the beginning', async (_what, serve, reason) => {
    verifies('13.17-failures')
    const puppet = await HttpPuppet.start(serve)
    const { client } = await busWith(puppet.url)
    for (const method of ['far::tools.list', 'far::help'])
      expect((await ask(client, method)).error).toMatchObject({ code: -32603, data: { reason } })
    puppet.serve(SERVE)
    expect((await tool(client)).result.outputs).toHaveLength(1)
  })

  test('that is not there is agent_unreachable, and found when it is', async () => {
    verifies('13.17-failures')
    const port = await freePort()
    const { client } = await busWith(`http://127.0.0.1:${port}/mcp`)
    const { error } = await tool(client)
    expect(error).toMatchObject({ code: -32603, data: { reason: 'agent_unreachable', retryable: true } })
    await HttpPuppet.start(SERVE, port)
    expect((await tool(client)).result.outputs).toHaveLength(1)
  })

  test('that never answers has its time, and is told', async () => {
    const puppet = await HttpPuppet.start(SERVE)
    const { client } = await busWith(puppet.url, { timeout_ms: 300 })
    expect((await tool(client, { hang: true })).error).toMatchObject({ data: { reason: 'agent_timeout' } })
    await eventually('the cancel', () => puppet.times('notifications/cancelled').length > 0 || undefined)
    expect((await tool(client)).result.outputs).toHaveLength(1)
  })

  test('that does not even introduce itself has its time too', async () => {
    const puppet = await HttpPuppet.start(() => {})
    const { client } = await busWith(puppet.url, { timeout_ms: 300 })
    expect((await tool(client)).error).toMatchObject({ data: { reason: 'agent_timeout' } })
  })
})

test.each([
  [{ type: 'mcp' }, /url/],
  [{ type: 'mcp', endpoint: 'http://h/' }, /endpoint/],
  [{ type: 'mcp', url: 'ftp://h/' }, /url/],
  [{ type: 'mcp', url: 'http://h/', method_style: 'bare' }, /method_style/],
  [{ type: 'http', url: 'http://h/' }, /url/],
  [{ type: 'http' }, /endpoint/],
])('%j is a mistake', async (agent, named) => {
  const config = { pools: [{ id: 'echo', agent: 'echo' }], agents: [{ name: 'far', ...agent }] }
  const bus = await startBus({ config, unready: true })
  expect((await bus.exit).code).toBe(2)
  expect(bus.log.text).toMatch(named)
})
