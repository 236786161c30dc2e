/** What is counted of a pool's last quarter of an hour. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { FIXED } from './limits.ts'
import { PoolTraffic, Traffic } from './traffic.ts'

const { trafficSpanMs: SPAN_MS, trafficSpans: SPANS } = FIXED

describe('the traffic of a pool', () => {
  test('15.19 counts requests and errors by their span, and forgets what is too old', () => {
    verifies('15.19-history')
    const traffic = new PoolTraffic()
    traffic.count(1_000, 3, false)
    traffic.count(SPAN_MS + 1, 3, true)
    const counts = traffic.counts(SPAN_MS + 2)
    expect(counts).toHaveLength(SPANS)
    expect(counts.slice(-2).map(({ requests, errors }) => [requests, errors])).toEqual([
      [1, 0],
      [1, 1],
    ])
    expect(traffic.counts(SPAN_MS * SPANS * 3).every(({ requests }) => requests === 0)).toBe(true)
    traffic.count(SPAN_MS * SPANS + 1_000, 3, false)
    expect(traffic.counts(SPAN_MS * SPANS + 1_000).at(-1)!.requests).toBe(1)
  })

  test('15.19 quantiles are a tenth too large at the most', () => {
    const traffic = new PoolTraffic()
    for (let ms = 1; ms <= 1_000; ms++) traffic.count(0, ms, false)
    const { p50Ms, p95Ms, p99Ms } = traffic.counts(0).at(-1)!
    for (const [told, true_] of [
      [p50Ms, 500],
      [p95Ms, 950],
      [p99Ms, 990],
    ] as const) {
      expect(told!).toBeGreaterThanOrEqual(true_)
      expect(told!).toBeLessThanOrEqual(true_ * 1.1)
    }
  })

  test('what takes no time and what takes for ever has its bucket', () => {
    const traffic = new PoolTraffic()
    traffic.count(0, 0, false)
    traffic.count(0, Number.MAX_SAFE_INTEGER, false)
    expect(traffic.counts(0).at(-1)!.requests).toBe(2)
  })

  test('pools that are gone are forgotten', () => {
    const traffic = new Traffic()
    const before = traffic.of('a')
    traffic.keep(new Set(['a']))
    expect(traffic.of('a')).toBe(before)
    traffic.keep(new Set())
    expect(traffic.of('a')).not.toBe(before)
  })
})
