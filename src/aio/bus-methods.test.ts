import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import {
  CLIENT,
  FakePort,
  httpAgent,
  type Line,
  mcpAgent,
  stdioAgent,
  until,
  workbench,
} from '../../test/fixtures/aio/workbench.ts'
import { JsonText } from '../wire/ready-json.ts'
import type { GatewayOptions } from './gateway.ts'
import type { Caller, TraceAnswer } from './port.ts'

const TCP: Caller = { kind: 'client', key: '9', isLocal: false }
const STDIO: Caller = { kind: 'client', key: '0', isLocal: true }
const WORKER: Caller = { kind: 'worker', key: '1.1', pool: 'reader' }
const AGENTS = [stdioAgent({ modalities: ['text'], instances: 2 }), mcpAgent(), httpAgent()]

async function ask(
  method: string,
  fields: Line = {},
  caller: Caller = CLIENT,
  options: Partial<GatewayOptions> & { answer?: TraceAnswer } = {},
) {
  const bench = workbench(new FakePort(), AGENTS, options)
  bench.gateway.receive(caller, { method, id: 1, ...fields }, 50)
  const { message } = await until(() => bench.port.replies[0], 'an answer')
  expect(bench.traces.starts).toEqual([])
  return { ...bench, reply: message }
}

describe('methods of the bus', () => {
  it.each(['help', 'bus::help'])('%s describes the bus', async (method) => {
    const { reply } = await ask(method)
    expect(reply).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: {
        type: 'stdio',
        methods: [
          'help',
          'agents.list',
          'agents.register',
          'agents.unregister',
          'trace.new',
          'traces.list',
          'traces.get',
          'traces.stats',
          'traces.export',
        ],
        modalities: [],
        mcp: { resources: false, prompts: false, tools: false, sampling: false },
        agents: ['reader', 'math_agent', 'extractor'],
      },
    })
  })

  it('lists the agents', async () => {
    const all = ['text', 'image', 'audio', 'video', 'file']
    expect((await ask('bus::agents.list')).reply['result']).toEqual({
      agents: [
        { name: 'reader', type: 'stdio', modalities: ['text'], workers: 2 },
        { name: 'math_agent', type: 'mcp', modalities: all, workers: 1 },
        { name: 'extractor', type: 'http', modalities: all, workers: 0 },
      ],
    })
  })

  it('issues a trace', async () => {
    expect((await ask('bus::trace.new')).reply['result']).toEqual({ trace_id: 'AIO-TR-20250326-0001' })
  })

  it('echoes a trace id', async () => {
    verifies('N21-echo')
    expect((await ask('bus::help', { trace_id: 'T' })).reply['trace_id']).toBe('T')
  })

  it.each(['list', 'get', 'stats', 'export'])('hands traces.%s to the trace room', async (question) => {
    const params = { trace_id: 'T', format: 'aio' }
    const { asked, reply } = await ask(`bus::traces.${question}`, { params }, STDIO, { answer: { text: '{"a":1}' } })
    expect(asked).toEqual([[question, params]])
    expect(reply).toEqual({ jsonrpc: '2.0', id: 1, result: new JsonText('{"a":1}') })
  })

  it('passes what is wrong with a question', async () => {
    const fault = { code: -32602, message: 'no', data: { reason: 'unknown_trace' } }
    expect((await ask('bus::traces.get', {}, CLIENT, { answer: { fault } })).reply['error']).toEqual(fault)
  })

  it('says when the store fails, and not what it said', async () => {
    const queries = { query: () => Promise.reject(new Error('disk /secret/path')) }
    const { reply } = await ask('bus::traces.list', {}, CLIENT, { queries })
    expect(reply['error']).toMatchObject({ code: -32603, data: { reason: 'trace_query_failed' } })
    expect(JSON.stringify(reply)).not.toContain('secret')
  })

  it.each([
    ['a TCP client', TCP],
    ['a worker', WORKER],
  ])('does not answer queries of %s unless that is allowed', async (_title, caller) => {
    verifies('N21-remote')
    const { reply, asked } = await ask('bus::traces.list', {}, caller)
    expect(reply['error']).toMatchObject({ code: -32601, data: { reason: 'remote_queries_off' } })
    expect(asked).toEqual([])
    expect((await ask('bus::traces.list', {}, caller, { remoteQueries: true })).reply).toHaveProperty('result')
    expect((await ask('bus::trace.new', {}, caller)).reply).toHaveProperty('result')
  })

  it.each(['bus::nothing', 'bus::__proto__', 'bus::traces.delete'])('refuses %s', async (method) => {
    expect((await ask(method)).reply['error']).toMatchObject({ code: -32601, data: { reason: 'unknown_method' } })
  })

  it('does nothing for a notification', async () => {
    const { gateway, port } = workbench(new FakePort(), AGENTS)
    gateway.receive(CLIENT, { method: 'bus::help' }, 50)
    await new Promise((resolve) => setImmediate(resolve))
    expect(port.replies).toEqual([])
  })

  it('9.6 questions about traces are narrowed to what the caller may see, whatever it asks for', async () => {
    verifies('9.6-traces')
    const permissions = { areToolsJudged: false, mayUseAgent: () => true, mayUseTool: () => true }
    const user: Caller = { ...TCP, permissions: { ...permissions, traceScope: { only_caller: 'alice' } } }
    for (const method of ['list', 'get', 'stats', 'export']) {
      const params = { only_caller: 'bob', trace_id: 'T' }
      const { asked } = await ask(`bus::traces.${method}`, { params }, user)
      expect(asked).toEqual([[method, { only_caller: 'alice', trace_id: 'T' }]])
      const without = await ask(`bus::traces.${method}`, { params: ['x'] }, user)
      expect(without.asked).toEqual([[method, { only_caller: 'alice' }]])
      const { reply } = await ask(`bus::traces.${method}`, {}, { ...TCP, permissions })
      expect(reply['error']).toMatchObject({ data: { reason: 'remote_queries_off' } })
    }
  })
})
