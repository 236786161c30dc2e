import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { CLIENT, FakePort, type Line, mcpAgent, until, workbench } from '../../test/fixtures/aio/workbench.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function bench(hello?: Line) {
  const made = workbench(new FakePort(), [mcpAgent()])
  if (hello !== undefined) made.port.hello = hello
  const call = (method: string, fields: Line = {}): void =>
    made.gateway.receive(CLIENT, { method: `math_agent::${method}`, id: 1, trace_id: 'T', ...fields }, 50)
  return { ...made, call }
}

describe('a message to an MCP server', () => {
  it('has nothing beside method and params, whatever the caller sent', async () => {
    verifies('N6-mcp')
    const { port, call } = bench()
    call('tools.call', { params: { tool: 'a', args: { x: 1 } }, sessionId: 'S', pool: 'p', extra: true })
    await until(() => port.asked[0], 'a request')
    expect(port.asked[0]?.message).toEqual({
      method: 'tools/call',
      params: {
        name: 'a',
        arguments: { x: 1 },
        _meta: { traceparent: expect.any(String), 'stdio-bus/trace_id': 'T', 'stdio-bus/call_id': 'T#1' },
      },
    })
    expect(port.asked[0]?.affinity).toBe('S')
  })

  it('carries the version and our capabilities in the stateless era', async () => {
    const { port, call } = bench({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } })
    call('tools.list')
    await until(() => port.asked[0], 'a request')
    expect(port.asked[0]?.message['params']).toMatchObject({
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    })
  })

  it('is not sent when the caller gave up during the handshake', async () => {
    const { gateway, port, call, traces } = bench()
    call('tools.list')
    gateway.cancel(CLIENT, 1)
    await turn()
    expect(port.asked).toEqual([])
    expect(traces.only).toMatchObject({ status: 'error', error: { data: { reason: 'cancelled' } } })
  })

  it('is left to the port when no worker has shaken hands', async () => {
    const { port, call } = bench()
    port.handshake = () => Promise.reject(new Error('no worker'))
    call('resources.list')
    await until(() => port.asked[0], 'a request')
    port.asked[0]?.listener.failed({ code: -32603, message: 'none', data: { reason: 'no_worker' } })
    expect(port.replies[0]?.message).toMatchObject({ error: { data: { reason: 'no_worker' } } })
  })

  it('is cancelled at the server when the caller goes', async () => {
    const { gateway, port, call } = bench()
    call('tools.list')
    await until(() => port.asked[0], 'a request')
    gateway.gone(CLIENT)
    expect(port.asked[0]?.cancelled).toBe(true)
  })
})

describe('what an MCP server says', () => {
  it.each([
    ['no answer', {}],
    ['a question', { result: { resultType: 'input_required', inputRequests: {} } }],
  ])('%s is agent_invalid_response', async (_title, said) => {
    const { port, call } = bench()
    call('tools.list')
    await until(() => port.asked[0], 'a request')
    port.asked[0]?.listener.received(said)
    expect(port.replies[0]?.message).toMatchObject({
      error: { code: -32603, data: { reason: 'agent_invalid_response' } },
    })
  })

  it('an error of its own passes', async () => {
    const { port, call } = bench()
    call('resources.get', { params: { id: 'a:' } })
    await until(() => port.asked[0], 'a request')
    port.asked[0]?.listener.received({ error: { code: -32002, message: 'Resource not found' } })
    expect(port.replies[0]?.message).toMatchObject({ error: { code: -32002, message: 'Resource not found' } })
  })

  it('names the modules that are on when one is off', async () => {
    verifies('N8-disabled')
    const { port, call } = bench({ capabilities: { prompts: {} } })
    call('tools.list')
    const { message } = await until(() => port.replies[0], 'an answer')
    expect(message['error']).toMatchObject({
      data: { reason: 'module_disabled', module: 'tools', methods: ['prompts.list', 'prompts.get', 'help'] },
    })
  })
})
