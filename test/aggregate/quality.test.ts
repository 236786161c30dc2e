/**
 * How well `find_tools` finds (contract 13.13): questions about the tools of public MCP servers. Both are data that the
 * ranking has never seen; what a server says of its tools is cut, as its schema is to the names of parameters.
 */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { SearchIndex } from '../../src/aggregate/search.ts'
import { verifies } from '../conformance/verifies.ts'

const read = (name: string) =>
  JSON.parse(readFileSync(new URL(`../fixtures/aggregate/${name}`, import.meta.url), 'utf8'))
const tools: { server: string; name: string; title?: string; description: string; parameters: string[] }[] =
  read('tools.json')
const questions: { question: string; wanted: string[] }[] = read('questions.json')

const index = new SearchIndex(
  tools.map(({ server, name, title, description, parameters }) => ({
    name: `${server}_${name}`,
    title: title ?? name,
    description,
    parameters,
  })),
)

test('the wanted tool is among the first three for nine of ten questions', () => {
  verifies('13.13-quality')
  expect(tools.length).toBeGreaterThanOrEqual(300)
  expect(questions.length).toBeGreaterThanOrEqual(60)
  const missed = questions.filter(({ question, wanted }) => {
    const { names } = index.find(question, 0, 3)
    return !names.some((name) => wanted.includes(name))
  })
  expect(missed.length / questions.length, missed.map(({ question }) => question).join('\n')).toBeLessThanOrEqual(0.1)
})

test('every wanted tool is there', () => {
  const names = new Set(tools.map(({ server, name }) => `${server}_${name}`))
  expect(questions.flatMap(({ wanted }) => wanted).filter((name) => !names.has(name))).toEqual([])
})
