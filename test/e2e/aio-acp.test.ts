/** Agents that speak ACP, called by name through the real daemon (contract 13.14, 13.15). */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, launch } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { eventually } from '../support/waiting.ts'
import { Workspace } from '../support/workspace.ts'
import { callsOf } from './aio-harness.ts'

const program = fileURLToPath(new URL('../fixtures/aio/acp-agent.mjs', import.meta.url))
const sdkAgent = fileURLToPath(new URL('../fixtures/acp/agent.mjs', import.meta.url))

const acp = (id: string, args: string[] = [], aio: object = {}) => ({
  id,
  command: process.execPath,
  args: [program, `log=heard-${id}`, ...args],
  aio: { type: 'acp', ...aio },
})

const workspace = new Workspace()
let bus: Bus
let client: LineClient

beforeAll(async () => {
  const pools = [
    acp('plain', ['plain']),
    acp('rich', ['image', 'audio', 'embedded'], { permissions: 'read' }),
    acp('bold', [], { permissions: 'allow' }),
    acp('short', [], { timeout_ms: 300 }),
    acp('login', ['login']),
    acp('nameless', ['nameless']),
    acp('other'),
    { ...acp('kept'), sessions: { keep_sec: 60 } },
    { ...acp('own'), sharing: 'isolated' },
    { ...acp('rented'), sharing: 'lease' },
    { id: 'sdk', command: process.execPath, args: [sdkAgent], protocol: 'acp', aio: {} },
  ]
  const config = { pools, aio: { store: { path: 'traces.db' } } }
  bus = await launch({ config, doors: ['unix', 'tcp'] }, workspace)
  client = await bus.connect()
})
afterAll(() => workspace.remove())

let lastId = 0

function call(agent: string, inputs: unknown, more: object = {}): Record<string, unknown> {
  const list = typeof inputs === 'string' ? [{ type: 'text', value: inputs }] : inputs
  return { jsonrpc: '2.0', id: ++lastId, method: `${agent}::input`, params: { inputs: list }, ...more }
}

function ask(agent: string, inputs: unknown, more: object = {}, from = client): Promise<Message> {
  return from.ask(call(agent, inputs, more))
}

async function textOf(answer: Promise<Message>): Promise<string> {
  const { result, error } = await answer
  if (error !== undefined) throw new Error(JSON.stringify(error))
  return result.outputs.map(({ value }: { value: string }) => value).join('|')
}

function heard(agent: string, method: string): Message[] {
  const lines = bus.workspace.lines(`heard-${agent}`).map((line) => JSON.parse(line))
  return lines.filter((line) => line.method === method)
}

describe('a turn', () => {
  test('chunks are partials, the answer is all of it', async () => {
    verifies('13.14-turn')
    const { result, trace_id } = await ask('plain', 'say one two')
    expect(result).toEqual({ outputs: [{ type: 'text', value: 'one two ' }], stopReason: 'end_turn' })
    const partials = client.lines
      .map((line) => JSON.parse(line.toString()))
      .filter(({ method }) => method === 'plain::partial')
    expect(partials.map(({ params }) => params.outputs[0].value)).toEqual(['one ', 'two '])
    expect(partials[0]).toMatchObject({ trace_id, params: { id: lastId, seq: 1, partial: true } })
  })

  test('other blocks stand in their order, and thoughts are not told', async () => {
    verifies('13.14-turn', '13.19-modalities')
    const { result } = await ask('plain', 'media')
    expect(result.outputs).toEqual([
      { type: 'text', value: 'one two' },
      { type: 'image', value: 'aW1n', mimeType: 'image/png' },
      { type: 'audio', value: 'https://example.test/a.mp3', mimeType: 'audio/mpeg' },
      { type: 'video', value: 'dmlk', mimeType: 'video/mp4' },
      { type: 'text', value: 'three' },
    ])
  })

  test('works with an agent on the official SDK, and its pool may be used directly too', async () => {
    verifies('13.14-turn')
    expect(await textOf(ask('sdk', 'echo hello'))).toBe('hello')
    const direct = await bus.connect()
    const initialize = { protocolVersion: 1, clientCapabilities: {} }
    const pool = { jsonrpc: '2.0', pool: 'sdk' }
    await direct.ask({ id: 1, method: 'initialize', params: initialize, ...pool })
    const { result } = await direct.ask({ id: 2, method: 'session/new', params: { cwd: '/', mcpServers: [] }, ...pool })
    expect(result.sessionId).toEqual(expect.any(String))
    direct.close()
  })

  test('help tells what it takes', async () => {
    const { result } = await client.ask({ id: ++lastId, method: 'rich::help' })
    expect(result).toMatchObject({ methods: ['input', 'help'], modalities: ['text', 'image', 'audio', 'file'] })
  })

  test('another method is unknown', async () => {
    verifies('13.14-refused')
    const { error } = await client.ask({ id: ++lastId, method: 'plain::tools.call', params: {} })
    expect(error).toMatchObject({ code: -32601, data: { reason: 'unknown_method', methods: ['input', 'help'] } })
  })

  test('the trace has the call with its worker, and the agent finds its place in it', async () => {
    const { result, trace_id, call_id } = await ask('plain', 'meta')
    const meta = JSON.parse(result.outputs[0].value)
    expect(meta).toMatchObject({ 'stdio-bus/trace_id': trace_id, 'stdio-bus/call_id': `${trace_id}#${call_id}` })
    const [call] = await callsOf(client, trace_id)
    expect(call).toMatchObject({ agent: 'plain', method: 'input', status: 'ok', worker: expect.any(String) })
  })
})

describe('inputs', () => {
  const image = { type: 'image', value: 'aW1n' }

  test('become blocks of what the agent takes', async () => {
    verifies('13.14-blocks')
    const inputs = [
      { type: 'text', value: 'blocks' },
      image,
      { type: 'audio', value: 'data:audio/mpeg;base64,YXVk' },
      { type: 'video', value: 'https://example.test/v/film.mp4' },
      { type: 'file', value: { a: 1 } },
      { type: 'file', value: 'cGRm', mimeType: 'application/pdf', name: 'a b.pdf' },
    ]
    expect(JSON.parse(await textOf(ask('rich', inputs)))).toEqual([
      { type: 'text', text: 'blocks' },
      { type: 'image', data: 'aW1n', mimeType: 'image/png' },
      { type: 'audio', data: 'YXVk', mimeType: 'audio/mpeg' },
      { type: 'resource_link', uri: 'https://example.test/v/film.mp4', name: 'film.mp4' },
      { type: 'resource', resource: { uri: 'input:///4', mimeType: 'application/json', text: '{"a":1}' } },
      { type: 'resource', resource: { uri: 'input:///a%20b.pdf', mimeType: 'application/pdf', blob: 'cGRm' } },
    ])
  })

  test('that are data URLs or names nobody would write become blocks too', async () => {
    verifies('13.14-blocks')
    const inputs = [
      { type: 'text', value: 'blocks' },
      { type: 'file', value: 'data:text/plain,h%C3%A9,%E0%A4%A%zz' },
      { type: 'file', value: 'cGRm', name: '\ud800' },
    ]
    const bytes = Buffer.concat([Buffer.from('hé,'), Buffer.from([0xe0, 0xa4]), Buffer.from('%A%zz')])
    const uris = ['input:///1', 'input:///%EF%BF%BD']
    const [, ...blocks] = JSON.parse(await textOf(ask('rich', inputs)))
    expect(blocks.map(({ resource }: Message) => [resource.uri, resource.blob])).toEqual([
      [uris[0], bytes.toString('base64')],
      [uris[1], 'cGRm'],
    ])
  })

  test.each([
    ['plain', image, ['text']],
    ['plain', { type: 'audio', value: 'YXVk' }, ['text']],
    ['plain', { type: 'file', value: 'cGRm' }, ['text']],
    ['rich', { type: 'video', value: 'dmlk' }, ['text', 'image', 'audio', 'file']],
  ])('%s refuses %o', async (agent, input, accepts) => {
    verifies('13.14-blocks')
    const { error } = await ask(agent, [input])
    const data = { reason: 'unsupported_modality', index: 0, got: input.type, accepts }
    expect(error).toMatchObject({ code: -32602, data })
  })
})

describe('sessions', () => {
  test('without a name each call has its own, closed after it', async () => {
    verifies('13.14-sessions')
    expect(await textOf(ask('other', 'count'))).toBe('1')
    expect(await textOf(ask('other', 'count'))).toBe('1')
    const closed = await eventually('two sessions to be closed', () => {
      const lines = heard('other', 'session/close')
      return lines.length === 2 ? lines : undefined
    })
    expect(new Set(closed.map(({ params }) => params.sessionId)).size).toBe(2)
  })

  test('with a name calls share one, in turn; another client has its own', async () => {
    verifies('13.14-sessions')
    const named = { sessionId: 'mine' }
    const calls = [1, 2, 3].map(() => call('plain', 'count', named))
    for (const each of calls) client.send(each)
    for (const [index, { id }] of calls.entries()) expect(await textOf(client.answerTo(id))).toBe(String(index + 1))
    const stranger = await bus.connect()
    expect(await textOf(ask('plain', 'count', named, stranger))).toBe('1')
    stranger.close()
  })

  test('sixteen wait, one more is refused', async () => {
    verifies('13.14-sessions')
    const own = await bus.connect()
    const named = { sessionId: 'busy' }
    const first = call('plain', 'wait', named)
    const prompts = heard('plain', 'session/prompt').length
    own.send(first)
    await eventually('the turn to begin', () => heard('plain', 'session/prompt').length > prompts || undefined)
    const waiting = Array.from({ length: 16 }, () => call('plain', 'count', named))
    for (const each of waiting) own.send(each)
    const { error } = await ask('plain', 'count', named, own)
    expect(error).toMatchObject({ code: -32603, data: { reason: 'overloaded', retryable: true } })
    // Who waits and gives up leaves its place.
    own.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: waiting[0]!['id'] } })
    own.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: first['id'] } })
    expect(await textOf(own.answerTo(waiting[1]!['id']))).toBe('2')
    expect(await textOf(own.answerTo(waiting[15]!['id']))).toBe('16')
    own.close()
  })

  test.each(['kept', 'own', 'rented'])('work with a pool that is %s', async (pool) => {
    verifies('13.14-sessions')
    const own = await bus.connect('tcp')
    const named = { sessionId: 'mine' }
    expect(await textOf(ask(pool, 'count', named, own))).toBe('1')
    expect(await textOf(ask(pool, 'count', named, own))).toBe('2')
    expect(await textOf(ask(pool, 'count', {}, own))).toBe('1')
    own.reset()
    await eventually('its sessions to be closed', () => heard(pool, 'session/close').length >= 2 || undefined)
    expect(await textOf(ask(pool, 'count', named))).toBe('1')
  })

  test('one whose process has ended is told once, and begins anew', async () => {
    const named = { sessionId: 'fragile' }
    expect(await textOf(ask('bold', 'count', named))).toBe('1')
    expect((await ask('bold', 'die')).error).toMatchObject({ data: { reason: 'worker_exited' } })
    expect((await ask('bold', 'count', named)).error).toMatchObject({ code: -32002 })
    expect(await textOf(ask('bold', 'count', named))).toBe('1')
  })
})

describe('an end', () => {
  test('a cancel is a session/cancel, and the next call has the session', async () => {
    verifies('13.14-cancel')
    const own = await bus.connect()
    const named = { sessionId: 'stop' }
    const prompts = heard('rich', 'session/prompt').length
    const waiting = call('rich', 'wait', named)
    own.send(waiting)
    await eventually('the turn to begin', () => heard('rich', 'session/prompt').length > prompts || undefined)
    const before = heard('rich', 'session/cancel').length
    own.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: waiting['id'] } })
    expect(await textOf(ask('rich', 'count', named, own))).toBe('2')
    expect(heard('rich', 'session/cancel').length).toBe(before + 1)
    own.close()
  })

  test('a caller that goes takes its turn with it, told once', async () => {
    verifies('13.14-cancel')
    const own = await bus.connect('tcp')
    const before = heard('rich', 'session/cancel').length
    const prompts = heard('rich', 'session/prompt').length
    own.send(call('rich', 'wait'))
    await eventually('the turn to begin', () => heard('rich', 'session/prompt').length > prompts || undefined)
    own.reset()
    await eventually('a cancel', () => heard('rich', 'session/cancel').length > before || undefined)
    expect(await textOf(ask('rich', 'say still here'))).toBe('still here ')
    expect(heard('rich', 'session/cancel').length).toBe(before + 1)
  })

  test('the time limit is a session/cancel, even for an agent that hears nothing', async () => {
    verifies('13.14-cancel')
    const { error } = await ask('short', 'deaf')
    expect(error).toMatchObject({ code: -32603, data: { reason: 'agent_timeout' } })
    await eventually('a cancel', () => heard('short', 'session/cancel').length > 0 || undefined)
    expect(await textOf(ask('short', 'say on'))).toBe('on ')
  })

  test('an agent that wants a login is told apart', async () => {
    verifies('13.14-refused')
    const { error } = await ask('login', 'say hi')
    expect(error).toMatchObject({ code: -32603, data: { reason: 'agent_auth_required', agent: 'login' } })
  })

  test('an agent whose sessions have no id gave no usable answer', async () => {
    const { error } = await ask('nameless', 'say hi')
    expect(error).toMatchObject({ code: -32603, data: { reason: 'agent_invalid_response' } })
  })

  test.each(['deep update', 'deep question', 'odd'])(
    'hostile lines (%s) end nothing but, at most, their call',
    async (what) => {
      const { result } = await ask('other', what)
      expect(result.stopReason).toBe('end_turn')
      expect(await textOf(ask('other', 'say still here'))).toBe('still here ')
    },
  )

  test('an answer without an end is cut', async () => {
    const { error } = await ask('plain', 'long 2000')
    expect(error).toMatchObject({ code: -32603, data: { reason: 'agent_invalid_response' } })
    await eventually('a cancel', () => heard('plain', 'session/cancel').length > 0 || undefined)
  })

  test('agents that call themselves without end are too_deep', async () => {
    expect(await textOf(ask('other', 'call other::input'))).toBe('too_deep')
  })
})

describe('questions', () => {
  const DENIED = { outcome: 'selected', optionId: 'id-reject_once' }
  const ALLOWED = { outcome: 'selected', optionId: 'id-allow_once' }

  test.each([
    ['plain', 'read', DENIED],
    ['rich', 'read', ALLOWED],
    ['rich', 'search', ALLOWED],
    ['rich', 'edit', DENIED],
    ['bold', 'execute', ALLOWED],
    ['bold', 'none', { outcome: 'cancelled' }],
    ['plain', 'none', { outcome: 'cancelled' }],
  ])('%s, asked to %s', async (agent, kind, outcome) => {
    verifies('13.15-policy', '13.15-traced')
    const { result, trace_id, call_id } = await ask(agent, `permission ${kind}`)
    expect(JSON.parse(result.outputs[0].value)).toEqual(outcome)
    const child = (await callsOf(client, trace_id)).find(({ parent_id }) => parent_id === call_id)
    expect(child).toMatchObject({ agent, method: 'session/request_permission', status: 'ok', output: outcome })
    expect(child).toMatchObject({ caller: { kind: 'agent', agent }, input: { toolCall: { kind } } })
  })

  test.each(['fs/read_text_file', 'fs/write_text_file', 'terminal/create', 'elicitation/create', '_own/thing'])(
    '%s is refused at once, and no caller hears of it',
    async (method) => {
      verifies('13.15-refused')
      expect(await textOf(ask('bold', `ask ${method}`))).toBe('-32601')
      expect(client.lines.filter((line) => line.includes(`"method":"${method}"`))).toEqual([])
    },
  )

  test('nothing is offered to the agent', () => {
    verifies('13.15-refused')
    const [introduction] = heard('plain', 'initialize')
    const fs = { readTextFile: false, writeTextFile: false }
    expect(introduction!.params.clientCapabilities).toEqual({ fs, terminal: false })
  })
})
