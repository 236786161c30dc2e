/** MCP over HTTP in the handshake era: which stream a message takes, what can be had again, and what waits. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { openSession } from '../support/mcp-http.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { eventually, sleep } from '../support/waiting.ts'
import { call, DONE, heard, hears, mcpPool } from './mcp-peers.ts'

const PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}'
const LOG = { method: 'notifications/message', params: { level: 'error', data: 'x' } }
const CHANGED = { method: 'notifications/tools/list_changed' }
const question = (id: unknown) => ({ id, method: 'sampling/createMessage', params: { messages: [] } })
const PING = { jsonrpc: '2.0', id: 9, method: 'ping' }

describe('a worker for each session', () => {
  const pool = mcpPool('puppet', { sharing: 'isolated', instances: 0 })
  const bus = sharedBus({ config: config(pool), doors: ['http'] })
  const open = (version?: string) => openSession(bus().url('/mcp'), version === undefined ? {} : { version })

  test('progress goes to the stream of its request, which its answer ends', async () => {
    verifies('10.9-progress', '10.8-stream', '10.10-begin')
    const session = await open()
    const get = await session.listen()
    const [one, other] = await Promise.all(
      [1, 2].map((n) => session.post(call(n, [PROGRESS, PROGRESS, DONE], { progressToken: `t${n}` }))),
    )
    await Promise.all([one!.ended(), other!.ended()])
    for (const [n, each] of [one!, other!].entries()) {
      expect(each.events[0]).toMatchObject({ data: '' })
      expect(each.messages.map(({ params, id }) => params?.progressToken ?? id)).toEqual([
        `t${n + 1}`,
        `t${n + 1}`,
        n + 1,
      ])
      expect(new Set(each.events.map(({ id }) => id)).size).toBe(4)
    }
    expect(get.messages).toEqual([])
  })

  test.each([
    ['2025-11-25', true],
    ['2025-06-18', false],
    ['2025-03-26', false],
    ['2024-11-05', false],
  ])('%s: a stream begins with an empty event: %s', async (version, begins) => {
    verifies('10.10-begin')
    const session = await open(version)
    const streamed = await session.post(call(1, [PROGRESS, DONE], { progressToken: 1 }))
    await streamed.ended()
    expect(streamed.events.some(({ data }) => data === '')).toBe(begins)
    expect(streamed.messages).toHaveLength(2)
    expect(streamed.events.every(({ id }) => id !== undefined)).toBe(true)
  })

  test('other messages: the only POST, else the GET stream, else the newest POST', async () => {
    verifies('10.9-question')
    const session = await open()
    const only = await session.post(call(1, [question('q1')]))
    expect(await only.next()).toMatchObject({ id: 'q1', method: 'sampling/createMessage' })
    expect((await session.ask({ jsonrpc: '2.0', id: 'q1', result: { text: 'yes' } })).status).toBe(202)
    await hears(bus(), 'the answer to its question', ({ id, result }) => id === 'q1' && result?.text === 'yes')
    const newest = await session.post(call(2, [LOG]))
    expect(await newest.next()).toMatchObject(LOG)
    const get = await session.listen()
    await session.ask(call(3, [LOG, DONE]))
    expect(await get.next()).toMatchObject(LOG)
    expect([only.messages.length, newest.messages.length]).toEqual([1, 1])
  })

  test('list changes and updates go to the GET stream, and wait for it', async () => {
    verifies('10.9-changes', '10.9-held')
    const session = await open()
    const answer = await session.ask(
      call(1, [CHANGED, { method: 'notifications/resources/updated', params: { uri: 'a' } }, DONE]),
    )
    expect(answer.json.id).toBe(1)
    const first = await session.listen()
    expect(await first.next()).toMatchObject(CHANGED)
    expect(await first.next()).toMatchObject({ params: { uri: 'a' } })
    const second = await session.listen()
    await first.ended()
    await session.ask(call(2, [CHANGED, DONE]))
    expect(await second.next()).toMatchObject(CHANGED)
    expect(first.messages).toHaveLength(2)
  })

  test('a question that no stream can take waits for one, then the worker is told', { timeout: 30_000 }, async () => {
    verifies('10.9-held')
    const session = await open()
    const lost = await session.post(call(1, [PROGRESS], { progressToken: 1 }))
    await lost.next()
    lost.drop()
    await sleep(100)
    const asked = (id: string) =>
      session.ask({
        jsonrpc: '2.0',
        method: 'x',
        params: { say: [JSON.stringify({ jsonrpc: '2.0', ...question(id) })] },
      })
    expect((await asked('soon')).status).toBe(202)
    await sleep(200)
    const get = await session.listen()
    expect(await get.next()).toMatchObject({ id: 'soon' })
    get.drop()
    await sleep(100)
    await asked('never')
    const told = await eventually(
      'the worker to be told',
      () => heard(bus()).find(({ id, error }) => id === 'never' && error),
      15_000,
    )
    expect(told.error).toMatchObject({ code: -32603, data: { reason: 'no_stream' } })
  })

  test('a lost connection cancels nothing: the stream goes on with exactly what was missed', async () => {
    verifies('10.10-resume')
    const session = await open()
    const first = await session.post(call(1, [PROGRESS, PROGRESS], { progressToken: 7 }))
    await first.next()
    await first.next()
    const seen = first.events[1]!.id!
    first.drop()
    await session.ask({
      jsonrpc: '2.0',
      method: 'x',
      params: { say: [PROGRESS.replace('$TOKEN', '7').replace('1}}', '2}}')] },
    })
    const again = await session.resume(seen)
    expect((await again.next()).params.progress).toBe(1)
    expect((await again.next()).params.progress).toBe(2)
    again.drop()
    await session.ask({
      jsonrpc: '2.0',
      method: 'x',
      params: { say: ['{"jsonrpc":"2.0","id":1,"result":{"done":true}}'] },
    })
    const last = await session.resume(again.lastId!)
    expect(await last.next()).toEqual({ jsonrpc: '2.0', id: 1, result: { done: true } })
    await last.ended()
    expect(last.messages).toHaveLength(1)
    expect((await session.resume(last.lastId!)).status).toBe(204)
    const whole = await session.resume(first.events[0]!.id!)
    await whole.ended()
    expect(whole.messages).toHaveLength(4)
    expect(heard(bus()).some(({ method }) => method === 'notifications/cancelled')).toBe(false)
  })

  test('the GET stream goes on too, and a reader that comes back in time replaces its own old connection', async () => {
    verifies('10.10-resume')
    const session = await open()
    const first = await session.listen()
    await session.ask(call(1, [CHANGED, CHANGED, DONE]))
    await first.next()
    const again = await session.resume(first.events[1]!.id!)
    await first.ended()
    expect(await again.next()).toMatchObject(CHANGED)
    await session.ask(call(2, [CHANGED, DONE]))
    expect(await again.next()).toMatchObject(CHANGED)
    expect(again.messages).toHaveLength(2)
  })

  test('a reader that comes for a POST before that is a stream gives way to it', async () => {
    verifies('10.10-resume')
    const session = await open()
    const first = await session.post(call(1, [PROGRESS, DONE], { progressToken: 1 }))
    await first.ended()
    const [tag, number] = first.lastId!.split('-')
    const asked = session.post(call(2, [], { mark: 'early' }))
    await hears(bus(), 'the call', ({ params }) => params?._meta?.mark === 'early')
    const early = await session.resume(`${tag}-${Number(number) + 1}-0`)
    const posted = await asked
    await early.ended()
    expect([early.messages, posted.isEnded]).toEqual([[], false])
    await session.delete()
    await posted.ended()
  })

  test('events of another session, unknown ones and nonsense are refused', async () => {
    verifies('10.10-unknown')
    const [one, other] = await Promise.all([open(), open()])
    const streamed = await one.post(call(1, [PROGRESS, DONE], { progressToken: 1 }))
    await streamed.ended()
    const id = streamed.lastId!
    expect((await one.resume(id)).status).toBe(204)
    for (const [session, event] of [
      [other, id],
      [one, `${id}0`],
      [one, ''],
      [one, '1'],
      [one, 'x'.repeat(5_000)],
    ] as const) {
      const refused = await session.resume(event)
      expect([refused.status, (await refused.json()).error.data.reason]).toEqual([400, 'unknown_event'])
    }
  })

  test('what is not kept any more is said to be gone', async () => {
    verifies('10.10-unknown')
    const session = await open()
    const say = Array.from({ length: 1_001 }, () => PROGRESS)
    const streamed = await session.post(call(1, [...say, DONE], { progressToken: 1 }))
    await streamed.ended()
    expect(streamed.messages).toHaveLength(1_002)
    expect((await session.resume(streamed.events[0]!.id!)).status).toBe(400)
    const rest = await session.resume(streamed.events[2]!.id!)
    await rest.ended()
    expect(rest.messages).toHaveLength(1_000)
  })
})

describe('arrays', () => {
  const bus = sharedBus({ config: config(mcpPool('puppet')), doors: ['http'] })
  const ask = (id: unknown, k: number) => ({ jsonrpc: '2.0', id, method: 'x', params: { k } })

  test('where 2025-03-26 was agreed the answers come as one array', async () => {
    verifies('10.12-arrays')
    const session = await openSession(bus().url('/mcp'), { version: '2025-03-26' })
    const note = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' }
    const answer = await session.ask([ask(1, 1), note, ask('1', 2), ask(1, 3)])
    expect(answer.headers['content-type']).toBe('application/json')
    const found = answer.json.map(({ id, result }: { id: unknown; result: { echo: { k: number } } }) => [
      id,
      result.echo.k,
    ])
    expect(found.sort()).toEqual(
      [
        [1, 1],
        [1, 3],
        ['1', 2],
      ].sort(),
    )
    expect(await session.ask([note, { jsonrpc: '2.0', id: 5, result: {} }])).toMatchObject({ status: 202, text: '' })
    const streamed = await session.post([ask(2, 1), call(3, [PROGRESS, DONE], { progressToken: 1 })])
    await streamed.ended()
    expect(streamed.messages.at(-1)).toHaveLength(2)
    expect(streamed.messages).toHaveLength(2)
  })

  test('arrays that are empty, too long, unsound or hold an initialize are refused as a whole', async () => {
    verifies('10.12-arrays')
    const session = await openSession(bus().url('/mcp'), { version: '2025-03-26' })
    const refused = async (body: unknown) => {
      const { status, json } = await session.ask(body)
      return [status, json.error.data.reason]
    }
    const before = heard(bus()).length
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }
    for (const body of ['[]', '[1]', '[[]]', [ask(1, 1), {}], [ask(1, 1), initialize]])
      expect(await refused(body)).toEqual([400, 'bad_envelope'])
    expect(await refused(Array.from({ length: 1_025 }, (_, k) => ask(k, k)))).toEqual([400, 'bad_envelope'])
    expect(heard(bus())).toHaveLength(before)
    expect((await session.ask(Array.from({ length: 1_024 }, (_, k) => ask(k, k)))).json).toHaveLength(1_024)
    const other = await openSession(bus().url('/mcp'), { version: '2025-06-18' })
    expect((await other.ask([PING])).status).toBe(400)
  })

  test('a request of an array that is cancelled is not waited for', async () => {
    const session = await openSession(bus().url('/mcp'), { version: '2025-03-26' })
    const sent = session.ask([ask(1, 1), call(2, [])])
    await hears(bus(), 'the call', ({ params }) => params?.say?.length === 0)
    await session.ask({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } })
    expect((await sent).json).toMatchObject([{ id: 1 }])
  })
})

describe('flow and ends', () => {
  test('a reader that is stuck is reset and its session gone; others do not notice', { timeout: 90_000 }, async () => {
    verifies('10.16-flow')
    const limits = { max_input_buffer: 64 * 1024 * 1024, max_output_queue: 1024 * 1024, backpressure_timeout_sec: 1 }
    const bus = await startBus({ config: config(mcpPool('puppet'), limits), doors: ['http'] })
    const [stuck, other] = await Promise.all([1, 2].map(() => openSession(bus.url('/mcp'))))
    const large = PROGRESS.replace('1}}', `1,"message":"${'x'.repeat(1024 * 1024)}"}}`)
    const streamed = await stuck!.post(
      call(
        1,
        Array.from({ length: 24 }, () => large),
        { progressToken: 1 },
      ),
    )
    streamed.pause()
    await bus.statusWhere('one client is gone', ({ clients }) => clients === 1, 60_000)
    expect((await stuck!.ask(PING)).status).toBe(404)
    expect((await other!.ask({ ...PING, method: 'x', params: { k: 1 } })).json.result.echo).toEqual({ k: 1 })
  })

  test('a silent stream carries comments', { timeout: 30_000 }, async () => {
    verifies('10.16-flow')
    const bus = await startBus({ config: config(mcpPool('puppet')), doors: ['http'] })
    const session = await openSession(bus.url('/mcp'))
    const get = await session.listen()
    await eventually('a comment', () => get.comments > 0, 20_000)
  })

  test('at shutdown answers come, then streams end cleanly', async () => {
    verifies('10.17-end')
    const bus = await startBus({ config: config(mcpPool('puppet'), { drain_timeout_sec: 2 }), doors: ['http'] })
    const session = await openSession(bus.url('/mcp'))
    const get = await session.listen()
    const slow = await session.post(call(1, [PROGRESS], { progressToken: 1 }))
    await slow.next()
    bus.signal('SIGTERM')
    await eventually('new POSTs to be refused', async () => (await session.ask(PING)).status === 503)
    expect([get.isEnded, slow.isEnded]).toEqual([false, false])
    await Promise.all([get.ended(), slow.ended()])
    expect(slow.messages.at(-1)).toMatchObject({ id: 1, error: { data: { reason: 'shutting_down' } } })
    expect((await bus.exit).code).toBe(0)
  })
})
