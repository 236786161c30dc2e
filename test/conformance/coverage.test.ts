/** Reads the sources of the suite and holds them against the table of requirements: every part-1 row has a proof. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { REQUIREMENTS } from './requirements.ts'

const FOLDERS = [new URL('./', import.meta.url), new URL('../suites/', import.meta.url)]
const CALL = /\bverifies\(([^)]*)\)/g
const LITERAL = /'([^']+)'/g

function citedIds(source: string): string[] {
  return [...source.matchAll(CALL)].flatMap((call) => [...call[1]!.matchAll(LITERAL)].map((literal) => literal[1]!))
}

function sources(): Array<{ name: string; text: string }> {
  return FOLDERS.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => /\.(test|suite)\.ts$/.test(name) && name !== 'coverage.test.ts')
      .map((name) => ({ name, text: readFileSync(new URL(name, folder), 'utf8') })),
  )
}

test('every requirement of part 1 has a proof', () => {
  const cited = new Set(sources().flatMap(({ text }) => citedIds(text)))
  const unproved = REQUIREMENTS.filter((row) => row.part === 1 && !cited.has(row.id)).map((row) => row.id)
  expect(unproved).toEqual([])
})

test('every cited requirement exists', () => {
  const known = new Set<string>(REQUIREMENTS.map((row) => row.id))
  const unknown = sources().flatMap(({ name, text }) =>
    citedIds(text)
      .filter((id) => !known.has(id))
      .map((id) => `${name}: ${id}`),
  )
  expect(unknown).toEqual([])
})

test('no requirement is listed twice', () => {
  const ids = REQUIREMENTS.map((row) => row.id)
  expect(ids.length).toBe(new Set(ids).size)
})

test('a call without an id, or with an unknown one, would be noticed', () => {
  expect(citedIds("verifies('4.3-not-json', '9.9-nothing')")).toEqual(['4.3-not-json', '9.9-nothing'])
})
