/** Agents of other nodes are called as if they were here, and a trace is one over all nodes (contract 14.10). */
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import type { Bus } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'
import { startNats, withNats } from '../support/nats.ts'
import { eventually } from '../support/waiting.ts'
import { ECHO, startNode, untilReachable } from './nodes.ts'

const PROGRAM = fileURLToPath(new URL('../fixtures/aio/stdio-agent.mjs', import.meta.url))
const agent = (id: string) => ({ id, command: process.execPath, args: [PROGRAM], aio: { type: 'stdio' } })
const input = (id: unknown, method: string, more: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { inputs: [{ type: 'text', value: 'hello' }] },
  ...more,
})

withNats(4, () => {
  test('an agent is called from every node, and its own comes first', async () => {
    verifies('14.10-agents')
    const nats = await startNats()
    const [a, b] = await Promise.all([
      startNode(nats, 'n1', { pools: [ECHO] }),
      startNode(nats, 'n2', { pools: [agent('writer'), agent('hidden')], cluster: { export: ['writer'] } }),
    ])
    const client = await a.connect()
    const said = await eventually('the agent to be known', async () => {
      const answer = await client.ask(input(7, 'writer::input'))
      return answer.result?.outputs === undefined ? undefined : answer
    })
    expect(said).toMatchObject({ id: 7, result: { outputs: [{ type: 'text', value: 'hello' }] } })
    expect(said.trace_id).toMatch(/^AIO-TR-/)
    // Parts come before the answer, with the caller's own id.
    client.send(input('s', 'writer::stream'))
    expect(await client.next()).toMatchObject({ method: 'writer::partial', params: { id: 's' } })
    expect(await client.next()).toMatchObject({ method: 'writer::partial', params: { id: 's' } })
    expect(await client.next()).toMatchObject({ id: 's', result: {} })
    // What is not exported does not exist.
    expect(await client.ask(input(8, 'hidden::input'))).not.toHaveProperty('result.outputs')
    await untilReachable(b, 'echo')
    b.kill()
    await eventually('it to be lost', async () => {
      const answer = await client.ask(input(9, 'writer::input'))
      return answer.error?.data?.reason === 'node_lost' && answer.error.data.node === 'n2'
    })
  })

  test('a trace is that of all nodes, the same from each, and names who was silent', async () => {
    verifies('14.10-trace')
    const nats = await startNats()
    const [a, b, c] = await Promise.all([
      startNode(nats, 'n1', { pools: [agent('reader')] }),
      startNode(nats, 'n2', { pools: [agent('writer')] }),
      startNode(nats, 'n3'),
    ])
    const client = await a.connect()
    const { trace_id } = await client.ask(input(1, 'reader::input'))
    // Numbers of different nodes never meet.
    expect(trace_id).toMatch(new RegExp(`^AIO-TR-\\d{8}-${crc32('n1')}\\d{4,}$`))
    // What failed before would be in the trace.
    await eventually('the agent to be known', async () => {
      const answer = await client.ask(input('probe', 'writer::input'))
      return answer.result?.outputs === undefined ? undefined : true
    })
    const far = await client.ask(input(1, 'writer::input', { trace_id }))
    expect(far).toMatchObject({ trace_id, call_id: crc32('n2') * 2 ** 20 + 1 })
    const show = async (bus: Bus) => {
      const { code, stdout, stderr } = await bus.run(['trace', 'show', trace_id, '--json', '--control', bus.control])
      expect([code, stderr]).toEqual([0, ''])
      return JSON.parse(stdout)
    }
    const whole = await eventually('both calls to be there', async () => {
      const trace = await show(a)
      return trace.calls.length >= 2 && trace.status === 'completed' ? trace : undefined
    })
    const where = whole.calls.map(({ agent: name, node }: { agent: string; node: string }) => [name, node])
    expect(where[0]).toEqual(['reader', 'n1'])
    expect(where.at(-1)).toEqual(['writer', 'n2'])
    expect(await show(b)).toEqual(whole)
    expect(await show(c)).toEqual(whole)
    b.signal('SIGSTOP')
    const partly = await show(a)
    expect(partly).toMatchObject({ missing_nodes: ['n2'] })
    expect(partly.calls.every(({ node }: { node: string }) => node === 'n1')).toBe(true)
    b.signal('SIGCONT')
  })

  const delegated = (to: string, how: object) => ({ to, with: how })
  const known = async (bus: Bus, agents: readonly string[]) => {
    const client = await bus.connect()
    for (const name of agents)
      await eventually(`${name} to be known`, async () => {
        const answer = await client.ask(input('probe', `${name}::input`))
        return answer.result?.outputs === undefined ? undefined : true
      })
    return client
  }
  const show = async (bus: Bus, traceId: string) => {
    const { stdout } = await bus.run(['trace', 'show', traceId, '--json', '--control', bus.control])
    return JSON.parse(stdout)
  }

  test('an agent calls agents of other nodes, which call on: one trace, one graph', async () => {
    verifies('14.10-agents-call', '14.10-export')
    const nats = await startNats()
    const [a, b, c] = await Promise.all([
      startNode(nats, 'n1', { pools: [agent('reader')] }),
      startNode(nats, 'n2', { pools: [agent('writer')] }),
      startNode(nats, 'n3', { pools: [agent('clerk')] }),
    ])
    const client = await known(a, ['writer', 'clerk'])
    await known(b, ['clerk'])
    const inputs = [{ type: 'text', value: 'hello' }]
    const params = delegated('writer::delegate', delegated('clerk::stream', { inputs }))
    const said = await client.ask({ jsonrpc: '2.0', id: 5, method: 'reader::delegate', params })
    // What the far gateway answers is what the agent gets, with the place of its call.
    const { answer } = said.result
    expect(answer).toMatchObject({ id: 'd1', trace_id: said.trace_id, call_id: crc32('n2') * 2 ** 20 + 1 })
    expect(answer.result.answer).toMatchObject({ trace_id: said.trace_id, call_id: crc32('n3') * 2 ** 20 + 1 })
    expect(answer.result.answer.result.outputs).toEqual([{ type: 'text', value: 'ab' }])
    const whole = await eventually('all calls to be there', async () => {
      const trace = await show(c, said.trace_id)
      return trace.calls.length === 3 && trace.status === 'completed' ? trace : undefined
    })
    const graph = whole.calls.map((call: Record<string, unknown>) => [call['agent'], call['node'], call['parent_id']])
    expect(graph).toEqual([
      ['reader', 'n1', null],
      ['writer', 'n2', said.call_id],
      ['clerk', 'n3', answer.call_id],
    ])
    // Programs get the same, at every door and in every format.
    for (const bus of [a, b, c]) {
      const asker = await bus.connect()
      const ask = async (method: string, more: object = {}) =>
        (
          await asker.ask({
            jsonrpc: '2.0',
            id: 1,
            method: `bus::traces.${method}`,
            params: { trace_id: said.trace_id, ...more },
          })
        ).result
      expect(await ask('get')).toEqual(whole)
      expect(await ask('export')).toEqual(whole)
      const run = async (format: string) =>
        JSON.parse(
          (await bus.run(['trace', 'export', said.trace_id, '--format', format, '--control', bus.control])).stdout,
        )
      expect(await run('aio')).toEqual(whole)
      const { resourceSpans } = await ask('export', { format: 'otlp-json' })
      expect(await run('otlp-json')).toEqual({ resourceSpans })
      const spans = resourceSpans.flatMap((each: Message) => each.scopeSpans[0].spans)
      expect(spans).toHaveLength(4)
      const [root, first, second, third] = spans
      expect([first, second, third].map(({ parentSpanId }) => parentSpanId)).toEqual(
        [root, first, second].map(({ spanId }) => spanId),
      )
      expect(new Set(spans.map(({ traceId }: Message) => traceId)).size).toBe(1)
    }
    expect(whole.calls[1].caller).toMatchObject({ kind: 'agent', agent: 'reader' })
    // What wants no answer arrives too, in its place.
    const told = await client.ask({
      jsonrpc: '2.0',
      id: 8,
      method: 'reader::tell',
      params: delegated('writer::input', { inputs }),
    })
    await eventually('the notification to be there', async () => {
      const { calls } = await show(a, told.trace_id)
      const [, second] = calls
      return second?.node === 'n2' && second.parent_id === told.call_id && second.status === 'ok'
    })
    // A fault of the other agent is told as it is; a node that goes is named.
    const none = await client.ask({
      jsonrpc: '2.0',
      id: 6,
      method: 'reader::delegate',
      params: delegated('writer::none', {}),
    })
    expect(none.result.answer.error).toMatchObject({ code: -32601 })
    b.kill()
    await eventually('it to be lost', async () => {
      const lost = await client.ask({
        jsonrpc: '2.0',
        id: 7,
        method: 'reader::delegate',
        params: delegated('writer::input', {}),
      })
      const { data } = lost.result.answer.error ?? {}
      return data?.reason === 'node_lost' && data.node === 'n2'
    })
  })

  test('agents that call each other over and over, across nodes, reach the bound', async () => {
    verifies('14.10-agents-call')
    const nats = await startNats()
    const [a, b] = await Promise.all([
      startNode(nats, 'n1', { pools: [agent('reader')] }),
      startNode(nats, 'n2', { pools: [agent('writer')] }),
    ])
    const client = await known(a, ['writer'])
    await known(b, ['reader'])
    let params: object = { inputs: [] }
    for (let depth = 0; depth < 40; depth++)
      params = delegated(`${depth % 2 === 0 ? 'reader' : 'writer'}::${depth === 0 ? 'input' : 'delegate'}`, params)
    const said = await client.ask({ jsonrpc: '2.0', id: 1, method: 'reader::delegate', params })
    let innermost = said
    let calls = 0
    for (; innermost.result?.answer !== undefined; calls++) innermost = innermost.result.answer
    expect(innermost.error.data).toMatchObject({ reason: 'too_deep', limit: 32 })
    expect(calls).toBe(32)
    // The one that was refused is in a trace as well.
    expect(innermost.call_id).toBeGreaterThan(0)
  })
})
