import { afterEach, expect, test, vi } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { afterWaking, BusClock } from './bus-clock.ts'

afterEach(() => vi.useRealTimers())

test('8.3 goes with the system while the bus runs, also when it is a little late', () => {
  const clock = new BusClock()
  expect(clock.read(1_000, 1_500)).toBe(1_000)
  expect(clock.read(2_400, 1_500)).toBe(2_400)
  expect(clock.read(9_000, Number.POSITIVE_INFINITY)).toBe(9_000)
})

test('8.3 stands still while the bus is stopped over a deadline, and goes on from there', () => {
  verifies('8.3-absent')
  const clock = new BusClock()
  clock.read(1_000, 1_500)
  expect(clock.read(61_000, 1_500)).toBe(1_000)
  expect(clock.read(61_400, 1_500)).toBe(1_400)
  expect(clock.read(200_000, 1_500)).toBe(1_400)
  expect(clock.read(200_100, 1_500)).toBe(1_500)
})

test('8.3 a time limit that was slept through ends a moment after waking, one that was not ends in time', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const ended: string[] = []
  afterWaking(100, () => ended.push('in time'))
  afterWaking(100, () => ended.push('never'))()
  vi.advanceTimersByTime(100)
  expect(ended).toEqual(['in time'])
  afterWaking(100, () => ended.push('after waking'))
  const now = performance.now()
  vi.spyOn(performance, 'now').mockReturnValue(now + 60_000)
  vi.advanceTimersByTime(100)
  expect(ended).toEqual(['in time'])
  vi.advanceTimersByTime(1_000)
  expect(ended).toEqual(['in time', 'after waking'])
  vi.restoreAllMocks()
})
