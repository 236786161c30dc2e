import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import {
  BusyPort,
  CLIENT,
  FakePort,
  type Line,
  oneshotSpawner,
  program,
  stdioAgent,
  until,
  workbench,
} from '../../test/fixtures/aio/workbench.ts'
import type { SpawnOneshot } from './port.ts'

const params = { inputs: [{ type: 'audio', value: 'aGVs' }] }

function voice(behaviour: string, fields: Parameters<typeof stdioAgent>[0] = {}) {
  const spawnOneshot = oneshotSpawner([program('oneshot-agent.mjs'), behaviour])
  const agent = stdioAgent({ name: 'voice', mode: 'oneshot', ...fields })
  return { ...workbench(new FakePort(), [agent], { spawnOneshot }), spawnOneshot }
}

async function ask(bench: ReturnType<typeof voice>, method = 'input', id = 1): Promise<Line> {
  bench.gateway.receive(CLIENT, { method: `voice::${method}`, params, id, trace_id: 'T' }, 80)
  const found = await until(() => bench.port.replies.find(({ message }) => message['id'] === id), 'an answer')
  return found.message
}

describe('an agent that reads to the end of its input', () => {
  it('gets the seed’s envelope with an id of the bus and its stdin ended', async () => {
    const bench = voice('result')
    const { result } = await ask(bench)
    expect((result as Line)['request']).toMatchObject({
      jsonrpc: '2.0',
      method: 'voice::input',
      trace_id: 'T',
      id: expect.any(Number),
      params: { ...params, _meta: { 'stdio-bus/call_id': 'T#1' } },
    })
    expect(bench.traces.only).toMatchObject({ status: 'ok', type: 'stdio', worker: expect.stringMatching(/^\d+$/) })
  })

  it('gets the bare method without trace fields', async () => {
    const { result } = await ask(voice('result', { methodStyle: 'bare' }))
    expect((result as Line)['request']).toEqual({ jsonrpc: '2.0', method: 'input', params, id: expect.any(Number) })
  })

  it.each([
    ['output only, with a wrong id', 'output', { outputs: [{ type: 'text', value: 'spoken' }] }],
    ['an envelope nested in result', 'nested', { outputs: [{ type: 'text', value: 'inner' }] }],
    ['an indented answer after noise', 'pretty', { outputs: [{ type: 'text', value: 'a\n{b}' }] }],
    ['an object without envelope', 'bare', { text: 'no envelope' }],
    ['an answer before it exits', 'lingers', 'early'],
  ])('is understood: %s', async (_title, behaviour, result) => {
    expect(await ask(voice(behaviour))).toMatchObject({ id: 1, result, trace_id: 'T', call_id: 1 })
  })

  it.each([
    ['an error spoken as output', 'spoken_error', { reason: 'agent_error', error_code: 503 }],
    ['nothing at all', 'silent', { reason: 'agent_invalid_response' }],
    ['no JSON', 'junk', { reason: 'agent_invalid_response' }],
    ['more than it may', 'huge', { reason: 'agent_invalid_response' }],
    ['an exit code', 'crash', { reason: 'worker_exited', exit_code: 3, retryable: false }],
  ])('fails: %s', async (_title, behaviour, data) => {
    expect(await ask(voice(behaviour))).toMatchObject({ id: 1, error: { code: -32603, data }, call_id: 1 })
  })

  it('keeps stderr for the trace and does not tell the caller', async () => {
    const bench = voice('crash')
    const reply = await ask(bench)
    expect(bench.traces.only.error?.data).toMatchObject({ stderr: 'out of memory\n' })
    expect(JSON.stringify(reply)).not.toContain('memory')
  })

  it('streams partials, then answers', async () => {
    const bench = voice('partials')
    await ask(bench)
    expect(bench.port.replies.map(({ message }) => (message['params'] as Line | undefined)?.['seq'])).toEqual([
      1,
      2,
      undefined,
    ])
  })

  it('is ended with its group when it does not answer in time', async () => {
    const bench = voice('hang', { timeoutMs: 300 })
    expect(await ask(bench)).toMatchObject({ error: { data: { reason: 'agent_timeout', timeout_ms: 300 } } })
    await until(() => bench.spawnOneshot.running === 0, 'the end of the process')
  })

  it('is ended when the client goes', async () => {
    verifies('N18-gone')
    const bench = voice('hang')
    bench.gateway.receive(CLIENT, { method: 'voice::input', params, id: 1 }, 80)
    await until(() => bench.spawnOneshot.running === 1, 'the start of the process')
    bench.gateway.gone(CLIENT)
    await until(() => bench.spawnOneshot.running === 0, 'the end of the process')
    expect(bench.port.replies).toEqual([])
  })

  it('is forgotten with its process: the number may be somebody else’s next', async () => {
    const bench = voice('hang')
    bench.gateway.receive(CLIENT, { method: 'voice::input', params, id: 1 }, 80)
    await until(() => bench.spawnOneshot.running === 1, 'the start of the process')
    bench.gateway.gone(CLIENT)
    await until(() => bench.spawnOneshot.running === 0, 'the end of the process')
    const next = { kind: 'worker', key: bench.traces.only.worker!, pool: 'reader' } as const
    bench.gateway.receive(next, { method: 'voice::input', params, id: 2 }, 80)
    await until(() => bench.spawnOneshot.running + bench.port.replies.length > 0, 'a process or a refusal')
    expect(bench.port.replies).toEqual([])
    bench.gateway.gone(next)
  })

  it('runs as many processes at a time as it has instances', async () => {
    verifies('N10-instances')
    const bench = voice('result', { instances: 2 })
    await Promise.all([1, 2, 3, 4, 5].map((id) => ask(bench, 'input', id)))
    expect(bench.spawnOneshot.most).toBe(2)
    expect(bench.port.replies).toHaveLength(5)
  })

  it('is described by its own help, whose id and type are not believed', async () => {
    const { result } = await ask(voice('help', { modalities: ['audio'] }), 'help')
    expect(result).toEqual({
      type: 'stdio',
      methods: ['identify'],
      modalities: ['audio'],
      mcp: { resources: false, prompts: false, tools: false, sampling: false },
      description: 'hears',
      transport: ['stdio'],
      method_details: [{ name: 'identify', description: 'who speaks', inputSchema: {} }],
    })
  })

  it('is described by the configuration when it has no help', async () => {
    const { result } = await ask(voice('not_found', { modalities: ['audio'] }), 'help')
    expect(result).toMatchObject({ type: 'stdio', methods: ['input', 'help'], modalities: ['audio'] })
  })

  it('is started for a notification, which is done once written', async () => {
    const bench = voice('crash')
    bench.gateway.receive(CLIENT, { method: 'voice::input', params }, 80)
    expect(bench.traces.only).toMatchObject({ status: 'ok', output: null })
    await until(() => bench.spawnOneshot.running === 0, 'the end of the process')
    expect(bench.port.replies).toEqual([])
  })
})

describe('an agent that talks without a pause', () => {
  const spoken = (process: { text: string }): SpawnOneshot => {
    return () => ({
      worker: '1',
      stdout: (async function* () {
        yield Buffer.from(process.text)
      })(),
      ended: Promise.resolve({ code: 0, signal: null, stderrTail: '' }),
      send: () => {},
    })
  }
  const part = `${JSON.stringify({ partial: true, outputs: [{ type: 'text', value: 'x' }] })}\n`
  const agent = stdioAgent({ name: 'voice', mode: 'oneshot' })

  it('leaves the others their turns', async () => {
    const spawnOneshot = spoken({ text: `${part.repeat(300)}{"result":"end"}` })
    const { gateway, port } = workbench(new BusyPort(), [agent], { spawnOneshot })
    gateway.receive(CLIENT, { method: 'voice::input', params, id: 1 }, 80)
    await until(() => port.replies.some(({ message }) => message['id'] === 1), 'the answer')
    port.stop()
    expect(port.replies).toHaveLength(301)
    // The bytes that are looked at in one go hold some seventy parts.
    expect(port.perTurn.filter((count) => count > 80)).toEqual([])
  })
})
