// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file itself spells its references so
/** The API as others use it: strangers, forged writes, bearers, roles, lists, bounds, files of the page (contract 15.1 to 15.5, 15.16 to 15.18, 15.21). */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { ask, WebSocketPeer } from '../support/web.ts'
import { startHouse } from './access-harness.ts'
import { logIn, Visitor } from './console-harness.ts'

const reasonOf = ({ status, json }: { status: number; json: { error: { reason: string } } }): unknown[] => [
  status,
  json.error.reason,
]

test('15.1 strangers get the page to log in and 401; errors have one shape', async () => {
  verifies('15.1-strangers')
  const bus = await startBus({ config: config(pool('echo')), doors: ['http'] })
  const page = await ask(bus.url('/console/sessions/any?pool=x'))
  expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  for (const path of ['me', 'overview', 'pools', 'events?topics=logs']) {
    const answer = await ask(bus.url(`/api/${path}`))
    expect(answer.json).toEqual({ error: { reason: 'unauthenticated', message: expect.any(String) } })
    expect(answer.status).toBe(401)
  }
  const shapes = [
    await ask(bus.url('/api/nothing')),
    await ask(bus.url('/api/me'), { method: 'PUT' }),
    await ask(bus.url('/api/me'), { headers: { host: 'evil.example' } }),
    await ask(bus.url('/api/me'), { headers: { origin: 'http://evil.example' } }),
    await ask(bus.url('/api/login'), { body: '[' }),
  ]
  expect(shapes.map(reasonOf)).toEqual([
    [404, 'not_found'],
    [405, 'wrong_method'],
    [403, 'wrong_host'],
    [403, 'wrong_origin'],
    [400, 'not_json'],
  ])
})

test('15.1 a door that others can reach has no console without TLS', async () => {
  verifies('15.1-tls')
  const house = await startHouse({ principals: { ann: { role: 'admin' } }, args: ['--http', '0.0.0.0:0'], doors: [] })
  const { port } = new URL(house.bus.url())
  const bearer = { authorization: `Bearer ${house.tokens['ann']}` }
  expect(reasonOf(await ask(`http://127.0.0.1:${port}/api/me`, { headers: bearer }))).toEqual([403, 'tls_required'])
  expect((await ask(`http://127.0.0.1:${port}/console/`)).status).toBe(403)
})

test('15.2 without a bus the command says so', async () => {
  verifies('15.2-no-bus')
  const bus = await startBus({ config: config(pool('echo')), doors: ['http'] })
  await bus.stop()
  const { code, stdout, stderr } = await bus.run(['console', '--no-open', '--control', bus.control])
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).not.toBe('')
})

test('15.3 what is no code and no token is refused, as a bearer too, and the cookie is Secure where the browser comes by TLS', async () => {
  verifies('15.3-refused', '15.3-secure')
  const bus = await startBus({
    config: config(
      pool('echo'),
      {},
      { listen: { http: { address: '127.0.0.1:0', public_url: 'https://bus.example' } } },
    ),
    doors: [],
  })
  for (const body of [{ code: 'x' }, { token: 'sbus_x' }, { code: 7 }, {}])
    expect(reasonOf(await ask(bus.url('/api/login'), { body }))).toEqual([401, 'bad_code'])
  const bearer = { authorization: 'Bearer sbus_x' }
  expect(reasonOf(await ask(bus.url('/api/me'), { headers: bearer }))).toEqual([401, 'unauthenticated'])
  const { stdout } = await bus.run(['console', '--no-open', '--control', bus.control])
  expect(stdout).toMatch(/^https:\/\/bus\.example\/console\/login#code=/)
  const code = stdout.trim().replace(/^.*#code=/, '')
  const headers = { host: 'bus.example', origin: 'https://bus.example' }
  const answer = await ask(bus.url('/api/login'), { body: { code }, headers })
  expect(String(answer.headers['set-cookie'])).toMatch(/; HttpOnly; SameSite=Strict; Secure$/)
})

test("15.4 a write is the page's own: origin, content type and token; a bearer needs none of it", async () => {
  verifies('15.4-forged', '15.4-bearer')
  const origins = ['http://friend.example']
  const listen = { http: { address: '127.0.0.1:0', origins } }
  const bus = await startBus({ config: config(pool('echo'), {}, { listen }), doors: [] })
  const visitor = await logIn(bus)
  const write = (headers: Record<string, string>) =>
    ask(bus.url('/api/reload'), { body: {}, headers: { ...visitor.headers, ...headers } })
  expect(reasonOf(await write({ origin: 'http://evil.example' }))).toEqual([403, 'bad_csrf'])
  expect(reasonOf(await write({ 'content-type': 'text/plain' }))).toEqual([403, 'bad_csrf'])
  expect(reasonOf(await write({ 'x-csrf-token': '' }))).toEqual([403, 'bad_csrf'])
  expect((await write({ origin: new URL(bus.url()).origin })).status).toBe(200)
  const { cookie } = visitor.headers as { cookie: string }
  const own = new WebSocketPeer(bus.url('/ws/echo'), { headers: { cookie, origin: new URL(bus.url()).origin } })
  await own.opened()
  const house = await startHouse({
    principals: { ann: { role: 'admin' } },
    more: { listen },
    doors: [],
  })
  const login = await ask(house.bus.url('/api/login'), { body: { token: house.tokens['ann'] } })
  const theirs = { cookie: String(login.headers['set-cookie']).split(';')[0]! }
  const upgrade = {
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'x',
  }
  const listed = { ...theirs, ...upgrade, origin: origins[0]! }
  expect((await ask(house.bus.url('/ws/echo'), { headers: listed })).status).toBe(401)
  const bearer = new Visitor(house.bus, { authorization: `Bearer ${house.tokens['ann']}` })
  expect((await bearer.get('me')).json).toMatchObject({ name: 'ann', csrf: null })
  expect((await bearer.post('reload')).status).toBe(200)
})

test('15.5 a user has its own; what an admin does is in the audit log', async () => {
  verifies('15.5-user', '15.5-audit')
  const house = await startHouse({
    principals: { ann: { role: 'admin' }, bob: { pools: ['echo'] }, eve: { pools: [] } },
    pools: [pool('echo'), pool('echo', { id: 'other' })],
    access: { audit: { file: 'audit.log' } },
    doors: ['http'],
  })
  const visit = (name: string) => new Visitor(house.bus, { authorization: `Bearer ${house.tokens[name]}` })
  const bob = visit('bob')
  for (const path of ['overview', 'history', 'logs', 'access', 'config', 'events?topics=overview'])
    expect(reasonOf(await bob.get(path)), path).toEqual([403, 'not_allowed'])
  expect(reasonOf(await bob.post('reload'))).toEqual([403, 'not_allowed'])
  expect((await bob.get('pools')).json.items.map(({ id }: { id: string }) => id)).toEqual(['echo'])
  expect((await bob.get('sessions')).status).toBe(200)
  const ann = visit('ann')
  for (const odd of ['0x0', '%20', '0e0', '-0'])
    expect((await ann.post(`workers/echo/${odd}/restart`)).status, odd).toBe(404)
  await ann.post('workers/echo/0/restart')
  await ann.delete('access/eve')
  expect((await ann.delete('access/eve')).status).toBe(404)
  await eventually('the audit log', () => {
    const lines = readFileSync(house.workspace.path('audit.log'), 'utf8')
    return (/restart echo\.0/.test(lines) && /revoke eve/.test(lines)) || undefined
  })
})

test('15.14 what runs is told with its origins, also where the file has changed or broken since; 15.5 of the pools one may see', async () => {
  verifies('15.14-values')
  const house = await startHouse({
    principals: { ann: { role: 'admin' }, olga: { role: 'observer', pools: ['echo'] } },
    pools: [pool('echo', { env: { HOME: '${HOME}', KEY: 's3cret' } }), pool('echo', { id: 'other' })],
    more: { listen: { http: '127.0.0.1:1' } },
    doors: ['http'],
  })
  const ask = async (name: string) => {
    const visitor = new Visitor(house.bus, { authorization: `Bearer ${house.tokens[name]}` })
    return (await visitor.get('config')).json as View
  }
  const valuesOf = ({ settings }: View) => new Map(settings.map(({ path, ...rest }) => [path, rest]))
  const file = house.workspace.path('bus.json')
  const text = readFileSync(file, 'utf8')
  const before = valuesOf(await ask('ann'))
  expect(before.get('pools[0].id')).toMatchObject({ value: 'echo', origin: expect.stringMatching(/bus\.json:\d+$/) })
  expect(before.get('pools[0].env.HOME')).toMatchObject({
    value: '${HOME}',
    origin: expect.stringMatching(/environment/),
  })
  expect(before.get('pools[0].env.KEY')!.value).toBe('(masked)')
  expect(before.get('listen.http[0]')).toMatchObject({ value: '127.0.0.1:0', origin: 'flag' })
  expect(before.has('listen.http')).toBe(false)
  writeFileSync(file, text.replace('"other"', '"another"'))
  const changed = await ask('ann')
  expect(valuesOf(changed).get('pools[1].id')!.value).toBe('other')
  expect(changed.pending.changed.join()).toContain('another')
  const seen = await ask('olga')
  expect(seen.settings.some(({ path }) => path.startsWith('pools[0]'))).toBe(true)
  expect(JSON.stringify(seen.settings)).not.toContain('other')
  expect(seen.pending.changed).toEqual([])
  writeFileSync(file, text.replace('"pools"', '"polls"'))
  const broken = await ask('ann')
  expect(broken.findings.some(({ severity }) => severity === 'error')).toBe(true)
  expect(valuesOf(broken).get('pools[1].id')!.value).toBe('other')
})

interface View {
  readonly settings: readonly { readonly path: string; readonly value: unknown; readonly origin: string }[]
  readonly findings: readonly { readonly severity: string }[]
  readonly pending: { readonly changed: readonly string[] }
}

interface Slice {
  readonly items: readonly { readonly name: string }[]
  readonly next_cursor?: string
}

test('15.18 lists have limits and cursors, parameters and bodies have bounds', async () => {
  verifies('15.18-lists')
  const principals = Object.fromEntries(Array.from({ length: 7 }, (_, n) => [`p${n}`, { pools: [] }]))
  const house = await startHouse({ principals: { ann: { role: 'admin' }, ...principals }, doors: ['http'] })
  const ann = new Visitor(house.bus, { authorization: `Bearer ${house.tokens['ann']}` })
  const names: string[] = []
  for (let cursor: string | undefined = '0'; cursor !== undefined; ) {
    const { items, next_cursor: next }: Slice = (await ann.get(`access?limit=3&cursor=${cursor}`)).json
    expect(items.length).toBeLessThanOrEqual(3)
    names.push(...items.map(({ name }) => name))
    cursor = next
  }
  expect(names.filter((name) => /^p\d$/.test(name))).toEqual(Object.keys(principals))
  expect((await ann.get('logs?limit=1')).json).toMatchObject({ items: [{}], next_cursor: expect.any(String) })
  const bad = [
    'logs?limit=0',
    'logs?limit=501',
    'logs?limit=x',
    'logs?limit=1e1',
    'logs?limit=0x10',
    'logs?cursor=',
    'logs?cursor=-5',
    'logs?cursor=1e3',
    'access?cursor=x',
    'logs?level=loud',
    'sessions?cursor=x',
  ]
  for (const path of bad) expect(reasonOf(await ann.get(path)), path).toEqual([400, 'bad_parameter'])
  for (const path of ['history?pool=no', 'sessions/no', 'sessions/no/lines'])
    expect((await ann.get(path)).status).toBe(404)
  expect(reasonOf(await ann.get('events?topics=nothing'))).toEqual([400, 'bad_parameter'])
  expect(reasonOf(await ann.post('reload', { pad: 'x'.repeat(1_100_000) }))).toEqual([413, 'message_too_large'])
})

test('15.16 every answer of the page has its policy; 15.21 files are named by their content', async () => {
  verifies('15.16-headers', '15.21-files')
  const bus = await startBus({ config: config(pool('echo')), doors: ['http'] })
  const page = await ask(bus.url('/console/'))
  expect(page.headers).toMatchObject({
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; " +
      "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
      "require-trusted-types-for 'script'",
  })
  const names = [...page.text.matchAll(/\/console\/assets\/[\w-]+\.(?:js|css)/g)].map(([name]) => name)
  expect(names.length).toBeGreaterThanOrEqual(2)
  for (const name of names) {
    const file = await ask(bus.url(name), { headers: { 'accept-encoding': 'gzip' } })
    expect(file.headers).toMatchObject({
      'content-encoding': 'gzip',
      'cache-control': 'public, max-age=31536000, immutable',
      'content-security-policy': page.headers['content-security-policy'],
    })
    expect(name).toMatch(/-[0-9a-f]{10}\.(?:js|css)$/)
  }
  expect((await ask(bus.url('/console/assets/other.js'))).status).toBe(404)
  expect((await ask(bus.url('/console/..%2f..%2fpackage.json'))).text).toBe(page.text)
})
