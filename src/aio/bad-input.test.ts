/** The tables of bad input (spec N2, N3, N8, N13) at the gateway: each row with its code, its reason and its place. */
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

const AGENTS = [
  stdioAgent({ modalities: ['text'], maxPayloadBytes: 1_000 }),
  mcpAgent({ name: 'math_agent' }),
  mcpAgent({ name: 'plain', pool: 'plain' }),
  httpAgent(),
]

async function answerTo(message: Line, bytes = 100) {
  const bench = workbench(new FakePort(), AGENTS)
  bench.port.hello = { capabilities: { tools: {} } }
  bench.gateway.receive(CLIENT, message, bytes)
  const reply = await until(() => bench.port.replies[0], 'an answer')
  return { ...bench, reply: reply.message as { error: Line & { data: Line } } & Line }
}

const text = { inputs: [{ type: 'text', value: 'x' }] }

describe('refused, counted and not traced; the connection stays open', () => {
  it.each([
    ['another jsonrpc', { jsonrpc: '1.0', method: 'reader::input', id: 1 }, 'bad_jsonrpc'],
    ['a null jsonrpc', { jsonrpc: null, method: 'reader::input', id: 1 }, 'bad_jsonrpc'],
    ['no method', { method: 'a::', id: 1 }, 'bad_name'],
    ['no agent', { method: '::b', id: 1 }, 'bad_name'],
    ['bad characters', { method: 'a b::c', id: 1 }, 'bad_name'],
    ['an agent too long', { method: `${'a'.repeat(65)}::c`, id: 1 }, 'bad_name'],
    ['a trace id with a space', { method: 'reader::input', id: 1, trace_id: 'a b' }, 'bad_trace_id'],
    ['a trace id with #', { method: 'reader::input', id: 1, trace_id: 'a#1' }, 'bad_trace_id'],
    ['an empty trace id', { method: 'reader::input', id: 1, trace_id: '' }, 'bad_trace_id'],
    ['a trace id too long', { method: 'reader::input', id: 1, trace_id: 'a'.repeat(129) }, 'bad_trace_id'],
    ['a trace id that is a number', { method: 'reader::input', id: 1, trace_id: 5 }, 'bad_trace_id'],
    ['a null trace id', { method: 'bus::help', id: 1, trace_id: null }, 'bad_trace_id'],
  ])('%s', async (_title, message, reason) => {
    verifies('N3-refused')
    const { reply, traces, counted } = await answerTo(message)
    expect(reply).toMatchObject({ jsonrpc: '2.0', id: 1, error: { code: -32600, data: { reason } } })
    expect(counted).toEqual([reason])
    expect(traces.starts).toEqual([])
  })

  it('does not send a megabyte of a bad name back', async () => {
    const { reply } = await answerTo({ method: `::${'x'.repeat(1_000_000)}`, id: 1 })
    expect(JSON.stringify(reply).length).toBeLessThan(2_000)
  })
})

describe('refused and in the trace', () => {
  it.each([
    ['an unknown agent', { method: 'nobody::input', params: text }, -32601, 'unknown_agent'],
    ['an agent named like a property', { method: 'constructor::input', params: text }, -32601, 'unknown_agent'],
    ['an unknown MCP method', { method: 'math_agent::tools.explode' }, -32601, 'unknown_method'],
    ['an MCP method named like a property', { method: 'math_agent::__proto__' }, -32601, 'unknown_method'],
    ['a module that is off', { method: 'math_agent::resources.list' }, -32601, 'module_disabled'],
    ['input on an MCP agent', { method: 'math_agent::input', params: text }, -32601, 'input_not_available_on_mcp'],
    ['input without inputs', { method: 'reader::input', params: {} }, -32602, 'missing_inputs'],
    ['input with none', { method: 'reader::input', params: { inputs: [] } }, -32602, 'missing_inputs'],
    [
      'an item without value',
      { method: 'reader::input', params: { inputs: [{ type: 'text' }] } },
      -32602,
      'invalid_input',
    ],
    [
      'an unknown type',
      { method: 'reader::input', params: { inputs: [{ type: 'x', value: 1 }] } },
      -32602,
      'unknown_modality',
    ],
    [
      'a type it does not take',
      { method: 'reader::input', params: { inputs: [{ type: 'image', value: 'aGVs' }] } },
      -32602,
      'unsupported_modality',
    ],
    [
      'media that is none',
      { method: 'extractor::input', params: { inputs: [{ type: 'image', value: '?' }] } },
      -32602,
      'invalid_value',
    ],
    ['tools.call without tool', { method: 'math_agent::tools.call', params: { args: {} } }, -32602, 'missing_param'],
    ['tools.call with a number', { method: 'math_agent::tools.call', params: { tool: 5 } }, -32602, 'invalid_param'],
    [
      'tools.call with args that are a list',
      { method: 'math_agent::tools.call', params: { tool: 'a', args: [] } },
      -32602,
      'invalid_param',
    ],
    ['resources.get without id', { method: 'plain::resources.get', params: {} }, -32602, 'missing_param'],
    ['prompts.get without id', { method: 'plain::prompts.get' }, -32602, 'missing_param'],
    ['a cursor that is a number', { method: 'math_agent::tools.list', params: { cursor: 5 } }, -32602, 'invalid_param'],
    ['sampling.start without input', { method: 'math_agent::sampling.start', params: {} }, -32602, 'missing_param'],
    [
      'sampling.start with an image',
      { method: 'math_agent::sampling.start', params: { input: { type: 'image', value: 'aGVs' } } },
      -32602,
      'unsupported_modality',
    ],
    [
      'sampling.step without id',
      { method: 'math_agent::sampling.step', params: { prompt: 'x' } },
      -32602,
      'missing_param',
    ],
    [
      'sampling.step with an unknown id',
      { method: 'math_agent::sampling.step', params: { sampling_id: 'x', prompt: 'x' } },
      -32602,
      'unknown_sampling',
    ],
  ])('%s', async (_title, message, code, reason) => {
    verifies('N3-traced')
    const { reply, traces, counted } = await answerTo({ ...message, id: 3, trace_id: 'T' })
    expect(reply).toMatchObject({ id: 3, trace_id: 'T', call_id: 3, error: { code, data: { reason } } })
    expect(reply.error['message']).not.toBe('')
    const [agent, method] = message.method.split('::')
    expect(traces.only).toMatchObject({
      agent,
      method,
      callId: 3,
      requestId: 3,
      parentId: null,
      status: 'error',
      output: null,
      error: { code, data: { reason } },
    })
    expect(counted).toEqual([])
  })

  it.each([
    ['at the limit', 1_000, undefined],
    ['one over', 1_001, 'payload_too_large'],
    ['one under', 999, undefined],
  ])('a request %s of its agent', async (_title, bytes, reason) => {
    verifies('N14-payload')
    const { gateway, port } = workbench(new FakePort(), AGENTS)
    gateway.receive(CLIENT, { method: 'reader::input', params: text, id: 1 }, bytes)
    expect(port.asked).toHaveLength(reason === undefined ? 1 : 0)
    if (reason === undefined) return
    expect(port.replies[0]?.message).toMatchObject({
      error: { code: -32602, data: { reason, bytes, limit: 1_000 } },
    })
  })

  it('names the agents that there are', async () => {
    verifies('N2-unknown')
    const { reply } = await answerTo({ method: 'nobody::x', id: 1 })
    expect(reply.error.data).toMatchObject({ agent: 'nobody', known: ['reader', 'math_agent', 'plain', 'extractor'] })
  })

  it('records a refused notification and answers nothing', () => {
    verifies('N7-refused')
    const { gateway, port, traces } = workbench(new FakePort(), AGENTS)
    gateway.receive(CLIENT, { method: 'nobody::x' }, 10)
    gateway.receive(CLIENT, { jsonrpc: '3', method: 'nobody::x' }, 10)
    expect(port.replies).toEqual([])
    expect(traces.only).toMatchObject({ requestId: null, status: 'error' })
  })
})
