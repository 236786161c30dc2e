/** A kernel, an aggregate and members in trouble (contract 13.3). SIMULATE_AGGREGATE=SEEDS runs so many seeds. */
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { AggregateWorld } from './aggregate-world.ts'

const SEEDS = Number(process.env['SIMULATE_AGGREGATE'] ?? 8)
const EVENTS = 3_000

test('one answer, at the client that asked, by the member that was meant, and nobody speaks for the gone', async () => {
  verifies('13.3-gone', '13.3-simulation')
  const totals = { answered: 0, byMembers: 0, asked: 0 }
  const reasons = new Map<string, number>()
  for (let seed = 1; seed <= SEEDS; seed++) {
    try {
      const outcome = await new AggregateWorld(seed).run(EVENTS)
      for (const key of Object.keys(totals) as (keyof typeof totals)[]) totals[key] += outcome[key]
      for (const [reason, count] of outcome.reasons) reasons.set(reason, (reasons.get(reason) ?? 0) + count)
    } catch (cause) {
      throw new Error(`seed ${seed}: ${(cause as Error).message}`, { cause })
    }
  }
  if (SEEDS > 8) console.log({ ...totals, reasons })
  // The worlds are no idle ones.
  expect(totals.byMembers).toBeGreaterThan(SEEDS * 50)
  expect(totals.asked).toBeGreaterThan(SEEDS)
  expect([...reasons.keys()]).toEqual(expect.arrayContaining(['unknown_tool', 'worker_exited']))
}, 3_600_000)
