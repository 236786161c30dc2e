/** The store of a running bus: it survives restarts and crashes, and when it fails calls go on and the operator is told. */
import { mkdirSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus, testWorkspace } from '../support/bus.ts'
import { agent, callsOf } from './aio-harness.ts'

const config = (store: object = { path: 'traces.db' }) => ({ pools: [agent('reader')], aio: { store } })
const inputs = [{ type: 'text', value: 'hello' }]
const call = (id: number) => ({ id, method: 'reader::input', params: { inputs } })
const numberOf = (traceId: string): number => Number(traceId.split('-').at(-1))

test('a restart goes on counting and still has what was', async () => {
  verifies('T1-counter', 'T6-mode')
  const workspace = testWorkspace()
  const issued: string[] = []
  for (let round = 0; round < 2; round++) {
    const bus = await startBus({ config: config(), workspace })
    const client = await bus.connect()
    for (let id = 1; id <= 3; id++) issued.push((await client.ask(call(id))).trace_id)
    expect((await callsOf(client, issued[0]!))[0]).toMatchObject({ status: 'ok', output: { outputs: inputs } })
    await bus.stop()
  }
  expect(new Set(issued).size).toBe(6)
  expect(numberOf(issued[3]!)).toBeGreaterThan(numberOf(issued[2]!))
  expect(statSync(workspace.path('traces.db')).mode & 0o777).toBe(0o600)
})

test('after a crash open calls are errors: bus_restarted', async () => {
  verifies('T5-crash')
  const workspace = testWorkspace()
  const first = await startBus({ config: config(), workspace })
  const caller = await first.connect()
  caller.send({ id: 1, method: 'reader::wait', trace_id: 'torn' })
  await expect.poll(async () => (await callsOf(caller, 'torn').catch(() => [])).length).toBe(1)
  first.kill()
  await first.exit
  const second = await startBus({ config: config(), workspace })
  const [torn] = await callsOf(await second.connect(), 'torn')
  expect(torn).toMatchObject({ status: 'error', error: { data: { reason: 'bus_restarted' } } })
})

test.each([
  [
    'a file that is no database',
    (path: string, write: (text: string) => void) => write(`${path} is not a database`.repeat(99)),
  ],
  ['a folder in its place', (path: string) => void mkdirSync(path)],
])('%s: the bus starts, says so once, answers calls and queries', async (_what, spoil) => {
  verifies('T5-failed')
  const workspace = testWorkspace()
  spoil(workspace.path('traces.db'), (text) => workspace.write('traces.db', text))
  const bus = await startBus({ config: config(), workspace })
  const client = await bus.connect()
  const { result, trace_id } = await client.ask(call(1))
  expect(result.outputs).toEqual(inputs)
  expect((await callsOf(client, trace_id))[0].status).toBe('ok')
  expect(await bus.status()).toMatchObject({ traces: { state: 'failed' } })
  const errors = bus.log.text.split('\n').filter((line) => line.includes('"level":"error"'))
  expect(errors).toHaveLength(1)
})

test('two buses, one store: the second warns and keeps its traces in memory', async () => {
  verifies('T5-in-use')
  const workspace = testWorkspace()
  const first = await startBus({ config: config(), workspace })
  const store = { path: workspace.path('traces.db') }
  const second = await startBus({ config: config(store) })
  const [one, two] = [await first.connect(), await second.connect()]
  const ids = [(await one.ask(call(1))).trace_id, (await two.ask(call(1))).trace_id]
  expect(new Set(ids).size).toBe(2)
  expect((await callsOf(two, ids[1]!))[0].status).toBe('ok')
  expect(await second.status()).toMatchObject({ traces: { state: 'failed' } })
  expect(second.log.text).toContain('"level":"warn"')
})

test('what is configured as secret is not kept', async () => {
  verifies('T6-redact')
  const bus = await startBus({ config: config({ path: 'traces.db', redact: ['password'] }) })
  const client = await bus.connect()
  const params = { password: 'hush', name: 'ann' }
  await client.ask({ id: 1, method: 'reader::show', params, trace_id: 'secret' })
  const [kept] = await callsOf(client, 'secret')
  expect(kept.input.name).toBe('ann')
  expect(JSON.stringify(kept)).not.toContain('hush')
})
