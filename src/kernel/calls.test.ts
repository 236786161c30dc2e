/** Calls for the gateway and its exchanges with workers, on a clock of the test's own. */
import { expect, test } from 'vitest'
import { KernelRig, type PoolPart } from '../../test/support/kernel-rig.ts'
import type { BusEvent } from './events.ts'
import type { Limits } from './limits.ts'
import type { BusSpec, ClientId, WorkerId } from './vocabulary.ts'

const ONE = 1 as ClientId
const INNER = 2 as ClientId
const SLOT = 0 as WorkerId

/** A bus for whose peers everything that is written waits until the test takes it. */
class Desk extends KernelRig {
  constructor(gateway: BusSpec['gateway'], limits: Partial<Limits> = {}, pool: PoolPart = {}) {
    super({ pools: [pool], limits, ...(gateway === undefined ? {} : { gateway }) })
    this.connects(ONE)
    this.done.length = 0
  }

  protected override deliver(): void {}

  /** What waits to be written to each peer, as text, and is taken by it. */
  written(): Record<string, string> {
    this.lines.clear()
    super.deliver()
    return Object.fromEntries([...this.lines].map(([peer, lines]) => [peer, `${lines.join('\n')}\n`]))
  }

  openInternal(client = INNER, more: object = {}): void {
    this.connects(client, { door: 'internal', pool: 'p', ...more })
  }
}

const reply = (isFinal = true): BusEvent => ({
  type: 'client-reply',
  client: ONE,
  bytes: Buffer.from('{"id":1}\n'),
  isFinal,
})

test('off: a method with :: is routed like any other', () => {
  const desk = new Desk(undefined)
  desk.send(ONE, { id: 1, method: 'a::b' })
  expect(desk.did('call')).toEqual([])
  expect(desk.written()['worker 0']).toContain('a::b')
})

test.each([
  ['all', 'a::b', true],
  ['all', 'help', true],
  ['all', 'bus::traces.list', true],
  ['all', 'a:b', false],
  ['all', 'helper', false],
  ['bus', 'a::b', false],
  ['bus', 'help', false],
  ['bus', 'bus::traces.list', true],
] as const)('%s: %s is handed on: %s', (gateway, method, isHandedOn) => {
  const desk = new Desk(gateway)
  desk.send(ONE, { id: 1, method })
  expect(desk.did('call').length).toBe(isHandedOn ? 1 : 0)
  expect(desk.written()['worker 0'] !== undefined).toBe(!isHandedOn)
})

test('a method is compared by value, and an odd id is told as it was spelled', () => {
  const desk = new Desk('all')
  desk.send(ONE, '{"id":1.50,"method":"a\\u003a:b"}')
  const [call] = desk.did('call')
  expect(call).toMatchObject({ from: { kind: 'client', client: ONE, door: 'unix' }, oddId: '1.50' })
  expect(call!.bytes.toString()).toBe('{"id":1.50,"method":"a\\u003a:b"}')
})

test('a call is owed until its final reply: half-close waits for it (contract 4.1.2)', () => {
  const desk = new Desk('all')
  desk.send(ONE, { id: 1, method: 'a::b' })
  expect(desk.snapshot.outstanding).toBe(1)
  desk.apply({ type: 'client-ended', client: ONE })
  desk.apply(reply(false))
  desk.written()
  expect(desk.did('close-client')).toEqual([])
  desk.apply(reply())
  desk.written()
  expect(desk.did('close-client')).toEqual([{ do: 'close-client', client: ONE, how: 'flush' }])
})

test('a notification is owed nothing', () => {
  const desk = new Desk('all')
  desk.send(ONE, { method: 'a::b' })
  expect([desk.did('call').length, desk.snapshot.outstanding]).toEqual([1, 0])
})

test.each([
  [1, 0],
  [2, 1],
  [3, 2],
])('at most max_pending_per_client calls: %i sent, %i refused', (sent, refused) => {
  const desk = new Desk('all', { maxPendingPerClient: 1 })
  for (let id = 1; id <= sent; id++) desk.send(ONE, { id, method: 'a::b' })
  expect([desk.did('call').length, desk.snapshot.refused['too_many_pending'] ?? 0]).toEqual([1, refused])
})

test('a cancel of a call is handed on, and the call is owed nothing once it is over', () => {
  const desk = new Desk('all')
  desk.send(ONE, { id: 1, method: 'a::b' })
  desk.send(ONE, { method: 'notifications/cancelled', params: { requestId: 2 } })
  expect(desk.did('cancel-call')).toEqual([])
  expect(desk.written()['worker 0']).toContain('"requestId":2')
  desk.send(ONE, { method: '$/cancel_request', params: { requestId: 1 } })
  expect(desk.did('cancel-call')).toMatchObject([{ from: { client: ONE }, id: 1 }])
  desk.apply({ type: 'call-cancelled', client: ONE, id: 1 })
  expect(desk.snapshot.outstanding).toBe(0)
  desk.send(ONE, { method: '$/cancel_request', params: { requestId: 1 } })
  expect(desk.did('cancel-call')).toHaveLength(1)
})

test('a cancel that comes after its call was answered reaches nobody, unless a later request has its id', () => {
  const desk = new Desk('all')
  desk.send(ONE, { id: 1, method: 'a::b' })
  desk.apply({ type: 'client-reply', client: ONE, bytes: Buffer.from('{}\n'), isFinal: true, id: 1 })
  desk.send(ONE, { method: '$/cancel_request', params: { requestId: 1 } })
  expect(desk.did('cancel-call')).toEqual([])
  expect(desk.written()['worker 0']).toBeUndefined()
  expect(desk.snapshot.dropped['cancel_for_nothing']).toBe(1)
  desk.send(ONE, { id: 1, method: 'plain' })
  desk.send(ONE, { method: '$/cancel_request', params: { requestId: 1 } })
  expect(desk.written()['worker 0']).toContain('"requestId":1')
})

test('a call with an odd id cannot be cancelled, and is owed until its reply', () => {
  const desk = new Desk('all')
  desk.send(ONE, '{"id":1.50,"method":"a::b"}')
  desk.send(ONE, { method: '$/cancel_request', params: { requestId: 1.5 } })
  expect([desk.did('cancel-call'), desk.snapshot.outstanding]).toEqual([[], 1])
  desk.apply({ type: 'client-reply', client: ONE, bytes: Buffer.from('{}\n'), isFinal: true, id: '1.50 (1)' })
  expect(desk.snapshot.outstanding).toBe(0)
})

test('a caller that goes is told of, one that never called is not', () => {
  const desk = new Desk('all')
  desk.send(ONE, { id: 1, method: 'a::b' })
  desk.goes(ONE)
  desk.connects(INNER, { door: 'tcp' })
  desk.goes(INNER)
  expect(desk.did('caller-gone')).toEqual([
    { do: 'caller-gone', from: { kind: 'client', client: ONE, door: 'unix', isLocal: false } },
  ])
})

test('the drain waits for calls; at its end they are to be failed (contract 7.4)', () => {
  const desk = new Desk('all', { drainTimeoutMs: 5_000 })
  desk.send(ONE, { id: 1, method: 'a::b' })
  desk.apply({ type: 'shutdown', at: 'leisure' })
  desk.send(ONE, { id: 2, method: 'a::b' })
  expect(desk.snapshot.refused['shutting_down']).toBe(1)
  expect([desk.snapshot.phase, desk.did('fail-calls').length]).toEqual(['draining', 0])
  desk.pass(5_000)
  expect([desk.snapshot.phase, desk.did('fail-calls').length]).toEqual(['flushing', 1])
})

test('a worker calls: it is told who, and answered by its process', () => {
  const desk = new Desk('all')
  desk.says(SLOT, { id: 'x', method: 'other::m' })
  desk.says(SLOT, { id: 'y', method: 'help', sessionId: 'nobody' })
  expect(desk.did('call').map(({ from }) => from)).toEqual([{ kind: 'worker', worker: SLOT, generation: 1, pool: 'p' }])
  desk.written()
  desk.apply({ type: 'worker-reply', worker: SLOT, generation: 1, bytes: Buffer.from('{"id":"x"}\n') })
  expect(desk.written()['worker 0']).toBe('{"id":"x"}\n')
  desk.apply({ type: 'worker-reply', worker: SLOT, generation: 2, bytes: Buffer.from('{"id":"x"}\n') })
  expect(desk.written()).toEqual({})
})

test('an exchange is an ordinary client, but for what it is not: counted, captured, bound to sessions', () => {
  const desk = new Desk('all')
  desk.openInternal()
  desk.send(INNER, { id: 7, method: 'p::m', params: { sessionId: 's' } })
  expect(desk.did('call')).toEqual([])
  expect(desk.did('routed')).toEqual([{ do: 'routed', client: INNER, worker: SLOT, generation: 1 }])
  expect(desk.snapshot).toMatchObject({ clients: 1, clients_total: 1, sessions: 0, outstanding: 0 })
  desk.written()
  desk.says(SLOT, { id: 7, result: 1 })
  expect(desk.written()['client 2']).toBe('{"id":7,"result":1}\n')
})

test('parts and loose answers reach an exchange and leave it open; to others they are junk', () => {
  const desk = new Desk('all')
  desk.openInternal()
  desk.send(INNER, { id: 7, method: 'm' })
  desk.send(ONE, { id: 8, method: 'm' })
  desk.written()
  for (const id of [7, 8]) desk.says(SLOT, { id, outputs: [] })
  desk.says(SLOT, { id: 7, partial: true, result: {} })
  desk.says(SLOT, { id: 7, partial: false, result: {} })
  const lines = desk.written()
  expect(lines['client 2']!.split('\n').filter(Boolean)).toHaveLength(3)
  expect(lines['client 1']).toBeUndefined()
  expect(desk.snapshot.dropped['worker_bad_envelope']).toBe(1)
  expect(desk.snapshot.workers[0]!.outstanding).toBe(1)
})

test('a settled exchange frees its id, a cancelled one keeps it taken and tells the worker', () => {
  for (const isSettled of [true, false]) {
    const desk = new Desk('all', {}, { protocol: 'mcp', era: 'modern' })
    desk.openInternal()
    desk.send(INNER, { jsonrpc: '2.0', id: 7, method: 'tools/list' })
    desk.written()
    desk.goes(INNER, { isSettled })
    expect(desk.written()['worker 0']?.includes('notifications/cancelled') ?? false).toBe(!isSettled)
    desk.says(SLOT, { jsonrpc: '2.0', id: 7, result: {} })
    expect(desk.snapshot.dropped).toEqual(isSettled ? { unknown_answer: 1 } : { late_answer: 1 })
  }
})

test('a part of an answer to a cancelled exchange leaves its id taken, a loose answer frees it', () => {
  const desk = new Desk('all')
  desk.openInternal()
  desk.send(INNER, { id: 7, method: 'm' })
  desk.goes(INNER)
  desk.says(SLOT, { id: 7, partial: true, result: {} })
  desk.says(SLOT, { id: 7, partial: true, outputs: [] })
  expect(desk.snapshot.dropped).toEqual({ late_answer: 2 })
  desk.send(ONE, { id: 7, method: 'm' })
  expect(desk.written()['worker 0']).toContain('"id":1000000000')
  desk.says(SLOT, { id: 7, outputs: [] })
  expect([desk.snapshot.dropped, desk.snapshot.workers[0]!.outstanding]).toEqual([{ late_answer: 3 }, 1])
})

test('what the gateway adds to a line that was allowed does not make it too long', () => {
  const desk = new Desk('all', { maxInputBufferBytes: 100 })
  desk.openInternal()
  desk.send(INNER, { id: 7, method: 'm', params: 'x'.repeat(200) })
  expect(desk.did('routed')).toHaveLength(1)
})

test('an exchange that the bus refuses hears of it', () => {
  const desk = new Desk('all')
  desk.openInternal()
  desk.send(INNER, { id: 7, method: 'm', params: { sessionId: 4 } })
  expect(desk.did('exchange-failed')).toMatchObject([{ client: INNER, error: { data: { reason: 'bad_envelope' } } }])
})

test('a worker that ends fails its exchanges with a value of the bus, and is a caller gone', () => {
  const desk = new Desk('all')
  desk.openInternal()
  desk.send(INNER, { id: 7, method: 'm' })
  desk.written()
  desk.dies(SLOT, { how: { exitCode: 9, signal: null } })
  expect(desk.did('exchange-failed')).toMatchObject([
    { client: INNER, error: { code: -32603, data: { reason: 'worker_exited', exitCode: 9 } } },
  ])
  expect(desk.did('caller-gone').map(({ from }) => from.kind)).toEqual(['worker'])
})

test('a worker that does not read gets no more exchanges: overloaded (spec N14)', () => {
  const desk = new Desk('all', { maxOutputQueueBytes: 100 })
  desk.openInternal()
  desk.send(INNER, { id: 1, method: 'm', params: 'x'.repeat(200) })
  const third = 3 as ClientId
  desk.openInternal(third)
  desk.send(third, { id: 2, method: 'm' })
  expect(desk.did('exchange-failed')).toMatchObject([{ client: third, error: { data: { reason: 'overloaded' } } }])
})

test('an exchange may prefer a worker; one that is not ready is passed over', () => {
  const desk = new Desk('all', {}, { instances: 3, maxInstances: 3 })
  for (const [client, prefer] of [
    [2, 2],
    [3, 2],
    [4, 9],
  ] as [ClientId, WorkerId][]) {
    desk.openInternal(client, { prefer })
    desk.send(client, { id: client, method: 'm' })
  }
  expect(desk.did('routed').map(({ worker }) => worker)).toEqual([2, 2, 0])
})

test('a reply that fills the queue of its client holds back the worker it came from (contract 8.3)', () => {
  const desk = new Desk('all', { maxOutputQueueBytes: 100 })
  desk.send(ONE, { id: 1, method: 'a::b' })
  const bytes = Buffer.from(`{"id":1,"result":"${'x'.repeat(200)}"}\n`)
  const source = { worker: SLOT, generation: 1 }
  desk.apply({ type: 'client-reply', client: ONE, bytes, isFinal: true, source })
  expect(desk.did('pause-worker')).toEqual([{ do: 'pause-worker', ...source }])
  desk.written()
  expect(desk.did('resume-worker')).toEqual([{ do: 'resume-worker', ...source }])
})

test('a pool of one-shot processes takes no plain message', () => {
  const desk = new Desk('all', {}, { instances: 0, isAioOnly: true })
  desk.send(ONE, { id: 1, method: 'm' })
  expect(desk.written()['client 1']).toContain('"reason":"aio_only"')
})
