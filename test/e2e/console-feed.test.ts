/** The feed (contract 15.13, 15.19): pictures when they change, lines as they come, positions, laggards, bounds. */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { initialised } from '../interop/acp-peers.ts'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { type Following, logIn } from './console-harness.ts'

const NOISE = config(pool('stderr-noise', { id: 'noisy' }))

const MIB = 1024 * 1024
const LARGE = { max_input_buffer: 8 * MIB, max_output_queue: 32 * MIB }
const STORE = { store: { path: 'store.db' } }

test('15.19 a picture comes at once, and again when it has changed; lines go on behind their position', async () => {
  verifies('15.19-feed')
  const bus = await startBus({ config: NOISE, doors: ['http', 'unix'] })
  const visitor = await logIn(bus)
  const first = await visitor.follow('overview,logs')
  await first.first('overview', ({ workers }) => workers.length === 1)
  const client = await bus.connect()
  await first.first('overview', ({ totals }) => totals.clients === 1)
  await client.ask({ id: 1, method: 'noise', params: { lines: 1, text: 'before' } })
  await first.first('logs', ({ msg }) => String(msg).includes('before'))
  const { id } = first.events.filter(({ event }) => event === 'logs').at(-1)!
  first.close()
  await client.ask({ id: 2, method: 'noise', params: { lines: 1, text: 'meanwhile' } })
  const second = await visitor.follow('overview,logs', { 'last-event-id': id! })
  await second.first('logs', ({ msg }) => String(msg).includes('meanwhile'))
  expect(second.of('logs').some(({ msg }) => String(msg).includes('before'))).toBe(false)
})

test('15.19 a reader that lags gets no queue: it is told of the gap and given what is now', async () => {
  verifies('15.19-lag')
  const agent = fileURLToPath(new URL('../fixtures/acp/shows-all.mjs', import.meta.url))
  const kept = { sessions: { keep_sec: 600, max_bytes: 256 * MIB } }
  const file = {
    ...config({ id: 'coder', command: process.execPath, args: [agent], instances: 1, ...kept }, LARGE),
    ...STORE,
  }
  const bus = await startBus({ config: file, doors: ['http', 'unix'] })
  const [client] = await initialised(bus, 1)
  const session = await client!.newSession()
  const visitor = await logIn(bus)
  const topic = `session:${session}`
  const [slow, quick] = [await visitor.follow(topic), await visitor.follow(topic)]
  slow.response.pause()
  // More than the system takes for a reader that does not read.
  for (let count = 0; count < 8; count++) await client!.prompt(session, 'x'.repeat(2 * MIB))
  await client!.prompt(session, 'the end')
  await quick.first(topic, ({ params }) => params?.update?.content?.text === 'the end')
  slow.response.resume()
  expect(await slow.first('gap', () => true)).toEqual({ topics: [topic] })
  expect(slow.of(topic).length).toBeLessThan(quick.of(topic).length)
  await client!.prompt(session, 'behind the gap')
  await slow.first(topic, ({ params }) => params?.update?.content?.text === 'behind the gap')
}, 60_000)

test('15.19 sixteen streams of a login, and a stream ends with it', async () => {
  verifies('15.19-bounds')
  const bus = await startBus({ config: config(pool('echo')), doors: ['http'] })
  const visitor = await logIn(bus)
  const streams: Following[] = []
  for (let count = 0; count < 16; count++) streams.push(await visitor.follow('sessions'))
  expect((await visitor.get('events?topics=sessions')).status).toBe(503)
  streams[0]!.close()
  await eventually('room', async () => {
    const again = await visitor.follow('sessions')
    if (again.response.statusCode === 200) return true
    again.close()
    return undefined
  })
  await visitor.post('logout')
  await eventually('the end of all streams', () => streams.every(({ isOver }) => isOver) || undefined)
})

test('15.13 lines of the log by level, pool and text', async () => {
  verifies('15.13-kept')
  const bus = await startBus({ config: NOISE, doors: ['http', 'unix'] })
  const visitor = await logIn(bus)
  const client = await bus.connect()
  await client.ask({ id: 1, method: 'noise', params: { lines: 50, text: 'many' } })
  await eventually('the last line', async () => (await visitor.get('logs?text=MANY%2049')).json.items[0])
  expect((await visitor.get('logs?pool=noisy&text=many&limit=100')).json.items).toHaveLength(50)
  expect((await visitor.get('logs?pool=none')).json.items).toEqual([])
  expect((await visitor.get('logs?level=error')).json.items).toEqual([])
})
