/** MCP over HTTP in the stateless era: heads that must fit their bodies, a client for each POST, and the worker that gave a state. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'
import { MCP_HEADERS, openSession, stream } from '../support/mcp-http.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { eventually, sleep } from '../support/waiting.ts'
import { ask } from '../support/web.ts'
import { DONE, heard, hears, initializeLine, MODERN, mcpPool, PROTOCOL, SUBSCRIPTION } from './mcp-peers.ts'

const VERSION = '2026-07-28'

function request(method: string, params: object = {}, id: unknown = 1): Message {
  return { jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...MODERN, ...(params as Message)._meta } } }
}

function headersOf(body: Message, more: Record<string, string> = {}): Record<string, string> {
  const { name, uri, taskId } = body.params ?? {}
  const named = name ?? uri ?? taskId
  return {
    ...MCP_HEADERS,
    'mcp-protocol-version': VERSION,
    ...(body.method === undefined ? {} : { 'mcp-method': body.method }),
    ...(named === undefined ? {} : { 'mcp-name': named }),
    ...more,
  }
}

const post = (bus: Bus, body: Message, more: Record<string, string> = {}) =>
  ask(bus.url('/mcp'), { method: 'POST', body, headers: headersOf(body, more) })
const open = (bus: Bus, body: Message) => stream(bus.url('/mcp'), { method: 'POST', body, headers: headersOf(body) })
const say = (...lines: (string | object)[]) => ({
  name: 't',
  say: lines.map((line) => (typeof line === 'string' ? line : JSON.stringify({ jsonrpc: '2.0', ...line }))),
})

describe('a pool of the stateless era', () => {
  const bus = sharedBus({ config: config(mcpPool('puppet', { args: ['modern'], instances: 2 })), doors: ['http'] })

  test('headers must say what the body says', async () => {
    verifies('10.11-headers')
    const list = request('tools/list')
    const calls = request('tools/call', { name: 'grüße' })
    const encoded = `=?base64?${Buffer.from('grüße').toString('base64')}?=`
    const without = (body: Message, name: string) =>
      ask(bus().url('/mcp'), {
        method: 'POST',
        body,
        headers: Object.fromEntries(Object.entries(headersOf(body)).filter(([key]) => key !== name)),
      })
    expect((await post(bus(), list)).status).toBe(200)
    expect((await post(bus(), calls, { 'mcp-name': encoded })).status).toBe(200)
    expect((await post(bus(), request('tools/call', { name: 't' }), { 'mcp-name': '  t ' })).status).toBe(200)
    const mismatched = [
      without(list, 'mcp-protocol-version'),
      without(list, 'mcp-method'),
      without(request('tools/call', { name: 't' }), 'mcp-name'),
      post(bus(), list, { 'mcp-method': 'TOOLS/LIST' }),
      post(bus(), list, { 'mcp-protocol-version': '2025-11-25' }),
      post(bus(), request('tools/call', { name: 't' }), { 'mcp-name': 'u' }),
      post(bus(), calls, { 'mcp-name': '=?base64?!!?=' }),
      post(bus(), request('resources/read', { uri: 'a:b' }), { 'mcp-name': 'a:c' }),
      post(bus(), request('tasks/get', { taskId: 'T' }), { 'mcp-name': '' }),
    ]
    for (const { status, json } of await Promise.all(mismatched))
      expect([status, json.error.code, json.error.data.reason, json.id]).toEqual([400, -32020, 'header_mismatch', 1])
  })

  test('versions and what a request must say of its client', async () => {
    verifies('10.6-version')
    const old = request('tools/list', { _meta: { [PROTOCOL]: '2099-01-01' } })
    const unknown = await post(bus(), old, { 'mcp-protocol-version': '2099-01-01' })
    expect([unknown.status, unknown.json.error.code]).toEqual([400, -32022])
    expect(unknown.json.error.data).toMatchObject({ supported: [VERSION], requested: '2099-01-01' })
    const bare = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
    const noCapabilities = { ...bare, params: { _meta: { [PROTOCOL]: VERSION } } }
    const noVersion = { ...bare, params: { _meta: { 'io.modelcontextprotocol/clientCapabilities': {} } } }
    for (const body of [bare, noCapabilities, noVersion, { ...bare, params: undefined }]) {
      const { status, json } = await post(bus(), body)
      expect([status, json.error.code, json.error.data.reason]).toEqual([400, -32602, 'meta_required'])
    }
  })

  test("a worker's errors have their status, all else is 200", async () => {
    verifies('10.11-status')
    const as = async (code: number) => {
      const line = `{"jsonrpc":"2.0","id":$ID,"error":{"code":${code},"message":"m"}}`
      const { status, json } = await post(bus(), request('tools/call', say(line)))
      return [json.error.code, status]
    }
    for (const [code, status] of [
      [-32601, 404],
      [-32020, 400],
      [-32021, 400],
      [-32022, 400],
      [-32602, 200],
      [-32603, 200],
      [1, 200],
    ] as const)
      expect(await as(code)).toEqual([code, status])
  })

  test('GET and DELETE are 405; sessions and events are of no interest; notifications are 202', async () => {
    verifies('10.11-methods')
    for (const method of ['GET', 'DELETE']) {
      const refused = await ask(bus().url('/mcp'), { method, headers: { 'mcp-protocol-version': VERSION } })
      expect([refused.status, refused.headers.allow]).toEqual([405, 'POST'])
    }
    const ignored = { 'mcp-session-id': 'none', 'last-event-id': 'x', 'mcp-param-a': 'b' }
    expect((await post(bus(), request('tools/list'), ignored)).status).toBe(200)
    const note = { jsonrpc: '2.0', method: 'notifications/x', params: { k: 'note' } }
    expect((await post(bus(), note)).status).toBe(202)
    await hears(bus(), 'the notification', ({ params }) => params?.k === 'note')
    expect((await post(bus(), { jsonrpc: '2.0', id: 1, result: {} })).status).toBe(400)
  })

  test('progress before the answer makes a stream, without event ids', async () => {
    verifies('10.8-stream')
    const progress =
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}'
    const streams = await Promise.all(
      [1, 2, 3].map((n) =>
        open(bus(), request('tools/call', { ...say(progress, DONE), _meta: { progressToken: 'p' }, n })),
      ),
    )
    for (const each of streams) {
      await each.ended()
      expect(each.messages.map(({ params, id }) => params?.progressToken ?? id)).toEqual(['p', 1])
      expect(each.events.some(({ id }) => id !== undefined)).toBe(false)
    }
  })

  test('closing a POST cancels what it asked', async () => {
    verifies('10.11-cancel')
    const subscribed = await open(bus(), request('subscriptions/listen', { say: [] }, 'sub'))
    const { id } = await hears(bus(), 'the listen', ({ method }) => method === 'subscriptions/listen')
    subscribed.drop()
    await hears(
      bus(),
      'the cancel',
      ({ method, params }) => method === 'notifications/cancelled' && params.requestId === id,
    )
    await bus().statusWhere('nobody is left', ({ clients, outstanding }) => clients === 0 && outstanding === 0)
  })

  test('a subscription is a stream with its own id, until its worker ends it', async () => {
    const acknowledged = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"${SUBSCRIPTION}":$ID}}}`
    const ended = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}'
    const both = await Promise.all(
      [1, 2].map(() => open(bus(), request('subscriptions/listen', { say: [acknowledged, ended] }, 5))),
    )
    for (const each of both) {
      await each.ended()
      expect(each.messages[0].params._meta[SUBSCRIPTION]).toBe(5)
      expect(each.messages[1].params.requestId).toBe(5)
    }
  })

  test('what brings back a state, a cursor or a task goes to the worker that gave it', async () => {
    verifies('10.11-affinity')
    const pidOf = async (params: object, method = 'x') => (await post(bus(), request(method, params))).json.result.pid
    const pids = new Set(await Promise.all(Array.from({ length: 8 }, () => pidOf({}))))
    expect(pids.size).toBe(2)
    for (const [given, back] of [
      ['requestState', 'requestState'],
      ['nextCursor', 'cursor'],
    ] as const)
      for (const value of ['a', 'b', 'c']) {
        const line = `{"jsonrpc":"2.0","id":$ID,"result":{"${given}":"${value}","pid":$PID}}`
        const home = (await post(bus(), request('tools/call', say(line)))).json.result.pid
        const homes = await Promise.all(Array.from({ length: 4 }, () => pidOf({ [back]: value })))
        expect(new Set(homes)).toEqual(new Set([home]))
      }
    const task = '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"task","taskId":"T1"}}'
    await post(bus(), request('tools/call', say(task)))
    const polled = await Promise.all(
      Array.from({ length: 6 }, () => post(bus(), request('tasks/get', { taskId: 'T1' }))),
    )
    expect(new Set(polled.map(({ json }) => json.result.pid)).size).toBe(1)
    const foreign = await post(bus(), request('tasks/get', { taskId: 'unknown' }))
    expect(foreign.json.error.data.reason).toBe('task_not_owned')
  })

  test('initialize is told which revision is spoken', async () => {
    verifies('10.6-mismatch')
    const refused = await ask(bus().url('/mcp'), { method: 'POST', body: initializeLine(3), headers: MCP_HEADERS })
    expect([refused.status, refused.json.error.code, refused.json.id]).toEqual([400, -32022, 3])
    expect(refused.json.error.data.supported).toEqual([VERSION])
    expect(refused.headers['mcp-session-id']).toBeUndefined()
  })
})

test('a pool of the handshake era: discovery is 404, anything else of the other era 400', async () => {
  verifies('10.6-mismatch', '10.6-era')
  const bus = await startBus({ config: config(mcpPool('puppet')), doors: ['http'] })
  const discovered = await post(bus, request('server/discover'))
  expect([discovered.status, discovered.json.error.code]).toEqual([404, -32601])
  const called = await post(bus, request('tools/list'))
  expect([called.status, called.json.error.data.reason]).toEqual([400, 'protocol_mismatch'])
  expect((await openSession(bus.url('/mcp'))).welcome.protocolVersion).toBe('2025-11-25')
})

test('isolated: one worker for a principal, whose POSTs do not mix; it is kept for a while', async () => {
  verifies('10.11-isolated')
  const pool = mcpPool('puppet', { args: ['modern'], sharing: 'isolated', instances: 0 })
  const bus = await startBus({ config: config(pool), doors: ['http'] })
  const progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}'
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => post(bus, request('x', { n, _meta: { progressToken: 1 } }))),
  )
  expect(answers.map(({ json }) => [json.id, json.result.echo.n])).toEqual(Array.from({ length: 20 }, (_, n) => [1, n]))
  expect(answers[0]!.json.result.echo._meta.progressToken).toBe(1)
  expect(new Set(answers.map(({ json }) => json.result.pid)).size).toBe(1)
  const streams = await Promise.all(
    [1, 2, 3].map((n) => open(bus, request('tools/call', { ...say(progress), _meta: { progressToken: 1 }, n }))),
  )
  for (const each of streams) expect((await each.next()).params.progressToken).toBe(1)
  const asked = await eventually('three calls', () => {
    const calls = heard(bus).filter(({ method }) => method === 'tools/call')
    return calls.length === 3 ? calls : undefined
  })
  streams[1]!.drop()
  const cancelled = await hears(bus, 'the cancel', ({ method }) => method === 'notifications/cancelled')
  expect(cancelled.params.requestId).toBe(asked.find(({ params }) => params.n === 2).id)
  await sleep(100)
  expect([streams[0]!.isEnded, streams[2]!.isEnded]).toEqual([false, false])
  expect((await bus.status()).clients).toBe(1)
})
