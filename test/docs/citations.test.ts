/**
 * Every citation of a clause leads to `docs/spec.md`; one that leads nowhere is named by file and line.
 *
 * A citation is `contract 6.4`, `clause 6.4`, `spec M12`, a list of these (`contract 6.1, 6.3 and 7.2`), or a number of
 * clauses 3 to 9 alone in brackets. A page that is cited by number is another specification, and there is none.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
// @ts-expect-error a script without types
import { MUTANTS } from '../mutants/table.mjs'
import { CLAUSES } from './spec.ts'

const ROOT = new URL('../../', import.meta.url)
const FOLDERS = ['src', 'test', 'docs', 'bench']

/** White space, also where a comment goes on in its next line. */
const GAP = String.raw`(?:[ \t]+|\s*\n[ \t]*(?:\*|//|#)?[ \t]*)`
const NUMBER = String.raw`\d+(?:\.\d+)*`
const LETTER = String.raw`[A-Z]\d*(?![A-Za-z])`
const list = (item: string): string => `${item}(?:(?:,|${GAP}and|${GAP}to)${GAP}${item})*`
const CITATIONS = [
  new RegExp(String.raw`\b(?:contract|[Cc]lauses?)${GAP}(${list(NUMBER)})`, 'g'),
  new RegExp(String.raw`\bspec${GAP}(${list(LETTER)})`, 'g'),
  /\(([3-9]\.\d+(?:\.\d+)?(?:, [3-9]\.\d+(?:\.\d+)?)*)\)/g,
]
const ELSEWHERE = /\b[\w-]+\.md \d[\d.]*/g

interface Source {
  readonly name: string
  readonly text: string
}

/** A sample of this file itself would be taken for a citation. */
function sources(): Source[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(new URL(`${folder}/`, ROOT), { recursive: true })
      .map((name) => `${folder}/${name}`)
      .filter((name) => /\.(ts|mjs|md)$/.test(name) && !name.endsWith('docs/citations.test.ts'))
      .map((name) => ({ name, text: readFileSync(new URL(name, ROOT), 'utf8') })),
  )
}

function citedIn(text: string): { readonly clause: string; readonly at: number }[] {
  return CITATIONS.flatMap((form) =>
    [...text.matchAll(form)].flatMap((match) =>
      match[1]!.split(/,|\band\b|\bto\b/).map((part) => ({ clause: part.replace(/[\s*/#]/g, ''), at: match.index })),
    ),
  )
}

function placeOf({ name, text }: Source, at: number): string {
  return `${name}:${text.slice(0, at).split('\n').length}`
}

const KNOWN = new Set(CLAUSES)

test('every citation leads to a clause', () => {
  const astray = sources().flatMap((source) =>
    citedIn(source.text)
      .filter(({ clause }) => !KNOWN.has(clause))
      .map(({ clause, at }) => `${placeOf(source, at)} cites ${clause}`),
  )
  expect(astray).toEqual([])
})

test('no other page is cited by number', () => {
  const astray = sources().flatMap((source) =>
    [...source.text.matchAll(ELSEWHERE)].map((match) => `${placeOf(source, match.index)} cites ${match[0]}`),
  )
  expect(astray).toEqual([])
})

test('the clause of every planted breakage exists', () => {
  expect(MUTANTS.filter(({ clause }: { clause: string }) => !KNOWN.has(clause))).toEqual([])
})

test('no number stands twice in the specification', () => {
  expect(CLAUSES.filter((clause, index) => CLAUSES.indexOf(clause) !== index)).toEqual([])
})

test.each([
  ['(contract 6.1, 6.3)', ['6.1', '6.3']],
  ['Clauses 3.1 and 8.4: x', ['3.1', '8.4']],
  ['clauses 6.4 to 6.9 and 7.1, 7.3.', ['6.4', '6.9', '7.1', '7.3']],
  [' * (contract\n * 4.2.3).', ['4.2.3']],
  ['(spec M3, M4; spec T10) inspect A', ['M3', 'M4', 'T10']],
  ['every refusal (spec N)', ['N']],
  ['how long (7.2), of 2.5 s (1.5)', ['7.2']],
])('%j is read as %j', (text, clauses) => {
  expect(citedIn(text).map(({ clause }) => clause)).toEqual(clauses)
})
