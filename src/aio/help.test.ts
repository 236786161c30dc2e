import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import {
  CLIENT,
  FakePort,
  type Line,
  mcpAgent,
  stdioAgent,
  until,
  workbench,
} from '../../test/fixtures/aio/workbench.ts'
import { describeAgent } from './help.ts'

const agent = stdioAgent({ modalities: ['text'] })
const NONE = { resources: false, prompts: false, tools: false, sampling: false }
const VOICE = { type: 'voice_service', version: '1', transport: ['stdio'], methods: [{ name: 'identify' }, 'help'] }

describe('what agents in use say to help', () => {
  it.each([
    [
      'the seed’s shape, bare',
      { type: 'mcp', methods: ['tools.list'], modalities: ['audio'], mcp: { tools: true } },
      ['tools.list'],
    ],
    ['in result', { jsonrpc: '2.0', id: 1, result: VOICE }, ['identify', 'help']],
    ['in output, with another id', { jsonrpc: '2.0', id: 1_700_000_000_000, output: VOICE }, ['identify', 'help']],
    ['in a nested envelope', { result: { jsonrpc: '2.0', id: 1, result: VOICE } }, ['identify', 'help']],
    ['another shape', { result: { service: 'mug', methods: [{ name: 'draw', params: {} }] } }, ['draw']],
    ['rubbish', { result: 'Usage: agent [options]' }, ['input', 'help']],
    ['methods that are none', { result: { methods: [5, null, { title: 'x' }, 'ok'] } }, ['ok']],
    ['nothing', undefined, ['input', 'help']],
  ])('%s', (_title, said, methods) => {
    expect(describeAgent(agent, said)).toMatchObject({ type: 'stdio', methods, modalities: ['text'] })
  })

  it('is written in the seed’s four fields, with the rest beside them', () => {
    verifies('N20-shape')
    expect(describeAgent(agent, { result: VOICE })).toEqual({
      type: 'stdio',
      methods: ['identify', 'help'],
      modalities: ['text'],
      mcp: NONE,
      version: '1',
      transport: ['stdio'],
      method_details: [{ name: 'identify' }],
    })
  })

  it('takes the agent’s modalities where the configuration has none', () => {
    expect(describeAgent(stdioAgent(), { methods: [], modalities: ['audio', 5] })['modalities']).toEqual(['audio'])
  })
})

function asking(spec = stdioAgent()) {
  const bench = workbench(new FakePort(), [spec])
  let id = 0
  const help = (): void => bench.gateway.receive(CLIENT, { method: `${spec.name}::help`, id: ++id }, 40)
  return { ...bench, help }
}

describe('asking for help', () => {
  it('is bare first, then in the agent’s style, then the configuration answers', () => {
    verifies('N20-asked')
    const { port, help } = asking()
    help()
    expect(port.asked[0]?.message).toEqual({ jsonrpc: '2.0', method: 'help' })
    port.asked[0]?.listener.received({ error: { code: -32601, message: 'no' } })
    expect(port.asked[1]?.message).toMatchObject({ method: 'reader::help', trace_id: 'AIO-TR-20250326-0001' })
    port.asked[1]?.listener.received({ error: { code: -32601, message: 'no' } })
    expect(port.replies[0]?.message).toMatchObject({
      id: 1,
      call_id: 1,
      result: { type: 'stdio', methods: ['input', 'help'] },
    })
  })

  it('passes any other error', () => {
    const { port, help } = asking()
    help()
    port.asked[0]?.listener.received({ error: { code: -32000, message: 'busy' } })
    expect(port.replies[0]?.message).toMatchObject({ error: { code: -32000, message: 'busy' } })
  })

  it('is remembered until its worker goes, its lists change, or a minute has passed', () => {
    verifies('N20-kept')
    const { gateway, port, help, traces } = asking()
    const answer = (): void => port.asked.at(-1)?.listener.received({ result: { methods: ['x'] } })
    const forgetting = [
      () => gateway.workerGone('reader.1'),
      () => gateway.listChanged('reader'),
      () => (port.now += 60_000),
    ]
    help()
    answer()
    for (const [round, forget] of forgetting.entries()) {
      help()
      expect(port.asked).toHaveLength(round + 1)
      forget()
      help()
      expect(port.asked).toHaveLength(round + 2)
      answer()
    }
    expect(traces.ends).toHaveLength(7)
    expect(new Set(port.replies.map(({ message }) => JSON.stringify(message['result']))).size).toBe(1)
  })

  it('of an MCP agent without a worker is no_worker', async () => {
    const { port, help } = asking(mcpAgent())
    port.hello = undefined
    help()
    const { message } = await until(() => port.replies[0], 'an answer')
    expect(message['error']).toMatchObject({ code: -32603, data: { reason: 'no_worker', retryable: true } })
  })

  it('of an MCP agent without tools asks for none', async () => {
    const { port, help } = asking(mcpAgent())
    port.hello = { capabilities: { prompts: {} }, serverInfo: { name: 's' }, instructions: 'be kind' }
    help()
    const { message } = await until(() => port.replies[0], 'an answer')
    expect(message['result'] as Line).toEqual({
      type: 'mcp',
      methods: ['prompts.list', 'prompts.get', 'help'],
      modalities: ['text', 'image', 'audio', 'video', 'file'],
      mcp: { ...NONE, prompts: true },
      server: { name: 's' },
      description: 'be kind',
    })
    expect(port.asked).toEqual([])
  })
})
