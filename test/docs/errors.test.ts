/** `docs/errors.md` and the tables of faults say the same. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { FAULTS } from '../../src/kernel/faults.ts'
import { REMOTE_FAULTS } from '../../src/remote/faults.ts'
import { WEB_FAULTS } from '../../src/web/faults.ts'

const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')
const sections = new Map(
  page
    .split(/^### /m)
    .slice(1)
    .map((section) => [/^`(\w+)`/.exec(section)![1]!, section]),
)

const ALL = { ...FAULTS, ...WEB_FAULTS, ...REMOTE_FAULTS }

test.each(Object.entries(ALL))('%s is explained with its code', (reason, row) => {
  const section = sections.get(reason)
  expect(section, `docs/errors.md has no paragraph on ${reason}`).toBeDefined()
  expect(section).toContain(String(row.code))
  expect(section!.includes('retryable'), `${reason}: retryable`).toBe('retryable' in row)
})

test.each(Object.entries(WEB_FAULTS))('%s is explained with its status', (reason, { status }) => {
  expect(sections.get(reason)).toContain(`\n${status}, `)
})

test('nothing is explained that does not exist', () => {
  const ofTheClient = ['bus_gone', 'bus_unavailable']
  expect([...sections.keys()].filter((reason) => !(reason in ALL) && !ofTheClient.includes(reason))).toEqual([])
})

test('what an upstream shares with other workers has the same words', () => {
  for (const reason of ['no_worker', 'worker_exited'] as const) expect(REMOTE_FAULTS[reason]).toEqual(FAULTS[reason])
})
