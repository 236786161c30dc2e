/** Several kernels and a broker that misbehaves (contract 14.14). SIMULATE_CLUSTER=SEEDS runs so many seeds. */
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { ClusterWorld } from './cluster-world.ts'

const SEEDS = Number(process.env['SIMULATE_CLUSTER'] ?? 12)
const EVENTS = 3_000

test('one answer, at the right client, in order, within bounds, and no ghost after an epoch', () => {
  verifies('14.14-simulation')
  let answered = 0
  let lost = 0
  let events = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    try {
      const outcome = new ClusterWorld(seed).run(EVENTS)
      answered += outcome.answered
      lost += outcome.lost
      events += outcome.events
    } catch (cause) {
      throw new Error(`seed ${seed}: ${(cause as Error).message}`, { cause })
    }
  }
  if (SEEDS > 12) console.log({ events, answered, lost })
  // The worlds are no idle ones.
  expect(answered).toBeGreaterThan(SEEDS * 100)
  expect(lost).toBeGreaterThan(SEEDS / 2)
}, 3_600_000)
