/**
 * Ties a test to the requirements it proves. An id that is not in the table, or, in this folder and its suites, a title
 * that does not begin with a clause of the ids, fails the test: a proof that cannot be found again is none.
 */
import { expect } from 'vitest'
import { clauseOf, REQUIREMENTS, type RequirementId } from './requirements.ts'

const KNOWN = new Set<string>(REQUIREMENTS.map((row) => row.id))

export function verifies(...ids: RequirementId[]): void {
  for (const id of ids) expect(KNOWN, `unknown requirement ${id}`).toContain(id)
  const { currentTestName = '', testPath = '' } = expect.getState()
  if (!testPath.includes('/test/conformance/')) return
  const title = currentTestName.split(' > ').at(-1) ?? ''
  expect(ids.map(clauseOf), `the title must begin with its clause: ${title}`).toContain(title.split(' ')[0])
}
