/** Traces over the API: whose one sees, which are found, one call alone, exports, and what changes (contract 15.5, 15.9, 15.18). */
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus, testWorkspace } from '../support/bus.ts'
import { pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { startHouse } from './access-harness.ts'
import { agent } from './aio-harness.ts'
import { logIn, Visitor } from './console-harness.ts'
import { type Told, tellTraces } from './trace-file.ts'

const config = { pools: [agent('reader')], aio: { store: { path: 'traces.db', redact: ['password'] } } }

async function startWith(traces: readonly Told[]) {
  const workspace = testWorkspace()
  await tellTraces(workspace.path('traces.db'), traces)
  return startBus({ config, workspace, doors: ['unix', 'http'] })
}

test('15.9 every filter finds, pages go on, and what is bad is refused', async () => {
  verifies('15.9-api')
  const calls = (target: string, tookMs: number, isError = false) => [
    { agent: 'reader', method: 'input', tookMs },
    { agent: 'math', method: 'tools.call', target, parent: 1, tookMs, isError },
  ]
  const bus = await startWith([
    { id: 'first', calls: calls('area', 5) },
    { id: 'second', calls: calls('sum', 900, true), principal: 'ann' },
    { id: 'third', calls: calls('Area', 7) },
  ])
  const visitor = await logIn(bus)
  const found = async (query: string) => {
    const { status, json } = await visitor.get(`traces?${query}`)
    return status === 200 ? json.items.map(({ trace_id }: { trace_id: string }) => trace_id) : json.error.reason
  }
  expect(await found('')).toEqual(['third', 'second', 'first'])
  expect(await found('text=area')).toEqual(['third', 'first'])
  expect(await found('status=error')).toEqual(['second'])
  expect(await found('min_ms=100')).toEqual(['second'])
  expect(await found('agent=math&method=tools.call')).toEqual(['third', 'second', 'first'])
  expect(await found('caller=ann')).toEqual(['second'])
  expect(await found(`since=${Date.now() + 60_000}`)).toEqual([])
  expect(await found(`since=${new Date(0).toISOString()}&prefix=sec`)).toEqual(['second'])
  const page = (await visitor.get('traces?limit=2')).json
  expect(await found(`limit=2&cursor=${page.next_cursor}`)).toEqual(['first'])
  for (const bad of ['limit=501', 'min_ms=x', 'since=soon', 'status=odd', 'cursor=x', `text=${'x'.repeat(300)}`])
    expect(await found(bad)).toMatch(/^bad_param/)
})

test('15.9 a trace without payloads, one call with them, and how many were left off', async () => {
  verifies('15.9-api')
  const many = Array.from({ length: 10_002 }, () => ({ agent: 'reader', method: 'input' }))
  const secret = { agent: 'math', method: 'tools.call', input: { password: 'hunter2', x: 1 }, isError: true }
  const bus = await startWith([
    { id: 'a/b?c', calls: [{ agent: 'reader', method: 'input' }, secret] },
    { id: 'many', calls: many },
  ])
  const visitor = await logIn(bus)
  const small = (await visitor.get(`traces/${encodeURIComponent('a/b?c')}`)).json
  expect(small.calls.map((call: object) => ['input' in call, 'output' in call])).toEqual(Array(2).fill([false, false]))
  expect(small).not.toHaveProperty('left_off')
  expect((await visitor.get(`traces/${encodeURIComponent('a/b?c')}/calls/2`)).json).toMatchObject({
    id: 2,
    input: { password: '[redacted]', x: 1 },
  })
  const large = (await visitor.get('traces/many')).json
  expect([large.n_calls, large.calls.length, large.left_off]).toEqual([10_002, 10_000, 2])
  expect((await visitor.get('traces/many/calls/10002')).json.id).toBe(10_002)
  for (const missing of ['traces/none', 'traces/many/calls/10003', 'traces/many/calls/x', 'traces/none/export'])
    expect((await visitor.get(missing)).status).toBe(404)
  expect((await visitor.get('traces/many/export?format=pdf')).status).toBe(400)
})

test('15.9 a bus without traces says which key would keep them', async () => {
  verifies('15.9-states')
  const bus = await startBus({ config: { pools: [pool('echo')] }, doors: ['unix', 'http'] })
  const { status, json } = await (await logIn(bus)).get('traces')
  expect([status, json.error.reason]).toEqual([404, 'no_traces'])
  expect(json.error.message).toContain('"trace": true')
})

test('15.5 a user sees its own traces, by list, by address and by export; a change is told', async () => {
  verifies('15.9-rights')
  const house = await startHouse({
    principals: { ann: { role: 'admin' }, bob: {}, eve: {} },
    pools: [agent('reader')],
    more: { aio: {} },
    doors: ['tcp', 'http'],
  })
  const visitor = (who: string) => new Visitor(house.bus, { authorization: `Bearer ${house.tokens[who]}` })
  const following = await visitor('eve').follow('traces')
  const client = await house.enter('bob')
  const { trace_id: id } = await client.ask({ id: 1, method: 'reader::input', params: { inputs: [] } })
  await eventually('news', () => following.events.length > 1 || undefined)
  expect(following.events.every(({ data }) => !data.includes(id))).toBe(true)
  const listed = async (who: string) => (await visitor(who).get('traces')).json.items.length
  expect([await listed('ann'), await listed('bob'), await listed('eve')]).toEqual([1, 1, 0])
  for (const path of [`traces/${id}`, `traces/${id}/calls/1`, `traces/${id}/export?format=svg`]) {
    expect((await visitor('bob').get(path)).status).toBe(200)
    expect((await visitor('eve').get(path)).status).toBe(404)
  }
})
