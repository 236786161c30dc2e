/** Credentials on web doors, request by request (contract 9.2, 9.4, 9.5, 9.14, 9.16, 9.18, 9.21, 9.25). */
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { Issuer, makeKey, type SigningKey } from '../support/issuer.ts'
import { pool } from '../support/pools.ts'
import { busPair, testAuthority, textsOf } from '../support/tls.ts'
import { eventually } from '../support/waiting.ts'
import { type Answered, answerOf, ask, WebSocketPeer } from '../support/web.ts'
import { STRANGE, sharedHouse, startHouse } from './access-harness.ts'

const HELLO = { jsonrpc: '2.0', id: 1, method: 'hello' }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const reasonOf = ({ status, json }: Answered) => `${status} ${json.error?.data.reason ?? 'ok'}`

describe('tokens over HTTP', () => {
  const house = sharedHouse({
    principals: {
      ann: { pools: ['echo'] },
      slow: { rate: '2/h' },
      eve: { role: 'observer' },
    },
    pools: [pool('echo'), pool('echo', { id: 'other' })],
    access: { audit: 'audit.log' },
    more: { default_pool: 'echo' },
    doors: ['http'],
  })
  const audited = (what: Record<string, unknown>) => house().audited({ event: 'denied', door: 'http', ...what })
  const rpc = (token: string | undefined, path = '/rpc', headers: Record<string, string> = {}) =>
    ask(house().bus.url(path), { body: HELLO, headers: { ...(token === undefined ? {} : bearer(token)), ...headers } })

  test('9.4 every request shows its own, and what is refused is told how', async () => {
    verifies('9.4-bearer', '9.4-rights')
    expect(reasonOf(await rpc(house().tokens['ann']!))).toBe('200 ok')
    const none = await rpc(undefined)
    expect(reasonOf(none)).toBe('401 unauthenticated')
    expect(none.headers['www-authenticate']).toBe('Bearer realm="stdio-bus"')
    expect(reasonOf(await rpc(STRANGE))).toBe('401 unauthenticated')
    expect(reasonOf(await rpc(undefined, '/rpc', { authorization: 'Basic YTpi' }))).toBe('401 unauthenticated')
    expect(reasonOf(await rpc(undefined, `/rpc?token=${house().tokens['ann']}`))).toBe('401 unauthenticated')
    expect(reasonOf(await rpc(undefined, '/rpc', { cookie: `token=${house().tokens['ann']}` }))).toBe(
      '401 unauthenticated',
    )
    expect(reasonOf(await rpc(house().tokens['ann']!, '/rpc/other'))).toBe('403 not_allowed')
    await audited({ principal: 'ann', via: 'token', pool: 'other', outcome: 'denied', reason: 'not_allowed' })
    expect(reasonOf(await rpc(house().tokens['ann']!, '/rpc/nowhere'))).toBe('403 not_allowed')
    expect(reasonOf(await rpc(house().tokens['slow']!, '/rpc/nowhere'))).toBe('404 unknown_pool')
    expect((await ask(house().bus.url('/healthz'))).status).toBe(200)
    expect((await ask(house().bus.url('/.well-known/oauth-protected-resource'))).status).toBe(404)
  })

  test('10.4 the credential is judged first, then the body, then rights', async () => {
    verifies('9.4-rights', '10.4-order')
    const broken = (token: string, path: string) =>
      ask(house().bus.url(path), {
        body: '{',
        headers: { ...bearer(token), 'mcp-session-id': 'x', 'acp-connection-id': 'x' },
      })
    for (const path of ['/rpc/other', '/mcp/other', '/acp/other']) {
      expect(reasonOf(await broken(STRANGE, path))).toBe('401 unauthenticated')
      expect(reasonOf(await broken(house().tokens['ann']!, path))).toBe('400 not_json')
      const sound = await rpc(house().tokens['ann']!, path, { 'mcp-session-id': 'x', 'acp-connection-id': 'x' })
      expect([reasonOf(sound), sound.json.id]).toEqual(['403 not_allowed', HELLO.id])
    }
    const unknown = await rpc(house().tokens['ann']!, '/acp', { 'acp-connection-id': 'x' })
    expect([reasonOf(unknown), unknown.json.id]).toEqual(['404 unknown_connection', HELLO.id])
  })

  test('9.4 /metrics is for observers and admins', async () => {
    verifies('9.4-metrics')
    const metrics = (name: string) => ask(house().bus.url('/metrics'), { headers: bearer(house().tokens[name]!) })
    expect((await metrics('eve')).status).toBe(200)
    expect(reasonOf(await metrics('ann'))).toBe('403 not_allowed')
    await audited({ principal: 'ann', method: 'metrics' })
    expect((await ask(house().bus.url('/metrics'))).status).toBe(401)
    expect(reasonOf(await rpc(house().tokens['eve']!))).toBe('403 not_allowed')
  })

  test('9.21 a rate is told by its status and Retry-After', async () => {
    verifies('9.21-web')
    const answers = []
    for (let i = 0; i < 3; i++) answers.push(await rpc(house().tokens['slow']!))
    expect(answers.map(reasonOf)).toEqual(['200 ok', '200 ok', '429 rate_limited'])
    expect(Number(answers[2]!.headers['retry-after'])).toBeGreaterThan(60)
  })

  test('9.4 a WebSocket shows its token in its head or among its subprotocols, which are not echoed', async () => {
    verifies('9.4-websocket')
    const url = house().bus.url('/ws')
    const token = house().tokens['ann']!
    const byHead = new WebSocketPeer(url, { headers: bearer(token) })
    await byHead.opened()
    const byName = new WebSocketPeer(url, { protocols: ['stdio-bus', `stdio-bus.token.${token}`] })
    await byName.opened()
    expect(byName.socket.protocol).toBe('stdio-bus')
    byName.socket.send(JSON.stringify({ id: 1, method: 'bus::whoami' }))
    expect(await byName.take(1)).toMatchObject([{ result: { principal: 'ann', via: 'token' } }])
    await expect(new WebSocketPeer(url).opened()).rejects.toThrow('status 401')
    const bad = new WebSocketPeer(url, { protocols: ['stdio-bus', `stdio-bus.token.${STRANGE}`] })
    await expect(bad.opened()).rejects.toThrow('status 401')
  })
})

test('9.5 a revoked token ends its connections within a second, with what it was owed', async () => {
  verifies('9.5-web', '9.14-challenge')
  const house = await startHouse({
    principals: { ann: {}, ben: {} },
    pools: [pool('silent')],
    doors: ['http'],
  })
  const headers = bearer(house.tokens['ann']!)
  const peer = new WebSocketPeer(house.bus.url('/ws'), { headers })
  await peer.opened()
  peer.socket.send(JSON.stringify(HELLO))
  const pending = ask(house.bus.url('/rpc'), { body: HELLO, headers })
  await house.bus.statusWhere('two requests wait', ({ outstanding }) => outstanding === 2)
  const startMs = performance.now()
  await house.change((rows) => rows.delete('ann'))
  expect(await peer.take(1)).toMatchObject([{ id: 1, error: { data: { reason: 'unauthenticated' } } }])
  expect(await peer.closed).toMatchObject({ code: 1008 })
  expect(reasonOf(await pending)).toBe('401 unauthenticated')
  expect((await pending).headers['www-authenticate']).toBe('Bearer realm="stdio-bus"')
  expect(performance.now() - startMs).toBeLessThan(3_000)
  expect(reasonOf(await ask(house.bus.url('/rpc'), { body: HELLO, headers }))).toBe('401 unauthenticated')
})

test('9.5 a token that expires ends what came with it; what came with a signed one is finished', async () => {
  verifies('9.5-web')
  const issuer = await Issuer.start()
  onTestFinished(() => issuer.close())
  const key = await makeKey('ES256', 'known')
  issuer.publish(key)
  const oauth = { issuer: issuer.url, audience: 'bus', map: [{ claim: 'scope', equals: 'bus:read', as: 'ben' }] }
  const house = await startHouse({
    principals: { ann: {}, ben: {} },
    pools: [pool('slow', { args: ['6000'] })],
    access: { oauth },
    doors: ['http'],
  })
  const endsMs = Math.ceil(Date.now() / 1_000 + 2) * 1_000
  let short = ''
  await house.change(() => {
    short = house.give('ann', { expires: new Date(endsMs).toISOString() })
  })
  const signed = await issuer.sign(key, { aud: 'bus', exp: endsMs / 1_000 })
  const post = (token: string) => ask(house.bus.url('/rpc'), { body: HELLO, headers: bearer(token) })
  const finished = post(signed)
  const ended = await post(short)
  expect(Date.now() - endsMs).toBeLessThan(2_000)
  expect(reasonOf(ended)).toBe('401 unauthenticated')
  expect(ended.json.error.data.why).toBe('expired')
  expect(reasonOf(await finished)).toBe('200 ok')
})

test('9.16 client certificates over HTTPS', async () => {
  verifies('9.16-web')
  const authority = testAuthority()
  const house = await startHouse({
    principals: { agent: {} },
    access: { certificates: [{ subject: 'CN=robot', as: 'agent' }] },
    more: {
      listen: { http: { address: '127.0.0.1:0', ...busPair(), client_ca: authority.ca, client_cert: 'optional' } },
    },
    doors: [],
  })
  const url = house.bus.url('/rpc')
  expect(url).toMatch(/^https:/)
  const post = (pair: object = {}) => {
    const headers = { 'content-type': 'application/json' }
    const sent = request(url, { method: 'POST', headers, ca: readFileSync(authority.ca), agent: false, ...pair })
    return answerOf(sent, JSON.stringify({ id: 1, method: 'bus::whoami' }))
  }
  expect((await post(textsOf(authority.client({ name: 'robot' })))).json.result).toMatchObject({
    principal: 'agent',
    via: 'certificate',
  })
  expect(reasonOf(await post())).toBe('401 unauthenticated')
})

describe('OAuth over HTTP', () => {
  let issuer: Issuer
  let key: SigningKey
  beforeAll(async () => {
    issuer = await Issuer.start()
    key = await makeKey('ES256', 'known')
    issuer.publish(key)
  })
  afterAll(() => issuer.close())
  const house = sharedHouse({
    principals: { dev: {}, watch: { role: 'observer' } },
    get access() {
      const map = [
        { claim: 'scope', equals: 'bus:write', as: 'dev' },
        { claim: 'scope', equals: 'bus:read', as: 'watch' },
      ]
      return { oauth: { issuer: issuer.url, map } }
    },
    more: { public_url: 'https://bus.example.com', listen: { http: '127.0.0.1:0' } },
    doors: [],
  })

  test('9.14 documents for whoever is refused, and tokens for the very path', async () => {
    verifies('9.14-documents', '9.14-challenge', '9.11-web-audience')
    const { bus } = house()
    const headers = { host: 'bus.example.com' }
    const refused = await ask(bus.url('/rpc/echo'), { body: HELLO, headers })
    expect(refused.status).toBe(401)
    expect(refused.headers['www-authenticate']).toBe(
      'Bearer resource_metadata="https://bus.example.com/.well-known/oauth-protected-resource/rpc/echo", scope="bus:read"',
    )
    const document = await ask(bus.url('/.well-known/oauth-protected-resource/rpc/echo'), { headers })
    expect(document.headers['access-control-allow-origin']).toBe('*')
    expect(document.json).toEqual({
      resource: 'https://bus.example.com/rpc/echo',
      authorization_servers: [issuer.url],
      scopes_supported: ['bus:write', 'bus:read'],
      bearer_methods_supported: ['header'],
    })
    expect((await ask(bus.url('/.well-known/oauth-protected-resource/rpc/nope'), { headers })).status).toBe(404)
    const as = async (claims: object) => {
      const token = await issuer.sign(key, { sub: 'ann', scope: 'bus:write', ...claims })
      return ask(bus.url('/rpc/echo'), { body: HELLO, headers: { ...headers, ...bearer(token) } })
    }
    expect(reasonOf(await as({ aud: 'https://bus.example.com/rpc/echo' }))).toBe('200 ok')
    const elsewhere = await as({ aud: 'https://bus.example.com/rpc/other' })
    expect(reasonOf(elsewhere)).toBe('401 unauthenticated')
    expect(elsewhere.headers['www-authenticate']).toMatch(/error="invalid_token"/)
    const weak = await as({ aud: 'https://bus.example.com/rpc/echo', scope: 'other' })
    expect(weak.status).toBe(403)
    expect(weak.headers['www-authenticate']).toMatch(/error="insufficient_scope", scope="bus:read", resource_metadata=/)
  })
})

describe('a public address with a path, and scopes of different strength', () => {
  let issuer: Issuer
  let key: SigningKey
  beforeAll(async () => {
    issuer = await Issuer.start()
    key = await makeKey('ES256', 'known')
    issuer.publish(key)
  })
  afterAll(() => issuer.close())
  const map = ['write', 'read', 'watch'].map((as) => ({ claim: 'scope', equals: `bus:${as}`, as }))
  const house = sharedHouse({
    principals: {
      write: {},
      read: { pools: ['echo'], tools: { allow: ['read_*'] } },
      watch: { role: 'observer', pools: ['echo'] },
      ann: { pools: ['echo'] },
    },
    pools: [pool('echo'), pool('echo', { id: 'other' })],
    get access() {
      return { oauth: { issuer: issuer.url, audience: 'bus', map } }
    },
    more: {
      public_url: 'https://bus.example.com/base/',
      listen: { http: { address: '127.0.0.1:0', origins: ['https://app.example'] } },
    },
    doors: [],
  })
  const WELL_KNOWN = '/.well-known/oauth-protected-resource'
  const headers = { host: 'bus.example.com' }
  const rpc = async (scope: string | undefined, path: string, body?: object) => {
    const token = scope === undefined ? house().tokens['ann']! : await issuer.sign(key, { aud: 'bus', scope })
    return ask(house().bus.url(path), { ...(body && { body }), headers: { ...headers, ...bearer(token) } })
  }
  const TOOL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'write_x' } }

  test.each<[string, string, string, object | undefined, string]>([
    ['a pool', 'bus:read', '/rpc/other', HELLO, 'bus:write'],
    ['a tool', 'bus:read', '/rpc/echo', TOOL, 'bus:write'],
    ['a message, by an observer', 'bus:watch', '/rpc/echo', HELLO, 'bus:read'],
    ['a question about the bus', 'bus:read', '/rpc/echo', { id: 1, method: 'bus::status' }, 'bus:watch'],
    ['/metrics', 'bus:read', '/metrics', undefined, 'bus:watch'],
  ])('9.14 %s that another scope may: that scope is named', async (_what, scope, path, body, needed) => {
    verifies('9.14-scope')
    const refused = await rpc(scope, path, body)
    expect(reasonOf(refused)).toBe('403 not_allowed')
    expect(refused.headers['www-authenticate']).toBe(
      `Bearer error="insufficient_scope", scope="${needed}", resource_metadata="https://bus.example.com${WELL_KNOWN}/base${path}"`,
    )
  })

  test('9.14 where no scope would do, and of whoever has a token of the bus, none is named', async () => {
    verifies('9.14-scope')
    for (const [scope, path, body] of [
      ['bus:write', '/rpc/echo', { id: 1, method: 'bus::reload' }],
      [undefined, '/rpc/other', HELLO],
    ] as const) {
      const refused = await rpc(scope, path, body)
      expect(reasonOf(refused)).toBe('403 not_allowed')
      expect(refused.headers['www-authenticate']).toBeUndefined()
    }
  })

  test('9.14 the address that a challenge names has a document, with the path of the public address or without', async () => {
    verifies('9.14-documents')
    const { bus } = house()
    for (const path of ['', '/mcp', '/acp/other', '/ws', '/rpc/echo', '/metrics'])
      for (const base of ['', '/base']) {
        const { json } = await ask(bus.url(`${WELL_KNOWN}${base}${path}`), { headers })
        expect(json.resource).toBe(`https://bus.example.com/base${path}`)
      }
    for (const path of ['/mcp/nope', '/nope', '/metrics/x', '/mcp/echo/x', '/base/base/mcp', '/%'])
      expect((await ask(bus.url(`${WELL_KNOWN}${path}`), { headers })).status).toBe(404)
  })

  test.each(['https://elsewhere.example', 'https://app.example', 'null'])(
    '9.14 a page of %s may read it',
    async (origin) => {
      verifies('9.14-documents')
      const url = house().bus.url(`${WELL_KNOWN}/mcp`)
      const read = await ask(url, { headers: { ...headers, origin } })
      expect([read.status, read.headers['access-control-allow-origin']]).toEqual([200, '*'])
      const asked = {
        ...headers,
        origin,
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'mcp-protocol-version',
      }
      const preflight = await ask(url, { method: 'OPTIONS', headers: asked })
      expect([preflight.status, preflight.headers['access-control-allow-origin']]).toEqual([204, '*'])
      expect(preflight.headers['access-control-allow-methods']).toBe('GET, HEAD')
      expect(preflight.headers['access-control-allow-headers']).toContain('mcp-protocol-version')
      const posted = await ask(url, { body: {}, headers })
      expect([posted.status, posted.headers.allow]).toEqual([405, 'GET, HEAD'])
    },
  )
})

test('9.12 what becomes of the issuer is told in words', async () => {
  verifies('9.12-away')
  const issuer = await Issuer.start()
  onTestFinished(() => issuer.close())
  issuer.misbehave = (_request, response) => {
    response.writeHead(503).end()
    return true
  }
  const oauth = { issuer: issuer.url, audience: 'bus', map: [{ claim: 'scope', equals: 'bus:read', as: 'dev' }] }
  const { bus } = await startHouse({ principals: { dev: {} }, access: { oauth }, doors: ['http'] })
  const key = await makeKey('ES256', 'known')
  const headers = bearer(await issuer.sign(key, { aud: 'bus' }))
  const away = await ask(bus.url('/rpc'), { body: HELLO, headers })
  expect([reasonOf(away), Number(away.headers['retry-after']) > 0]).toEqual(['503 keys_unavailable', true])
  const told = (words: string) =>
    eventually(words, () => bus.log.lines.some(({ text }) => text.includes(`the keys of the token issuer ${words}`)))
  await told('cannot be read: ')
  issuer.misbehave = () => false
  issuer.publish(key)
  await eventually('a good answer', async () => {
    return reasonOf(await ask(bus.url('/rpc'), { body: HELLO, headers })) === '200 ok'
  })
  await told('can be read again')
})
