/** `"trace": true` on a pool: ACP turns and MCP requests that pass the bus are in the trace, and pass it unchanged. */
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { eventually } from '../support/waiting.ts'
import { callsOf } from './aio-harness.ts'

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const coder = (more: object) => ({
  id: 'coder',
  command: process.execPath,
  args: [here('trace-acp-agent.mjs')],
  ...more,
})
const math = (more: object) => ({
  id: 'math',
  command: process.execPath,
  args: [here('../fixtures/aio/mcp-server-v1.mjs')],
  ...more,
})

/** Every trace there is, oldest first, with its calls. */
async function tracesOf(bus: Bus, count: number): Promise<Message[][]> {
  const client = await bus.connect()
  const list = await eventually(`${count} traces that are over`, async () => {
    const { result } = await client.ask({ id: 'list', method: 'bus::traces.list' })
    const isOver = result.traces.every(({ status }: Message) => status !== 'active')
    return result.traces.length >= count && isOver && result.traces
  })
  return Promise.all(list.reverse().map(({ trace_id }: Message) => callsOf(client, trace_id)))
}

async function openSession(client: LineClient): Promise<string> {
  await client.ask({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } })
  const { result } = await client.ask({
    jsonrpc: '2.0',
    id: 2,
    method: 'session/new',
    params: { cwd: '/', mcpServers: [] },
  })
  return result.sessionId
}

const promptOf = (sessionId: string, text: string) => ({
  jsonrpc: '2.0',
  id: 3,
  method: 'session/prompt',
  params: { sessionId, prompt: [{ type: 'text', text }] },
})

describe('ACP', () => {
  test('a turn is a trace, its tool calls and questions are its children', async () => {
    verifies('T9-acp')
    const bus = await startBus({ config: { pools: [coder({ trace: true })] } })
    const client = await bus.connect()
    const sessionId = await openSession(client)
    client.send(promptOf(sessionId, 'clean up'))
    for (;;) {
      const message = await client.next()
      if (message.method === 'session/request_permission') {
        const result = { outcome: { outcome: 'selected', optionId: 'no' } }
        client.send({ jsonrpc: '2.0', id: message.id, result })
      }
      if (message.id === 3 && message.method === undefined) break
    }
    const [calls] = await tracesOf(bus, 1)
    const [turn, read, remove, permission] = calls!
    expect(calls!.map(({ id, parent_id, method, status }) => [id, parent_id, method, status])).toEqual([
      [1, null, 'session/prompt', 'ok'],
      [2, 1, 'tool_call', 'ok'],
      [3, 1, 'tool_call', 'error'],
      [4, 3, 'session/request_permission', 'ok'],
    ])
    expect(turn).toMatchObject({ agent: 'coder', protocol: 'acp', partials: 1, request_id: 3, worker: '0.1' })
    const { client: number } = turn!.caller
    expect(turn!.caller).toEqual({ kind: 'client', principal: 'local', client: expect.any(Number) })
    for (const { caller } of [read!, remove!, permission!])
      expect(caller).toEqual({ kind: 'agent', principal: 'local', client: number, agent: 'coder' })
    const outputs = [{ type: 'text', value: 'Let me see. ' }]
    expect(turn!.output).toEqual({ stopReason: 'end_turn', outputs })
    expect(turn!.outputs).toEqual(outputs)
    expect(turn!.input).toMatchObject({ sessionId, prompt: [{ text: 'clean up' }] })
    expect(read).toMatchObject({ target: 'Read notes.txt', input: { path: 'notes.txt' }, output: { bytes: 12 } })
    expect(remove!.error.type).toBe('tool_error')
    expect(permission!.output).toEqual({ outcome: { outcome: 'selected', optionId: 'no' } })
  })

  test('what was asked is in the list, and both are there without the bus, under the rules for payloads', async () => {
    verifies('T9-text', 'T9-prompt', 'T4-file')
    const aio = { store: { path: 'traces.db', payload_bytes: 120, redact: ['secret'] } }
    const bus = await startBus({ config: { pools: [coder({ trace: true })], aio } })
    const client = await bus.connect()
    const sessionId = await openSession(client)
    client.send(promptOf(sessionId, `die ${'x'.repeat(500)}`))
    const params = { cwd: '/', mcpServers: [] }
    const other = await client.ask({ jsonrpc: '2.0', id: 'new', method: 'session/new', params })
    client.send({ ...promptOf(other.result.sessionId, 'die'), id: 4 })
    await client.answerTo(4)
    await bus.stop()
    const cwd = bus.workspace.folder
    bus.workspace.write('stdio-bus.json', { pools: [coder({ trace: true })], aio })
    const listed = await bus.run(['trace', 'ls'], {})
    expect([listed.code, listed.stderr]).toEqual([0, `no bus is running; this is what ${cwd}/traces.db holds\n`])
    expect(listed.stdout).toMatch(/ coder +die\n.* coder +die x+…?\n/)
    const shown = await bus.run(['trace', 'show', 'last'], {})
    expect(shown.stdout).toMatch(/asked +die\nanswered +Let me see\.\n$/)
  })

  test('an agent that dies in its turn: the trace says so, tool calls too', async () => {
    const bus = await startBus({ config: { pools: [coder({ trace: true })] } })
    const client = await bus.connect()
    const { error } = await client.ask(promptOf(await openSession(client), 'die'))
    expect(error.data.reason).toBe('worker_exited')
    const [calls] = await tracesOf(bus, 1)
    expect(calls!.map(({ method, status }) => [method, status])).toEqual([
      ['session/prompt', 'error'],
      ['tool_call', 'error'],
    ])
    expect(calls![0]!.error.data.reason).toBe('worker_exited')
  })

  test('without "trace" nothing is kept, and the bus has no traces to ask for', async () => {
    verifies('T9-off')
    const bus = await startBus({ config: { pools: [coder({})] } })
    const client = await bus.connect()
    expect((await client.ask({ id: 1, method: 'bus::traces.list' })).error.data.reason).toBe('unknown_method')
    const listed = await bus.run(['trace', 'ls', '--control', bus.control])
    expect([listed.code, listed.stderr]).toEqual([1, expect.stringContaining('keeps no traces')])
    expect(await bus.status()).not.toHaveProperty('traces')
  })
})

describe('MCP', () => {
  test('a request is a trace; x::y stays a plain method', async () => {
    verifies('T9-mcp')
    const bus = await startBus({ config: { pools: [math({ trace: true, protocol: 'mcp' })] } })
    const client = await bus.connect()
    const ask = (id: number, method: string, params: object) => client.ask({ jsonrpc: '2.0', id, method, params })
    const version = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } }
    await ask(1, 'initialize', version)
    client.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    const args = { x: 3, y: 4 }
    await ask(2, 'tools/call', { name: 'calculate_area', arguments: args })
    await ask(3, 'tools/call', { name: 'explode', arguments: {} })
    client.send({
      jsonrpc: '2.0',
      id: 4,
      method: 'tools/call',
      params: { name: 'progress', arguments: {}, _meta: { progressToken: 'p' } },
    })
    await client.answerTo(4)
    expect((await ask(5, 'math::tools.call', {})).error).not.toHaveProperty('data.reason')
    const traces = await tracesOf(bus, 4)
    expect(traces.map(([call]) => [call!.method, call!.target, call!.status, call!.protocol, call!.partials])).toEqual([
      ['tools/call', 'calculate_area', 'ok', 'mcp', 0],
      ['tools/call', 'explode', 'error', 'mcp', 0],
      ['tools/call', 'progress', 'ok', 'mcp', 2],
      ['math::tools.call', undefined, 'error', 'mcp', 0],
    ])
    expect(traces[1]![0]!.error).toMatchObject({ type: 'tool_error', message: expect.stringContaining('fuse') })
  })
})
