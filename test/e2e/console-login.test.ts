/** Getting into the console, and what is kept from whoever is not in (contract 15.1 to 15.5). */
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { ask, WebSocketPeer } from '../support/web.ts'
import { startHouse } from './access-harness.ts'

async function linkTo(bus: Bus, ...flags: string[]): Promise<string> {
  const { stdout } = await bus.run(['console', '--control', bus.control, ...flags])
  return stdout.trim()
}

async function logIn(bus: Bus, ...flags: string[]) {
  const code = (await linkTo(bus, ...flags)).replace(/^.*#code=/, '')
  const answer = await ask(bus.url('/api/login'), { body: { code } })
  const cookie = String(answer.headers['set-cookie']).split(';')[0]!
  return { code, answer, headers: { cookie }, csrf: answer.json.csrf as string }
}

test("15.2 a link that is good once; 15.3 a cookie; 15.4 writes are the page's own", async () => {
  verifies('15.2-link', '15.3-login', '15.4-csrf')
  const bus = await startBus({ config: config(pool('echo')), doors: ['http'] })
  expect(await linkTo(bus)).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/console\/login#code=[\w-]{22}$/)
  const { code, answer, headers, csrf } = await logIn(bus)
  expect(answer.json).toMatchObject({ name: 'local', role: 'admin', pools: ['*'] })
  expect(String(answer.headers['set-cookie'])).toMatch(/^stdio_bus_\d+=[\w-]{22}; Path=\/; HttpOnly; SameSite=Strict$/)
  expect((await ask(bus.url('/api/login'), { body: { code } })).status).toBe(401)
  expect((await ask(bus.url('/api/me'), { headers })).json).toMatchObject({ name: 'local', csrf })
  expect((await ask(bus.url('/api/me'))).status).toBe(401)
  const write = (more: Record<string, string>) =>
    ask(bus.url('/api/reload'), { body: {}, headers: { ...headers, ...more } })
  expect((await write({})).json.error.reason).toBe('bad_csrf')
  expect((await write({ 'x-csrf-token': 'x' })).json.error.reason).toBe('bad_csrf')
  expect((await write({ 'x-csrf-token': csrf })).json).toMatchObject({ reloaded: true })
  const host = new URL(bus.url()).host
  const own = new WebSocketPeer(bus.url('/ws'), { headers: { ...headers, origin: `http://${host}` } })
  await own.opened()
  own.socket.send(JSON.stringify({ id: 1, method: 'hello' }))
  expect(await own.take(1)).toMatchObject([{ id: 1, result: { method: 'hello' } }])
  await ask(bus.url('/api/logout'), { body: {}, headers: { ...headers, 'x-csrf-token': csrf } })
  expect((await ask(bus.url('/api/me'), { headers })).status).toBe(401)
})

test('15.5 an observer looks and does nothing; a door without a console has none', async () => {
  verifies('15.5-roles', '15.1-off')
  const bus = await startBus({ config: config(pool('echo')), doors: ['http'] })
  const { headers, csrf } = await logIn(bus, '--role', 'observer')
  expect((await ask(bus.url('/api/overview'), { headers })).json).toMatchObject({
    problems: [],
    workers: [{ pool: 'echo' }],
  })
  const reload = await ask(bus.url('/api/reload'), { body: {}, headers: { ...headers, 'x-csrf-token': csrf } })
  expect([reload.status, reload.json.error.reason]).toEqual([403, 'not_allowed'])
  const bare = await startBus({
    config: config(pool('echo'), {}, { listen: { http: { address: '127.0.0.1:0', console: false } } }),
    doors: [],
  })
  expect((await ask(bare.url('/console/'))).status).toBe(404)
  const { code, stderr } = await bare.run(['console', '--control', bare.control])
  expect([code, stderr]).toEqual([1, expect.stringMatching(/--http/)])
})

test('15.3 a token is as good as a code, for as long as it holds', async () => {
  verifies('15.3-token')
  const house = await startHouse({ principals: { ann: { role: 'admin' } }, doors: ['http'] })
  const answer = await ask(house.bus.url('/api/login'), { body: { code: house.tokens['ann'] } })
  expect(answer.json).toMatchObject({ name: 'ann', role: 'admin' })
  const headers = { cookie: String(answer.headers['set-cookie']).split(';')[0]! }
  expect((await ask(house.bus.url('/api/me'), { headers })).status).toBe(200)
  await house.change((rows) => rows.delete('ann'))
  expect((await ask(house.bus.url('/api/me'), { headers })).status).toBe(401)
})

test("15.4 the cookie counts at /ws and /acp, for the page's own origin, and nowhere else", async () => {
  verifies('15.4-cookie')
  const house = await startHouse({ principals: { ann: { role: 'admin' } }, doors: ['http'] })
  const { bus } = house
  const answer = await ask(bus.url('/api/login'), { body: { code: house.tokens['ann'] } })
  const cookie = String(answer.headers['set-cookie']).split(';')[0]!
  const origin = new URL(bus.url()).origin
  const message = { jsonrpc: '2.0', id: 1, method: 'hello' }
  for (const path of ['/rpc', '/mcp'])
    expect((await ask(bus.url(path), { body: message, headers: { cookie, origin } })).status).toBe(401)
  const stranger = new WebSocketPeer(bus.url('/ws'), { headers: { cookie } })
  await expect(stranger.opened()).rejects.toThrow('401')
  const own = new WebSocketPeer(bus.url('/ws'), { headers: { cookie, origin } })
  await own.opened()
  own.socket.send(JSON.stringify(message))
  expect(await own.take(1)).toMatchObject([{ id: 1, result: { method: 'hello' } }])
})

test('15.3 wrong codes are told slowly, and where too many wait, not at all', async () => {
  verifies('15.3-slowed')
  const bus = await startBus({ config: config(pool('echo')), doors: ['http'] })
  const guess = () =>
    ask(bus.url('/api/login'), { body: { code: 'wrong' } }).then(
      ({ status, json }) => `${status} ${json.error.reason}`,
      () => 'closed',
    )
  expect(new Set(await Promise.all(Array.from({ length: 10 }, guess)))).toEqual(new Set(['401 bad_code']))
  const outcomes = await Promise.all(Array.from({ length: 300 }, guess))
  expect(outcomes.filter((outcome) => outcome === '401 bad_code').length).toBeGreaterThanOrEqual(256)
  expect(outcomes).toContain('closed')
  expect(await guess()).toBe('401 bad_code')
})

test('15.3 behind a proxy that speaks TLS the cookie is for TLS alone', async () => {
  verifies('15.3-secure')
  const http = { address: '127.0.0.1:0', public_url: 'https://bus.example.com' }
  const bus = await startBus({ config: config(pool('echo'), {}, { listen: { http } }), doors: [] })
  const { stdout } = await bus.run(['console', '--no-open', '--control', bus.control])
  expect(stdout).toMatch(/^https:\/\/bus\.example\.com\/console\/login#code=/)
  const code = stdout.trim().replace(/^.*#code=/, '')
  const { headers } = await ask(bus.url('/api/login'), { body: { code } })
  expect(String(headers['set-cookie'])).toMatch(/; Secure$/)
})
