/** Batches of MCP 2025-03-26 (spec M25): split for the worker, answered in one array; in no other revision. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import type { Bus } from '../support/bus.ts'
import { startBus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { call, DONE, expectRefusal, heard, hears, mcpPool, settled, shakeHands, unasked } from './mcp-peers.ts'

const REVISION = '2025-03-26'
const puppet = (more = {}) => config(mcpPool('puppet', { protocol: 'mcp', ...more }))
const ping = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'ping' })
const byId = (answers: Message[]) => new Map(answers.map((answer) => [answer.id, answer]))

async function batching(bus: Bus): Promise<LineClient> {
  const client = await bus.connect()
  expect((await shakeHands(client, 0, REVISION)).protocolVersion).toBe(REVISION)
  return client
}

describe.each(['shared', 'isolated', 'lease'])('%s', (sharing) => {
  const bus = sharedBus({ config: puppet({ sharing, instances: sharing === 'lease' ? 1 : 2 }) })

  test('a batch reaches the worker as single messages and is answered in one array, whatever answers', async () => {
    verifies('M25-split')
    const client = await batching(bus())
    const note = { jsonrpc: '2.0', method: 'notifications/of/its/own' }
    client.send([call(1, undefined), ping('p'), note, call('1', [DONE])])
    const answers: Message[] = await client.next()
    expect(answers).toHaveLength(3)
    expect(byId(answers).get(1).result.echo.name).toBe('tool')
    expect(byId(answers).get('1').result).toEqual({ content: [] })
    expect(byId(answers).get('p').result).toBeDefined()
    await hears(bus(), 'the notification', ({ method }) => method === note.method)
    expect(heard(bus()).some(Array.isArray)).toBe(false)
    client.close()
  })

  test('two clients with the same ids get each their own array', async () => {
    const clients = [await batching(bus()), await batching(bus())]
    for (const [n, client] of clients.entries())
      client.send([1, 2, 3].map((id) => ({ ...call(id, undefined), params: { name: 'tool', n } })))
    for (const [n, client] of clients.entries()) {
      const answers: Message[] = await client.next()
      expect(answers.map(({ id }) => id).sort()).toEqual([1, 2, 3])
      expect(answers.every(({ result }) => result.echo.n === n)).toBe(true)
      client.close()
    }
  })
})

describe('answers that come late, or never', () => {
  const bus = sharedBus({ config: puppet() })

  test('progress and answers to single requests do not wait for the array', async () => {
    const client = await batching(bus())
    const progress = { method: 'notifications/progress', params: { progressToken: 't', progress: 1 } }
    client.send([call('slow', [progress], { progressToken: 't' }), ping('quick')])
    expect(await client.next()).toMatchObject(progress)
    expect((await client.ask(call('single', [DONE]))).result).toEqual({ content: [] })
    client.send(call('last', ['{"jsonrpc":"2.0","id":"slow","result":{}}', DONE]))
    const answers: Message[] = await client.next()
    expect(answers.map(({ id }) => id)).toEqual(['quick', 'slow'])
  })

  test('what is cancelled is owed no answer: the array comes without it', async () => {
    verifies('M25-cancelled')
    const client = await batching(bus())
    client.send([call('never', []), ping('quick')])
    await hears(bus(), 'the call', ({ id }) => id === 'never')
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'never' } })
    expect(await client.next()).toEqual([{ jsonrpc: '2.0', id: 'quick', result: {} }])
  })

  test('the same id twice in an array is answered twice', async () => {
    const client = await batching(bus())
    client.send([call(7, undefined), call(7, undefined)])
    expect((await client.next()).map(({ id }: Message) => id)).toEqual([7, 7])
  })

  test('an array of notifications and answers alone is not answered', async () => {
    verifies('M25-silent')
    const client = await batching(bus())
    client.send([
      { jsonrpc: '2.0', method: 'notifications/one' },
      { jsonrpc: '2.0', id: 9, result: {} },
    ])
    expect(await client.ask(ping(1))).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
    expect(client.lines.map((line) => line[0])).not.toContain('['.charCodeAt(0))
  })

  test('a worker that dies leaves an error for each that it owed, in the same array', async () => {
    verifies('M25-exited')
    const own = await startBus({ config: puppet() })
    const client = await batching(own)
    client.send([call('done', [DONE]), call('owed', [])])
    await hears(own, 'the call', ({ id }) => id === 'owed')
    process.kill((await own.status()).workers[0]!.pid, 'SIGKILL')
    const answers: Message[] = await client.next()
    expect(byId(answers).get('done').result).toEqual({ content: [] })
    expectRefusal(byId(answers).get('owed'), 'worker_exited')
  })

  test('answers that are more than the queue of a client may hold leave in several arrays', async () => {
    verifies('M25-large')
    const own = await startBus({ config: { ...puppet(), limits: { max_output_queue: 4_096 } } })
    const client = await batching(own)
    const long = 'x'.repeat(1_500)
    client.send([1, 2, 3, 4, 5, 6, 7].map((id) => ({ ...call(id, undefined), params: { name: 'tool', long } })))
    const ids: unknown[] = []
    let arrays = 0
    for (; ids.length < 7; arrays++) ids.push(...(await client.next()).map(({ id }: Message) => id))
    expect(ids.sort()).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(arrays).toBeGreaterThan(1)
  })
})

describe('refused', () => {
  const bus = sharedBus({ config: puppet() })
  const sound = { ...call(1, undefined), params: { name: 'refused' } }

  test.each([
    ['an empty array', []],
    ['a message that is none', [sound, 1]],
    ['an array in an array', [[sound]]],
    ['a message without method', [sound, { id: 2 }]],
    ['a session id that is none', [sound, { id: 2, method: 'm', params: { sessionId: 1 } }]],
    ['more messages than an array may hold', Array.from({ length: 1_025 }, () => sound)],
  ])('%s closes the client with bad_envelope; nothing of it reaches a worker', async (_, batch) => {
    verifies('M25-refused')
    const client = await batching(bus())
    client.send(batch)
    expectRefusal((await client.untilClosed()).at(-1), 'bad_envelope')
    await settled(await batching(bus()))
    expect(heard(bus()).filter(({ params }) => params?.name === 'refused')).toEqual([])
  })

  test('an array in another revision', async () => {
    verifies('4.3-dialect-batch', 'M25-refused')
    const client = await bus().connect()
    await shakeHands(client, 0, '2025-06-18')
    client.send([sound])
    expectRefusal((await client.untilClosed()).at(-1), 'bad_envelope')
  })

  test('of more requests than a client may have open, each beyond is refused in the array', async () => {
    const own = await startBus({ config: { ...puppet(), limits: { max_pending_per_client: 3 } } })
    const client = await batching(own)
    client.send([1, 2, 3, 4, 5].map((id) => call(id, [DONE])))
    const answers = byId(await client.next())
    expect([...answers.keys()].sort()).toEqual([1, 2, 3, 4, 5])
    expectRefusal(answers.get(5), 'too_many_pending')
  })
})

test('an array of a worker that agreed on this revision reaches its client as single messages', async () => {
  verifies('M25-worker')
  const bus = await startBus({ config: puppet({ sharing: 'isolated' }) })
  const client = await batching(bus)
  const note = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
  client.send(call(1, [`[${note}, ${note.replace('tools', 'prompts')}]`, `[${DONE}]`]))
  expect((await client.answerTo(1)).result).toEqual({ content: [] })
  expect(unasked(client).map(({ method }) => method)).toEqual([
    'notifications/tools/list_changed',
    'notifications/prompts/list_changed',
  ])
})
