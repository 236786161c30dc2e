/** MCP over HTTP where callers are told apart: sessions are their principal's, and live no longer than its credential. */
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { call, DONE, mcpPool } from '../interop/mcp-peers.ts'
import { MCP_HEADERS, openSession } from '../support/mcp-http.ts'
import { ask } from '../support/web.ts'
import { sharedHouse, startHouse } from './access-harness.ts'

const PING = { jsonrpc: '2.0', id: 9, method: 'ping' }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}'

const house = sharedHouse({
  principals: {
    ann: {},
    bob: {},
    slow: { rate: '4/h' },
    few: { tools: { allow: ['read_*'] } },
    eve: { role: 'observer' },
  },
  pools: [mcpPool('puppet')],
  doors: ['http'],
})
const as = (who: string) => bearer(house().tokens[who]!)
const open = (who: string) => openSession(house().bus.url('/mcp'), { headers: as(who) })

test("another principal's session does not exist, nor do its events", async () => {
  verifies('10.7-session', '10.10-unknown')
  const session = await open('ann')
  const streamed = await session.post(call(1, [PROGRESS, DONE], { progressToken: 1 }))
  await streamed.ended()
  expect((await session.ask(PING)).status).toBe(200)
  for (const refused of [
    await session.ask(PING, as('bob')),
    await session.delete(as('bob')),
    await ask(session.url, { headers: { ...session.headers, ...as('bob'), 'last-event-id': streamed.lastId! } }),
  ])
    expect([refused.status, refused.json.error.data.reason]).toEqual([404, 'unknown_session'])
  expect((await session.ask(PING, bearer('sbus_nobody'))).status).toBe(401)
  const bobs = await open('bob')
  expect((await bobs.resume(streamed.lastId!)).status).toBe(400)
  expect((await session.ask(PING)).status).toBe(200)
})

test('rights and rates are told by status', async () => {
  verifies('10.8-status')
  const few = await open('few')
  const denied = await few.ask({ ...call(1, [DONE]), params: { name: 'write_x' } })
  expect([denied.status, denied.json.error.data.reason, denied.json.id]).toEqual([403, 'not_allowed', 1])
  expect((await few.ask({ ...call(1, [DONE]), params: { name: 'read_x' } })).status).toBe(200)
  const slow = await open('slow')
  const statuses: number[] = []
  for (let i = 0; i < 6; i++) statuses.push((await slow.ask(call(i, [DONE]))).status)
  expect(statuses).toContain(429)
  const limited = await slow.ask(call(7, [DONE]))
  expect([limited.status, limited.json.error.data.reason, limited.json.id]).toEqual([429, 'rate_limited', 7])
  expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0)
  const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }
  const observer = await ask(house().bus.url('/mcp'), {
    method: 'POST',
    headers: { ...MCP_HEADERS, ...as('eve') },
    body: initialize,
  })
  expect([observer.status, observer.json.error.data.reason]).toEqual([403, 'not_allowed'])
})

test('a revoked token ends its sessions within a second, and what is owed is answered', async () => {
  verifies('9.5-web')
  const own = await startHouse({ principals: { ann: {}, bob: {} }, pools: [mcpPool('puppet')], doors: ['http'] })
  const [anns, bobs] = await Promise.all(
    ['ann', 'bob'].map((who) => openSession(own.bus.url('/mcp'), { headers: bearer(own.tokens[who]!) })),
  )
  const get = await anns!.listen()
  const slow = await anns!.post(call(1, [PROGRESS], { progressToken: 1 }))
  await slow.next()
  const before = Date.now()
  await own.change((rows) => rows.delete('ann'))
  await Promise.all([slow.ended(), get.ended()])
  expect(Date.now() - before).toBeLessThan(2_000)
  expect(slow.messages.at(-1)).toMatchObject({ id: 1, error: { data: { reason: 'unauthenticated' } } })
  expect((await anns!.ask(PING)).status).toBe(401)
  expect((await bobs!.ask(PING)).status).toBe(200)
})

test('a session lives as long as the newest token that was shown for it', async () => {
  const own = await startHouse({ principals: { ann: {} }, pools: [mcpPool('puppet')], doors: ['http'] })
  const session = await openSession(own.bus.url('/mcp'), { headers: bearer(own.tokens['ann']!) })
  let fresh = ''
  await own.change(() => {
    fresh = own.give('ann')
  })
  expect((await session.ask(PING, bearer(fresh))).status).toBe(200)
  await own.change((rows) => rows.get('ann')!.tokens.shift())
  expect((await session.ask(PING)).status).toBe(401)
  expect((await session.ask(PING, bearer(fresh))).status).toBe(200)
})

test('a session in a pool that was lost ends, but not before what was accepted is answered', async () => {
  verifies('9.10-narrowed', '9.10-sessions-end')
  const own = await startHouse({ principals: { ann: {} }, pools: [mcpPool('puppet')], doors: ['http'] })
  const open = () => openSession(own.bus.url('/mcp/puppet'), { headers: bearer(own.tokens['ann']!) })
  const [idle, busy] = [await open(), await open()]
  const [idleGet, busyGet] = [await idle.listen(), await busy.listen()]
  const slow = await busy.post(call(1, [PROGRESS], { progressToken: 1 }))
  await slow.next()
  await own.change((rows) => Object.assign(rows.get('ann')!, { pools: ['other'] }))
  await idleGet.ended()
  expect([busyGet.isEnded, slow.isEnded]).toEqual([false, false])
  expect((await busy.ask(PING)).status).toBe(403)
  await own.change((rows) => Object.assign(rows.get('ann')!, { pools: ['puppet'] }))
  expect((await idle.ask(PING)).status).toBe(404)
  expect((await busy.ask(PING)).status).toBe(200)
})

test('with the token of a session expires what it is owed, and the session', async () => {
  verifies('9.5-web')
  const own = await startHouse({ principals: { ann: {} }, pools: [mcpPool('puppet')], doors: ['http'] })
  let short = ''
  await own.change(() => {
    short = own.give('ann', { expires: new Date(Date.now() + 3_000).toISOString().replace(/\.\d+/, '') })
  })
  const session = await openSession(own.bus.url('/mcp'), { headers: bearer(short) })
  const slow = await session.post(call(1, [PROGRESS], { progressToken: 1 }))
  await slow.next()
  await slow.ended()
  expect(slow.messages.at(-1)).toMatchObject({ id: 1, error: { data: { reason: 'unauthenticated', why: 'expired' } } })
  const late = await session.ask(PING, bearer(own.tokens['ann']!))
  expect([late.status, late.json.error.data.reason]).toEqual([404, 'unknown_session'])
})

test('an expired token ends its GET stream, not the session that another is shown for', async () => {
  const own = await startHouse({ principals: { ann: {} }, pools: [mcpPool('puppet')], doors: ['http'] })
  const session = await openSession(own.bus.url('/mcp'), { headers: bearer(own.tokens['ann']!) })
  let short = ''
  await own.change(() => {
    short = own.give('ann', { expires: new Date(Date.now() + 5_000).toISOString().replace(/\.\d+/, '') })
  })
  const get = await session.listen(bearer(short))
  expect(get.status).toBe(200)
  const slow = await session.post(call(1, [PROGRESS], { progressToken: 1 }), bearer(short))
  await slow.next()
  await get.ended()
  expect(slow.isEnded).toBe(false)
  expect((await session.ask(PING, bearer(short))).status).toBe(401)
  expect((await session.ask(PING)).status).toBe(200)
})
