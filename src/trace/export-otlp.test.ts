import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { callEnd, callStart, NOON_MS, TRACE } from '../../test/fixtures/trace/calls.ts'
import type { CallEnd, CallStart } from './call.ts'
import type { OtlpDocument, OtlpOptions, OtlpSpan } from './export-otlp.ts'
import { openTraceStore } from './store.ts'

type Told = [start: Partial<CallStart>, end: Partial<CallEnd> | undefined]

async function spansOf(told: Told[], options: OtlpOptions = {}): Promise<{ spans: OtlpSpan[] }> {
  const store = await openTraceStore({ nowMs: () => NOON_MS, otlp: options })
  for (const [start, end] of told) {
    store.begin(callStart(start))
    if (end) store.end(callEnd({ callId: start.callId ?? 1, ...end }))
  }
  const answer = await store.query('export', { trace_id: TRACE, format: 'otlp-json' })
  if ('fault' in answer) throw new Error(answer.fault.message)
  const document: OtlpDocument = JSON.parse(answer.text)
  return { spans: document.resourceSpans[0]?.scopeSpans[0]?.spans ?? [] }
}

function attributesOf(span: OtlpSpan | undefined): Record<string, unknown> {
  return Object.fromEntries((span?.attributes ?? []).map(({ key, value }) => [key, Object.values(value)[0]]))
}

const TOOL = {
  type: 'mcp',
  agent: 'math_agent',
  method: 'tools.call',
  nativeMethod: 'tools/call',
  target: 'area',
} as const

describe('a span', () => {
  it('9.24 names the principal, and the agent that called for it', async () => {
    verifies('9.24-otlp')
    const caller = { kind: 'agent', principal: 'alice', client: 7, agent: 'queen' } as const
    const { spans } = await spansOf([
      [{ caller }, {}],
      [{ callId: 2 }, {}],
    ])
    const [, named, unnamed] = spans.map(attributesOf)
    expect(named).toMatchObject({ 'enduser.id': 'alice', 'aio.caller.kind': 'agent', 'aio.caller.agent': 'queen' })
    expect(unnamed).not.toHaveProperty('enduser.id')
  })

  it('of a failed tool call is the one of the convention', async () => {
    const error = { code: -32602, message: 'Tool nope not found', data: { reason: 'unknown_tool' } }
    const { spans } = await spansOf([
      [
        { ...TOOL, requestId: 2 },
        { status: 'error', error },
      ],
    ])
    const [root, span] = spans
    expect(span).toMatchObject({
      traceId: root?.traceId,
      parentSpanId: root?.spanId,
      name: 'tools/call area',
      kind: 3,
      startTimeUnixNano: '1774526400000000000',
      endTimeUnixNano: '1774526400010000000',
      status: { code: 2, message: 'Tool nope not found' },
    })
    expect(attributesOf(span)).toMatchObject({
      'mcp.method.name': 'tools/call',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'area',
      'gen_ai.agent.name': 'math_agent',
      'jsonrpc.request.id': '2',
      'network.transport': 'pipe',
      'error.type': '-32602',
      'rpc.response.status_code': '-32602',
      'aio.error.reason': 'unknown_tool',
      'aio.trace_id': TRACE,
      'aio.call_id': `${TRACE}#1`,
    })
  })

  it('of a tool that answered with isError has the type tool_error', async () => {
    const end = { status: 'error', error: { message: 'no', type: 'tool_error' } } as const
    const { spans } = await spansOf([[TOOL, end]])
    expect(attributesOf(spans[1])).toMatchObject({ 'error.type': 'tool_error' })
    expect(attributesOf(spans[1])).not.toHaveProperty('rpc.response.status_code')
  })

  it.each([
    [{ method: 'input' }, 'invoke_agent reader', { 'gen_ai.operation.name': 'invoke_agent' }],
    [{ method: 'input', type: 'http' }, 'invoke_agent reader', { 'network.transport': 'tcp' }],
    [
      { type: 'mcp', method: 'resources.get', target: 'file:///a' },
      'resources/read',
      { 'mcp.resource.uri': 'file:///a' },
    ],
    [{ type: 'mcp', method: 'prompts.get', target: 'p' }, 'prompts/get p', { 'gen_ai.prompt.name': 'p' }],
    [{ type: 'mcp', method: 'constructor' }, 'constructor', { 'mcp.method.name': 'constructor' }],
    [{ protocol: 'acp', method: 'session/prompt' }, 'invoke_agent reader', { 'aio.protocol': 'acp' }],
    [{ protocol: 'acp', method: 'tool_call', target: 'edit' }, 'execute_tool edit', { 'gen_ai.tool.name': 'edit' }],
    [
      { protocol: 'mcp', method: 'tools/call', target: 't' },
      'tools/call t',
      { 'gen_ai.operation.name': 'execute_tool' },
    ],
  ] as [Partial<CallStart>, string, object][])('of %j is named %s', async (start, name, attributes) => {
    const { spans } = await spansOf([[start, {}]])
    expect(spans[1]?.name).toBe(name)
    expect(attributesOf(spans[1])).toMatchObject(attributes)
    expect(spans[1]?.status).toEqual({ code: 0 })
  })

  it('holds no payload unless asked for', async () => {
    verifies('T8-payloads')
    const input = { tool: 'area', args: { x: 'SECRET' } }
    const without = await spansOf([[{ ...TOOL, input }, {}]])
    expect(JSON.stringify(without.spans)).not.toContain('SECRET')
    const { spans } = await spansOf([[{ ...TOOL, input }, { output: { y: 1 } }]], { payloads: true, compat: true })
    expect(attributesOf(spans[1])).toMatchObject({
      'gen_ai.tool.call.arguments': JSON.stringify(input),
      'gen_ai.tool.call.result': '{"y":1}',
      'input.value': JSON.stringify(input),
    })
  })

  it('has what other viewers look for when asked to', async () => {
    const { spans } = await spansOf(
      [
        [TOOL, {}],
        [{ callId: 2 }, {}],
      ],
      { compat: true },
    )
    expect(spans.map((span) => attributesOf(span)['langfuse.observation.type'])).toEqual(['chain', 'tool', 'agent'])
    expect(spans.map((span) => attributesOf(span)['openinference.span.kind'])).toEqual(['CHAIN', 'TOOL', 'AGENT'])
  })
})

describe('the spans of a trace', () => {
  it('hang together: root, top-level calls, their children', async () => {
    const { spans } = await spansOf([
      [{ callId: 1 }, { endedAtMs: NOON_MS + 50 }],
      [{ callId: 2, parentId: 1 }, {}],
      [{ callId: 3, parentId: 99 }, {}],
    ])
    const [root, first, child, orphan] = spans
    expect(root).toMatchObject({ name: 'invoke_workflow', kind: 1, endTimeUnixNano: '1774526400050000000' })
    expect(root).not.toHaveProperty('parentSpanId')
    expect([first?.parentSpanId, child?.parentSpanId, orphan?.parentSpanId]).toEqual([
      root?.spanId,
      first?.spanId,
      root?.spanId,
    ])
    expect(new Set(spans.map((span) => span.spanId)).size).toBe(4)
    for (const span of spans) expect([span.traceId.length, span.spanId.length]).toEqual([32, 16])
  })

  it('keep the trace id of an inbound traceparent', async () => {
    verifies('T7-foreign')
    const otelTraceId = '0af7651916cd43dd8448eb211c80319c'
    const { spans } = await spansOf([[{ otelTraceId }, {}]])
    expect(spans.map((span) => span.traceId)).toEqual([otelTraceId, otelTraceId])
  })

  it('leave out what is still open', async () => {
    const { spans } = await spansOf([
      [{}, undefined],
      [{ callId: 2 }, {}],
    ])
    expect(spans.map((span) => span.name)).toEqual(['invoke_agent reader'])
  })
})
