import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { REFUSAL_PAUSE_MS, RefusalLines, type RefusalPace, SlowedRefusals } from './refusals.ts'

const MINUTE_MS = 60_000

class Clock {
  nowMs = 0
  readonly refusals = new SlowedRefusals(() => this.nowMs)

  refuse(count: number, ip = '192.0.2.1'): RefusalPace[] {
    return Array.from({ length: count }, () => this.refusals.paceFor(ip))
  }
}

const all = (pace: RefusalPace, count: number): RefusalPace[] => Array<RefusalPace>(count).fill(pace)

describe('bad credentials', () => {
  test('ten a minute are refused at once, the next waits, another address does not', () => {
    verifies('9.25-slowed')
    const clock = new Clock()
    expect(clock.refuse(11)).toEqual([...all('at_once', 10), 'after_pause'])
    expect(clock.refuse(10, '192.0.2.2')).toEqual(all('at_once', 10))
    clock.nowMs = MINUTE_MS - 1
    expect(clock.refuse(1)).toEqual(['after_pause'])
    clock.nowMs = 2 * MINUTE_MS - 1
    expect(clock.refuse(11)).toEqual([...all('at_once', 10), 'after_pause'])
  })

  test('256 of an address wait, more are closed, until a second has gone', () => {
    verifies('9.25-waiting')
    const clock = new Clock()
    clock.refuse(10)
    expect(clock.refuse(300)).toEqual([...all('after_pause', 256), ...all('closed', 44)])
    clock.refuse(10, '192.0.2.2')
    expect(clock.refuse(1, '192.0.2.2')).toEqual(['after_pause'])
    clock.nowMs = REFUSAL_PAUSE_MS - 1
    expect(clock.refuse(1)).toEqual(['closed'])
    clock.nowMs = REFUSAL_PAUSE_MS
    expect(clock.refuse(257)).toEqual([...all('after_pause', 256), 'closed'])
  })

  test('from a thousand addresses no more than 1,024 wait', () => {
    verifies('9.25-waiting')
    const clock = new Clock()
    const paces = Array.from({ length: 200 }, (_, n) => clock.refuse(20, `192.0.2.${n}`)).flat()
    expect(paces.filter((pace) => pace === 'after_pause')).toHaveLength(1_024)
    expect(paces.filter((pace) => pace === 'at_once')).toHaveLength(2_000)
  })

  test.each([
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff'],
    ['2001:db8::1', '2001:0db8:0:0:1:2:3:4'],
    ['fe80::1%eth0', 'fe80::2%eth1'],
    ['::1', '::2'],
    ['2001:db8:0:0:1::', '2001:db8::2:3:4:5'],
  ])('%s and %s are one', (one, other) => {
    verifies('9.25-slowed')
    const clock = new Clock()
    clock.refuse(10, one)
    expect(clock.refuse(1, other)).toEqual(['after_pause'])
  })

  test.each([
    ['2001:db8:1:2::1', '2001:db8:1:3::1'],
    ['192.0.2.1', '192.0.2.2'],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.2'],
    ['1::', '::1'],
  ])('%s and %s are two', (one, other) => {
    const clock = new Clock()
    clock.refuse(10, one)
    expect(clock.refuse(1, other)).toEqual(['at_once'])
  })

  test('a hundred thousand addresses leave no more behind than the bound', () => {
    verifies('9.25-waiting')
    const clock = new Clock()
    for (let n = 0; n < 100_000; n++) {
      clock.nowMs += 1
      clock.refusals.paceFor(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`)
    }
    expect(clock.refusals.size).toBeLessThanOrEqual(20_000 + 1_024)
  })

  test('at any time the pace is that of all that came in the last minute and all that wait', () => {
    verifies('9.25-slowed', '9.25-waiting')
    const step = fc.record({
      afterMs: fc.constantFrom(0, 1, 500, 999, 1_000, 5_999, 6_000, 59_999, 60_000),
      count: fc.integer({ min: 1, max: 300 }),
      ip: fc.constantFrom('192.0.2.1', '192.0.2.2', '2001:db8::1'),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const clock = new Clock()
        const bad: { ip: string; atMs: number }[] = []
        const waits: { ip: string; untilMs: number }[] = []
        for (const { afterMs, count, ip } of steps) {
          clock.nowMs += afterMs
          const expected = Array.from({ length: count }, (): RefusalPace => {
            const recent = bad.filter((one) => one.ip === ip && clock.nowMs - one.atMs < MINUTE_MS).length
            const waiting = waits.filter((one) => one.ip === ip && one.untilMs > clock.nowMs).length
            bad.push({ ip, atMs: clock.nowMs })
            if (recent < 10) return 'at_once'
            if (waiting >= 256) return 'closed'
            waits.push({ ip, untilMs: clock.nowMs + REFUSAL_PAUSE_MS })
            return 'after_pause'
          })
          expect(clock.refuse(count, ip)).toEqual(expected)
        }
      }),
      { numRuns: 50 },
    )
  })
})

describe('lines about them', () => {
  test('ten a second, and the number of the rest with the next one', () => {
    verifies('9.25-lines')
    let nowMs = 0
    const lines = new RefusalLines(() => nowMs)
    expect(Array.from({ length: 12 }, () => lines.take())).toEqual([...Array<number>(10).fill(0), undefined, undefined])
    nowMs = 999
    expect(lines.take()).toBeUndefined()
    nowMs = 1_000
    expect([lines.take(), lines.take()]).toEqual([3, 0])
  })

  test('in no second more than ten, and none is forgotten', () => {
    verifies('9.25-lines')
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 200 }), (gaps) => {
        let nowMs = 0
        const lines = new RefusalLines(() => nowMs)
        const written: number[] = []
        let told = 0
        for (const gap of gaps) {
          nowMs += gap
          const unwritten = lines.take()
          if (unwritten === undefined) continue
          written.push(nowMs)
          told += 1 + unwritten
        }
        expect(told + lines.takeUnwritten()).toBe(gaps.length)
        expect(lines.takeUnwritten()).toBe(0)
        for (const [at, time] of written.entries())
          expect((written[at + 10] ?? Number.POSITIVE_INFINITY) - time).toBeGreaterThanOrEqual(1_000)
      }),
    )
  })
})
