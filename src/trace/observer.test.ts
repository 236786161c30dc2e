import fc from 'fast-check'
import { expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import type { Observed } from '../kernel/observation.ts'
import type { ClientId, WorkerId } from '../kernel/vocabulary.ts'
import type { JsonText } from '../wire/ready-json.ts'
import type { CallEnd, CallStart } from './call.ts'
import { TrafficObserver } from './observer.ts'

class Notes {
  readonly begun: CallStart[] = []
  readonly ended: CallEnd[] = []
  partials = 0
  readonly observer: TrafficObserver
  #traces = 0
  #calls = 0

  constructor(payloadBytes = 1_000) {
    const ids = { issue: () => `t${++this.#traces}`, allocate: () => ++this.#calls }
    const sink = {
      begin: (call: CallStart) => void this.begun.push(call),
      end: (call: CallEnd) => void this.ended.push(call),
      partial: () => void this.partials++,
    }
    this.observer = new TrafficObserver(sink, ids, payloadBytes, () => 1_000)
  }
}

const process = { worker: 3 as WorkerId, generation: 2 }
const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

function opened(request: number, method: string, params: object, protocol: 'acp' | 'mcp'): Observed {
  const session = (params as { sessionId?: string }).sessionId
  const line = bytes({ id: request, method, params })
  return {
    kind: 'opened',
    request,
    client: 7 as ClientId,
    principal: 'alice',
    ...process,
    pool: 'p',
    protocol,
    method,
    id: request,
    session,
    line,
    body: bytes(params),
  }
}

const answered = (request: number, result: object): Observed => ({
  kind: 'answered',
  request,
  line: bytes({ id: request, result }),
  body: bytes(result),
})

const said = (params: object, question?: number, request?: number): Observed => ({
  kind: 'said',
  ...process,
  pool: 'p',
  request,
  question,
  session: (params as { sessionId?: string }).sessionId,
  line: bytes({ method: question === undefined ? 'session/update' : 'session/request_permission', params }),
})

const tool = (toolCallId: string, fields: object): Observed =>
  said({ sessionId: 's', update: { sessionUpdate: 'tool_call_update', toolCallId, ...fields } })
const newTool = (toolCallId: string, fields: object = {}): Observed =>
  said({ sessionId: 's', update: { sessionUpdate: 'tool_call', toolCallId, ...fields } })
const prompt = (request: number): Observed => opened(request, 'session/prompt', { sessionId: 's' }, 'acp')

test('an MCP request is a trace of one call; its payloads are the bytes that passed', () => {
  verifies('T9-bytes')
  const { observer, begun, ended } = new Notes()
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  observer.take(opened(1, 'tools/call', { name: 'area', _meta: { traceparent } }, 'mcp'))
  observer.take(answered(1, { content: [] }))
  expect(begun).toMatchObject([
    {
      traceId: 't1',
      parentId: null,
      method: 'tools/call',
      target: 'area',
      protocol: 'mcp',
      type: 'mcp',
      worker: '3.2',
    },
  ])
  expect(begun[0]!.otelTraceId).toBe('a'.repeat(32))
  expect(ended).toMatchObject([{ traceId: 't1', status: 'ok' }])
  expect((ended[0]!.output as JsonText).text).toBe('{"content":[]}')
})

test.each<[string, Observed, object]>([
  [
    'isError',
    answered(1, { isError: true, content: [{ type: 'text', text: 'no' }] }),
    { type: 'tool_error', message: 'no' },
  ],
  [
    'an error',
    { kind: 'answered', request: 1, line: bytes({ id: 1, error: { code: -1, message: 'bad' } }), body: undefined },
    { code: -1, message: 'bad' },
  ],
  [
    'a fault of the bus',
    { kind: 'failed', request: 1, error: { code: -32603, message: 'gone', data: { reason: 'worker_exited' } } },
    { code: -32603, data: { reason: 'worker_exited' } },
  ],
  [
    'an error too long to look into',
    { kind: 'answered', request: 1, line: Buffer.alloc(70_000, 32), body: undefined },
    { message: 'The worker failed, at length.' },
  ],
])('%s is an error in the trace', (_what, end, error) => {
  const { observer, ended } = new Notes()
  observer.take(opened(1, 'tools/call', {}, 'mcp'))
  observer.take(end)
  expect(ended).toMatchObject([{ status: 'error', error }])
})

test('progress is counted, and long results are kept without being looked into', () => {
  const notes = new Notes()
  notes.observer.take(opened(1, 'tools/call', {}, 'mcp'))
  notes.observer.take(said({ progressToken: 1 }, undefined, 1))
  notes.observer.take(answered(1, { text: `"isError"${'x'.repeat(70_000)}` }))
  expect([notes.partials, notes.ended[0]!.status]).toEqual([1, 'ok'])
})

test('a tool call ends with its update, a question with its answer, what is left with the turn', () => {
  const { observer, begun, ended } = new Notes()
  observer.take(prompt(1))
  observer.take(newTool('a', { title: 'Read', rawInput: { path: 'x' } }))
  observer.take(newTool('b', { status: 'in_progress' }))
  observer.take(tool('a', { status: 'completed', content: [1] }))
  observer.take(said({ sessionId: 's', toolCall: { toolCallId: 'b' } }, 5))
  observer.take({ kind: 'settled', question: 5, line: bytes({ id: 5, result: { outcome: 'no' } }) })
  observer.take(answered(1, { stopReason: 'cancelled' }))
  expect(begun.map(({ callId, parentId, method }) => [callId, parentId, method])).toEqual([
    [1, null, 'session/prompt'],
    [2, 1, 'tool_call'],
    [3, 1, 'tool_call'],
    [4, 3, 'session/request_permission'],
  ])
  expect(ended.map(({ callId, status }) => [callId, status])).toEqual([
    [2, 'ok'],
    [4, 'ok'],
    [3, 'error'],
    [1, 'ok'],
  ])
})

test('what belongs to no open turn is not recorded', () => {
  const notes = new Notes()
  notes.observer.take(newTool('a'))
  notes.observer.take(said({ sessionId: 's' }, 1))
  notes.observer.take({ kind: 'settled', question: 1, line: undefined })
  notes.observer.take(answered(9, {}))
  expect([notes.begun, notes.ended, notes.partials]).toEqual([[], [], 0])
})

test('whatever happens, a call that has begun ends exactly once when its turn and questions are over', () => {
  const step = fc.oneof(
    fc.integer({ min: 1, max: 3 }).map(prompt),
    fc.integer({ min: 1, max: 3 }).map((request) => answered(request, {})),
    fc.constantFrom('a', 'b').map((id) => newTool(id)),
    fc
      .tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('completed', 'failed', 'pending'))
      .map(([id, status]) => tool(id, { status })),
    fc.integer({ min: 10, max: 12 }).map((question) => said({ sessionId: 's' }, question)),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { observer, begun, ended } = new Notes()
      // The kernel never uses a number twice.
      let last = 100
      const open = new Map<number, number>()
      for (const event of steps) observer.take(renumbered(event, open, () => ++last))
      for (const number of open.values()) {
        observer.take({ kind: 'settled', question: number, line: undefined })
        observer.take({ kind: 'failed', request: number, error: { code: 1, message: 'over' } })
      }
      expect(ended.map(({ callId }) => callId).sort()).toEqual(begun.map(({ callId }) => callId).sort())
    }),
  )
})

function renumbered(event: Observed, open: Map<number, number>, next: () => number): Observed {
  if (event.kind === 'opened') {
    const number = next()
    open.set(number, number)
    return { ...event, request: number }
  }
  if (event.kind === 'said' && event.question !== undefined) {
    const number = next()
    open.set(number, number)
    return { ...event, question: number }
  }
  return event
}

test('9.24 a request is its client’s, and what the agent does for it keeps the principal', () => {
  verifies('9.24-traffic')
  const notes = new Notes()
  notes.observer.take(opened(1, 'session/prompt', { sessionId: 's' }, 'acp'))
  notes.observer.take(said({ sessionId: 's', update: { sessionUpdate: 'tool_call', toolCallId: 't', title: 'x' } }))
  expect(notes.begun.map(({ caller }) => caller)).toEqual([
    { kind: 'client', principal: 'alice', client: 7 },
    { kind: 'agent', principal: 'alice', client: 7, agent: 'p' },
  ])
})

const chunk = (text: string): Observed =>
  said({ sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } })
const outputOf = (call: CallEnd | undefined): unknown => JSON.parse((call!.output as JsonText).text)

test('what an agent said is kept with how its turn ended', () => {
  verifies('T9-text')
  const { observer, ended, partials } = new Notes()
  expect(partials).toBe(0)
  observer.take(prompt(1))
  observer.take(
    said({ sessionId: 's', update: { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'hm' } } }),
  )
  for (const text of ['Hel', 'lo ', '"you"']) observer.take(chunk(text))
  observer.take(
    said({ sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'image', data: 'x' } } }),
  )
  observer.take(answered(1, { stopReason: 'end_turn' }))
  const outputs = [{ type: 'text', value: 'Hello "you"[image]' }]
  expect(outputOf(ended[0])).toEqual({ stopReason: 'end_turn', outputs })
})

test('also of a turn that failed, and nothing where nothing was said', () => {
  const { observer, ended } = new Notes()
  observer.take(prompt(1))
  observer.take(chunk('half an ans'))
  observer.take({ kind: 'failed', request: 1, error: { code: -32603, message: 'gone' } })
  expect(ended[0]).toMatchObject({ status: 'error', error: { message: 'gone' } })
  expect(outputOf(ended[0])).toEqual({ outputs: [{ type: 'text', value: 'half an ans' }] })
  observer.take(prompt(2))
  observer.take(answered(2, {}))
  expect(outputOf(ended[1])).toEqual({})
  observer.take(prompt(3))
  observer.take(chunk('x'))
  observer.take(answered(3, {}))
  expect(outputOf(ended[2])).toEqual({ outputs: [{ type: 'text', value: 'x' }] })
})

test.each([
  [0, undefined],
  [4, '01234…'],
  [9, '0123456789'],
  [20, '0123456789'],
])('of an answer of ten characters %i are kept as %j', (payloadBytes, value) => {
  const { observer, ended } = new Notes(payloadBytes)
  observer.take(prompt(1))
  for (const text of ['012', '345', '6789']) observer.take(chunk(text))
  observer.take(answered(1, { stopReason: 'end_turn' }))
  const outputs = value === undefined ? {} : { outputs: [{ type: 'text', value }] }
  expect(outputOf(ended[0])).toEqual({ stopReason: 'end_turn', ...outputs })
})
