/** `docs/errors.md` and the table of faults say the same. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { FAULTS } from '../../src/kernel/faults.ts'

const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')
const sections = new Map(
  page
    .split(/^### /m)
    .slice(1)
    .map((section) => [/^`(\w+)`/.exec(section)![1]!, section]),
)

test.each(Object.entries(FAULTS))('%s is explained with its code', (reason, row) => {
  const section = sections.get(reason)
  expect(section, `docs/errors.md has no paragraph on ${reason}`).toBeDefined()
  expect(section).toContain(String(row.code))
  expect(section!.includes('retryable'), `${reason}: retryable`).toBe('retryable' in row)
})

test('nothing is explained that does not exist', () => {
  const ofTheClient = ['bus_gone', 'bus_unavailable']
  expect([...sections.keys()].filter((reason) => !(reason in FAULTS) && !ofTheClient.includes(reason))).toEqual([])
})
