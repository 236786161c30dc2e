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
  type Workbench,
  workbench,
} from '../../test/fixtures/aio/workbench.ts'
import type { Caller, Permissions } from './port.ts'

const AGENTS = [stdioAgent(), mcpAgent(), httpAgent(), stdioAgent({ name: 'safe' })]

/** May use `reader` and `math_agent`, and of their tools what begins with `a`, `math_agent::draw` too. */
const SOME: Permissions = {
  areToolsJudged: true,
  mayUseAgent: (agent) => agent === 'reader' || agent === 'math_agent' || agent === 'ghost',
  mayUseTool: (agent, tool) => tool.startsWith('a') || `${agent}::${tool}` === 'math_agent::draw',
}
const ALL_TOOLS: Permissions = { ...SOME, areToolsJudged: false, mayUseTool: () => true }

const ALICE: Caller = { kind: 'client', key: '7', permissions: SOME, origin: { principal: 'alice', client: 7 } }
const BERTA: Caller = { ...ALICE, key: '8', permissions: ALL_TOOLS }
const READER: Caller = { kind: 'worker', key: 'reader.1', pool: 'reader' }

const text = { inputs: [{ type: 'text', value: 'x' }] }

interface Asking extends Workbench<FakePort> {
  /** The answer to the message, once the agent has answered with this, if it was asked. */
  ask(caller: Caller, message: Line, said?: Line): Promise<Line>
}

function asking(): Asking {
  const bench = workbench(new FakePort(), AGENTS)
  const { gateway, port } = bench
  const ask = async (caller: Caller, message: Line, said?: Line): Promise<Line> => {
    const asked = port.asked.length
    const replies = port.replies.length
    gateway.receive(caller, { id: 1, ...message }, 50)
    if (said !== undefined)
      (await until(() => port.asked[asked], 'a request to the agent')).listener.received({ id: 'bus-1', ...said })
    return (await until(() => port.replies[replies], 'an answer')).message
  }
  return { ...bench, ask }
}

const reasonOf = (answer: Line): unknown => (answer['error'] as { data: Line } | undefined)?.data['reason']

describe('an agent that the caller may not use', () => {
  it('9.18 is not_allowed, whether there is one or not, and in the trace alike', async () => {
    verifies('9.18-agents')
    const { ask, port, traces } = asking()
    const answers = []
    for (const agent of ['safe', 'nobody', 'extractor']) {
      const { error } = await ask(ALICE, { method: `${agent}::tools.call`, params: { name: 'area' } })
      const start = traces.starts.at(-1)!
      answers.push(JSON.stringify([error, { ...start, traceId: 0 }]).replaceAll(agent, 'X'))
    }
    expect(answers[0]).toContain('"code":-32600')
    expect(answers[0]).toContain('"reason":"not_allowed"')
    expect(answers[1]).toBe(answers[0])
    expect(answers[2]).toBe(answers[0])
    expect(port.asked).toEqual([])
  })

  it('9.18 is named to the caller nowhere', async () => {
    verifies('9.18-named')
    const { ask } = asking()
    const unknown = await ask(ALICE, { method: 'ghost::input', params: text })
    expect(reasonOf(unknown)).toBe('unknown_agent')
    const list = await ask(ALICE, { method: 'bus::agents.list' })
    const help = await ask(ALICE, { method: 'bus::help' })
    expect((help['result'] as Line)['agents']).toEqual(['reader', 'math_agent'])
    expect((list['result'] as { agents: Line[] }).agents.map(({ name }) => name)).toEqual(['reader', 'math_agent'])
    for (const answer of [unknown, list, help]) expect(JSON.stringify(answer)).not.toMatch(/safe|extractor/)
    expect(JSON.stringify(await ask(CLIENT, { method: 'help' }))).toMatch(/safe/)
  })

  it('9.18 may be called in turn by one that it may, and that is still the caller’s', async () => {
    verifies('9.18-in-turn')
    const { gateway, port, traces } = asking()
    gateway.receive(ALICE, { method: 'reader::ask', params: text, id: 1 }, 50)
    gateway.receive(READER, { method: 'safe::input', params: text, id: 1 }, 50)
    expect(port.asked.map(({ pool }) => pool)).toEqual(['reader', 'safe'])
    expect(traces.starts[1]).toMatchObject({
      agent: 'safe',
      caller: { kind: 'agent', principal: 'alice', agent: 'reader' },
    })
  })
})

describe('a tool that the caller may not use', () => {
  it.each([
    ['math_agent::tools.call', { name: 'push' }],
    ['math_agent::tools.call', { tool: 'push' }],
    ['math_agent::tools.call', { tool: 'area', name: 'push' }],
    ['math_agent::tools.call', {}],
    ['math_agent::tools.call', { name: null }],
    ['math_agent::tools.call', { name: ['area'] }],
    ['math_agent::tools.call', ['area']],
    ['math_agent::tools.call', undefined],
    ['reader::tools.call', { name: 'draw' }],
    ['reader::tools.call', { name: 'area', tool: 'push' }],
    ['reader::input', text],
    ['math_agent::resources.get', { id: 'a' }],
    ['math_agent::sampling.start', { messages: [] }],
  ])('9.19 %s with %j is refused, and its agent sees nothing of it', async (method, params) => {
    verifies('9.19-aio')
    const { ask, port } = asking()
    const answer = await ask(ALICE, { method, ...(params === undefined ? {} : { params }) })
    expect([reasonOf(answer), (answer['error'] as Line)['code']]).toEqual(['not_allowed', -32600])
    expect(port.asked).toEqual([])
  })

  it.each([
    ['math_agent::tools.call', { name: 'area' }],
    ['math_agent::tools.call', { tool: 'draw' }],
    ['reader::tools.call', { name: 'area', tool: 'add' }],
    ['reader::ask', text],
    ['math_agent::prompts.list', {}],
    ['math_agent::resources.list', {}],
  ])('9.19 %s with %j is allowed', async (method, params) => {
    verifies('9.19-aio')
    const { ask, port } = asking()
    expect(await ask(ALICE, { method, params }, { result: {} })).toHaveProperty('result')
    expect(port.asked).toHaveLength(1)
  })

  it('9.19 a notification of one reaches nobody', async () => {
    const { gateway, port, traces } = asking()
    gateway.receive(ALICE, { method: 'reader::input', params: text }, 50)
    expect([port.asked, port.notified, port.replies]).toEqual([[], [], []])
    expect(traces.ends[0]).toMatchObject({ status: 'error', error: { data: { reason: 'not_allowed' } } })
  })

  it('9.19 without rules for tools every one may be called, and what has no name is said as ever', async () => {
    const { ask } = asking()
    expect(await ask(BERTA, { method: 'reader::input', params: text }, { result: {} })).toHaveProperty('result')
    expect(reasonOf(await ask(BERTA, { method: 'math_agent::tools.call', params: {} }))).toBe('missing_param')
  })
})

describe('the tools that a caller sees', () => {
  const tools = [
    { name: 'area', title: 'Area' },
    { name: 'push' },
    { name: 'draw' },
    { title: 'area' },
    { name: ['area'] },
    'area2',
    null,
  ]

  it.each(['math_agent', 'reader'])(
    '9.20 tools.list of %s loses those that it may not use, in the trace too',
    async (agent) => {
      verifies('9.20-aio')
      const { ask, traces } = asking()
      const said = { result: { tools: tools.slice(0, 5), nextCursor: 'c', cacheScope: 'public', ttlMs: 5 } }
      const { result } = await ask(ALICE, { method: `${agent}::tools.list` }, said)
      const names = agent === 'math_agent' ? ['area', 'draw'] : ['area']
      expect((result as { tools: Line[] }).tools.map(({ name }) => name)).toEqual(names)
      expect(result).toMatchObject({ nextCursor: 'c', cacheScope: 'private', ttlMs: 5 })
      expect(JSON.stringify(traces.ends)).not.toContain('push')
      const others = await ask(CLIENT, { method: `${agent}::tools.list` }, said)
      expect(others['result']).toMatchObject({
        cacheScope: 'public',
        tools: [{ name: 'area' }, { name: 'push' }, {}, {}, {}],
      })
    },
  )

  it.each([{}, { tools: {} }, { tools: null }, { outputs: [{ type: 'text', value: 'push' }] }, null, 'push'])(
    '9.20 %j is no list: bad_list, and nothing of it is told',
    async (result) => {
      verifies('9.20-aio')
      const { ask, traces } = asking()
      const answer = await ask(ALICE, { method: 'reader::tools.list' }, { result })
      expect([reasonOf(answer), (answer['error'] as Line)['code']]).toEqual(['bad_list', -32603])
      expect(JSON.stringify([answer, traces.ends])).not.toContain('push')
    },
  )

  it('9.20 an error of the agent passes, and nothing comes in parts', async () => {
    const { gateway, port, traces } = asking()
    gateway.receive(ALICE, { method: 'reader::tools.list', id: 1 }, 50)
    const { listener } = port.asked[0]!
    listener.received({ partial: true, outputs: [{ type: 'text', value: 'push' }] })
    listener.received({ error: { code: 7, message: 'no' } })
    expect(port.replies.map(({ message }) => message)).toMatchObject([{ id: 1, error: { code: 7, message: 'no' } }])
    expect(traces.partials).toBe(0)
  })

  it('9.20 help of an MCP server loses them, asked for or remembered, and others see all', async () => {
    verifies('9.20-help')
    const { ask, port } = asking()
    const said = { result: { tools } }
    const others = await ask(CLIENT, { method: 'math_agent::help' }, said)
    expect(JSON.stringify(others)).toContain('push')
    const remembered = await ask(ALICE, { method: 'math_agent::help' })
    expect(port.asked).toHaveLength(1)
    const fresh = await asking().ask(ALICE, { method: 'math_agent::help' }, said)
    for (const { result } of [remembered, fresh]) {
      expect((result as Line)['tools']).toEqual([tools[0], tools[2], 'area2'])
      expect((result as Line)['methods']).toEqual([
        'resources.list',
        'prompts.list',
        'tools.list',
        'tools.call',
        'help',
      ])
    }
    expect((await ask(CLIENT, { method: 'math_agent::help' }))['result']).toEqual(others['result'])
  })

  it('9.20 help of a program loses the methods that it may not call', async () => {
    verifies('9.20-help')
    const { ask } = asking()
    const methods = ['ask', 'push', { name: 'add', about: 1 }, { name: 'purge' }, 'help']
    const { result } = await ask(ALICE, { method: 'reader::help' }, { result: { methods, tools: 'push' } })
    expect(result).toMatchObject({
      methods: ['ask', 'add', 'help'],
      method_details: [{ name: 'add', about: 1 }],
      tools: [],
    })
  })

  it('9.20 without rules for tools nothing is hidden', async () => {
    const { ask } = asking()
    const { result } = await ask(BERTA, { method: 'reader::tools.list' }, { result: { anything: 'push' } })
    expect(result).toEqual({ anything: 'push' })
  })
})
