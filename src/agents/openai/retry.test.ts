import { describe, expect, it } from 'vitest'
import { maxRetryAfterMs, parseRetryAfterMs, retryDelayMs } from './retry.ts'

const now = Date.parse('2026-01-01T00:00:00Z')

describe('retry', () => {
  it('backs off, doubling up to a bound, with jitter', () => {
    const delays = [0, 1, 2, 3, 4, 5].map((attempt) => retryDelayMs(attempt, null, now, 1))
    expect(delays).toEqual([500, 1000, 2000, 4000, 8000, 8000])
    expect(retryDelayMs(0, null, now, 0)).toBe(250)
  })

  it('honours Retry-After in seconds and as a date', () => {
    expect(retryDelayMs(0, '7', now, 1)).toBe(7000)
    expect(retryDelayMs(0, '0', now, 1)).toBe(0)
    expect(retryDelayMs(0, 'Thu, 01 Jan 2026 00:00:05 GMT', now, 1)).toBe(5000)
    expect(retryDelayMs(0, 'Wed, 31 Dec 2025 00:00:00 GMT', now, 1)).toBe(0)
  })

  it('waits a minute and not a second more', () => {
    const seconds = maxRetryAfterMs / 1000
    expect(retryDelayMs(0, String(seconds - 1), now, 1)).toBe(maxRetryAfterMs - 1000)
    expect(retryDelayMs(0, String(seconds), now, 1)).toBe(maxRetryAfterMs)
    expect(retryDelayMs(0, String(seconds + 1), now, 1)).toBeUndefined()
  })

  it.each(['', 'soon', '-5', '12 s', '2026'])('takes %j as not given, or as a plain number', (value) => {
    expect(parseRetryAfterMs(value, now)).toBe(value === '2026' ? 2_026_000 : undefined)
  })
})
