/** MCP over HTTP in the handshake era, every head and every byte: sessions, answers, statuses. */
import { statSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus, testWorkspace } from '../support/bus.ts'
import { MCP_HEADERS, openSession, stream } from '../support/mcp-http.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { sleep } from '../support/waiting.ts'
import { ask } from '../support/web.ts'
import { call, DONE, heard, hears, initializeLine, mcpPool } from './mcp-peers.ts'

const PING = { jsonrpc: '2.0', id: 9, method: 'ping' }
const reasonOf = ({ json }: { json: { error: { data: { reason: string } } } }): string => json.error.data.reason

describe('a shared puppet', () => {
  const bus = sharedBus({ config: config(mcpPool('puppet')), doors: ['http'] })
  const url = (): string => bus().url('/mcp')
  const post = (body: object | string, headers: Record<string, string> = {}) =>
    ask(url(), { method: 'POST', body, headers: { ...MCP_HEADERS, ...headers } })

  test('a client must accept what it may be answered with', async () => {
    verifies('10.5-accept')
    const as = async (accept: string) => (await post(initializeLine(1), { accept })).status
    expect(await as('application/json')).toBe(406)
    expect(await as('text/event-stream')).toBe(406)
    expect(await as('text/html')).toBe(406)
    expect(await as('*/*')).toBe(200)
    expect(await as('application/*, text/event-stream;q=0.5')).toBe(200)
    expect((await ask(url(), { method: 'POST', body: initializeLine(1) })).status).toBe(200)
    const session = await openSession(url())
    const wrong = await ask(url(), { headers: { ...session.headers, accept: 'application/json' } })
    expect([wrong.status, reasonOf(wrong)]).toEqual([406, 'not_acceptable'])
  })

  test('initialize makes a session, whatever session it names; others need one', async () => {
    verifies('10.7-session')
    const ids = new Set<string>()
    for (let i = 0; i < 3; i++) {
      const { headers, json } = await post(initializeLine(`x${i}`), { 'mcp-session-id': 'stale' })
      expect(json).toMatchObject({ id: `x${i}`, result: { protocolVersion: '2025-11-25' } })
      expect(headers['mcp-session-id']).toMatch(/^[0-9a-f]{32}$/)
      ids.add(String(headers['mcp-session-id']))
    }
    expect(ids.size).toBe(3)
    const without = await post(PING)
    expect([without.status, reasonOf(without), without.json.id]).toEqual([400, 'session_required', 9])
    for (const id of ['stale', '', 'x'.repeat(9_000), '../..', '__proto__']) {
      const unknown = await post(PING, { 'mcp-session-id': id })
      expect([unknown.status, reasonOf(unknown), unknown.json.id]).toEqual([404, 'unknown_session', 9])
    }
    for (const method of ['GET', 'DELETE']) {
      const bare = await ask(url(), { method, headers: { accept: 'text/event-stream' } })
      expect([bare.status, reasonOf(bare)]).toEqual([400, 'session_required'])
      const unknown = await ask(url(), { method, headers: { 'mcp-session-id': 'stale' } })
      expect([unknown.status, reasonOf(unknown)]).toEqual([404, 'unknown_session'])
    }
  })

  test('a session ends by DELETE, its streams with it', async () => {
    verifies('10.7-delete')
    const session = await openSession(url())
    const get = await session.listen()
    expect((await session.delete()).status).toBe(204)
    await get.ended()
    expect((await session.ask(PING)).status).toBe(404)
    expect((await session.delete()).status).toBe(404)
  })

  test('protocol versions that nobody knows are refused, known ones are taken', async () => {
    verifies('10.6-version')
    const session = await openSession(url(), { version: '2025-06-18' })
    for (const version of ['2025-06-18', '2025-11-25'])
      expect((await session.ask(PING, { 'mcp-protocol-version': version })).status).toBe(200)
    for (const version of ['2099-01-01', '1', 'constructor']) {
      const refused = await session.ask(PING, { 'mcp-protocol-version': version })
      expect([refused.status, refused.json.error.code, refused.json.id]).toEqual([400, -32022, 9])
      expect(refused.json.error.data.supported).toContain('2025-11-25')
    }
    expect((await ask(url(), { headers: { ...session.headers, 'mcp-protocol-version': '0' } })).status).toBe(400)
    const modern = await session.ask(PING, { 'mcp-protocol-version': '2026-07-28' })
    expect([modern.status, modern.json.error.code]).toEqual([400, -32602])
  })

  test('notifications and answers are 202, an answer at once is JSON, byte for byte', async () => {
    verifies('10.8-json')
    const session = await openSession(url())
    const note = await session.ask({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' })
    expect([note.status, note.text]).toEqual([202, ''])
    expect((await session.ask({ jsonrpc: '2.0', id: 'nobody', result: {} })).status).toBe(202)
    const line = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"\\u00e9 \\/"}],  "n": 1e2}}'
    const answer = await session.ask(call('"q"', [line]))
    expect(answer.headers['content-type']).toBe('application/json')
    expect(answer.text).toBe(line.replace('$ID', '"\\"q\\""'))
    const body = `\n {"jsonrpc" : "2.0",\r\n "id": 1.0, "method":"tools/call",\n"params":{"name":"t","k":"\\n"} }\n`
    const echoed = await session.ask(body)
    expect(echoed.text).toContain('"id":1.0,')
    expect(echoed.json.result.echo).toMatchObject({ k: '\n' })
  })

  test('an answer that takes longer than a second is a stream that it ends', async () => {
    verifies('10.8-stream')
    const session = await openSession(url())
    const silent = await session.post(call(1, []))
    expect(silent.isStream).toBe(true)
    expect(silent.headers).toMatchObject({ 'x-accel-buffering': 'no', 'cache-control': 'no-store' })
    const { id } = await hears(
      bus(),
      'the call',
      ({ method, id, params }) => method === 'tools/call' && id !== undefined && params.say?.length === 0,
    )
    await session.ask(call(2, [`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"late":true}}`, DONE]))
    expect(await silent.next()).toEqual({ jsonrpc: '2.0', id: 1, result: { late: true } })
    await silent.ended()
  })

  test('errors of a worker are 200 with their code; what names no message is 400', async () => {
    verifies('10.8-status')
    const session = await openSession(url())
    const failed = await session.ask(call(1, ['{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}']))
    expect([failed.status, failed.json.error.code]).toEqual([200, -32601])
    const bad = async (body: string) => {
      const { status, json } = await session.ask(body)
      return [status, json.error.data.reason, json.id]
    }
    expect(await bad('{"jsonrpc":"2.0","id":7}')).toEqual([400, 'bad_envelope', 7])
    expect(await bad('{"id":7,')).toEqual([400, 'not_json', null])
    expect(await bad('[]')).toEqual([400, 'bad_envelope', null])
    expect(await bad(`[${JSON.stringify(PING)}]`)).toEqual([400, 'bad_envelope', null])
    expect(await bad('""')).toEqual([400, 'bad_envelope', null])
    expect((await session.ask(PING)).status).toBe(200)
  })

  test('equal ids at the same time are both answered, each on its own POST', async () => {
    const session = await openSession(url())
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        session.ask({ jsonrpc: '2.0', id: 1, method: 'x', params: { n, _meta: { progressToken: 1 } } }),
      ),
    )
    expect(answers.map(({ json }) => [json.id, json.result.echo.n])).toEqual(
      Array.from({ length: 20 }, (_, n) => [1, n]),
    )
  })

  test('a cancelled request is owed nothing: its POST ends', async () => {
    const session = await openSession(url())
    const slow = await session.post(call(5, []))
    await session.ask({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } })
    await slow.ended()
    expect(slow.messages).toEqual([])
    await hears(bus(), 'the cancel', ({ method }) => method === 'notifications/cancelled')
    await bus().statusWhere('nothing is owed', ({ outstanding }) => outstanding === 0)
  })

  test('the trailing slash and the name of the pool are other names of the path', async () => {
    const session = await openSession(bus().url('/mcp/puppet/'))
    expect((await ask(url(), { method: 'POST', body: PING, headers: session.headers })).status).toBe(200)
    expect((await openSession(`${url()}/?a=b`)).id).toHaveLength(32)
  })

  // The puppet goes on owing that answer: nothing that counts what is owed may follow.
  test('what is asked in a session that ends is told so, by its id', async () => {
    verifies('10.7-delete')
    const session = await openSession(url())
    const asked = session.ask(call('under way', [], { mark: 'ends' }))
    await hears(bus(), 'the call', ({ params }) => params?._meta?.mark === 'ends')
    expect((await session.delete()).status).toBe(204)
    const { status, json } = await asked
    expect([status, json.id, json.error.data.reason]).toEqual([404, 'under way', 'unknown_session'])
  })
})

describe('who a session belongs to', () => {
  test('another pool is another path: 404', async () => {
    verifies('10.7-session')
    const pools = [mcpPool('puppet'), { ...mcpPool('puppet'), id: 'other' }]
    const bus = await startBus({ config: config(pools), doors: ['http'] })
    const session = await openSession(bus.url('/mcp/puppet'))
    expect((await session.ask(PING)).status).toBe(200)
    const elsewhere = { method: 'POST', body: PING, headers: session.headers }
    expect((await ask(bus.url('/mcp/other'), elsewhere)).status).toBe(404)
    expect((await ask(bus.url('/mcp'), elsewhere)).status).toBe(404)
    const unnamed = await ask(bus.url('/mcp'), { method: 'POST', body: initializeLine(1), headers: MCP_HEADERS })
    expect([unnamed.status, reasonOf(unnamed)]).toEqual([400, 'pool_required'])
  })
})

describe('idleness', () => {
  test('a session ends when nobody reads, nothing is in flight and nothing is asked', async () => {
    verifies('10.7-idle')
    const listen = { http: { address: '127.0.0.1:0', session_idle_sec: 1 } }
    const bus = await startBus({ config: config(mcpPool('puppet'), {}, { listen }), doors: [] })
    const [idle, reading, waiting] = await Promise.all([1, 2, 3].map(() => openSession(bus.url('/mcp'))))
    await reading!.listen()
    const slow = await waiting!.post(call(1, []))
    slow.drop()
    await bus.statusWhere('one client is gone', ({ clients }) => clients === 2)
    await sleep(1_000)
    expect((await idle!.ask(PING)).status).toBe(404)
    expect((await reading!.ask(PING)).status).toBe(200)
    expect((await waiting!.ask(PING)).status).toBe(200)
  })
})

describe('sessions_file', () => {
  const start = (workspace: ReturnType<typeof testWorkspace>) => {
    const listen = { http: { address: '127.0.0.1:0', sessions_file: 'sessions' } }
    return startBus({ config: config(mcpPool('puppet'), {}, { listen }), doors: [], workspace })
  }

  test('sessions outlive a restart: the introduction is repeated and nobody hears of it', async () => {
    verifies('10.7-file')
    const workspace = testWorkspace()
    const first = await start(workspace)
    const sessions = await Promise.all([1, 2, 3].map(() => openSession(first.url('/mcp'))))
    await sessions[2]!.delete()
    const file = workspace.path('sessions')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(workspace.lines('sessions').join()).not.toContain(sessions[0]!.id)
    first.kill()
    await first.exit
    const second = await start(workspace)
    const again = (n: number, body: object = PING) =>
      ask(second.url('/mcp'), { method: 'POST', body, headers: sessions[n]!.headers })
    const answers = await Promise.all([1, 2, 3].map((k) => again(0, { ...PING, id: k, method: 'x', params: { k } })))
    expect(answers.map(({ json }) => json.result.echo.k)).toEqual([1, 2, 3])
    const get = await stream(second.url('/mcp'), { headers: sessions[1]!.headers })
    expect(get.status).toBe(200)
    expect((await again(2)).status).toBe(404)
    await second.stop()
    const third = await start(workspace)
    expect((await ask(third.url('/mcp'), { method: 'POST', body: PING, headers: sessions[0]!.headers })).status).toBe(
      200,
    )
    expect(heard(third).length).toBeGreaterThan(0)
  })

  test('lines that are no sessions are left out, links are refused', async () => {
    verifies('10.7-file')
    const workspace = testWorkspace()
    workspace.write(
      'sessions',
      '{"key":"a"}\nnonsense\n{"key":"b","principal":"anonymous","revision":"2025-11-25","initialize":"{}"}\n',
    )
    const bus = await start(workspace)
    expect(bus.log.text).toContain('3 lines that are no sessions')
    expect(
      (await ask(bus.url('/mcp'), { method: 'POST', body: PING, headers: { 'mcp-session-id': 'a' } })).status,
    ).toBe(404)
    await bus.stop()
    const { symlinkSync, rmSync } = await import('node:fs')
    rmSync(workspace.path('sessions'))
    symlinkSync(workspace.path('elsewhere'), workspace.path('sessions'))
    await expect(start(workspace)).rejects.toThrow(/symbolic link/)
  })
})
