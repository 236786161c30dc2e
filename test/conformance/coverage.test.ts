/** Reads all tests and holds them against the table of requirements: every row has a clause and a proof. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { CLAUSES } from '../docs/spec.ts'
import { REQUIREMENTS } from './requirements.ts'

const ROOT = new URL('../../', import.meta.url)
/** Where another implementation can be judged: see CONTRIBUTING.md. */
const OF_BUS = /^test\/(conformance|suites)\//
const CALL = /\bverifies\(([^)]*)\)/g
const LITERAL = /'([^']+)'/g

interface Source {
  readonly name: string
  readonly text: string
}

function citedIds(source: string): string[] {
  return [...source.matchAll(CALL)].flatMap((call) => [...call[1]!.matchAll(LITERAL)].map((literal) => literal[1]!))
}

const SOURCES: readonly Source[] = ['src', 'test'].flatMap((folder) =>
  readdirSync(new URL(`${folder}/`, ROOT), { recursive: true })
    .map((name) => `${folder}/${name}`)
    .filter((name) => /\.(test|suite)\.ts$/.test(name) && !name.endsWith('/coverage.test.ts'))
    .map((name) => ({ name, text: readFileSync(new URL(name, ROOT), 'utf8') })),
)

function citedIn(sources: readonly Source[]): ReadonlySet<string> {
  return new Set(sources.flatMap(({ text }) => citedIds(text)))
}

test('every requirement of the bus has a proof in the suite that judges any implementation', () => {
  const cited = citedIn(SOURCES.filter(({ name }) => OF_BUS.test(name)))
  expect(REQUIREMENTS.filter((row) => row.isOfBus && !cited.has(row.id)).map((row) => row.id)).toEqual([])
})

test('every other requirement has a proof', () => {
  const cited = citedIn(SOURCES)
  expect(REQUIREMENTS.filter((row) => !cited.has(row.id)).map((row) => row.id)).toEqual([])
})

test('every cited requirement exists', () => {
  const known = new Set<string>(REQUIREMENTS.map((row) => row.id))
  const unknown = SOURCES.flatMap(({ name, text }) =>
    citedIds(text)
      .filter((id) => !known.has(id))
      .map((id) => `${name}: ${id}`),
  )
  expect(unknown).toEqual([])
})

test('the clause of every requirement is in the specification', () => {
  const known = new Set([...CLAUSES, 'promise'])
  expect(REQUIREMENTS.filter(({ clause }) => !known.has(clause)).map(({ id }) => id)).toEqual([])
})

test('a call without an id, or with an unknown one, would be noticed', () => {
  expect(citedIds("verifies('4.3-not-json', '9.9-nothing')")).toEqual(['4.3-not-json', '9.9-nothing'])
})
