/** MCP agents against real servers of both SDK generations and both eras. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import {
  CLIENT,
  type Line,
  mcpAgent,
  ProcessPort,
  program,
  until,
  workbench,
} from '../../test/fixtures/aio/workbench.ts'

const SERVERS = [
  { title: 'SDK 1', args: [program('mcp-server-v1.mjs')] },
  { title: 'SDK 2, handshake era', args: [program('mcp-server-v2.mjs')] },
  { title: 'SDK 2, stateless era', args: [program('mcp-server-v2.mjs')], era: 'modern' as const },
]

describe.each(SERVERS)('$title', (server) => {
  const port = new ProcessPort({ math_agent: server, llm_agent: server })
  const bench = workbench(port, [
    mcpAgent({ name: 'math_agent' }),
    mcpAgent({ name: 'llm_agent', sampling: { tool: 'complete' } }),
  ])
  let lastId = 0

  beforeAll(async () => void (await Promise.all([port.handshake('math_agent'), port.handshake('llm_agent')])))
  afterAll(() => port.close())

  async function call(method: string, params?: Line): Promise<{ result: Line; error: Line & { data: Line } } & Line> {
    const id = ++lastId
    const message = { method, id, trace_id: 'T', ...(params === undefined ? {} : { params }) }
    bench.gateway.receive(CLIENT, message, 100)
    const reply = await until(
      () => port.replies.find(({ message: said }) => said['id'] === id),
      `an answer to ${method}`,
    )
    return reply.message as { result: Line; error: Line & { data: Line } } & Line
  }

  const ended = () => ({ ...bench.traces.starts.at(-1)!, ...bench.traces.ends.at(-1)! })

  it('calls a tool in the seed’s spelling, with a trace id, and does not hang', async () => {
    verifies('N8-translated')
    const { result, trace_id, call_id } = await call('math_agent::tools.call', {
      tool: 'calculate_area',
      args: { x: 3, y: 4 },
    })
    expect(result).toMatchObject({
      outputs: [{ type: 'text', value: '12' }],
      content: [{ type: 'text', text: '12' }],
      structuredContent: { area: 12 },
    })
    expect([trace_id, call_id]).toEqual(['T', lastId])
    expect(ended()).toMatchObject({
      protocol: 'mcp',
      type: 'mcp',
      method: 'tools.call',
      nativeMethod: 'tools/call',
      target: 'calculate_area',
      status: 'ok',
    })
  })

  it('calls a tool in MCP’s spelling', async () => {
    verifies('N8-translated')
    const { result } = await call('math_agent::tools.call', { name: 'calculate_area', arguments: { x: 2, y: 2 } })
    expect(result['outputs']).toEqual([{ type: 'text', value: '4' }])
  })

  it('carries the trace to the tool in _meta', async () => {
    const { result } = await call('math_agent::tools.call', { tool: 'show_meta', args: {} })
    const meta = JSON.parse((result['outputs'] as [{ value: string }])[0].value) as Line
    expect(meta).toMatchObject({
      'stdio-bus/trace_id': 'T',
      'stdio-bus/call_id': `T#${lastId}`,
      traceparent: expect.stringMatching(/^00-/),
    })
  })

  it('counts a tool that failed as an error and passes its result', async () => {
    const { result } = await call('math_agent::tools.call', { tool: 'explode', args: {} })
    expect(result).toMatchObject({ isError: true })
    expect(ended()).toMatchObject({ status: 'error', error: { type: 'tool_error', message: 'the fuse was lit' } })
  })

  it('counts an unknown tool as an error, however the server says it', async () => {
    const { result, error } = await call('math_agent::tools.call', { tool: 'nope', args: {} })
    expect(result?.['isError'] ?? error?.['code']).toBe(result === undefined ? -32602 : true)
    expect(ended().status).toBe('error')
  })

  it('lists resources in the seed’s shape', async () => {
    verifies('N8-shape')
    const { result } = await call('math_agent::resources.list', {})
    expect(result['resources']).toMatchObject([
      { id: 'doc://doc-001', uri: 'doc://doc-001', title: 'Spec Sheet', type: 'pdf', name: 'spec' },
    ])
  })

  it('gets a resource by id and by uri, and says when there is none', async () => {
    for (const params of [{ id: 'doc://doc-001' }, { uri: 'doc://doc-001' }]) {
      const { result } = await call('math_agent::resources.get', params)
      expect(result['outputs']).toEqual([{ type: 'file', value: 'JVBERg==', mimeType: 'application/pdf' }])
    }
    const { error } = await call('math_agent::resources.get', { id: 'doc://none' })
    expect([-32602, -32002]).toContain(error['code'])
  })

  it('lists and gets prompts, with arguments as strings', async () => {
    const { result: list } = await call('math_agent::prompts.list')
    expect(list['prompts']).toMatchObject([{ id: 'summarize', name: 'summarize' }])
    const { result } = await call('math_agent::prompts.get', { id: 'summarize', args: { topic: 5 } })
    expect(result['outputs']).toEqual([{ type: 'text', value: 'Summarize 5' }])
  })

  it('lists tools', async () => {
    const { result } = await call('math_agent::tools.list')
    expect((result['tools'] as Line[]).map((tool) => tool['id'])).toContain('calculate_area')
  })

  it('turns media and resources into outputs', async () => {
    verifies('N8-shape')
    const { result } = await call('math_agent::tools.call', { tool: 'picture', args: {} })
    expect(result['outputs']).toEqual([
      { type: 'image', value: 'aGk=', mimeType: 'image/png' },
      { type: 'text', value: 'memo' },
      { type: 'file', value: 'https://example.test/a.pdf' },
    ])
  })

  it('sends progress as partials, only to those who asked', async () => {
    verifies('N15-progress')
    await call('math_agent::tools.call', { tool: 'progress', args: {} })
    const before = port.replies.length
    await call('math_agent::tools.call', { tool: 'progress', args: {}, _meta: { progressToken: 'mine' } })
    const partials = port.replies
      .slice(before)
      .map(({ message }) => message)
      .filter((message) => message['method'])
    expect(partials).toMatchObject([
      {
        method: 'math_agent::partial',
        params: { id: lastId, seq: 1, progress: 1, total: 2, outputs: [{ type: 'text', value: 'step 1' }] },
      },
      { params: { seq: 2, progress: 2 } },
    ])
    expect(port.replies.slice(0, before).filter(({ message }) => message['method'])).toEqual([])
  })

  it('answers sampling.start on a plain server quickly', async () => {
    const { error } = await call('math_agent::sampling.start', { input: { type: 'text', value: 'Please summarize' } })
    expect(error).toMatchObject({ code: -32601, data: { reason: 'sampling_unsupported' } })
  })

  it('samples with a tool and remembers the conversation', async () => {
    verifies('N9-tool')
    const start = await call('llm_agent::sampling.start', { input: { type: 'text', value: 'hello' } })
    expect(start.result).toMatchObject({ outputs: [{ type: 'text', value: '1: hello' }] })
    const { sampling_id } = start.result
    const step = await call('llm_agent::sampling.step', { sampling_id, prompt: 'more' })
    expect(step.result).toMatchObject({ sampling_id, outputs: [{ type: 'text', value: '3: more' }] })
    expect(ended()).toMatchObject({ method: 'sampling.step', nativeMethod: 'tools/call', target: 'complete' })
  })

  it('describes itself in the seed’s shape', async () => {
    const { result } = await call('llm_agent::help')
    expect(result).toMatchObject({
      type: 'mcp',
      modalities: ['text', 'image', 'audio', 'video', 'file'],
      mcp: { resources: true, prompts: true, tools: true, sampling: true },
    })
    expect(result['methods']).toEqual([
      'resources.list',
      'resources.get',
      'prompts.list',
      'prompts.get',
      'tools.list',
      'tools.call',
      'sampling.start',
      'sampling.step',
      'help',
    ])
    expect(result['tools']).toHaveLength(6)
  })

  it('answers a notification with nothing and records what came of it', async () => {
    verifies('N7-mcp')
    const before = port.replies.length
    bench.gateway.receive(CLIENT, { method: 'math_agent::tools.call', params: { tool: 'explode' } }, 50)
    const end = await until(() => bench.traces.ends.find((call) => call.traceId !== 'T'), 'its end')
    expect(end).toMatchObject({ status: 'error', error: { type: 'tool_error' } })
    expect(port.replies).toHaveLength(before)
  })
})
