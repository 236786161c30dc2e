import { statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import {
  callEnd,
  callStart,
  NOON_MS,
  type TemporaryFolder,
  TRACE,
  temporaryFolder,
} from '../../test/fixtures/trace/calls.ts'
import { openDatabase } from '../host/sqlite.ts'
import { JsonText } from '../wire/ready-json.ts'
import type { TraceDocument } from './document.ts'
import type { OtlpDocument } from './export-otlp.ts'
import type { QueryMethod } from './query.ts'
import { openTraceStore, type TraceStore } from './store.ts'
import { openStoreFile } from './store-file.ts'
import type { StateChange } from './store-link.ts'
import type { StoreOptions } from './store-settings.ts'
import { tailItem } from './tail.ts'

let folder: TemporaryFolder
let stores: TraceStore[]
let changes: StateChange[]

beforeEach(() => {
  folder = temporaryFolder()
  stores = []
  changes = []
})
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()))
  folder.remove()
})

async function open(options: StoreOptions = {}): Promise<TraceStore> {
  const path = join(folder.path, 'traces.db')
  const store = await openTraceStore({
    path,
    nowMs: () => NOON_MS,
    onState: (change) => changes.push(change),
    ...options,
  })
  stores.push(store)
  return store
}

// biome-ignore lint/suspicious/noExplicitAny: an answer is whatever JSON the store wrote
async function ask(store: TraceStore, method: QueryMethod, params: unknown): Promise<any> {
  const answer = await store.query(method, params)
  return 'text' in answer ? JSON.parse(answer.text) : answer
}

async function getTrace(store: TraceStore, traceId = TRACE): Promise<TraceDocument> {
  return ask(store, 'get', { trace_id: traceId })
}

/** Asks page by page, as a program does. */
async function pagesOf(store: TraceStore, method: QueryMethod, params: object) {
  const pages: Awaited<ReturnType<typeof ask>>[] = []
  for (let cursor: string | undefined; pages.length === 0 || cursor !== undefined; ) {
    const page = await ask(store, method, { ...params, cursor })
    pages.push(page)
    cursor = page.next_cursor
  }
  return pages
}

describe.each([
  ['in the database', {}],
  ['in memory', { path: undefined }],
])('a trace kept %s', (_, where) => {
  describe('that is long', () => {
    const CALLS = 2_300
    const spansIn = (page: OtlpDocument) => page.resourceSpans[0]?.scopeSpans[0]?.spans ?? []

    async function long(input: unknown = {}): Promise<TraceStore> {
      const store = await open(where)
      for (let n = 1; n <= CALLS; n += 1) {
        // Several at the same moment, and ids that do not follow the order of start.
        const callId = CALLS + 1 - n
        store.begin(callStart({ callId, parentId: n === 1 ? null : CALLS, startedAtMs: NOON_MS + (n >> 3), input }))
        store.end(callEnd({ callId }))
      }
      return store
    }
    const inOrder = Array.from({ length: CALLS }, (_each, index) => CALLS - index)

    it('comes in pages, each call once and in order of start', async () => {
      verifies('T4-long')
      const pages = await pagesOf(await long(), 'get', { trace_id: TRACE })
      expect(pages.length).toBeGreaterThan(2)
      expect(pages.flatMap(({ calls }) => calls.map(({ id }: { id: number }) => id))).toEqual(inOrder)
      expect(pages.at(-1)).not.toHaveProperty('next_cursor')
      for (const page of pages) expect(page).toMatchObject({ trace_id: TRACE, status: 'completed' })
    })

    it('has pages that are short, however long the payloads are', async () => {
      const store = await long({ text: 'x'.repeat(4_000) })
      const answer = await store.query('get', { trace_id: TRACE })
      expect('text' in answer && answer.text.length).toBeLessThan(1_000_000)
    })

    it('has pages of as many calls as are asked for', async () => {
      const pages = await pagesOf(await long(), 'get', { trace_id: TRACE, limit: 1_000 })
      expect(pages.map(({ calls }) => calls.length)).toEqual([1_000, 1_000, 300])
    })

    it('is exported in pages: one root, and every call below its parent', async () => {
      const pages = await pagesOf(await long(), 'export', { trace_id: TRACE, format: 'otlp-json' })
      const spans = pages.flatMap(spansIn)
      expect(pages.length).toBeGreaterThan(2)
      expect(spans).toHaveLength(CALLS + 1)
      const [root, first] = spans
      expect(root?.name).toBe('invoke_workflow')
      expect(new Set(spans.slice(2).map(({ parentSpanId }) => parentSpanId))).toEqual(new Set([first?.spanId]))
    })

    it.each(['0', 'x', '9999999', 7])('refuses the cursor %s', async (cursor) => {
      expect(await ask(await long(), 'get', { trace_id: TRACE, cursor })).toMatchObject({
        fault: { code: -32602, data: { reason: 'bad_param', param: 'cursor' } },
      })
    })
  })

  it('has the fields of the seed and the superset', async () => {
    verifies('T3-fields')
    const store = await open(where)
    const input = { tool: 'calculate_area', args: { x: 3, y: 4 } }
    const names = { type: 'mcp', agent: 'math_agent', method: 'tools.call', nativeMethod: 'tools/call' } as const
    store.begin(callStart({ ...names, requestId: 'a', target: 'calculate_area', input }))
    store.end(callEnd({ output: { area: 12 } }))
    const { calls, ...trace } = await getTrace(store)
    expect(trace).toEqual({
      trace_id: TRACE,
      status: 'completed',
      started_at: '2026-03-26T12:00:00.000Z',
      ended_at: '2026-03-26T12:00:00.010Z',
      otel_trace_id: store.ids.otelTraceId(TRACE),
      n_calls: 1,
      missing: 0,
    })
    expect(calls).toEqual([
      {
        id: 1,
        agent: 'math_agent',
        method: 'tools.call',
        input,
        output: { area: 12 },
        status: 'ok',
        protocol: 'aio',
        type: 'mcp',
        parent_id: null,
        worker: '1.1',
        native_method: 'tools/call',
        target: 'calculate_area',
        partial: false,
        partials: 0,
        bytes_in: 100,
        bytes_out: 80,
        started_at: '2026-03-26T12:00:00.000Z',
        ended_at: '2026-03-26T12:00:00.010Z',
        duration_ms: 10,
        span_id: store.ids.spanId(TRACE, 1),
        request_id: 'a',
      },
    ])
  })

  it('has the arrays of the second text for generic payloads', async () => {
    const store = await open(where)
    store.begin(callStart())
    store.end(callEnd())
    const { calls } = await getTrace(store)
    expect(calls[0]?.inputs).toEqual([{ type: 'text', value: 'hello' }])
    expect(calls[0]?.outputs).toEqual([{ type: 'text', value: 'world' }])
  })

  it('is active while a call is open, then error or completed', async () => {
    verifies('T3-status')
    const store = await open(where)
    store.begin(callStart())
    store.begin(callStart({ callId: 2 }))
    store.end(callEnd())
    const open1 = await getTrace(store)
    expect([open1.status, open1.ended_at, open1.calls[1]?.status, open1.calls[1]?.output]).toEqual([
      ...['active', null, 'pending', null],
    ])
    store.end(
      callEnd({ callId: 2, status: 'error', output: null, error: { code: -32601, message: 'no', data: { a: 1 } } }),
    )
    const closed = await getTrace(store)
    expect([closed.status, closed.calls[1]?.error]).toEqual(['error', { code: -32601, message: 'no', data: { a: 1 } }])
  })

  it('lists its calls in the order of their start', async () => {
    verifies('T3-order')
    const store = await open(where)
    for (const [callId, offset] of [
      [7, 20],
      [3, 0],
      [5, 10],
    ] as const) {
      store.begin(callStart({ callId, startedAtMs: NOON_MS + offset }))
    }
    expect((await getTrace(store)).calls.map((call) => call.id)).toEqual([3, 5, 7])
  })

  it('counts partials and keeps when the first came', async () => {
    const store = await open(where)
    store.begin(callStart())
    store.partial({ traceId: TRACE, callId: 1, atMs: NOON_MS + 2 })
    store.partial({ traceId: TRACE, callId: 1, atMs: NOON_MS + 3 })
    const [call] = (await getTrace(store)).calls
    expect([call?.partial, call?.partials, call?.first_partial_at]).toEqual([true, 2, '2026-03-26T12:00:00.002Z'])
    store.end(callEnd({ partials: 2 }))
    expect((await getTrace(store)).calls[0]?.partials).toBe(2)
  })

  it('keeps no secret, no media and no more than the limit', async () => {
    verifies('T6-media')
    const store = await open({ ...where, redact: ['Password'], payloadBytes: 200 })
    store.begin(callStart({ input: { PASSWORD: 'hunter2', inputs: [{ type: 'image', value: 'aGVsbG8=' }] } }))
    store.end(
      callEnd({ status: 'error', output: 'x'.repeat(300), error: { message: 'm', data: { password: 'hunter2' } } }),
    )
    const text = JSON.stringify(await getTrace(store))
    expect(text).not.toContain('hunter2')
    expect(text).not.toContain('aGVsbG8=')
    const [call] = (await getTrace(store)).calls
    expect(call?.input).toEqual({
      PASSWORD: '[redacted]',
      inputs: [{ type: 'image', bytes: 5, sha256: '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824' }],
    })
    expect(call?.truncated).toEqual(['output'])
    expect(call?.output).toMatchObject({ truncated: true, bytes: 302 })
  })

  it('takes payloads that are JSON text already', async () => {
    const store = await open(where)
    store.begin(callStart({ input: new JsonText('{"a" : 1}') }))
    store.end(callEnd({ output: new JsonText('[]') }))
    const [call] = (await getTrace(store)).calls
    expect([call?.input, call?.output]).toEqual([{ a: 1 }, []])
  })

  it('survives payloads that cannot be written as JSON', async () => {
    const store = await open(where)
    const deep = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`)
    store.begin(callStart({ input: deep }))
    store.end(callEnd({ output: deep }))
    expect((await getTrace(store)).calls).toHaveLength(1)
  })

  it('is found by agent, method, protocol, status and time, newest first, page by page', async () => {
    verifies('T4-pages')
    const store = await open(where)
    for (let n = 1; n <= 5; n += 1) {
      const traceId = `T${n}`
      store.begin(callStart({ traceId, agent: n % 2 ? 'odd' : 'even', startedAtMs: NOON_MS + n * 1000 }))
      if (n < 5) store.end(callEnd({ traceId, status: n === 3 ? 'error' : 'ok', endedAtMs: NOON_MS + n * 1000 + 5 }))
    }
    const ids = async (params: object) =>
      (await ask(store, 'list', params)).traces.map((trace: { trace_id: string }) => trace.trace_id)
    expect(await ids({})).toEqual(['T5', 'T4', 'T3', 'T2', 'T1'])
    expect(await ids({ agent: 'even' })).toEqual(['T4', 'T2'])
    expect(await ids({ agent: 'even', method: 'input', protocol: 'aio' })).toEqual(['T4', 'T2'])
    expect(await ids({ method: 'other' })).toEqual([])
    expect(await ids({ protocol: 'mcp' })).toEqual([])
    expect(await ids({ status: 'error' })).toEqual(['T3'])
    expect(await ids({ status: 'active' })).toEqual(['T5'])
    expect(await ids({ status: 'completed' })).toEqual(['T4', 'T2', 'T1'])
    expect(await ids({ since: NOON_MS + 4000 })).toEqual(['T5', 'T4'])
    expect(await ids({ until: new Date(NOON_MS + 2000).toISOString() })).toEqual(['T1'])
    const first = await ask(store, 'list', { limit: 2 })
    const second = await ask(store, 'list', { limit: 2, cursor: first.next_cursor })
    const third = await ask(store, 'list', { limit: 2, cursor: second.next_cursor })
    expect(second.traces[0]).toEqual({
      trace_id: 'T3',
      status: 'error',
      started_at: '2026-03-26T12:00:03.000Z',
      ended_at: '2026-03-26T12:00:03.005Z',
      n_calls: 1,
      n_errors: 1,
      agents: ['odd'],
      agent: 'odd',
      method: 'input',
      prompt: 'hello',
    })
    expect([third.traces.length, third.next_cursor]).toEqual([1, undefined])
  })

  it('is listed by the call that began it, whatever number its caller gave it', async () => {
    verifies('T9-prompt')
    const store = await open(where)
    const input = { inputs: [{ type: 'text', value: 'the first question' }] }
    store.begin(callStart({ callId: 7, agent: 'root', input }))
    store.begin(callStart({ callId: 1, parentId: 7, agent: 'step', method: 'session/request_permission' }))
    for (const callId of [1, 7]) store.end(callEnd({ callId }))
    expect((await ask(store, 'list', {})).traces[0]).toMatchObject({
      agent: 'root',
      method: 'input',
      prompt: 'the first question',
    })
  })

  it('15.9 is found by a part of what any of its calls is named, and by how long it took', async () => {
    verifies('15.9-api')
    const store = await open(where)
    for (const [traceId, target, tookMs] of [
      ['Slow-1', 'Area_%', 900],
      ['quick-2', 'sum', 5],
    ] as const) {
      store.begin(callStart({ traceId, agent: 'orchestrator' }))
      store.begin(callStart({ traceId, callId: 2, parentId: 1, agent: 'math', method: 'tools.call', target }))
      store.end(callEnd({ traceId, callId: 2, endedAtMs: NOON_MS + tookMs }))
      store.end(callEnd({ traceId, endedAtMs: NOON_MS + tookMs }))
    }
    store.begin(callStart({ traceId: 'open-3' }))
    const ids = async (params: object) =>
      (await ask(store, 'list', params)).traces.map((trace: { trace_id: string }) => trace.trace_id)
    expect(await ids({ text: 'area_' })).toEqual(['Slow-1'])
    expect(await ids({ text: '_%' })).toEqual(['Slow-1'])
    expect(await ids({ text: 'SLOW' })).toEqual(['Slow-1'])
    expect(await ids({ text: 'MATH' })).toEqual(['quick-2', 'Slow-1'])
    expect(await ids({ text: 'tools.c', agent: 'math' })).toEqual(['quick-2', 'Slow-1'])
    expect(await ids({ text: 'nothing' })).toEqual([])
    expect(await ids({ min_ms: 100 })).toEqual(['open-3', 'Slow-1'])
    expect(await ask(store, 'list', { min_ms: '100' })).toMatchObject({ fault: { data: { reason: 'bad_param' } } })
  })

  it('15.9 gives one call alone, and calls without what they carried', async () => {
    verifies('15.9-api')
    const store = await open(where)
    for (const callId of [1, 2, 3]) {
      store.begin(callStart({ callId }))
      store.end(callEnd({ callId }))
    }
    const one = await ask(store, 'get', { trace_id: TRACE, call: 2 })
    expect([one.n_calls, one.calls.map(({ id }: { id: number }) => id)]).toEqual([3, [2]])
    expect(one.calls[0].output).toEqual({ outputs: [{ type: 'text', value: 'world' }] })
    const bare = await ask(store, 'get', { trace_id: TRACE, payloads: false })
    expect(bare.calls.map(({ input, output }: { input: unknown; output: unknown }) => [input, output])).toEqual(
      Array(3).fill([null, null]),
    )
    const refused = (params: object) => ask(store, 'get', { trace_id: TRACE, ...params })
    expect(await refused({ call: 9 })).toMatchObject({ fault: { data: { reason: 'unknown_call' } } })
    expect(await refused({ call: 'x' })).toMatchObject({ fault: { data: { reason: 'bad_param' } } })
  })

  it('9.24 says who called, and is found by the principal', async () => {
    verifies('9.24-caller')
    const store = await open(where)
    const alice = { kind: 'client', principal: 'dev/alice "a"', client: 7 } as const
    const agent = { kind: 'agent', principal: 'dev/alice "a"', client: 7, agent: 'reader' } as const
    const followed: unknown[] = []
    store.follow((event) => followed.push(tailItem(event).caller))
    store.begin(callStart({ traceId: 'T1', caller: alice }))
    store.begin(callStart({ traceId: 'T1', callId: 2, parentId: 1, caller: agent }))
    store.begin(callStart({ traceId: 'T2', caller: { kind: 'client', principal: 'bob', client: 8 } }))
    store.begin(callStart({ traceId: 'T3' }))
    const ids = async (params: object) =>
      (await ask(store, 'list', params)).traces.map((trace: { trace_id: string }) => trace.trace_id)
    expect(await ids({ caller: 'dev/alice "a"' })).toEqual(['T1'])
    expect(await ids({ caller: 'bob' })).toEqual(['T2'])
    expect(await ids({ caller: 'dev' })).toEqual([])
    expect(await ids({ caller: 'bob', agent: 'reader', status: 'active' })).toEqual(['T2'])
    expect((await getTrace(store, 'T1')).calls.map(({ caller }) => caller)).toEqual([alice, agent])
    expect((await getTrace(store, 'T3')).calls[0]).not.toHaveProperty('caller')
    expect(await ask(store, 'list', { caller: 5 })).toMatchObject({ fault: { data: { reason: 'bad_param' } } })
    expect(followed.slice(0, 2)).toEqual([alice, agent])
  })

  it('9.6 is seen by a principal only if all of it is its own, or of its agents', async () => {
    verifies('9.6-traces')
    const store = await open(where)
    const by = (principal: string) => ({ kind: 'client', principal, client: 1 }) as const
    const tell = (traceId: string, callId: number, principal: string, agent: string): void => {
      store.begin(callStart({ traceId, callId, agent, caller: by(principal) }))
      store.end(callEnd({ traceId, callId }))
    }
    tell('T1', 1, 'alice', 'reader')
    tell('T2', 1, 'bob', 'reader')
    // Whoever guesses the id of a trace before it is given out began it, and sees nothing by that.
    tell('T3', 1, 'bob', 'reader')
    tell('T3', 2, 'alice', 'writer')
    store.begin(callStart({ traceId: 'T4', agent: 'writer' }))
    const seen = async (scope: object) => {
      const list = (await ask(store, 'list', scope)).traces.map((trace: { trace_id: string }) => trace.trace_id)
      const got = []
      for (const traceId of ['T4', 'T3', 'T2', 'T1'])
        for (const method of ['get', 'export'] as const) {
          const answer = await ask(store, method, { trace_id: traceId, ...scope })
          if (answer.fault?.data.reason !== 'unknown_trace') got.push(answer.trace_id)
        }
      expect(got).toEqual(list.flatMap((traceId: string) => [traceId, traceId]))
      expect((await ask(store, 'export', { trace_id: 'T3', format: 'otlp-json', ...scope })).fault === undefined).toBe(
        list.includes('T3'),
      )
      return [list, (await ask(store, 'stats', scope)).total]
    }
    expect(await seen({})).toEqual([['T4', 'T3', 'T2', 'T1'], 5])
    expect(await seen({ only_caller: 'alice' })).toEqual([['T1'], 1])
    expect(await seen({ only_caller: 'bob' })).toEqual([['T2'], 1])
    expect(await seen({ only_caller: 'nobody' })).toEqual([[], 0])
    expect(await seen({ only_agents: ['reader'] })).toEqual([['T2', 'T1'], 2])
    expect(await seen({ only_agents: ['writer', 'reader'] })).toEqual([['T4', 'T3', 'T2', 'T1'], 5])
    expect(await seen({ only_agents: [] })).toEqual([[], 0])
    expect(await ask(store, 'stats', { only_agents: 'reader' })).toMatchObject({
      fault: { data: { reason: 'bad_param' } },
    })
  })

  it('is counted per agent', async () => {
    const store = await open(where)
    store.begin(callStart())
    store.end(callEnd())
    store.begin(callStart({ callId: 2, agent: 'writer' }))
    store.end(callEnd({ callId: 2, status: 'error', error: { message: 'no' } }))
    store.begin(callStart({ callId: 3, agent: 'writer' }))
    expect(await ask(store, 'stats', {})).toEqual({
      total: 3,
      success: 1,
      error: 1,
      agents: {
        reader: { calls: 1, errors: 0, bytes_in: 100, bytes_out: 80, busy_ms: 10 },
        writer: { calls: 2, errors: 1, bytes_in: 200, bytes_out: 80, busy_ms: 10 },
      },
    })
    expect(await ask(store, 'stats', { since: NOON_MS + 1 })).toEqual({ total: 0, success: 0, error: 0, agents: {} })
  })

  it.each([
    ['get', { trace_id: 'nobody' }, 'unknown_trace'],
    ['get', {}, 'bad_param'],
    ['export', { trace_id: 'nobody', format: 'aio' }, 'unknown_trace'],
    ['export', { trace_id: TRACE, format: 'xml' }, 'bad_param'],
    ['list', { limit: 0 }, 'bad_param'],
    ['list', { limit: 1001 }, 'bad_param'],
    ['list', { cursor: 'x' }, 'bad_param'],
    ['list', { status: 'toString' }, 'bad_param'],
    ['list', { since: 'yesterday' }, 'bad_param'],
    ['list', [], 'bad_param'],
    ['stats', { until: {} }, 'bad_param'],
  ] as const)('refuses %s %j with %s', async (method, params, reason) => {
    const store = await open(where)
    expect(await ask(store, method, params)).toMatchObject({ fault: { code: -32602, data: { reason } } })
  })

  it('tells followers of starts and ends until they stop', async () => {
    const store = await open(where)
    const seen: string[] = []
    const stop = store.follow(({ event, row }) => seen.push(`${event} ${row.id}`))
    store.begin(callStart())
    store.end(callEnd())
    stop()
    store.begin(callStart({ callId: 2 }))
    expect(seen).toEqual(['started 1', 'ended 1'])
  })
})

describe('the file', () => {
  it('may be read by its owner only', async () => {
    verifies('T6-mode')
    await open()
    expect(statSync(join(folder.path, 'traces.db')).mode & 0o777).toBe(0o600)
  })

  it('keeps traces and identity over a restart', async () => {
    const first = await open()
    first.begin(callStart())
    first.end(callEnd())
    const before = await getTrace(first)
    await first.close()
    expect(await getTrace(await open())).toEqual(before)
  })

  it('turns calls that an earlier run left open into errors', async () => {
    const first = await open()
    first.begin(callStart())
    first.begin(callStart({ callId: 2 }))
    first.end(callEnd({ callId: 2 }))
    await first.close()
    const trace = await getTrace(await open())
    expect([trace.status, trace.calls[0]?.status]).toEqual(['error', 'error'])
    expect(trace.calls[0]?.error?.data).toEqual({ reason: 'bus_restarted' })
    expect(trace.calls[0]?.ended_at).not.toBeNull()
  })

  it('belongs to one bus: the second says so and keeps its traces in memory', async () => {
    const first = await open()
    const second = await open()
    second.begin(callStart())
    second.end(callEnd())
    expect((await getTrace(second)).calls).toHaveLength(1)
    expect(await ask(first, 'get', { trace_id: TRACE })).toHaveProperty('fault')
    expect(changes.map((change) => [change.state, change.reason])).toEqual([
      ['ok', undefined],
      ['failed', 'in_use'],
    ])
    expect(second.status()).toMatchObject({ state: 'failed', reason: 'in_use', dropped: 1 })
  })

  it('is taken over by the second bus when the first one ends', async () => {
    const first = await open()
    const second = await open({ times: { retryMs: 20 } })
    await first.close()
    await expect.poll(() => second.status().state).toBe('ok')
    second.begin(callStart())
    expect((await getTrace(second)).status).toBe('active')
  })

  it('forgets traces older than the retention, and only those', async () => {
    verifies('T6-retention')
    const DAY_MS = 86_400_000
    const first = await open()
    for (const [traceId, age] of [
      ['old', 15],
      ['young', 13],
    ] as const) {
      first.begin(callStart({ traceId, startedAtMs: NOON_MS - age * DAY_MS }))
      first.end(callEnd({ traceId, endedAtMs: NOON_MS - age * DAY_MS + 5 }))
    }
    await first.close()
    const store = await open({ retentionDays: 14 })
    await expect.poll(async () => (await ask(store, 'list', {})).traces.length).toBe(1)
    expect((await getTrace(store, 'young')).calls).toHaveLength(1)
    expect(await ask(store, 'stats', {})).toMatchObject({ total: 1 })
  })
})

describe('a call that cannot be written', () => {
  it('costs itself and nothing else', async () => {
    const store = await open()
    const odd = { target: { not: 'text' } } as unknown as { target: string }
    store.begin(callStart())
    store.begin(callStart({ callId: 2, ...odd }))
    store.begin(callStart({ callId: 3, bytesIn: Number.NaN }))
    store.end(callEnd({ error: { message: 5 as unknown as string } }))
    const trace = await getTrace(store)
    expect([trace.calls.map((call) => call.id), trace.missing, store.status().state]).toEqual([[1], 2, 'ok'])
  })
})

describe('numbering', () => {
  it('continues after a restart, for traces and for calls of a known trace', async () => {
    const first = await open()
    const issued = [first.ids.issue(), first.ids.issue()]
    first.begin(callStart({ callId: first.ids.allocate(TRACE, 4) }))
    await first.close()
    const second = await open()
    expect(issued).toEqual(['AIO-TR-20260326-0001', 'AIO-TR-20260326-0002'])
    expect(issued).not.toContain(second.ids.issue())
    expect(second.ids.allocate(TRACE, 4)).toBe(5)
  })
})

describe('a store of the version before callers were kept', () => {
  async function makeOld(): Promise<string> {
    const path = join(folder.path, 'traces.db')
    const store = await open()
    store.begin(callStart({ callId: 1 }))
    store.end(callEnd())
    await store.close()
    const db = await openDatabase(path)
    db.exec('ALTER TABLE calls DROP COLUMN caller; PRAGMA user_version = 1')
    db.close()
    return path
  }

  it('9.24 is read as it is', async () => {
    verifies('9.24-migration')
    const before = await makeOld()
    const file = await openStoreFile(before)
    const answer = await file.query('get', { trace_id: TRACE })
    expect(JSON.parse((answer as { text: string }).text).calls).toMatchObject([{ id: 1, status: 'ok' }])
    expect(await file.query('list', { caller: 'local' })).toEqual({ text: '{"traces":[]}' })
    expect(file.look()).toEqual([])
    file.close()
    const db = await openDatabase(before, { readOnly: true })
    expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: 1 })
    db.close()
  })

  it('9.24 keeps its calls and takes new ones with their callers', async () => {
    await makeOld()
    const store = await open()
    const caller = { kind: 'client', principal: 'alice', client: 1 } as const
    store.begin(callStart({ callId: 2, caller }))
    const { calls } = await getTrace(store)
    expect(calls).toMatchObject([
      { id: 1, status: 'ok' },
      { id: 2, caller },
    ])
    expect(calls[0]).not.toHaveProperty('caller')
    expect(changes.map(({ state }) => state)).toEqual(['ok', 'ok'])
    await store.close()
    expect((await getTrace(await open())).calls).toHaveLength(2)
  })
})
