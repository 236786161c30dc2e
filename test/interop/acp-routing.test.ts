/** Rows of the Agent Client Protocol that need an agent which says exactly what a test wants; see `acp-sdk.test.ts` for the rest. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { dropped, expectRefusal, heard, hears, mcpPool, unasked } from './mcp-peers.ts'

const puppet = (more = {}) => config(mcpPool('puppet', { protocol: 'acp', ...more }))
const WELCOME = { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { close: {} } } }
const DONE = { id: '$ID', result: {} }

/** A request that makes the puppet write these lines. */
function ask(id: unknown, method: string, say: readonly object[], params: object = {}): Message {
  const lines = say.map((line) => JSON.stringify({ jsonrpc: '2.0', ...line }).replaceAll('"$ID"', '$ID'))
  return { jsonrpc: '2.0', id, method, params: { ...params, say: lines } }
}

async function joined(bus: Bus, count: number): Promise<LineClient[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => bus.connect()))
  const hello = ask('hello', 'initialize', [{ id: '$ID', result: WELCOME }], { protocolVersion: 1 })
  await Promise.all(clients.map((client) => client.ask(hello)))
  return clients
}

function newSession(client: LineClient, sessionId: string, params: object = {}): Promise<Message> {
  return client.ask(ask(`new ${sessionId}`, 'session/new', [{ id: '$ID', result: { sessionId } }], params))
}

describe('messages without a session', () => {
  const bus = sharedBus({ config: puppet() })

  test.each(['auth/status_update', '_auth/status_update'])('%s goes to all clients of the worker', async (method) => {
    verifies('A12-status')
    // A bus of its own: what an agent says of this kind is remembered for those who come later.
    const own = await startBus({ config: puppet() })
    const [one, other] = await joined(own, 2)
    const status = { method, params: { loggedIn: true } }
    await one!.ask(ask(1, 'session/list', [status, DONE]))
    expect(await other!.next()).toMatchObject(status)
    expect(unasked(one!)).toMatchObject([status])
  })

  test('an unknown one goes to the only client with requests in flight, with two it is dropped and counted', async () => {
    verifies('A13-unknown')
    const [one, other] = await joined(bus(), 2)
    const note = { method: '_vendor/note', params: { n: 1 } }
    await one!.ask(ask(1, '_vendor/go', [note, DONE]))
    expect(unasked(one!)).toMatchObject([note])
    const before = await dropped(bus(), 'unattributable')
    other!.send(ask('held', '_vendor/go', []))
    await hears(bus(), 'the request', ({ id }) => id === 'held')
    await one!.ask(ask(2, '_vendor/go', [note, { id: 'q', method: '_vendor/ask' }, DONE]))
    expectRefusal(await hears(bus(), 'the refusal', ({ id, error }) => id === 'q' && error !== undefined), 'no_client')
    expect([unasked(one!).length, unasked(other!).length]).toEqual([1, 0])
    expect(await dropped(bus(), 'unattributable')).toBe(before + 1)
    other!.close()
  })

  test('mcp/message goes to the client whose session/new offered that server', async () => {
    verifies('A10-mcp')
    const [owner, other] = await joined(bus(), 2)
    await newSession(owner!, 's-mcp', { mcpServers: [{ type: 'acp', id: 'tools-1', name: 'tools' }] })
    const message = { id: 'm', method: 'mcp/message', params: { serverId: 'tools-1', method: 'tools/list' } }
    await other!.ask(ask(1, 'session/list', [message, DONE]))
    const asked = await owner!.next()
    expect(asked).toMatchObject({ method: 'mcp/message', params: { serverId: 'tools-1' } })
    owner!.send({ jsonrpc: '2.0', id: asked.id, result: { tools: [] } })
    expect(await hears(bus(), 'the answer', ({ id, result }) => id === 'm' && result !== undefined)).toMatchObject({
      result: { tools: [] },
    })
    expect(unasked(other!)).toEqual([])
  })
})

test.each(['session/load', 'session/resume'])(
  '%s: the session is the client’s once the agent has agreed',
  async (method) => {
    verifies('A6-owner')
    const bus = await startBus({ config: puppet() })
    const [one, other] = await joined(bus, 2)
    const prompt = (id: number) => ask(id, 'session/prompt', [DONE], { sessionId: 'kept' })
    const refusal = { id: '$ID', error: { code: -32002, message: 'unknown' } }
    expect((await one!.ask(ask(1, method, [refusal], { sessionId: 'kept' }))).error.message).toBe('unknown')
    expect((await other!.ask(prompt(1))).result).toEqual({})
    await one!.ask(ask(2, method, [DONE], { sessionId: 'kept' }))
    expectRefusal(await other!.ask(prompt(2)), 'session_not_owned')
    const update = { method: 'session/update', params: { sessionId: 'kept', update: {} } }
    await other!.ask(ask(3, 'session/list', [update, { id: '$ID', result: { sessions: [] } }]))
    expect(await one!.next()).toMatchObject(update)
    expect(unasked(other!)).toEqual([])
  },
)

test.each(['session/close', 'session/delete'])('%s: the session ends when the agent has agreed', async (method) => {
  verifies('A8-ends')
  const bus = await startBus({ config: puppet() })
  const [one, other] = await joined(bus, 2)
  await newSession(one!, 's')
  const prompt = (id: number) => ask(id, 'session/prompt', [DONE], { sessionId: 's' })
  await one!.ask(ask(1, method, [{ id: '$ID', error: { code: -32603, message: 'busy' } }], { sessionId: 's' }))
  expectRefusal(await other!.ask(prompt(1)), 'session_not_owned')
  await one!.ask(ask(2, method, [DONE], { sessionId: 's' }))
  expect((await bus.status()).sessions).toBe(0)
  expect((await other!.ask(prompt(2))).result).toEqual({})
})

test('a cancel of the agent reaches the client that was asked, with the id it was asked with', async () => {
  verifies('A11-agent')
  const bus = await startBus({ config: puppet() })
  const [one, other] = await joined(bus, 2)
  await newSession(one!, 's')
  const question = { id: 1.5, method: 'fs/read_text_file', params: { sessionId: 's', path: '/a' } }
  const cancel = { method: '$/cancel_request', params: { requestId: 1.5 } }
  await other!.ask(ask(1, 'session/list', [question, cancel, { id: '$ID', result: { sessions: [] } }]))
  const [asked, cancelled] = await one!.take(2)
  expect(cancelled).toMatchObject({ method: '$/cancel_request', params: { requestId: asked.id } })
  one!.send({ jsonrpc: '2.0', id: asked.id, result: { content: 'a' } })
  await hears(bus, 'the answer', ({ id, result }) => id === 1.5 && result?.content === 'a')
  expect(unasked(other!)).toEqual([])
})

test('a cancel for the request of another client is dropped and counted', async () => {
  verifies('A11-foreign')
  const bus = await startBus({ config: puppet() })
  const [one, other] = await joined(bus, 2)
  one!.send(ask('mine', '_vendor/go', []))
  await hears(bus, 'the request', ({ id }) => id === 'mine')
  const before = await dropped(bus, 'cancel_for_nothing')
  other!.send({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: 'mine' } })
  await other!.ask(ask(1, '_vendor/go', [DONE]))
  expect(await dropped(bus, 'cancel_for_nothing')).toBe(before + 1)
  expect(heard(bus).filter(({ method }) => method === '$/cancel_request')).toEqual([])
})

test('questions of a client that goes are answered: elicitations with cancel, others with an error', async () => {
  verifies('A14-questions')
  const bus = await startBus({ config: puppet() })
  const [client] = await joined(bus, 1)
  await newSession(client!, 's')
  const questions = ['elicitation/create', 'session/request_permission', 'fs/read_text_file', '_vendor/ask'].map(
    (method) => ({ id: `q ${method}`, method, params: { sessionId: 's' } }),
  )
  client!.send(ask('turn', 'session/prompt', questions, { sessionId: 's' }))
  await client!.take(questions.length)
  client!.close()
  const answers = await Promise.all(
    questions.map((question) =>
      hears(bus, question.id, ({ id, method }) => id === question.id && method === undefined),
    ),
  )
  expect(answers.map(({ result, error }) => result ?? error.data.reason)).toEqual([
    { action: 'cancel' },
    { outcome: { outcome: 'cancelled' } },
    'client_gone',
    'client_gone',
  ])
})

test('a session that is announced to a client that has gone is closed', async () => {
  verifies('A14-late')
  const bus = await startBus({ config: puppet() })
  const [gone, other] = await joined(bus, 2)
  gone!.send(ask('late', 'session/new', []))
  await hears(bus, 'the request', ({ id }) => id === 'late')
  gone!.close()
  await bus.statusWhere('it has gone', ({ clients }) => clients === 1)
  other!.send(ask(1, 'session/list', [{ id: 'late', result: { sessionId: 's-late' } }, DONE]))
  await other!.answerTo(1)
  const close = await hears(bus, 'the close', ({ method }) => method === 'session/close')
  expect(close.params.sessionId).toBe('s-late')
  expect((await bus.status()).sessions).toBe(0)
})

test('a session is recorded only from the answers of the agent: naming one is not having it', async () => {
  verifies('6.6-acp-sessions')
  const bus = await startBus({ config: puppet() })
  const [one, other] = await joined(bus, 2)
  const refusal = { id: '$ID', error: { code: -32002, message: 'unknown' } }
  for (const client of [one!, other!]) {
    const { error } = await client.ask(ask(1, 'session/prompt', [refusal], { sessionId: 'ghost' }))
    expect(error).toEqual({ code: -32002, message: 'unknown' })
  }
  expect((await bus.status()).sessions).toBe(0)
  await newSession(one!, 'ghost')
  expect((await bus.status()).sessions).toBe(1)
  expectRefusal(await other!.ask(ask(2, 'session/prompt', [DONE], { sessionId: 'ghost' })), 'session_not_owned')
  expect(heard(bus).filter(({ id, params }) => id === 2 && params?.sessionId === 'ghost')).toEqual([])
})
