import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { formatSteps, parseSteps, reportFailure, runSeeds } from './main.ts'
import { REGRESSION_EVENTS, REGRESSIONS } from './regressions.ts'
import { simulate } from './simulate.ts'

const FRESH_SEEDS = 15

function demandSound(seed: number, seeds: number, events: number): void {
  const { failed } = runSeeds({ seed, seeds, events, steps: undefined, minutes: 0 })
  if (failed !== undefined) expect.fail(reportFailure(failed.plan, failed.outcome))
}

test('every promise holds in a fixed set of worlds', { timeout: 60_000 }, () => {
  demandSound(1, 100, 400)
})

test('every promise holds in worlds nobody has seen', { timeout: 60_000 }, () => {
  const seed = Date.now() % 1_000_000_000
  console.log(`simulation: fresh seeds from ${seed} on`)
  demandSound(seed, FRESH_SEEDS, 400)
})

test.each(REGRESSIONS)('seed %i: %s', { timeout: 60_000 }, (seed) => {
  demandSound(seed, 1, REGRESSION_EVENTS)
})

test('a seed always yields the same run', () => {
  const told = { seed: 7, events: 300, isTold: true }
  const first = simulate(told)
  expect(first.story.length).toBeGreaterThan(300)
  expect(simulate(told).story).toEqual(first.story)
  expect(simulate({ ...told, seed: 8 }).story).not.toEqual(first.story)
})

test('steps are written as ranges and read again', () => {
  const steps = [0, 1, 2, 5, 9, 10]
  expect(formatSteps(steps)).toBe('0-2,5,9-10')
  expect(parseSteps('0-2,5,9-10')).toEqual(steps)
  expect(parseSteps(formatSteps([]))).toEqual([])
})

test('a planted bug is found, and the sound kernel is not blamed', { timeout: 60_000 }, () => {
  const planted = fileURLToPath(new URL('planted.mjs', import.meta.url))
  const { stdout, status } = spawnSync(process.execPath, [planted, '--only', 'an odd id', '--seeds', '50'], {
    encoding: 'utf8',
  })
  expect(stdout).toContain('1 of 1 planted bugs found')
  expect(stdout).toContain('no violation')
  expect(status).toBe(0)
})
