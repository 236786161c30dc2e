/** What becomes of calls when somebody goes, does not read, or the bus stops: exactly one answer, or nobody waits. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus, testWorkspace } from '../support/bus.ts'
import { pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { agent, callsOf, oneshot } from './aio-harness.ts'

const aio = { store: { path: 'traces.db' } }

describe('somebody goes', () => {
  test('a worker that dies in the middle of a call: one error, and the next call finds its successor', async () => {
    verifies('N18-exited')
    const bus = await startBus({ config: { pools: [agent('reader')], aio } })
    const client = await bus.connect()
    client.send({ id: 1, method: 'reader::wait', trace_id: 'death' })
    const { error } = await client.ask({ id: 2, method: 'reader::die', trace_id: 'death' })
    expect(error).toMatchObject({ code: -32603, data: { reason: 'worker_exited' } })
    const lines = client.lines.map((line) => JSON.parse(line.toString()))
    expect(lines.map(({ id }) => id).sort()).toEqual([1, 2])
    expect((await client.ask({ id: 3, method: 'reader::pid' })).result).toBeGreaterThan(0)
    const calls = await callsOf(client, 'death')
    expect(calls.map(({ status, error: told }) => [status, told.data.reason])).toEqual([
      ['error', 'worker_exited'],
      ['error', 'worker_exited'],
    ])
  })

  test('a worker that dies while it calls another: its own call is given up', async () => {
    verifies('N18-nested')
    const bus = await startBus({ config: { pools: [agent('chief'), agent('reader')], aio } })
    const client = await bus.connect()
    client.send({ id: 1, method: 'chief::ask', params: { to: 'reader::wait', with: {} }, trace_id: 'nested' })
    await eventually('both calls to be open', async () => (await callsOf(client, 'nested')).length === 2)
    const { error } = await client.ask({ id: 2, method: 'chief::die' })
    expect(error.data.reason).toBe('worker_exited')
    const calls = await eventually('the calls to end', async () => {
      const all = await callsOf(client, 'nested')
      return all.every(({ status }) => status === 'error') && all
    })
    expect(calls[1].error.data.reason).toBe('caller_gone')
  })

  test('a client that goes: the MCP server is told, and the trace says so', async () => {
    verifies('N18-gone')
    const workspace = testWorkspace()
    const file = workspace.path('seen')
    const recorder = fileURLToPath(new URL('aio-mcp-recorder.mjs', import.meta.url))
    const config = {
      pools: [{ id: 'tool', command: process.execPath, args: [recorder, file], aio: { type: 'mcp' } }],
      aio,
    }
    const bus = await startBus({ config, workspace, doors: ['unix', 'tcp'] })
    const client = await bus.connect('tcp')
    client.send({ id: 1, method: 'tool::tools.call', params: { tool: 't' }, trace_id: 'left' })
    const sent = await eventually('the call', () => workspace.lines('seen').find((line) => line.includes('tools/call')))
    expect(JSON.parse(sent)).not.toHaveProperty('trace_id')
    client.reset()
    const cancel = await eventually('the cancel', () =>
      workspace.lines('seen').find((line) => line.includes('cancelled')),
    )
    expect(JSON.parse(cancel).params.requestId).toBe(JSON.parse(sent).id)
    const [call] = await callsOf(await bus.connect(), 'left')
    expect(call.error.data.reason).toBe('caller_gone')
  })

  test('a call that its client cancels: no answer, the agent is told, the connection goes on', async () => {
    verifies('N18-cancel')
    const workspace = testWorkspace()
    const recorder = fileURLToPath(new URL('aio-mcp-recorder.mjs', import.meta.url))
    const tool = {
      id: 'tool',
      command: process.execPath,
      args: [recorder, workspace.path('seen')],
      aio: { type: 'mcp' },
    }
    const bus = await startBus({ config: { pools: [tool, agent('reader')], default_pool: 'reader', aio }, workspace })
    const client = await bus.connect()
    client.send({ id: 1, method: 'tool::tools.call', params: { tool: 't' }, trace_id: 'dropped' })
    await eventually('the call', () => workspace.read('seen').includes('tools/call'))
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    await eventually('the cancel', () => workspace.read('seen').includes('notifications/cancelled'))
    expect((await client.ask({ id: 2, method: 'reader::pid' })).result).toBeGreaterThan(0)
    expect(client.lines).toHaveLength(1)
    expect((await bus.status()).outstanding).toBe(0)
    expect((await callsOf(client, 'dropped'))[0].error.data.reason).toBe('cancelled')
  })

  test('agents that call each other without end and without context: they stop at 32 levels, or with their client', async () => {
    verifies('N16-unknown', 'N18-caused')
    const workspace = testWorkspace()
    const bus = await startBus({
      config: { pools: [agent('chief'), agent('clerk')], aio },
      workspace,
      doors: ['unix', 'tcp'],
    })
    const client = await bus.connect('tcp')
    const params = { to: 'clerk::bounce', file: workspace.path('bounces') }
    // Two at a time: which of them an agent calls for nobody knows.
    for (const id of [1, 2]) client.send({ id, method: 'chief::bounce', params })
    const answers = [await client.next(), await client.next()]
    expect(JSON.stringify(answers)).toContain('too_deep')
    expect(workspace.read('bounces').length).toBeLessThanOrEqual(2 * 32)

    const waits = { to: 'clerk::ask', with: { to: 'chief::ask', with: { to: 'clerk::wait', with: {} } } }
    for (const id of [3, 4]) client.send({ id, method: 'chief::ask', params: waits })
    await bus.statusWhere('all wait', ({ workers }) => workers.reduce((sum, each) => sum + each.outstanding, 0) === 8)
    client.reset()
    const other = await bus.connect()
    const active = { id: 'active', method: 'bus::traces.list', params: { status: 'active' } }
    await eventually('all calls to end', async () => (await other.ask(active)).result.traces.length === 0)
  })

  test('a client that only ends its writing side gets its answers (contract 4.1.2)', async () => {
    const bus = await startBus({ config: { pools: [agent('reader')], aio } })
    const client = await bus.connect()
    client.send({ id: 1, method: 'reader::later', params: { ms: 300 } })
    client.endWriting()
    expect(await client.untilClosed()).toMatchObject([{ id: 1, result: 'late' }])
  })
})

describe('the bus stops (contract 7.4)', () => {
  test('calls under way are answered in the drain, agents may still call each other, new ones are refused', async () => {
    verifies('N19-drain')
    const bus = await startBus({ config: { pools: [agent('chief'), agent('reader')], aio } })
    const client = await bus.connect()
    client.send({ id: 1, method: 'reader::later', params: { ms: 600 } })
    client.send({ id: 2, method: 'chief::ask', params: { to: 'reader::later', with: { ms: 500 } } })
    await client.taken()
    bus.signal('SIGTERM')
    await eventually('the drain', () => bus.log.text.includes('shutting down'))
    client.send({ id: 3, method: 'reader::pid' })
    const answers = await client.untilClosed()
    expect(answers.find(({ id }) => id === 3).error.data.reason).toBe('shutting_down')
    expect(answers.find(({ id }) => id === 1).result).toBe('late')
    expect(answers.find(({ id }) => id === 2).result.said.result).toBe('late')
    expect((await bus.exit).code).toBe(0)
  })

  test('at the end of the drain open calls get their error, one-shot processes are ended', async () => {
    verifies('N19-drain')
    const config = { pools: [agent('reader'), oneshot('slow', 'hang')], aio, limits: { drain_timeout_sec: 1 } }
    const bus = await startBus({ config })
    const client = await bus.connect()
    client.send({ id: 1, method: 'reader::wait' })
    client.send({ id: 2, method: 'slow::input', params: { inputs: [{ type: 'text', value: '' }] } })
    await client.taken()
    bus.signal('SIGTERM')
    const answers = await client.untilClosed()
    expect(answers.map(({ id, error }) => [id, error.data.reason]).sort()).toEqual([
      [1, 'shutting_down'],
      [2, 'shutting_down'],
    ])
    expect((await bus.exit).code).toBe(0)
  })
})

describe('bounds', () => {
  test('too many open calls of one client are refused', async () => {
    const config = { pools: [agent('reader')], aio, limits: { max_pending_per_client: 2 } }
    const bus = await startBus({ config })
    const client = await bus.connect()
    for (const id of [1, 2]) client.send({ id, method: 'reader::wait' })
    const { error } = await client.ask({ id: 3, method: 'reader::pid' })
    expect(error.data).toMatchObject({ reason: 'too_many_pending', retryable: true })
  })

  test('a client that does not read holds back the worker that answers it, not the memory of the bus', async () => {
    verifies('N14-slow-caller')
    const limits = { max_output_queue: 262_144, blocking_timeout_sec: 30, backpressure_timeout_sec: 30 }
    const bus = await startBus({ config: { pools: [agent('reader')], aio, limits } })
    const client = await bus.connect()
    client.pause()
    for (let id = 1; id <= 200; id++) client.send({ id, method: 'reader::big', params: { bytes: 100_000 } })
    const stuck = await bus.statusWhere(
      'the worker waits',
      (status) => (status as unknown as { paused: number }).paused > 0,
    )
    expect(stuck.queue_bytes).toBeLessThan(4_000_000)
    client.resume()
    const answers = await client.take(200, 10_000)
    expect(new Set(answers.map(({ id }) => id)).size).toBe(200)
  })

  test('an event stream waits for a client that does not read, and nothing of it is lost', async () => {
    verifies('N14-slow-caller')
    const parts = 1_500
    const outputs = [{ type: 'text', value: 'x'.repeat(10_000) }]
    const server = createServer(async (request, response) => {
      for await (const _ of request);
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let n = 0; n < parts; n++) {
        const hasRoom = response.write(`data: ${JSON.stringify({ partial: true, outputs })}\n\n`)
        if (!hasRoom) await once(response, 'drain')
      }
      response.end(`data: ${JSON.stringify({ result: 'done' })}\n\n`)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const limits = { max_output_queue: 262_144 }
    const config = { pools: [agent('reader')], agents: [{ name: 'web', type: 'http', endpoint }], aio, limits }
    const bus = await startBus({ config })
    const client = await bus.connect()
    client.pause()
    client.send({ id: 1, method: 'web::input', params: { inputs: [{ type: 'text', value: '' }] } })
    await bus.statusWhere('the queue is full', (status) => status.queue_bytes > 262_144)
    expect((await bus.status()).queue_bytes).toBeLessThan(2_000_000)
    client.resume()
    const lines = await client.take(parts + 1, 10_000)
    expect(lines.slice(0, -1).map(({ params }) => params.seq)).toEqual(Array.from({ length: parts }, (_, n) => n + 1))
    expect(lines.at(-1).result).toBe('done')
  })

  test('an agent that does not read: calls are refused as overloaded', async () => {
    verifies('N14-deaf')
    const limits = { max_output_queue: 65_536 }
    const bus = await startBus({ config: { pools: [pool('never-reads', { id: 'deaf', aio: {} })], aio, limits } })
    const client = await bus.connect()
    const value = 'x'.repeat(50_000)
    for (let id = 1; id <= 20; id++)
      client.send({ id, method: 'deaf::input', params: { inputs: [{ type: 'text', value }] } })
    expect((await client.next()).error.data).toMatchObject({ reason: 'overloaded', retryable: true })
  })

  test('printed JSON without an end restarts the worker', async () => {
    const printer = agent('printer', { mode: 'json' }, { args: ['pretty'], limits: { max_input_buffer: 4_096 } })
    const bus = await startBus({ config: { pools: [printer], aio } })
    const client = await bus.connect()
    const { error } = await client.ask({ id: 1, method: 'printer::big', params: { bytes: 8_192 } })
    expect(error.data.reason).toBe('worker_exited')
    expect((await client.ask({ id: 2, method: 'printer::big', params: { bytes: 10 } })).result).toBe('x'.repeat(10))
  })
})

describe('reload (contract 7.5)', () => {
  test('new agents can be called, removed ones are unknown, AIO can be switched on', async () => {
    verifies('N1-off', 'N19-reload')
    const workspace = testWorkspace()
    const bus = await startBus({ config: { pools: [pool('echo')] }, workspace })
    const client = await bus.connect()
    expect((await client.ask({ id: 1, method: 'reader::pid' })).result.method).toBe('reader::pid')
    workspace.write('bus.json', { pools: [pool('echo'), agent('reader')], aio })
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    expect((await client.ask({ id: 2, method: 'reader::pid' })).result).toBeGreaterThan(0)
    workspace.write('bus.json', { pools: [pool('echo'), agent('writer')], aio })
    await bus.run(['reload', '--control', bus.control])
    expect((await client.ask({ id: 3, method: 'reader::pid' })).error.data.known).toEqual(['writer'])
    expect((await client.ask({ id: 4, method: 'writer::pid' })).result).toBeGreaterThan(0)
  })
})
