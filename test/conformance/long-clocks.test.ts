/** Clause 7.2, the clocks that are too long to be waited for: the kernel itself, on a clock of the test's own. */
import { expect, test } from 'vitest'
import type { Limits } from '../../src/kernel/limits.ts'
import { KernelRig } from '../support/kernel-rig.ts'
import { verifies } from './verifies.ts'

const MANY = { maxRestarts: 1_000 }
const NEARLY_ONE = 0.999_999
const [WORKER, CLIENT] = [0, 1]

/** Its worker opens when it is told to; `chance` is what every throw of the dice gives. */
const rigOf = (limits: Partial<Limits>, chance = NEARLY_ONE) => new KernelRig({ limits }, { isSlow: true, chance })

/** The worker ends right after its start. */
function failsOnce(rig: KernelRig): void {
  rig.opens(WORKER)
  rig.dies(WORKER)
}

/** How long it takes until the next process is started. */
function pauseBeforeStart(rig: KernelRig): number {
  const [beganMs, before] = [rig.nowMs, rig.started.length]
  for (let n = 0; n < 1_000 && rig.started.length === before; n++)
    rig.pass(Math.max(0, (rig.bus.nextDeadlineMs() ?? 0) - rig.nowMs))
  return rig.latest.atMs - beganMs
}

/** The pauses after `count` exits in a row, each right after the start. */
function pauses(rig: KernelRig, count: number): number[] {
  return Array.from({ length: count }, () => {
    failsOnce(rig)
    return pauseBeforeStart(rig)
  })
}

test('7.2 the back-off begins at 0.1 s and doubles to 30 s', () => {
  verifies('7.2-back-off')
  const expected = [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]
  expect(pauses(rigOf(MANY), expected.length)).toEqual(expected)
})

test('7.2 it has jitter: not every bus comes back at the same moment', () => {
  verifies('7.2-back-off')
  const [early, late] = [pauses(rigOf(MANY, 0), 5), pauses(rigOf(MANY), 5)]
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
  const rig = rigOf(MANY)
  pauses(rig, 4)
  rig.opens(WORKER)
  rig.pass(lifeMs)
  rig.dies(WORKER)
  expect(pauseBeforeStart(rig)).toBe(pauseMs)
})

test('7.2 a request waits 10 s for a worker that is backing off, and no longer', () => {
  verifies('7.2-waits', 'promise-one-answer')
  const rig = rigOf(MANY)
  pauses(rig, 8)
  failsOnce(rig)
  rig.connects(CLIENT)
  rig.send(CLIENT, { id: 1, method: 'm' })
  rig.pass(9_999)
  expect(rig.all(CLIENT)).toEqual([])
  rig.pass(2)
  expect(rig.all(CLIENT)).toMatchObject([{ id: 1, error: { code: -32603, data: { reason: 'no_worker' } } }])
})

test('7.2 a worker is parked until the window has room, to the millisecond', () => {
  verifies('7.2-parked', '7.2-limit')
  const rig = rigOf({ maxRestarts: 2, restartWindowMs: 60_000 })
  pauses(rig, 2)
  const first = rig.started[1]!.atMs
  failsOnce(rig)
  pauseBeforeStart(rig)
  expect(rig.started).toHaveLength(4)
  expect(rig.latest.atMs).toBeGreaterThanOrEqual(first - 200 + 60_000)
  expect(rig.latest.atMs).toBeLessThanOrEqual(first + 60_000)
})
