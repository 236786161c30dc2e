/** `SECURITY.md` names the test that proves each row; they exist, and cite the clause. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const ROOT = new URL('../../', import.meta.url)
const rows = readFileSync(new URL('SECURITY.md', ROOT), 'utf8')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter((cells) => /^(?:9|1[01])\.\d/.test(cells[3] ?? ''))

test('there are threats', () => {
  expect(rows.length).toBeGreaterThan(10)
})

test.each(rows.map((cells) => [cells[1]!, cells[3]!, cells[4]!]))('%s', (_threat, clauses, tests) => {
  const files = [...tests.matchAll(/`([^`]+\.ts)`/g)].map(([, file]) => file!)
  expect(files.length).toBeGreaterThan(0)
  for (const file of files) expect(existsSync(new URL(file, ROOT)), file).toBe(true)
  const texts = files.map((file) => readFileSync(new URL(file, ROOT), 'utf8')).join('\n')
  const cited = clauses.split(', ').filter((clause) => new RegExp(`${clause.replace('.', '\\.')}(?!\\d)`).test(texts))
  expect(cited).toEqual(clauses.split(', '))
})
