import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
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
import type { Caller } from './port.ts'

const text = { inputs: [{ type: 'text', value: 'x' }] }
const OTHER: Caller = { kind: 'client', key: '2', isLocal: true }
const WORKER: Caller = { kind: 'worker', key: 'reader.1', pool: 'reader' }

describe('a call to a stdio agent', () => {
  it('reaches it namespaced, with the trace in the envelope and in _meta', () => {
    verifies('N6-found')
    const { gateway, port } = workbench(new FakePort(), [stdioAgent()])
    const params = { ...text, _meta: { tracestate: 'a=b', progressToken: 5 } }
    gateway.receive(CLIENT, { method: 'reader::input', params, id: 9, trace_id: 'T', sessionId: 'S' }, 120)
    expect(port.asked[0]).toMatchObject({ pool: 'reader', affinity: 'S' })
    expect(port.asked[0]?.message).toEqual({
      jsonrpc: '2.0',
      method: 'reader::input',
      trace_id: 'T',
      params: {
        ...text,
        _meta: {
          tracestate: 'a=b',
          traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
          'stdio-bus/trace_id': 'T',
          'stdio-bus/call_id': 'T#9',
        },
      },
    })
  })

  it('reaches a bare one without any trace field', () => {
    verifies('N6-bare')
    const { gateway, port } = workbench(new FakePort(), [stdioAgent({ methodStyle: 'bare' })])
    gateway.receive(CLIENT, { method: 'reader::input', params: text, id: 9, trace_id: 'T' }, 120)
    expect(port.asked[0]?.message).toEqual({ jsonrpc: '2.0', method: 'input', params: text })
  })

  it('is answered once, with trace_id and call_id, after the trace was told', () => {
    verifies('N4-echo')
    const { gateway, port, traces } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::input', params: text, id: 'abc' }, 120)
    port.now += 40
    port.asked[0]?.listener.received({ id: 'bus-1', result: { outputs: [] } }, 33)
    expect(port.asked[0]).toMatchObject({ finished: true, cancelled: false })
    expect(port.replies.map(({ message }) => message)).toEqual([
      { jsonrpc: '2.0', id: 'abc', result: { outputs: [] }, trace_id: 'AIO-TR-20250326-0001', call_id: 1 },
    ])
    expect(traces.only).toMatchObject({
      requestId: 'abc',
      protocol: 'aio',
      type: 'stdio',
      worker: 'reader.1',
      input: text,
      output: { outputs: [] },
      bytesIn: 120,
      bytesOut: 33,
      status: 'ok',
      partials: 0,
    })
    expect(traces.only.endedAtMs - traces.only.startedAtMs).toBe(40)
    expect(gateway.openCalls).toBe(0)
  })

  it('passes the agent’s own error through', () => {
    verifies('N4-echo')
    const { gateway, port, traces } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::whatever', id: 1 }, 50)
    const error = { code: -32050, message: 'mine', data: { x: 1 } }
    port.asked[0]?.listener.received({ id: 1, error })
    expect(port.replies[0]?.message).toMatchObject({ id: 1, error, call_id: 1 })
    expect(traces.only).toMatchObject({ status: 'error', error, output: null })
  })

  it('passes a fault of the bus through', () => {
    const { gateway, port } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::x', id: 1 }, 50)
    const error = { code: -32603, message: 'gone', data: { reason: 'worker_exited', retryable: true } }
    port.asked[0]?.listener.failed(error)
    expect(port.replies[0]?.message).toMatchObject({ id: 1, error, trace_id: 'AIO-TR-20250326-0001' })
  })

  it('answers agent_invalid_response to a line that is no answer', () => {
    verifies('N12-invalid')
    const { gateway, port } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::x', id: 1 }, 50)
    port.asked[0]?.listener.received({ id: 1 })
    expect(port.replies[0]?.message).toMatchObject({
      error: { code: -32603, data: { reason: 'agent_invalid_response' } },
    })
  })

  it('takes inputs beside params', () => {
    const { gateway, port } = workbench(new FakePort(), [stdioAgent({ methodStyle: 'bare' })])
    gateway.receive(CLIENT, { method: 'reader::input', inputs: text.inputs, id: 1 }, 50)
    expect(port.asked[0]?.message['params']).toEqual(text)
  })

  it('is written and done when it is a notification', () => {
    const { gateway, port, traces } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::input', params: text }, 50)
    expect(port.notified).toMatchObject([{ pool: 'reader', message: { method: 'reader::input' } }])
    expect(port.notified[0]?.message).not.toHaveProperty('id')
    expect(port.replies).toEqual([])
    expect(traces.only).toMatchObject({ status: 'ok', output: null, requestId: null })
  })
})

describe('ids and traces', () => {
  it('keeps two clients with the same id in the same trace apart', () => {
    const { gateway, port, traces } = workbench(new FakePort(), [stdioAgent()])
    for (const caller of [CLIENT, OTHER]) {
      gateway.receive(caller, { method: 'reader::x', id: 1, trace_id: 'T' }, 50)
    }
    port.asked[1]?.listener.received({ result: 'second' })
    port.asked[0]?.listener.received({ result: 'first' })
    expect(port.replies).toMatchObject([
      { caller: OTHER, message: { id: 1, result: 'second', trace_id: 'T', call_id: 2 } },
      { caller: CLIENT, message: { id: 1, result: 'first', trace_id: 'T', call_id: 1 } },
    ])
    expect(traces.starts.map((call) => `${call.traceId}#${call.callId}`)).toEqual(['T#1', 'T#2'])
  })

  it('answers both of two requests with one id from one client', () => {
    const { gateway, port } = workbench(new FakePort(), [stdioAgent()])
    for (const method of ['a', 'b']) gateway.receive(CLIENT, { method: `reader::${method}`, id: 1 }, 50)
    port.asked[0]?.listener.received({ result: 'a' })
    port.asked[1]?.listener.received({ result: 'b' })
    expect(port.replies.map(({ message }) => message['result'])).toEqual(['a', 'b'])
  })
})

describe('partials', () => {
  it('are notifications in order, then comes one answer', () => {
    const { gateway, port, traces } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::x', id: 7, trace_id: 'T', sessionId: 'S' }, 50)
    const { listener } = port.asked[0]!
    listener.received({ id: 1, partial: true, outputs: [{ type: 'text', value: 'a' }] })
    listener.received({ id: 1, partial: true, result: { outputs: [{ type: 'text', value: 'b' }] } })
    listener.received({ id: 1, outputs: [{ type: 'text', value: 'ab' }] })
    expect(port.replies.map(({ message }) => message)).toEqual([
      ...['a', 'b'].map((value, index) => ({
        jsonrpc: '2.0',
        method: 'reader::partial',
        params: { id: 7, seq: index + 1, outputs: [{ type: 'text', value }], partial: true },
        trace_id: 'T',
        sessionId: 'S',
      })),
      { jsonrpc: '2.0', id: 7, result: { outputs: [{ type: 'text', value: 'ab' }] }, trace_id: 'T', call_id: 7 },
    ])
    expect(traces.only).toMatchObject({ partials: 2, firstPartialAtMs: port.now })
    expect(traces.partials).toBe(2)
  })

  it('after the end are ignored', () => {
    verifies('N15-late')
    const { gateway, port } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::x', id: 7 }, 50)
    const { listener } = port.asked[0]!
    listener.received({ id: 1, result: 1 })
    listener.received({ id: 1, partial: true, outputs: [] })
    listener.received({ id: 1, result: 2 })
    expect(port.replies).toHaveLength(1)
  })
})

describe('a call that nobody waits for', () => {
  it('is cancelled at the worker when its client goes', () => {
    const { gateway, port, traces } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::x', id: 7 }, 50)
    gateway.receive(OTHER, { method: 'reader::x', id: 7 }, 50)
    gateway.gone(CLIENT)
    expect(port.asked.map(({ cancelled }) => cancelled)).toEqual([true, false])
    expect(port.replies).toEqual([])
    expect(traces.ends).toMatchObject([{ status: 'error', error: { data: { reason: 'caller_gone' } } }])
    expect(gateway.openCalls).toBe(1)
  })

  it('is cancelled by id, the newest first', () => {
    const { gateway, port } = workbench(new FakePort(), [stdioAgent()])
    for (let n = 0; n < 2; n++) gateway.receive(CLIENT, { method: 'reader::x', id: 7 }, 50)
    expect(gateway.cancel(CLIENT, 7)).toBe(true)
    expect(port.asked.map(({ cancelled }) => cancelled)).toEqual([false, true])
    expect(gateway.cancel(CLIENT, '7')).toBe(false)
    expect(gateway.cancel(OTHER, 7)).toBe(false)
  })

  it('is not answered when its worker-caller has gone', () => {
    const { gateway, port } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(WORKER, { method: 'reader::x', id: 7 }, 50)
    gateway.workerGone('reader.1')
    port.asked[0]?.listener.received({ result: 1 })
    expect(port.asked[0]?.cancelled).toBe(true)
    expect(port.replies).toEqual([])
  })
})

describe('the timer', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('starts when the request is written and ends the call', () => {
    verifies('N14-timer')
    const port = new FakePort()
    const { gateway, traces } = workbench(port, [stdioAgent({ timeoutMs: 500 })])
    gateway.receive(CLIENT, { method: 'reader::x', id: 7 }, 50)
    vi.advanceTimersByTime(499)
    expect(port.replies).toEqual([])
    vi.advanceTimersByTime(1)
    expect(port.asked[0]?.cancelled).toBe(true)
    expect(port.replies[0]?.message).toMatchObject({
      id: 7,
      error: { code: -32603, data: { reason: 'agent_timeout', retryable: false, agent: 'reader', timeout_ms: 500 } },
    })
    expect(traces.only.status).toBe('error')
  })

  it('does not run while the request waits for a worker', () => {
    verifies('N14-timer')
    const port = new FakePort()
    port.request = (pool, message, options, listener) => {
      port.asked.push({ pool, message, affinity: options.affinity, listener, cancelled: false, finished: false })
      return { cancel: () => {} }
    }
    const { gateway } = workbench(port, [stdioAgent({ timeoutMs: 500 })])
    gateway.receive(CLIENT, { method: 'reader::x', id: 7 }, 50)
    vi.advanceTimersByTime(5_000)
    expect(port.replies).toEqual([])
    port.asked[0]?.listener.sent('reader.1')
    vi.advanceTimersByTime(500)
    expect(port.replies).toHaveLength(1)
  })
})

describe('limits', () => {
  it.each([
    ['at the limit', 2, undefined],
    ['one over', 3, 'too_many_pending'],
  ])('a caller %s of open calls', (_title, calls, reason) => {
    const { gateway, port } = workbench(new FakePort(), [stdioAgent()], { maxPendingPerCaller: 2 })
    for (let id = 1; id <= calls; id++) gateway.receive(CLIENT, { method: 'reader::x', id }, 50)
    gateway.receive(OTHER, { method: 'reader::x', id: 1 }, 50)
    expect(port.asked).toHaveLength(3)
    expect(port.replies.map(({ message }) => message['error'])).toMatchObject(
      reason === undefined ? [] : [{ code: -32603, data: { reason, retryable: true } }],
    )
  })

  it('refuses the 33rd level', () => {
    const { gateway, port, traces } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::x', id: 1, trace_id: 'T' }, 50)
    for (let level = 2; level <= 33; level++) {
      const _meta = { 'stdio-bus/parent': `T#${level - 1}` }
      gateway.receive(CLIENT, { method: 'reader::x', id: level, trace_id: 'T', params: { _meta } }, 50)
    }
    expect(port.asked).toHaveLength(32)
    expect(port.replies).toMatchObject([
      { message: { id: 33, error: { code: -32603, data: { reason: 'too_deep', limit: 32 } } } },
    ])
    expect(traces.starts.map((call) => call.parentId)).toEqual([null, ...Array.from({ length: 32 }, (_, at) => at + 1)])
  })

  describe('of agents that call each other and do not say for whom', () => {
    /** Two workers that hand each call on to the other, without any context. */
    function pingPong(hops: number) {
      const agents = ['a', 'b'].map((name) => stdioAgent({ name }))
      const bench = workbench(new FakePort(), agents)
      bench.gateway.receive(CLIENT, { method: 'a::x', id: 1 }, 50)
      bench.gateway.receive(OTHER, { method: 'a::x', id: 1 }, 50)
      // A worker hands on what it got, and what was refused nobody gets.
      for (let hop = 2; hop <= hops && bench.port.asked.length === hop; hop++) {
        const [from, to] = hop % 2 === 0 ? ['a', 'b'] : ['b', 'a']
        const caller: Caller = { kind: 'worker', key: `${from}.1`, pool: from! }
        bench.gateway.receive(caller, { method: `${to}::x`, id: hop }, 50)
      }
      return bench
    }
    const reasonsOf = (replies: readonly { message: Record<string, unknown> }[]) =>
      replies.map(({ message }) => (message['error'] as { data: { reason: string } }).data.reason)

    it('the chain reaches its bound', () => {
      verifies('N16-unknown')
      const { port } = pingPong(40)
      expect(port.asked).toHaveLength(33)
      expect(reasonsOf(port.replies)).toEqual(['too_deep'])
    })

    it('the chain ends with the last of those who may have caused it, and every worker is answered', () => {
      verifies('N18-caused')
      const { gateway, port, traces } = pingPong(20)
      gateway.gone(CLIENT)
      expect(port.replies).toEqual([])
      gateway.gone(OTHER)
      expect(gateway.openCalls).toBe(0)
      expect(port.asked.every(({ cancelled }) => cancelled)).toBe(true)
      expect(reasonsOf(port.replies)).toEqual(Array.from({ length: 19 }, () => 'parent_gone'))
      expect(new Set(port.replies.map(({ message }) => message['id'])).size).toBe(19)
      expect(traces.ends).toHaveLength(21)
      gateway.receive({ kind: 'worker', key: 'a.1', pool: 'a' }, { method: 'b::x', id: 99 }, 50)
      expect(reasonsOf(port.replies).at(-1)).toBe('parent_gone')
      expect(port.asked).toHaveLength(21)
    })

    it('what a worker asks for a call that it has answered goes on', () => {
      const { gateway, port } = workbench(new FakePort(), [stdioAgent({ name: 'a' }), stdioAgent({ name: 'b' })])
      gateway.receive(CLIENT, { method: 'a::x', id: 1 }, 50)
      gateway.receive({ kind: 'worker', key: 'a.1', pool: 'a' }, { method: 'b::x', id: 2 }, 50)
      port.asked[0]?.listener.received({ result: 'answered early' })
      gateway.gone(CLIENT)
      expect(port.asked[1]?.cancelled).toBe(false)
      port.asked[1]?.listener.received({ result: 'later' })
      expect(port.replies.at(-1)).toMatchObject({ caller: { key: 'a.1' }, message: { id: 2, result: 'later' } })
    })

    it('a chain of notifications reaches its bound too', () => {
      class Notes extends FakePort {
        override notify(pool: string, message: Line, options: { sent?: (worker: string) => void } = {}): void {
          super.notify(pool, message)
          options.sent?.(`${pool}.1`)
        }
      }
      const { gateway, port } = workbench(new Notes(), [stdioAgent({ name: 'a' }), stdioAgent({ name: 'b' })])
      gateway.receive(CLIENT, { method: 'a::x' }, 50)
      for (let hop = 2; hop <= 40 && port.notified.length === hop - 1; hop++) {
        const [from, to] = hop % 2 === 0 ? ['a', 'b'] : ['b', 'a']
        gateway.receive({ kind: 'worker', key: `${from}.1`, pool: from! }, { method: `${to}::x` }, 50)
      }
      expect(port.notified).toHaveLength(32)
    })
  })

  it('refuses new calls while it drains and fails the rest when it closes', async () => {
    const { gateway, port } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::x', id: 1 }, 50)
    gateway.drain()
    gateway.receive(CLIENT, { method: 'reader::x', id: 2 }, 50)
    expect(port.replies).toMatchObject([{ message: { id: 2, error: { data: { reason: 'shutting_down' } } } }])
    await gateway.close()
    expect(port.replies[1]).toMatchObject({
      message: { id: 1, error: { data: { reason: 'shutting_down', retryable: true } } },
    })
    expect(gateway.openCalls).toBe(0)
  })
})

describe('workers as callers', () => {
  it('join the trace of their only open call, as its children', () => {
    const { gateway, port, traces } = workbench(new FakePort(), [stdioAgent(), stdioAgent({ name: 'writer' })])
    gateway.receive(CLIENT, { method: 'reader::x', id: 1, trace_id: 'T' }, 50)
    gateway.receive(WORKER, { method: 'writer::y', id: 'w1' }, 50)
    port.asked[1]?.listener.received({ result: 'written' })
    expect(port.replies[0]).toMatchObject({
      caller: WORKER,
      message: { id: 'w1', result: 'written', trace_id: 'T', call_id: 2 },
    })
    expect(traces.starts[1]).toMatchObject({ traceId: 'T', callId: 2, parentId: 1 })
  })

  it('begin a trace of their own when the call has ended', () => {
    const { gateway, port, traces } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::x', id: 1, trace_id: 'T' }, 50)
    port.asked[0]?.listener.received({ result: 1 })
    gateway.receive(WORKER, { method: 'reader::y', id: 1 }, 50)
    expect(traces.starts[1]).toMatchObject({ parentId: null })
    expect(traces.starts[1]?.traceId).not.toBe('T')
  })

  it('of an MCP pool get nothing beside the fields of JSON-RPC', async () => {
    const { gateway, port } = workbench(new FakePort(), [mcpAgent({ name: 'tools' }), stdioAgent()])
    const caller: Caller = { kind: 'worker', key: 'tools.1', pool: 'tools' }
    gateway.receive(caller, { method: 'reader::x', id: 1, trace_id: 'T' }, 50)
    gateway.receive(caller, { method: 'nobody::x', id: 2, trace_id: 'T' }, 50)
    port.asked[0]?.listener.received({ partial: true, outputs: [] })
    port.asked[0]?.listener.received({ result: { a: 1 } })
    await until(() => port.replies.length === 3, 'three lines')
    for (const { message } of port.replies) {
      expect(
        Object.keys(message).filter((key) => !['jsonrpc', 'id', 'method', 'params', 'result', 'error'].includes(key)),
      ).toEqual([])
    }
    expect(port.replies.at(-1)?.message['result']).toEqual({
      a: 1,
      _meta: { 'stdio-bus/trace_id': 'T', 'stdio-bus/call_id': 'T#1' },
    })
  })

  it('of an MCP pool that is no agent any more get no more than that either', () => {
    const { gateway, port } = workbench(new FakePort(), [mcpAgent({ name: 'tools' }), stdioAgent()])
    gateway.replaceAgents([stdioAgent()])
    gateway.receive({ kind: 'worker', key: 'tools.1', pool: 'tools' }, { method: 'nobody::x', id: 2 }, 50)
    expect(Object.keys(port.replies[0]!.message)).toEqual(['jsonrpc', 'id', 'error'])
  })
})

describe('a reload', () => {
  it('gives new calls the new agents and lets open ones end', () => {
    const { gateway, port } = workbench(new FakePort(), [stdioAgent()])
    gateway.receive(CLIENT, { method: 'reader::x', id: 1 }, 50)
    gateway.replaceAgents([stdioAgent({ name: 'writer' })])
    gateway.receive(CLIENT, { method: 'reader::x', id: 2 }, 50)
    port.asked[0]?.listener.received({ result: 'still' })
    expect(port.replies).toMatchObject([
      { message: { id: 2, error: { data: { reason: 'unknown_agent', known: ['writer'] } } } },
      { message: { id: 1, result: 'still' } },
    ])
  })
})

describe('the caller of a call', () => {
  const ALICE: Caller = { kind: 'client', key: '7', origin: { principal: 'alice', client: 7 } }
  const BOB: Caller = { kind: 'client', key: '8', origin: { principal: 'bob', client: 8 } }
  const agents = [stdioAgent(), stdioAgent({ name: 'writer', pool: 'writers' })]
  const callers = (traces: { readonly starts: readonly { readonly caller: unknown }[] }): unknown[] =>
    traces.starts.map(({ caller }) => caller)

  it('9.24 is the client, and whoever is on this machine is local', () => {
    verifies('9.24-calls')
    const { gateway, traces } = workbench(new FakePort(), agents)
    gateway.receive(CLIENT, { method: 'reader::input', params: text, id: 1 }, 50)
    gateway.receive(ALICE, { method: 'nobody::input', params: text, id: 1 }, 50)
    expect(callers(traces)).toEqual([
      { kind: 'client', principal: 'local' },
      { kind: 'client', principal: 'alice', client: 7 },
    ])
  })

  it('9.24 is the agent for what it calls in turn, with the principal of the root', () => {
    verifies('9.24-calls')
    const { gateway, traces, port } = workbench(new FakePort(), agents)
    gateway.receive(ALICE, { method: 'reader::input', params: text, id: 1 }, 50)
    gateway.receive(WORKER, { method: 'writer::input', params: text, id: 1 }, 50)
    gateway.receive({ kind: 'worker', key: 'writers.1', pool: 'writers' }, { method: 'reader::x', id: 1 }, 50)
    expect(port.asked).toHaveLength(3)
    expect(callers(traces).slice(1)).toEqual([
      { kind: 'agent', principal: 'alice', client: 7, agent: 'reader' },
      { kind: 'agent', principal: 'alice', client: 7, agent: 'writer' },
    ])
  })

  it('9.24 of an agent is the principal of what it has in hand, if that is one, and nobody else’s', () => {
    const { gateway, traces } = workbench(new FakePort(), agents)
    gateway.receive(ALICE, { method: 'reader::input', params: text, id: 1 }, 50)
    gateway.receive(
      { ...ALICE, key: '9', origin: { principal: 'alice', client: 9 } },
      { method: 'reader::x', id: 1 },
      50,
    )
    gateway.receive(WORKER, { method: 'writer::input', params: text, id: 1 }, 50)
    gateway.receive(BOB, { method: 'reader::input', params: text, id: 1 }, 50)
    gateway.receive(WORKER, { method: 'writer::input', params: text, id: 2 }, 50)
    expect(callers(traces)[2]).toEqual({ kind: 'agent', principal: 'alice', agent: 'reader' })
    expect(callers(traces)[4]).toEqual({ kind: 'agent', principal: 'local', agent: 'reader' })
  })

  it('9.24 is never another one because a client names the call of somebody else as its parent', () => {
    const { gateway, traces, port } = workbench(new FakePort(), agents)
    gateway.receive(ALICE, { method: 'reader::input', params: text, id: 1 }, 50)
    const { _meta } = port.asked[0]!.message['params'] as { _meta: Line }
    gateway.receive(BOB, { method: 'reader::input', params: { ...text, _meta }, id: 1 }, 50)
    expect(traces.starts[1]).toMatchObject({ parentId: 1, caller: { kind: 'client', principal: 'bob', client: 8 } })
  })
})
