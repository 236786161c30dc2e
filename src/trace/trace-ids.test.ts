import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { type Reserve, TraceIds } from './trace-ids.ts'

const NOON_MS = Date.UTC(2026, 2, 26, 12)
const nobody: Reserve = async () => undefined

/** A counter that outlives the issuer, as the store's does. */
function counters(start = 1): Reserve {
  const days = new Map<string, number>()
  return async (day, count, atLeast) => {
    const first = Math.max(days.get(day) ?? start, atLeast)
    days.set(day, first + count)
    return first
  }
}

async function ready(reserve: Reserve, nowMs = () => NOON_MS): Promise<TraceIds> {
  const ids = new TraceIds('bus', nowMs, reserve)
  await ids.prepare()
  return ids
}

describe('issuing', () => {
  it('counts from 1 in four digits', async () => {
    const ids = await ready(counters())
    expect([ids.issue(), ids.issue()]).toEqual(['AIO-TR-20260326-0001', 'AIO-TR-20260326-0002'])
  })

  it('goes on in five digits after 9999', async () => {
    verifies('T1-five')
    const ids = await ready(counters(9_999))
    expect([ids.issue(), ids.issue()]).toEqual(['AIO-TR-20260326-9999', 'AIO-TR-20260326-10000'])
  })

  it('starts anew with the UTC day, from a block that was taken the day before', async () => {
    let nowMs = Date.UTC(2026, 11, 31, 23, 59, 59, 999)
    const taken: string[] = []
    const reserve = counters()
    const ids = await ready(
      (day, count, atLeast) => {
        taken.push(day)
        return reserve(day, count, atLeast)
      },
      () => nowMs,
    )
    expect(ids.issue()).toBe('AIO-TR-20261231-0001')
    expect(taken).toEqual(['20261231', '20270101'])
    nowMs += 1
    expect(ids.issue()).toBe('AIO-TR-20270101-0001')
  })

  it('starts at the milliseconds since midnight without a store', async () => {
    verifies('T1-midnight')
    const ids = await ready(nobody)
    expect([ids.issue(), ids.issue()]).toEqual(['AIO-TR-20260326-43200000', 'AIO-TR-20260326-43200001'])
  })

  it('does not repeat a number that was issued while no block was there', async () => {
    let isThere = false
    const reserve = counters()
    const ids = await ready(async (...args) => (isThere ? reserve(...args) : undefined))
    const before = ids.issue()
    isThere = true
    await ids.prepare()
    expect(before).toBe('AIO-TR-20260326-43200000')
    expect(ids.issue()).toBe('AIO-TR-20260326-43200001')
  })

  it('never waits: a burst beyond all blocks is issued at once and without repetition', async () => {
    const ids = await ready(counters())
    const issued = Array.from({ length: 20_000 }, () => ids.issue())
    expect(new Set(issued).size).toBe(20_000)
  })
})

describe('a given trace id', () => {
  const ids = new TraceIds('bus', () => NOON_MS, nobody)

  it.each(['a', 'AIO-TR-20250326-0001', 'test-123', '~!"$', 'x'.repeat(128)])('%j is accepted', (traceId) => {
    verifies('N3-trace-id')
    expect(ids.isValid(traceId)).toBe(true)
  })

  it.each(['', 'a b', 'a#1', 'a\n', 'é', '\u007f', 'x'.repeat(129)])('%j is refused', (traceId) => {
    verifies('N3-trace-id')
    expect(ids.isValid(traceId)).toBe(false)
  })
})

describe('W3C ids', () => {
  it('are derived from the instance, the trace and the call', () => {
    verifies('T7-derived')
    const ids = new TraceIds('bus', () => NOON_MS, nobody)
    expect(ids.otelTraceId('T')).toBe('576504fe7c7491fcbe1aae50cdd950ff')
    expect(ids.spanId('T', 1)).toBe('e2a2b97d99541b25')
  })
})
