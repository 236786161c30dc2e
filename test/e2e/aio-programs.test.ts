/** Programs that register themselves as agents, as lines and by the client library (contract 13.18, 13.20). */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type AgentMethod, connect } from '../../src/client/index.ts'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, launch, startBus, testWorkspace } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { eventually } from '../support/waiting.ts'
import { Workspace } from '../support/workspace.ts'
import { sharedHouse } from './access-harness.ts'
import { agent, callsOf } from './aio-harness.ts'

const workspace = new Workspace()
let bus: Bus
let caller: LineClient

beforeAll(async () => {
  const agents = [{ name: 'far', type: 'http', endpoint: 'http://127.0.0.1:9/' }]
  const config = { pools: [agent('near')], agents, aio: { store: { path: 'traces.db' } } }
  bus = await launch({ config, doors: ['unix', 'tcp'] }, workspace)
  caller = await bus.connect()
})
afterAll(() => workspace.remove())

let lastId = 0

function ask(client: LineClient, method: string, params: object = {}, more: object = {}): Promise<Message> {
  return client.ask({ jsonrpc: '2.0', id: ++lastId, method, params, ...more })
}

const register = (client: LineClient, params: object): Promise<Message> => ask(client, 'bus::agents.register', params)
const inputs = (value: string) => ({ inputs: [{ type: 'text', value }] })

async function program(params: { name: string }): Promise<LineClient> {
  const client = await bus.connect()
  expect((await register(client, params)).result).toEqual({ name: params.name })
  onTestFinished(() => client.close())
  return client
}

/** The next call that comes to a program. */
async function nextCall(client: LineClient): Promise<Message> {
  for (;;) {
    const said = await client.next()
    if (said.method !== undefined) return said
  }
}

function begin(method: string, params: object = {}, more: object = {}): number {
  caller.send({ jsonrpc: '2.0', id: ++lastId, method, params, ...more })
  return lastId
}

describe('a program', () => {
  test('that says odd things is told, and costs nobody anything', async () => {
    verifies('13.18-refused')
    const odd = await program({ name: 'odd' })
    for (const name of [{ toString: 1 }, ['odd'], null, 5, '__proto__', 'x'.repeat(1_000), 'a::b', 'bus']) {
      expect((await register(odd, { name })).error, String(JSON.stringify(name))).toBeDefined()
      expect((await ask(odd, 'bus::agents.unregister', { name })).error).toMatchObject({ code: -32601 })
    }
    const id = begin('odd::input', inputs('hi'))
    const call = await nextCall(odd)
    for (const wrong of [7, 'call-none'])
      odd.send({ jsonrpc: '2.0', id: wrong, result: { outputs: [{ type: 'text', value: 'stolen' }] } })
    odd.send({ jsonrpc: '2.0', id: call.id, result: { outputs: [{ type: 'text', value: 'mine' }] } })
    expect(await caller.answerTo(id)).toMatchObject({ result: { outputs: [{ value: 'mine' }] } })
    const { refused } = (await bus.status()) as unknown as { refused: Record<string, number> }
    expect(refused['internal_error']).toBeUndefined()
  })

  test('is called by its name, with the trace, and answers with partials and a result', async () => {
    verifies('13.18-calls')
    const speaker = await program({ name: 'speaker' })
    const id = begin('speaker::input', inputs('hi'))
    const call = await nextCall(speaker)
    expect(call).toMatchObject({ method: 'speaker::input', params: inputs('hi'), trace_id: expect.any(String) })
    speaker.send({ id: call.id, partial: true, outputs: [{ type: 'text', value: 'h' }] })
    speaker.send({ jsonrpc: '2.0', id: call.id, result: { outputs: [{ type: 'text', value: 'hi!' }] } })
    const partial = await caller.next()
    expect(partial).toMatchObject({ method: 'speaker::partial', params: { id, seq: 1, partial: true } })
    const { result, trace_id } = await caller.answerTo(id)
    expect(result.outputs[0].value).toBe('hi!')
    expect(await callsOf(caller, trace_id)).toMatchObject([
      { agent: 'speaker', method: 'input', status: 'ok', partials: 1 },
    ])
  })

  test('answers with errors, in other spellings, and to notifications not at all', async () => {
    verifies('13.18-calls')
    const odd = await program({ name: 'odd' })
    const first = begin('odd::anything', { a: 1 })
    const call = await nextCall(odd)
    odd.send({ jsonrpc: '2.0', id: call.id, error: { code: -32001, message: 'no', data: { own: 1 } } })
    expect((await caller.answerTo(first)).error).toMatchObject({ code: -32001, message: 'no', data: { own: 1 } })
    const second = begin('odd::input', inputs('x'))
    odd.send({ id: (await nextCall(odd)).id, output: { type: 'text', value: 'loose' } })
    expect((await caller.answerTo(second)).result).toEqual({ outputs: [{ type: 'text', value: 'loose' }] })
    caller.send({ jsonrpc: '2.0', method: 'odd::note', params: {} })
    expect((await nextCall(odd)).id).toBeUndefined()
  })

  test('is listed and described', async () => {
    const params = { name: 'described', methods: ['draw'], modalities: ['image'], description: 'It draws.' }
    const drawer = await program(params)
    const { result } = await ask(caller, 'bus::agents.list')
    expect(result.agents).toContainEqual({ name: 'described', type: 'program', modalities: ['image'], workers: 0 })
    const id = begin('described::help')
    const { id: asked, method } = await nextCall(drawer)
    expect(method).toBe('described::help')
    drawer.send({ jsonrpc: '2.0', id: asked, error: { code: -32601, message: 'no help' } })
    expect((await caller.answerTo(id)).result).toMatchObject({
      methods: ['draw', 'help'],
      modalities: ['image'],
      description: 'It draws.',
    })
  })

  test('is told of a cancel, and has its time', async () => {
    verifies('13.18-calls')
    const slow = await program({ name: 'slow', timeout_ms: 200 } as { name: string })
    const id = begin('slow::input', inputs('x'))
    const call = await nextCall(slow)
    expect((await caller.answerTo(id)).error).toMatchObject({ data: { reason: 'agent_timeout' } })
    expect(await nextCall(slow)).toMatchObject({ method: 'notifications/cancelled', params: { requestId: call.id } })
    slow.send({ jsonrpc: '2.0', id: call.id, result: {} })
    const again = begin('slow::input', inputs('y'))
    slow.send({ jsonrpc: '2.0', id: (await nextCall(slow)).id, result: { outputs: [] } })
    expect((await caller.answerTo(again)).result).toEqual({ outputs: [] })
  })

  test('that goes leaves its open calls agent_gone, and its name free', async () => {
    verifies('13.18-gone')
    const first = await program({ name: 'brief' })
    const id = begin('brief::input', inputs('x'))
    await nextCall(first)
    first.close()
    const { error } = await caller.answerTo(id)
    expect(error).toMatchObject({ code: -32603, data: { reason: 'agent_gone', retryable: true } })
    expect((await ask(caller, 'brief::input', inputs('x'))).error).toMatchObject({ data: { reason: 'unknown_agent' } })
    const second = await program({ name: 'brief' })
    expect((await ask(second, 'bus::agents.unregister', { name: 'brief' })).result).toEqual({ name: 'brief' })
    expect((await ask(caller, 'brief::input', inputs('x'))).error).toMatchObject({ data: { reason: 'unknown_agent' } })
    expect((await ask(second, 'bus::agents.unregister', { name: 'brief' })).error).toMatchObject({ code: -32601 })
  })

  test('loses its name to a configuration that takes it', async () => {
    verifies('13.18-gone')
    const config = { pools: [agent('near')], aio: { store: { path: 'traces.db' } } }
    const own = await startBus({ config })
    const client = await own.connect()
    const holder = await own.connect()
    await register(holder, { name: 'later' })
    client.send({ jsonrpc: '2.0', id: 'open', method: 'later::input', params: inputs('x') })
    await nextCall(holder)
    own.workspace.write('bus.json', JSON.stringify({ ...config, pools: [agent('near'), agent('later')] }))
    own.signal('SIGHUP')
    expect((await client.answerTo('open')).error).toMatchObject({ data: { reason: 'agent_gone' } })
    expect((await ask(client, 'later::input', inputs('y'))).result.outputs).toBeDefined()
  })

  test.each(['near', 'far'])('may not be %s, which is in the configuration', async (name) => {
    verifies('13.18-refused')
    expect((await register(caller, { name })).error).toMatchObject({ code: -32602, data: { reason: 'name_taken' } })
  })

  test('may not have the name of another, but may say more of itself', async () => {
    verifies('13.18-refused')
    const first = await program({ name: 'mine' })
    expect((await register(caller, { name: 'mine' })).error).toMatchObject({ data: { reason: 'name_taken' } })
    expect((await ask(caller, 'bus::agents.unregister', { name: 'mine' })).error).toMatchObject({ code: -32601 })
    expect((await register(first, { name: 'mine', modalities: ['text'] })).result).toEqual({ name: 'mine' })
  })

  test.each([
    ['bus', -32600, 'bad_name'],
    ['', -32600, 'bad_name'],
    ['a::b', -32600, 'bad_name'],
    [`x${'y'.repeat(64)}`, -32600, 'bad_name'],
    [5, -32600, 'bad_name'],
    [undefined, -32600, 'bad_name'],
  ])('may not be called %j', async (name, code, reason) => {
    verifies('13.18-refused')
    const { error } = await register(caller, { name })
    expect(error).toMatchObject({ code, data: { reason } })
    expect(error.message).toContain('is no name for an agent')
  })

  test.each([
    [{ methods: 'input' }, 'methods'],
    [{ modalities: ['smell'] }, 'modalities'],
    [{ description: 7 }, 'description'],
    [{ timeout_ms: 0 }, 'timeout_ms'],
    [{ timeout_ms: 1.5 }, 'timeout_ms'],
  ])('may not say %j', async (more, param) => {
    verifies('13.18-refused')
    const { error } = await register(caller, { name: 'bad', ...more })
    expect(error).toMatchObject({ code: -32602, data: { reason: 'invalid_param', param } })
  })

  test('may not come without saying who it is, through a door that others can reach', async () => {
    verifies('13.18-refused')
    const stranger = await bus.connect('tcp')
    onTestFinished(() => stranger.close())
    expect((await register(stranger, { name: 'far-away' })).error).toMatchObject({ data: { reason: 'not_allowed' } })
  })

  test('has sixteen names and no more', async () => {
    verifies('13.18-refused')
    const greedy = await bus.connect()
    onTestFinished(() => greedy.close())
    for (let n = 0; n < 16; n++) expect((await register(greedy, { name: `n${n}` })).error).toBeUndefined()
    const { error } = await register(greedy, { name: 'n16' })
    expect(error).toMatchObject({ code: -32603, data: { reason: 'too_many_agents', limit: 16 } })
  })

  test('that answers with what cannot be written again gave no usable answer', async () => {
    const deep = await program({ name: 'deep' })
    const id = begin('deep::input', inputs('x'))
    const call = await nextCall(deep)
    deep.send(`{"jsonrpc":"2.0","id":"${call.id}","result":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
    expect((await caller.answerTo(id)).error).toMatchObject({ data: { reason: 'agent_invalid_response' } })
  })

  test('answers only what it was asked', async () => {
    verifies('13.18-calls')
    const honest = await program({ name: 'honest' })
    const liar = await program({ name: 'liar' })
    const id = begin('honest::input', inputs('x'))
    const call = await nextCall(honest)
    liar.send({ jsonrpc: '2.0', id: call.id, result: { outputs: [{ type: 'text', value: 'stolen' }] } })
    liar.send({ id: call.id, partial: true, outputs: [{ type: 'text', value: 'stolen' }] })
    await liar.taken()
    honest.send({ jsonrpc: '2.0', id: call.id, result: { outputs: [] } })
    expect((await caller.answerTo(id)).result).toEqual({ outputs: [] })
  })

  test('calls others below its own call, and is named as the caller', async () => {
    verifies('13.20-caller')
    const chain = await program({ name: 'chain' })
    const id = begin('chain::input', inputs('x'))
    const call = await nextCall(chain)
    const { traceparent } = call.params._meta
    const meta = { _meta: { traceparent } }
    const { trace_id } = await ask(chain, 'near::input', { ...inputs('deeper'), ...meta }, { trace_id: call.trace_id })
    chain.send({ jsonrpc: '2.0', id: call.id, result: { outputs: [] } })
    const { call_id } = await caller.answerTo(id)
    const calls = await callsOf(caller, trace_id)
    expect(calls.find(({ agent: name }) => name === 'near')).toMatchObject({
      parent_id: call_id,
      caller: { kind: 'agent', principal: 'local', agent: 'chain' },
    })
    // What it calls of its own accord is its own.
    const { trace_id: own } = await ask(chain, 'near::input', { ...inputs('own'), ...meta })
    expect((await callsOf(caller, own)).at(-1)).toMatchObject({
      caller: { kind: 'client', principal: 'local', name: 'chain' },
    })
  })
})

describe('the client library', () => {
  const unix = () => bus.addresses.find((each) => each.startsWith('unix:'))!.slice(5)

  async function serve(name: string, methods: Record<string, AgentMethod>) {
    const connection = await connect({ unix: unix() })
    onTestFinished(() => connection.close())
    return { connection, served: await connection.agent(name, methods) }
  }

  test('serves methods by name', async () => {
    verifies('13.18-calls')
    await serve('lib', {
      input: async ({ inputs: [{ value }] }, call) => {
        call.partial([{ type: 'text', value: '...' }])
        const near = (await call.ask('near::input', inputs(value))) as object
        return { outputs: [{ type: 'text', value: JSON.stringify(near) }], traced: call.traceId }
      },
      refuse: () => {
        throw Object.assign(new Error('not today'), { code: -32099, data: { why: 'rain' } })
      },
      crash: () => JSON.parse('{'),
    })
    const { result, trace_id, call_id } = await ask(caller, 'lib::input', inputs('word'))
    expect(result.traced).toBe(trace_id)
    const calls = await callsOf(caller, trace_id)
    expect(calls.find(({ agent: name }) => name === 'near')).toMatchObject({ parent_id: call_id })
    expect((await ask(caller, 'lib::refuse')).error).toMatchObject({ code: -32099, data: { why: 'rain' } })
    expect((await ask(caller, 'lib::crash')).error).toMatchObject({ code: -32603 })
    for (const own of ['nothing', 'constructor', '__proto__', 'toString'])
      expect((await ask(caller, `lib::${own}`)).error).toMatchObject({ code: -32601 })
    expect((await ask(caller, 'lib::help')).result).toMatchObject({ methods: ['input', 'refuse', 'crash', 'help'] })
  })

  test('tells of a cancel, and of what the bus refuses', async () => {
    let aborted = false
    const { connection, served } = await serve('patient', {
      wait: (_params, call) =>
        new Promise((resolve) => {
          call.signal.addEventListener('abort', () => {
            aborted = true
            resolve({})
          })
        }),
    })
    const id = begin('patient::wait')
    await eventually('the call to arrive', async () => (await bus.status()).outstanding >= 0 || undefined)
    await caller.taken()
    caller.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
    await eventually('the signal', () => aborted || undefined)
    await expect(connection.agent('near', {})).rejects.toMatchObject({ reason: 'name_taken' })
    expect(() => connection.mcp()).toThrow(/agent\(\)/)
    await served.unregister()
    expect((await ask(caller, 'patient::wait')).error).toMatchObject({ data: { reason: 'unknown_agent' } })
  })

  test('a bus that was restarted is told the names again', async () => {
    verifies('13.18-calls')
    const options = { config: { pools: [agent('near')], aio: { store: { path: 'traces.db' } } } }
    const home = testWorkspace()
    const first = await launch(options, home)
    const address = first.addresses.find((each) => each.startsWith('unix:'))!
    const connection = await connect({ unix: address.slice(5) })
    onTestFinished(() => connection.close())
    await connection.agent('faithful', { input: () => ({ outputs: [] }) })
    first.signal('SIGKILL')
    await first.exit
    const second = await launch(options, home)
    const client = await second.connect()
    const answered = await eventually('the agent to be there again', async () => {
      const { result } = await ask(client, 'faithful::input', inputs('x'))
      return result
    })
    expect(answered).toEqual({ outputs: [] })
  })

  test('the example of ten lines runs', async () => {
    verifies('13.18-calls')
    const example = fileURLToPath(new URL('../../examples/aio-program/run.mjs', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [example], { timeout: 18_000 })
    expect(stdout).toMatch(/Hello, world/)
  })
})

describe('rights', () => {
  const house = sharedHouse({
    principals: {
      alice: { pools: ['mine*', 'near'] },
      bob: { pools: ['near'] },
      carol: { pools: ['mine*'] },
      watch: { role: 'observer' },
      boss: { role: 'admin' },
    },
    access: { anonymous: { pools: ['*'] } },
    pools: [agent('near')],
    more: { aio: { store: { path: 'traces.db' }, remote_queries: true } },
  })

  test('traces are listed by the principal that began them, and show it', async () => {
    verifies('13.20-filter', '13.20-caller')
    const alice = await house().enter('alice')
    const { trace_id } = await ask(alice, 'near::input', inputs('hers'))
    await ask(await house().enter('bob'), 'near::input', inputs('his'))
    const boss = await house().enter('boss')
    const list = async (params: object): Promise<string[]> =>
      (await ask(boss, 'bus::traces.list', params)).result.traces.map((each: Message) => each['trace_id'])
    expect(await list({ caller: 'alice' })).toEqual([trace_id])
    expect((await list({})).length).toBeGreaterThan(1)
    expect(await list({ caller: 'nobody' })).toEqual([])
    const { bus: own } = house()
    const listed = await own.run(['trace', 'ls', '--caller', 'alice', '--json', '--control', own.control])
    expect(listed.stdout).toContain(trace_id)
    expect((await own.run(['trace', 'ls', '--caller', 'nobody', '--control', own.control])).stdout).not.toContain(
      'near',
    )
    const shown = await own.run(['trace', 'show', trace_id, '--control', own.control])
    expect(shown.stdout).toContain('alice')
    const [call] = (await ask(alice, 'bus::traces.get', { trace_id })).result.calls
    expect(call.caller).toEqual({ kind: 'client', principal: 'alice', client: expect.any(Number) })
    expect((await ask(await house().enter('bob'), 'bus::traces.get', { trace_id })).error).toMatchObject({
      data: { reason: 'unknown_trace' },
    })
  })

  test('what a program calls for a call that it has in hand is for whoever began it, who sees all of the trace', async () => {
    verifies('13.20-caller')
    const [alice, carol] = [await house().enter('alice'), await house().enter('carol')]
    await register(alice, { name: 'mine-chain' })
    carol.send({ jsonrpc: '2.0', id: 'c', method: 'mine-chain::input', params: inputs('from carol') })
    const call = await nextCall(alice)
    const _meta = { traceparent: call.params._meta.traceparent }
    await ask(alice, 'near::input', { ...inputs('for carol'), _meta })
    alice.send({ jsonrpc: '2.0', id: call.id, result: { outputs: [] } })
    const { trace_id } = await carol.answerTo('c')
    const calls = await callsOf(carol, trace_id)
    expect(calls.map(({ agent: name, caller: { kind, principal } }) => [name, kind, principal])).toEqual([
      ['mine-chain', 'client', 'carol'],
      ['near', 'agent', 'carol'],
    ])
  })

  test('who may register, and under which names', async () => {
    verifies('13.18-refused')
    const refused = { error: { code: -32600, data: { reason: 'not_allowed' } } }
    const alice = await house().enter('alice')
    expect((await register(alice, { name: 'mine-1' })).result).toEqual({ name: 'mine-1' })
    expect(await register(alice, { name: 'yours' })).toMatchObject(refused)
    expect(await register(await house().enter('watch'), { name: 'mine-2' })).toMatchObject(refused)
    expect((await register(await house().enter('boss'), { name: 'any' })).result).toEqual({ name: 'any' })
    const stranger = await house().knock()
    expect(await register(stranger, { name: 'mine-3' })).toMatchObject(refused)
    const bob = await house().enter('bob')
    expect(await ask(bob, 'mine-1::input', inputs('x'))).toMatchObject(refused)
    const carol = await house().enter('carol')
    carol.send({ jsonrpc: '2.0', id: 'c', method: 'mine-1::input', params: inputs('from carol') })
    const call = await nextCall(alice)
    alice.send({ jsonrpc: '2.0', id: call.id, result: { outputs: [] } })
    expect((await carol.answerTo('c')).result).toEqual({ outputs: [] })
  })
})
