/** Agents called by name through the real daemon (spec N). */
import type { Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, launch } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'
import { pool } from '../support/pools.ts'
import { Workspace } from '../support/workspace.ts'
import { agent, callsOf, mcpServer, oneshot, startHttpAgent } from './aio-harness.ts'

const inputs = [{ type: 'text', value: 'hello' }]

describe('agents of every kind', () => {
  const workspace = new Workspace()
  let bus: Bus
  let server: Server

  beforeAll(async () => {
    const http = await startHttpAgent()
    server = http.server
    const config = {
      default_pool: 'plain',
      pools: [
        pool('echo', { id: 'plain' }),
        agent('reader', { modalities: ['text'] }, { instances: 2 }),
        agent('chief'),
        agent('printer', { mode: 'json' }, { args: ['pretty'] }),
        oneshot('voice', 'output', { method_style: 'bare' }),
        oneshot('frail', 'crash'),
        oneshot('slow', 'hang', { timeout_ms: 300 }),
        mcpServer('old', 'v1'),
        mcpServer('new', 'v2'),
        mcpServer('modern', 'v2', { protocol: 'mcp', era: 'modern' }),
        agent('leased', {}, { sharing: 'lease' }),
        mcpServer('own', 'v1', { sharing: 'isolated', instances: 1 }),
      ],
      agents: [{ name: 'web', type: 'http', endpoint: http.endpoint }],
      aio: { store: { path: 'traces.db' } },
    }
    bus = await launch({ config, doors: ['unix', 'tcp'] }, workspace)
  })

  afterAll(async () => {
    server.close()
    await workspace.remove()
  })

  test('two clients with the same id share a trace: both are answered, each call has its own number', async () => {
    verifies('T2-unique', 'T4-delivered')
    const [one, two] = [await bus.connect(), await bus.connect()]
    const call = { id: 1, method: 'reader::input', params: { inputs }, trace_id: 'shared-1' }
    const answers = await Promise.all([one.ask(call), two.ask(call)])
    expect(answers.map(({ id, trace_id }) => [id, trace_id])).toEqual([
      [1, 'shared-1'],
      [1, 'shared-1'],
    ])
    expect(new Set(answers.map(({ call_id }) => call_id)).size).toBe(2)
    const calls = await callsOf(one, 'shared-1')
    expect(calls.map(({ request_id, status }) => [request_id, status])).toEqual([
      [1, 'ok'],
      [1, 'ok'],
    ])
  })

  test('an agent finds the trace in its message, and a bus-made id', async () => {
    verifies('N4-own-id')
    const client = await bus.connect()
    const { result } = await client.ask({ id: 'mine', method: 'reader::show', params: { a: 1 }, trace_id: 'shown-1' })
    expect(result.id).not.toBe('mine')
    expect(result).toMatchObject({ method: 'reader::show', trace_id: 'shown-1', params: { a: 1 } })
    expect(result.params._meta['stdio-bus/call_id']).toBe('shown-1#1')
  })

  test('an error of the agent is passed as it is', async () => {
    verifies('N10-own-error')
    const client = await bus.connect()
    const { error } = await client.ask({ id: 1, method: 'reader::nothing' })
    expect(error).toEqual({ code: -32601, message: 'no reader::nothing', data: { own: 1 } })
  })

  test('ids that a JSON library respells come back byte for byte, in partials too', async () => {
    verifies('N4-restored')
    const client = await bus.connect()
    for (const id of ['12345678901234567890', '1.50', '"\\uD800"']) {
      client.send(`{"id":${id},"method":"reader::stream"}`)
      const lines = [await client.nextLine(), await client.nextLine(), await client.nextLine()].map(String)
      expect(lines[0]).toContain(`"params":{"id":${id},"seq":1`)
      expect(lines[2]!.startsWith(`{"id":${id},`)).toBe(true)
    }
    const refused = client.send('{"id":98765432109876543210,"method":"no one::x"}')
    expect(refused).toBeUndefined()
    expect(String(await client.nextLine())).toContain('"id":98765432109876543210,')
  })

  test('partials come before the answer; one that has only outputs is an answer', async () => {
    verifies('N15-order')
    const client = await bus.connect()
    client.send({ id: 5, method: 'reader::stream', trace_id: 'parts-1' })
    const [first, second, last] = await client.take(3)
    expect(first).toMatchObject({ method: 'reader::partial', params: { id: 5, seq: 1, partial: true } })
    expect(second.params).toMatchObject({ seq: 2, outputs: [{ type: 'text', value: 'b' }] })
    expect(last.result.outputs).toEqual([{ type: 'text', value: 'ab' }])
    const loose = await client.ask({ id: 6, method: 'reader::outputs' })
    expect(loose.result.outputs).toEqual([{ type: 'text', value: 'loose' }])
    expect((await callsOf(client, 'parts-1'))[0].partials).toBe(2)
  })

  test('calls of one session stay on one worker, others take turns', async () => {
    verifies('N5-affinity')
    const client = await bus.connect()
    const pids = async (more: object): Promise<Set<number>> => {
      const seen = new Set<number>()
      for (let id = 1; id <= 6; id++) seen.add((await client.ask({ id, method: 'reader::pid', ...more })).result)
      return seen
    }
    expect((await pids({ sessionId: 's' })).size).toBe(1)
    expect((await pids({})).size).toBe(2)
  })

  test('agents call agents: the graph is as deep as what happened', async () => {
    verifies('N16-calls')
    const client = await bus.connect()
    const inner = { to: 'old::tools.call', with: { tool: 'calculate_area', args: { x: 2, y: 3 } } }
    const answer = await client.ask({
      id: 1,
      method: 'chief::ask',
      params: { to: 'printer::ask', with: inner },
      trace_id: 'deep-1',
    })
    expect(answer.result.said.result.said.result.outputs).toEqual([{ type: 'text', value: '6' }])
    const calls = await callsOf(client, 'deep-1')
    expect(calls.map(({ id, parent_id, agent, protocol }) => [id, parent_id, agent, protocol])).toEqual([
      [1, null, 'chief', 'aio'],
      [2, 1, 'printer', 'aio'],
      [3, 2, 'old', 'mcp'],
    ])
    const root = { principal: 'local', client: calls[0]!.caller.client }
    expect(calls.map(({ caller }) => caller)).toEqual([
      { kind: 'client', ...root },
      { kind: 'agent', ...root, agent: 'chief' },
      { kind: 'agent', ...root, agent: 'printer' },
    ])
    const mine = await client.ask({ id: 2, method: 'bus::traces.list', params: { caller: 'local', agent: 'old' } })
    expect(mine.result.traces.map(({ trace_id }: Message) => trace_id)).toContain('deep-1')
    const others = await client.ask({ id: 3, method: 'bus::traces.list', params: { caller: 'nobody' } })
    expect(others.result.traces).toEqual([])
  })

  test('agents that call each other in a loop are stopped at 32 levels', async () => {
    verifies('N16-depth')
    const client = await bus.connect()
    let message: object = { to: 'chief::pid', with: {} }
    for (let level = 0; level < 40; level++) message = { to: 'chief::relay', with: message }
    const { result } = await client.ask({ id: 1, method: 'chief::relay', params: message, trace_id: 'loop-1' })
    expect(JSON.stringify(result)).toContain('"reason":"too_deep"')
    const calls = await callsOf(client, 'loop-1')
    expect(calls.map(({ parent_id }) => parent_id)).toEqual([
      null,
      ...Array.from({ length: 32 }, (_, index) => index + 1),
    ])
    expect(calls.at(-1).error.data.reason).toBe('too_deep')
  })

  test('a one-shot agent: a process for each call, matched by the process, plain messages refused', async () => {
    verifies('N10-oneshot', 'N10-aio-only')
    const client = await bus.connect()
    const answer = await client.ask({ id: 7, method: 'voice::identify' })
    expect(answer).toMatchObject({ id: 7, result: { outputs: [{ type: 'text', value: 'spoken' }] } })
    const plain = await client.ask({ id: 8, method: 'identify', pool: 'voice' })
    expect(plain.error).toMatchObject({ code: -32600, data: { reason: 'aio_only', pool: 'voice' } })
    const { workers } = await bus.status()
    expect(workers.filter((worker) => worker.pool === 'voice')).toEqual([])
  })

  test('a one-shot agent that fails: the caller gets the reason, the trace what it said on stderr', async () => {
    verifies('N12-stderr')
    const client = await bus.connect()
    const { error } = await client.ask({ id: 1, method: 'frail::input', params: { inputs }, trace_id: 'frail-1' })
    expect(error.data).toMatchObject({ reason: 'worker_exited', exit_code: 3 })
    expect(JSON.stringify(error)).not.toContain('out of memory')
    expect(JSON.stringify((await callsOf(client, 'frail-1'))[0].error)).toContain('out of memory')
  })

  test('a one-shot agent that hangs is ended at its time', async () => {
    const client = await bus.connect()
    const { error } = await client.ask({ id: 1, method: 'slow::input', params: { inputs } })
    expect(error.data).toMatchObject({ reason: 'agent_timeout' })
    const running = async () => {
      const { result } = await client.ask({ id: 2, method: 'bus::agents.list' })
      return result.agents.find(({ name }: { name: string }) => name === 'slow').workers
    }
    await expect.poll(running).toBe(0)
  })

  test('an agent that prints its answers over several lines', async () => {
    verifies('N10-json')
    const client = await bus.connect()
    const answer = await client.ask({
      id: 1,
      method: 'printer::input',
      params: { inputs: [{ type: 'text', value: 'a\n{' }] },
    })
    expect(answer.result.outputs).toEqual([{ type: 'text', value: 'a\n{' }])
  })

  test('an http agent with an event stream', async () => {
    verifies('N15-events')
    const client = await bus.connect()
    client.send({ id: 1, method: 'web::input', params: { inputs }, trace_id: 'web-1' })
    const [one, two, last] = await client.take(3)
    expect([one, two].map(({ params }) => params.outputs[0].value)).toEqual(['one', 'two'])
    expect(last).toMatchObject({ id: 1, result: { outputs: inputs }, trace_id: 'web-1', call_id: 1 })
  })

  test.each(['old', 'new', 'own'])('an MCP server (%s): tools, errors, progress and help', async (name) => {
    verifies('N8-is-error', 'N20-shape')
    const client = await bus.connect()
    const trace_id = `mcp-${name}`
    const ask = (id: number, method: string, params: object = {}) =>
      client.ask({ id, method: `${name}::${method}`, params, trace_id }, 10_000)
    const area = await ask(1, 'tools.call', { tool: 'calculate_area', args: { x: 3, y: 4 } })
    expect(area.result.outputs).toEqual([{ type: 'text', value: '12' }])
    const failed = await ask(2, 'tools.call', { tool: 'explode' })
    expect(failed.result.isError).toBe(true)
    const help = await ask(3, 'help')
    expect(help.result).toMatchObject({ type: 'mcp', mcp: { tools: true, resources: true, sampling: false } })
    client.send({
      id: 4,
      method: `${name}::tools.call`,
      params: { tool: 'progress', _meta: { progressToken: 'p' } },
      trace_id,
    })
    expect((await client.next()).params).toMatchObject({ id: 4, seq: 1, progress: 1 })
    expect((await client.answerTo(4)).result.outputs).toEqual([{ type: 'text', value: 'done' }])
    const calls = await callsOf(client, trace_id)
    expect(calls.map(({ status, protocol }) => [status, protocol])).toEqual([
      ['ok', 'mcp'],
      ['error', 'mcp'],
      ['ok', 'mcp'],
      ['ok', 'mcp'],
    ])
    expect(calls[1].error.type).toBe('tool_error')
  })

  test('a notification is traced and never answered', async () => {
    verifies('N7-notification')
    const client = await bus.connect()
    const file = workspace.path('notes')
    client.send({ method: 'reader::note', params: { file }, trace_id: 'note-1' })
    await client.taken()
    const [call] = await callsOf(client, 'note-1')
    expect(call).toMatchObject({ method: 'note', status: 'ok', request_id: null })
    await expect.poll(() => workspace.read('notes')).toBe('noted\n')
    await client.staysQuiet(100)
  })

  test('what names no agent keeps its path, a trace_id included', async () => {
    verifies('N1-path')
    const client = await bus.connect()
    const message = { method: 'show', pool: 'reader', trace_id: 't', sessionId: 'own', params: { x: 'a::b' }, id: 1 }
    expect((await client.ask(message)).result).toEqual(message)
  })

  test('refusals say why and keep the connection; three of them are counted only', async () => {
    verifies('N2-grammar', 'N2-unknown', 'N3-refused', 'N8-input')
    const client = await bus.connect()
    const ask = async (method: string, more: object = {}) => (await client.ask({ id: 1, method, ...more })).error
    expect((await ask('nobody::m')).data).toMatchObject({ reason: 'unknown_agent' })
    expect((await ask('plain::m')).data).toMatchObject({ reason: 'unknown_agent' })
    expect((await ask('a b::m')).data.reason).toBe('bad_name')
    expect((await ask('reader::m', { trace_id: 'a b' })).data.reason).toBe('bad_trace_id')
    expect((await ask('reader::m', { jsonrpc: '1.0' })).data.reason).toBe('bad_jsonrpc')
    expect((await ask('old::input', { params: { inputs } })).data.reason).toBe('input_not_available_on_mcp')
    expect((await bus.status()).refused).toMatchObject({ bad_trace_id: 1, bad_jsonrpc: 1 })
  })

  test('what is nested beyond reason is refused, from a caller and from an agent, and kept out of the trace', async () => {
    verifies('N3-nested')
    const client = await bus.connect()
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
    client.send(`{"id":1,"method":"reader::show","params":{"x":${deep}}}`)
    expect((await client.next()).error.data.reason).toBe('too_nested')
    const { error } = await client.ask({ id: 2, method: 'reader::deep', params: { depth: 20_000 }, trace_id: 'deep-2' })
    expect(error.data.reason).toBe('agent_invalid_response')
    expect((await callsOf(client, 'deep-2'))[0].method).toBe('deep')
    const shown = await bus.run(['trace', 'show', 'deep-2#2', '--control', bus.control])
    expect(shown.code).toBe(0)
  })

  test('sampling of a server that does none is refused quickly, other sharing modes and eras work', async () => {
    verifies('N9-unsupported')
    const client = await bus.connect()
    const { error } = await client.ask({ id: 1, method: 'old::sampling.start', params: { prompt: 'x' } })
    expect(error).toMatchObject({ code: -32601, data: { reason: 'sampling_unsupported' } })
    const call = { method: 'modern::tools.call', params: { tool: 'calculate_area', args: { x: 1, y: 2 } } }
    expect((await client.ask({ id: 2, ...call }, 10_000)).result.outputs).toEqual([{ type: 'text', value: '2' }])
    for (const id of [3, 4, 5]) client.send({ id, method: 'leased::later', params: { ms: 30 } })
    const leased = await client.take(3)
    expect(leased.map(({ result }) => result)).toEqual(['late', 'late', 'late'])
  })

  test('the bus itself: help, agents, traces on the Unix door, none over TCP', async () => {
    verifies('N21-methods', 'N21-remote')
    const client = await bus.connect('unix')
    expect((await client.ask({ id: 1, method: 'help' })).result.agents).toContain('web')
    expect((await client.ask({ id: 2, method: 'bus::trace.new' })).result.trace_id).toMatch(/^AIO-TR-\d{8}-\d{4,}$/)
    expect((await client.ask({ id: 3, method: 'bus::traces.list', params: { limit: 1 } })).result.traces).toHaveLength(
      1,
    )
    expect((await client.ask({ id: 4, method: 'bus::nothing' })).error.data.reason).toBe('unknown_method')
    const remote = await bus.connect('tcp')
    expect((await remote.ask({ id: 1, method: 'bus::traces.list' })).error.data.reason).toBe('remote_queries_off')
    expect((await remote.ask({ id: 2, method: 'reader::input', params: { inputs } })).result.outputs).toEqual(inputs)
  })

  test('internal exchanges are no clients: the status counts connections', async () => {
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'reader::pid' })
    const before = await bus.status()
    client.send({ id: 2, method: 'reader::wait' })
    const during = await bus.statusWhere('a call is open', (status) => status.outstanding > before.outstanding)
    expect(during.clients).toBe(before.clients)
    client.close()
  })
})
