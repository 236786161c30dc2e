/** Sessions that outlive their clients in simulated worlds (contract 12). SIMULATE_KEPT=SEEDS runs so many seeds. */
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { formatKept, runKeptSeeds, storyOf } from './kept-main.ts'
import { KEPT_REGRESSIONS } from './regressions.ts'

const SEEDS = Number(process.env['SIMULATE_KEPT'] ?? 40)
const EVENTS = 600

test('nothing is missing, doubled or at another principal; one answer, one turn at a time, questions put once', () => {
  verifies('12.12-simulation')
  const tally = runKeptSeeds(1, SEEDS, EVENTS)
  if (tally.failed !== undefined) expect.fail(`${formatKept(tally)}\n${storyOf(tally.failed.seed, EVENTS)}`)
  // The worlds are no idle ones.
  expect(tally.words).toBeGreaterThan(SEEDS * 20)
  expect(tally.restarts).toBeGreaterThan(SEEDS / 4)
  expect(tally.counts.get('session/load ok')).toBeGreaterThan(SEEDS)
}, 600_000)

test.each(KEPT_REGRESSIONS)('seed %i: %s', (seed) => {
  const { failed } = runKeptSeeds(seed, 1, EVENTS)
  expect(failed).toBeUndefined()
})
