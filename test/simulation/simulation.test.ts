import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { isAccessSeed } from './access-scenario.ts'
import { formatSteps, parseSteps, reportFailure, runSeeds } from './main.ts'
import {
  AIO_REGRESSIONS,
  LONG_ACCESS_REGRESSIONS,
  LONG_AIO_REGRESSIONS,
  LONG_REGRESSION_EVENTS,
  LONG_REGRESSIONS,
  REGRESSION_EVENTS,
  REGRESSIONS,
} from './regressions.ts'
import { isAioSeed } from './scenario.ts'
import { simulate } from './simulate.ts'

const AIO_SEED = 5

async function demandSound(seed: number, seeds: number, events: number): Promise<void> {
  const { failed } = await runSeeds({ seed, seeds, events, steps: undefined, minutes: 0 })
  if (failed !== undefined) expect.fail(await reportFailure(failed.plan, failed.outcome))
}

test('every promise holds in a fixed set of worlds', { timeout: 60_000 }, async () => {
  await demandSound(1, 100, 400)
})

test.each([...REGRESSIONS, ...AIO_REGRESSIONS])('seed %i: %s', { timeout: 60_000 }, async (seed) => {
  await demandSound(seed, 1, REGRESSION_EVENTS)
})

test.each([...LONG_REGRESSIONS, ...LONG_AIO_REGRESSIONS, ...LONG_ACCESS_REGRESSIONS])(
  'seed %i, after a while: %s',
  { timeout: 60_000 },
  async (seed) => {
    await demandSound(seed, 1, LONG_REGRESSION_EVENTS)
  },
)

test.each([7, AIO_SEED])('seed %i always yields the same run', async (seed) => {
  const told = { seed, events: 300, isTold: true }
  const first = await simulate(told)
  expect(first.story.length).toBeGreaterThan(300)
  expect((await simulate(told)).story).toEqual(first.story)
  expect((await simulate({ ...told, seed: 8 })).story).not.toEqual(first.story)
})

test('the seeds of regressions still stand for the worlds they were found in', () => {
  expect(isAioSeed(AIO_SEED)).toBe(true)
  for (const [seed] of [...REGRESSIONS, ...LONG_REGRESSIONS]) expect(isAioSeed(seed), `seed ${seed}`).toBe(false)
  for (const [seed] of [...AIO_REGRESSIONS, ...LONG_AIO_REGRESSIONS]) expect(isAioSeed(seed), `seed ${seed}`).toBe(true)
  for (const [seed] of LONG_ACCESS_REGRESSIONS) expect(isAccessSeed(seed), `seed ${seed}`).toBe(true)
  for (const [seed] of [...REGRESSIONS, ...LONG_REGRESSIONS, ...AIO_REGRESSIONS])
    expect(isAccessSeed(seed), `seed ${seed}`).toBe(false)
})

test('steps are written as ranges and read again', () => {
  const steps = [0, 1, 2, 5, 9, 10]
  expect(formatSteps(steps)).toBe('0-2,5,9-10')
  expect(parseSteps('0-2,5,9-10')).toEqual(steps)
  expect(parseSteps(formatSteps([]))).toEqual([])
})

test('a planted bug is found, and the sound kernel is not blamed', { timeout: 60_000 }, () => {
  const planted = fileURLToPath(new URL('planted.mjs', import.meta.url))
  const { stdout, status } = spawnSync(process.execPath, [planted, '--only', 'an odd id is not', '--seeds', '50'], {
    encoding: 'utf8',
  })
  expect(stdout).toContain('1 of 1 planted bugs found')
  expect(stdout).toContain('no violation')
  expect(status).toBe(0)
})
