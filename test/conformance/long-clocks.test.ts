/** Clause 7.2, the clocks that are too long to be waited for: the kernel itself, on a clock of the test's own. */
import { expect, test } from 'vitest'
import { Clockwork } from '../support/clockwork.ts'
import { verifies } from './verifies.ts'

const MANY = { maxRestarts: 1_000 }
const NEARLY_ONE = 0.999_999

/** The pauses after `count` exits in a row, each right after the start. */
function pauses(clockwork: Clockwork, count: number): number[] {
  return Array.from({ length: count }, () => {
    clockwork.run()
    clockwork.exit()
    return clockwork.pauseBeforeSpawn()
  })
}

test('7.2 the back-off begins at 0.1 s and doubles to 30 s', () => {
  verifies('7.2-back-off')
  const expected = [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]
  expect(pauses(new Clockwork(MANY, NEARLY_ONE), expected.length)).toEqual(expected)
})

test('7.2 it has jitter: not every bus comes back at the same moment', () => {
  verifies('7.2-back-off')
  const [early, late] = [pauses(new Clockwork(MANY, 0), 5), pauses(new Clockwork(MANY, NEARLY_ONE), 5)]
  for (const [n, pauseMs] of early.entries()) {
    expect(pauseMs).toBeGreaterThan(0)
    expect(pauseMs).toBeLessThan(late[n]!)
  }
})

test.each([
  [59_999, 1_600],
  [60_000, 100],
  [60_001, 100],
])('7.2 after a life of %i ms the next pause is %i ms', (lifeMs, pauseMs) => {
  verifies('7.2-back-off')
  const clockwork = new Clockwork(MANY, NEARLY_ONE)
  pauses(clockwork, 4)
  clockwork.run()
  clockwork.advance(lifeMs)
  clockwork.exit()
  expect(clockwork.pauseBeforeSpawn()).toBe(pauseMs)
})

test('7.2 a request waits 10 s for a worker that is backing off, and no longer', () => {
  verifies('7.2-waits', 'promise-one-answer')
  const clockwork = new Clockwork(MANY, NEARLY_ONE)
  pauses(clockwork, 8)
  clockwork.run()
  clockwork.exit()
  const client = clockwork.connect()
  clockwork.send(client, '{"id":1,"method":"m"}')
  clockwork.advance(9_999)
  expect(clockwork.said).toEqual([])
  clockwork.advance(2)
  expect(clockwork.said).toHaveLength(1)
  expect(JSON.parse(clockwork.said[0]!.line)).toMatchObject({
    id: 1,
    error: { code: -32603, data: { reason: 'no_worker' } },
  })
})

test('7.2 a worker is parked until the window has room, to the millisecond', () => {
  verifies('7.2-parked', '7.2-limit')
  const clockwork = new Clockwork({ maxRestarts: 2, restartWindowMs: 60_000 }, NEARLY_ONE)
  pauses(clockwork, 2)
  const first = clockwork.spawns[1]!.atMs
  clockwork.run()
  clockwork.exit()
  clockwork.pauseBeforeSpawn()
  expect(clockwork.spawns).toHaveLength(4)
  expect(clockwork.spawn.atMs).toBeGreaterThanOrEqual(first - 200 + 60_000)
  expect(clockwork.spawn.atMs).toBeLessThanOrEqual(first + 60_000)
})
