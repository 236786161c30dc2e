import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { CLIENT, MemoryIds } from '../../test/fixtures/aio/workbench.ts'
import { type Ancestor, Parents } from './parents.ts'
import type { Caller } from './port.ts'

const T = 'AIO-TR-20250326-0001'
const WORKER: Caller = { kind: 'worker', key: '3.1', pool: 'reader' }

let nowMs = 0

function remembered(parents: Parents, callId: number, depth = 1, traceId = T): Ancestor {
  const call = { traceId, callId, depth, otelTraceId: undefined, origin: { principal: 'local' } }
  parents.remember(call)
  return call
}

describe('the place of a call', () => {
  it('is at the top without any reference', () => {
    expect(new Parents(new MemoryIds(), () => nowMs).place(CLIENT, T, {})).toEqual({
      traceId: T,
      parentId: null,
      depth: 1,
      otelTraceId: undefined,
      origin: { principal: 'local' },
      cause: undefined,
      isOrphan: false,
    })
  })

  it('is under the call whose traceparent comes back', () => {
    verifies('N16-parent')
    const parents = new Parents(new MemoryIds(), () => nowMs)
    const traceparent = parents.traceparent(remembered(parents, 7))
    expect(parents.place(CLIENT, T, { traceparent })).toMatchObject({ parentId: 7, depth: 2 })
    expect(parents.place(CLIENT, undefined, { traceparent })).toMatchObject({ traceId: T, parentId: 7 })
  })

  it('keeps the OpenTelemetry trace of a foreign traceparent, and hands it on', () => {
    verifies('T7-foreign')
    const parents = new Parents(new MemoryIds(), () => nowMs)
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
    const place = parents.place(CLIENT, T, { traceparent })
    expect(place).toMatchObject({ parentId: null, otelTraceId: 'a'.repeat(32) })
    expect(parents.traceparent({ ...place, traceId: T, callId: 1 })).toMatch(
      new RegExp(`^00-${'a'.repeat(32)}-[0-9a-f]{16}-01$`),
    )
  })

  it.each([
    [`ff-${'a'.repeat(32)}-${'b'.repeat(16)}-01`],
    [`00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`],
    [`00-${'a'.repeat(32)}-${'0'.repeat(16)}-01`],
    ['00-AAAA'],
    [5],
  ])('takes nothing from the traceparent %j', (traceparent) => {
    expect(new Parents(new MemoryIds(), () => nowMs).place(CLIENT, T, { traceparent })).toMatchObject({
      otelTraceId: undefined,
    })
  })

  it('is under the call that is named, if that is known and of the same trace', () => {
    verifies('N16-parent')
    const parents = new Parents(new MemoryIds(), () => nowMs)
    remembered(parents, 2)
    expect(parents.place(CLIENT, T, { 'stdio-bus/parent': `${T}#2` })).toMatchObject({ parentId: 2 })
    expect(parents.place(CLIENT, T, { 'stdio-bus/parent': `${T}#3` })).toMatchObject({ parentId: null })
    expect(parents.place(CLIENT, 'other', { 'stdio-bus/parent': `${T}#2` })).toMatchObject({ parentId: null })
  })

  it('is under the only open call of the worker that asks', () => {
    verifies('N16-parent')
    const parents = new Parents(new MemoryIds(), () => nowMs)
    const call = remembered(parents, 4, 3)
    parents.opened('3.1', call)
    expect(parents.place(WORKER, undefined, {})).toMatchObject({ traceId: T, parentId: 4, depth: 4 })
    expect(parents.place(CLIENT, undefined, {})).toMatchObject({ traceId: undefined, parentId: null })
    parents.closed('3.1', call)
    expect(parents.place(WORKER, undefined, {})).toMatchObject({ traceId: undefined, parentId: null })
  })

  it('is unknown with two open calls, unless the trace tells them apart', () => {
    const parents = new Parents(new MemoryIds(), () => nowMs)
    parents.opened('3.1', remembered(parents, 1, 5))
    parents.opened('3.1', remembered(parents, 1, 9, 'other'))
    expect(parents.place(WORKER, undefined, {})).toMatchObject({ traceId: undefined, parentId: null, depth: 10 })
    expect(parents.place(WORKER, T, {})).toMatchObject({ parentId: 1, depth: 6 })
    expect(parents.place(WORKER, 'other', {})).toMatchObject({ parentId: 1, depth: 10 })
    expect(parents.place(WORKER, 'a third', {})).toMatchObject({ parentId: null, depth: 10 })
  })

  it('prefers what the caller says to what its worker has open', () => {
    verifies('N16-parent')
    const parents = new Parents(new MemoryIds(), () => nowMs)
    parents.opened('3.1', remembered(parents, 1))
    const traceparent = parents.traceparent(remembered(parents, 2))
    remembered(parents, 3)
    expect(parents.place(WORKER, T, { traceparent, 'stdio-bus/parent': `${T}#3` })).toMatchObject({ parentId: 2 })
    expect(parents.place(WORKER, T, { 'stdio-bus/parent': `${T}#3` })).toMatchObject({ parentId: 3 })
  })

  it('is not made shallow by naming a call that the worker does not have in hand', () => {
    const parents = new Parents(new MemoryIds(), () => nowMs)
    const first = remembered(parents, 1, 1)
    const traceparent = parents.traceparent(first)
    parents.opened('3.1', remembered(parents, 2, 8))
    expect(parents.place(WORKER, undefined, { traceparent })).toMatchObject({ parentId: 1, depth: 9 })
    parents.opened('3.1', first)
    expect(parents.place(WORKER, undefined, { traceparent })).toMatchObject({ parentId: 1, depth: 2 })
  })

  it('goes on from what the worker was done with a moment ago', () => {
    verifies('N16-unknown')
    const parents = new Parents(new MemoryIds(), () => nowMs)
    const call = remembered(parents, 1, 8)
    parents.opened('3.1', call)
    parents.closed('3.1', call)
    parents.reached('3.1', remembered(parents, 2, 3))
    expect(parents.place(WORKER, undefined, {})).toMatchObject({ parentId: null, depth: 9, isOrphan: false })
    nowMs += 1_000
    expect(parents.place(WORKER, undefined, {})).toMatchObject({ depth: 1, isOrphan: false })
  })

  it('is nobody’s when all that the worker had in hand was given up, for as long as it goes on', () => {
    const parents = new Parents(new MemoryIds(), () => nowMs)
    const call = remembered(parents, 1, 8)
    parents.opened('3.1', call)
    const traceparent = parents.traceparent(call)
    call.isGivenUp = true
    parents.closed('3.1', call)
    for (let n = 0; n < 5; n++) {
      expect(parents.place(WORKER, undefined, {})).toMatchObject({ isOrphan: true })
      nowMs += 900
    }
    expect(parents.place(WORKER, undefined, { traceparent })).toMatchObject({ isOrphan: true })
    expect(parents.place(CLIENT, undefined, { traceparent })).toMatchObject({ isOrphan: false })
    nowMs += 1_000
    expect(parents.place(WORKER, undefined, {})).toMatchObject({ depth: 1, isOrphan: false })
  })

  it('forgets the oldest calls', () => {
    const parents = new Parents(new MemoryIds(), () => nowMs)
    for (let id = 1; id <= 10_001; id++) remembered(parents, id)
    expect(parents.place(CLIENT, T, { 'stdio-bus/parent': `${T}#1` })).toMatchObject({ parentId: null })
    expect(parents.place(CLIENT, T, { 'stdio-bus/parent': `${T}#2` })).toMatchObject({ parentId: 2 })
  })
})
