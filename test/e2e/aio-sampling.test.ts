/** MCP servers that ask for a model during a call, answered by an ACP pool (contract 13.16). */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, launch, testWorkspace } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { eventually } from '../support/waiting.ts'
import { Workspace } from '../support/workspace.ts'
import { callsOf } from './aio-harness.ts'

const here = (name: string): string => fileURLToPath(new URL(`../fixtures/aio/${name}`, import.meta.url))
const everything = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')

const server = (id: string, aio: object, more: object = {}, args: string[] = []) => ({
  id,
  command: process.execPath,
  args: [here('sampling-server.mjs'), ...args],
  aio: { type: 'mcp', ...aio },
  ...more,
})

const workspace = new Workspace()
let bus: Bus
let client: LineClient

beforeAll(async () => {
  const pools = [
    server('shared', { sampling: 'model' }),
    server('isolated', { sampling: 'model' }, { sharing: 'isolated' }),
    server('lease', { sampling: { pool: 'model' } }, { sharing: 'lease' }),
    server('modern', { sampling: 'model' }, {}, ['modern']),
    server('without', {}),
    server('login', { sampling: 'locked' }),
    server('circle', { sampling: 'model', timeout_ms: 4_000 }),
    { id: 'model', command: process.execPath, args: [here('acp-agent.mjs'), 'log=heard-model'], protocol: 'acp' },
    { id: 'locked', command: process.execPath, args: [here('acp-agent.mjs'), 'login'], protocol: 'acp' },
    { id: 'everything', command: process.execPath, args: [everything], aio: { type: 'mcp', sampling: 'model' } },
  ]
  bus = await launch({ config: { pools, aio: { store: { path: 'traces.db' } } } }, workspace)
  client = await bus.connect()
})
afterAll(() => workspace.remove())

let lastId = 0
const text = (role: string, said: string) => ({ role, content: { type: 'text', text: said } })
const message = (agent: string, args: object): Record<string, unknown> => ({
  jsonrpc: '2.0',
  id: ++lastId,
  method: `${agent}::tools.call`,
  params: { tool: 't', args },
})

const ask = (agent: string, args: object = {}): Promise<Message> => client.ask(message(agent, args))

async function heardIn(answer: Promise<Message>): Promise<Message[]> {
  const { result, error } = await answer
  if (error !== undefined) throw new Error(JSON.stringify(error))
  return result.structuredContent.heard.map((each: Message) => (each['result'] === undefined ? each : each['result']))
}

async function allAnswered(count: number): Promise<ReadonlyMap<unknown, Message>> {
  const answered = new Map<unknown, Message>()
  while (answered.size < count) {
    const said = await client.next()
    if (said.method === undefined) answered.set(said.id, said)
  }
  return answered
}

const prompts = (): Message[] =>
  bus.workspace
    .lines('heard-model')
    .map((line) => JSON.parse(line))
    .filter(({ method }) => method === 'session/prompt')

const ANSWER = {
  role: 'assistant',
  content: { type: 'text', text: 'hello there ' },
  model: 'model',
  stopReason: 'endTurn',
}

describe.each(['shared', 'isolated', 'lease', 'modern'])('a %s server', (agent) => {
  test('is told that there is sampling, and answered by a turn', async () => {
    verifies('13.16-served')
    const { result, trace_id, call_id } = await ask(agent)
    expect(result.structuredContent.offered).toEqual({ sampling: {} })
    const [heard] = result.structuredContent.heard
    expect(heard.result ?? heard).toEqual(ANSWER)
    const calls = await callsOf(client, trace_id)
    const child = calls.find(({ parent_id }) => parent_id === call_id)
    expect(child).toMatchObject({ agent: 'model', method: 'sampling/createMessage', protocol: 'acp', status: 'ok' })
    expect(child).toMatchObject({ caller: { kind: 'agent', agent }, output: ANSWER, worker: expect.any(String) })
  })

  test('may ask eight times a call', async () => {
    verifies('13.16-bounds')
    expect(await heardIn(ask(agent, { times: 8 }))).toEqual(Array.from({ length: 8 }, () => ANSWER))
    if (agent === 'modern') {
      const { error } = await ask(agent, { times: 9 })
      expect(error).toMatchObject({ code: -32603, data: { reason: 'sampling_limit' } })
    } else {
      const [, ...rest] = (await heardIn(ask(agent, { times: 9 }))).reverse()
      expect(rest).toHaveLength(8)
    }
  })
})

test('the ninth question is sampling_limit', async () => {
  verifies('13.16-bounds')
  const heard = await heardIn(ask('shared', { times: 9 }))
  expect(heard[8]).toMatchObject({ error: { code: -32603, data: { reason: 'sampling_limit', limit: 8 } } })
})

test('questions that are wrong count as well, and what is beyond the limit stands in the trace once', async () => {
  verifies('13.16-bounds')
  const { result, trace_id } = await ask('shared', { times: 12, params: { maxTokens: 1 } })
  const codes = result.structuredContent.heard.map(({ error }: Message) => error.code)
  expect(codes).toEqual([...Array.from({ length: 8 }, () => -32602), ...Array.from({ length: 4 }, () => -32603)])
  expect(await callsOf(client, trace_id)).toHaveLength(1 + 9)
})

test('a model that calls the server that asks it comes to an end, and both serve the next', async () => {
  verifies('13.16-bounds')
  const params = { messages: [text('user', 'again circle')], maxTokens: 1 }
  const { result, error } = await ask('circle', { params })
  expect(result ?? error).toBeDefined()
  await bus.statusWhere('nothing is owed', ({ outstanding }) => outstanding === 0)
  expect(await heardIn(ask('circle'))).toEqual([ANSWER])
})

test('questions at once are all answered, four at a time', async () => {
  verifies('13.16-bounds')
  expect(await heardIn(ask('shared', { times: 8, at_once: true }))).toEqual(Array.from({ length: 8 }, () => ANSWER))
})

test('several calls at one worker may ask at once', async () => {
  verifies('13.16-served')
  const calls = [1, 2, 3].map(() => message('shared', { times: 2 }))
  for (const each of calls) client.send(each)
  const answered = await allAnswered(3)
  for (const { id } of calls)
    expect(answered.get(id)!.result.structuredContent.heard).toEqual([
      { jsonrpc: '2.0', result: ANSWER },
      { jsonrpc: '2.0', result: ANSWER },
    ])
})

test('a call that ends takes no question of another one along', async () => {
  verifies('13.16-served')
  const asks = message('shared', { times: 2 })
  // A question without an address is put to the newest call: this one, which ends right behind the second question.
  const ends = message('shared', { until_asked: true })
  for (const each of [asks, ends]) client.send(each)
  const answered = await allAnswered(2)
  expect(answered.get(asks['id'])!.result.structuredContent.heard).toEqual([
    { jsonrpc: '2.0', result: ANSWER },
    { jsonrpc: '2.0', result: ANSWER },
  ])
  expect(answered.get(ends['id'])!.result.structuredContent.heard).toEqual([])
})

test('system prompt and messages come in order, with what the server wishes, and the agent may do nothing', async () => {
  verifies('13.16-served')
  const params = {
    systemPrompt: 'say nothing else',
    messages: [text('user', 'one'), text('assistant', 'two'), text('user', 'three')],
    maxTokens: 7,
    temperature: 0.5,
    stopSequences: ['X'],
  }
  await heardIn(ask('shared', { params }))
  const { params: prompt } = prompts().at(-1)!
  expect(prompt.prompt.map((block: { text: string }) => block.text)).toEqual([
    'say nothing else',
    'user: one',
    'assistant: two',
    'user: three',
  ])
  const wishes = { maxTokens: 7, temperature: 0.5, stopSequences: ['X'] }
  expect(prompt._meta).toMatchObject({ 'stdio-bus/sampling': wishes, traceparent: expect.any(String) })
  const permission = { messages: [text('user', 'permission read')], maxTokens: 1 }
  const { result, trace_id } = await ask('shared', { params: permission })
  expect(result.structuredContent.heard[0].result.content.text).toContain('id-reject_once')
  const calls = await callsOf(client, trace_id)
  expect(calls.map(({ method, parent_id }) => [method, parent_id])).toEqual([
    ['tools.call', null],
    ['sampling/createMessage', calls[0]!['id']],
    ['session/request_permission', calls[1]!['id']],
  ])
})

const user = (content: unknown) => [{ role: 'user', content }]
test.each([
  ['no messages', { maxTokens: 1 }],
  ['no message', { messages: [], maxTokens: 1 }],
  ['no maxTokens', { messages: [text('user', 'say x')] }],
  ['a strange role', { messages: [text('system', 'say x')], maxTokens: 1 }],
  ['strange content', { messages: user({ type: 'hologram' }), maxTokens: 1 }],
  [
    'an image for an agent that sees nothing',
    { messages: user({ type: 'image', data: 'aW1n', mimeType: 'image/png' }), maxTokens: 1 },
  ],
  [
    'an address in the place of an image',
    { messages: user({ type: 'image', data: 'https://example.test/', mimeType: 'image/png' }), maxTokens: 1 },
  ],
  ['a message that says nothing', { messages: user([]), maxTokens: 1 }],
  ['a temperature in words', { messages: [text('user', 'say x')], maxTokens: 1, temperature: 'warm' }],
  ['stop sequences in numbers', { messages: [text('user', 'say x')], maxTokens: 1, stopSequences: [1] }],
  ['tools', { messages: [text('user', 'say x')], maxTokens: 1, tools: [] }],
  ['a system prompt in numbers', { messages: [text('user', 'say x')], maxTokens: 1, systemPrompt: 5 }],
])('%s is -32602', async (_what, params) => {
  verifies('13.16-bounds')
  expect(await heardIn(ask('shared', { params }))).toMatchObject([{ error: { code: -32602 } }])
})

test('a question longer than a mebibyte is refused', async () => {
  verifies('13.16-bounds')
  const said = 'x'.repeat(900_000)
  const params = { messages: [text('user', said), text('user', said)], maxTokens: 1 }
  const model = { id: 'model', command: process.execPath, args: [here('acp-agent.mjs')], protocol: 'acp' }
  const pools = [server('big', { sampling: 'model' }), model]
  const big = await launch({ config: { pools, limits: { max_input_buffer: 8_000_000 } } }, testWorkspace())
  const own = await big.connect()
  const [heard] = await heardIn(own.ask(message('big', { params })))
  expect(heard).toMatchObject({ error: { code: -32602, data: { reason: 'payload_too_large' } } })
})

test.each(['roots/list', 'elicitation/create', 'no/such'])('%s is refused at once', async (method) => {
  verifies('13.16-others')
  expect(await heardIn(ask('shared', { method, params: {} }))).toMatchObject([{ error: { code: -32601 } }])
  const { error } = await ask('modern', { method, params: {} })
  expect(error).toMatchObject({ code: -32603, data: { reason: 'agent_invalid_response' } })
})

test('without the key nothing is offered, and the question is refused', async () => {
  verifies('13.16-others')
  const { result } = await ask('without')
  expect(result.structuredContent.offered).toEqual({})
  expect(result.structuredContent.heard).toMatchObject([{ error: { code: -32601 } }])
})

test('an agent that wants a login is told to the server', async () => {
  const [heard] = await heardIn(ask('login'))
  expect(heard).toMatchObject({ error: { code: -32603, data: { reason: 'agent_auth_required' } } })
})

test('a call that is cancelled stops the model', async () => {
  const own = await bus.connect()
  const before = prompts().length
  const params = { messages: [text('user', 'wait')], maxTokens: 1 }
  const call = message('shared', { params })
  own.send(call)
  await eventually('the turn to begin', () => prompts().length > before || undefined)
  own.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: call['id'] } })
  const cancels = () => bus.workspace.lines('heard-model').filter((line) => line.includes('"session/cancel"'))
  await eventually('a cancel', () => cancels().length > 0 || undefined)
  own.close()
})

test('a client of the pool itself that offers no sampling is not asked', async () => {
  const own = await bus.connect()
  const pool = { jsonrpc: '2.0', pool: 'shared' }
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
  await own.ask({ id: 1, method: 'initialize', params, ...pool })
  own.send({ method: 'notifications/initialized', ...pool })
  const { result } = await own.ask({ id: 2, method: 'tools/call', params: { name: 't', arguments: {} }, ...pool })
  expect(result.structuredContent.heard).toMatchObject([{ error: {} }])
  expect(own.lines.some((line) => line.includes('sampling/createMessage'))).toBe(false)
  own.close()
})

test('the public test server gets its model', async () => {
  verifies('13.16-served')
  const { result: help } = await client.ask({ jsonrpc: '2.0', id: ++lastId, method: 'everything::help' })
  const tool = help.tools.map(({ name }: { name: string }) => name).find((name: string) => /sampl/i.test(name))
  const params = { tool, args: { prompt: 'say from the model', maxTokens: 10 } }
  const { result } = await client.ask({ jsonrpc: '2.0', id: ++lastId, method: 'everything::tools.call', params })
  expect(JSON.stringify(result.content)).toContain('model')
})
