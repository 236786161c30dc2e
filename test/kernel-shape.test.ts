/**
 * The shape of the kernel, read from its sources: few parameters, no word of a protocol, no bound outside the table of
 * limits. An offending line is named.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DIALECTS } from '../src/dialects/index.ts'

const KERNEL = new URL('../src/kernel/', import.meta.url)
const MAX_PARAMETERS = 4

interface Source {
  readonly name: string
  /** Without comments; what stands in strings is kept in `strings` alone. Lines are where they were. */
  readonly code: string
  readonly strings: readonly { readonly text: string; readonly at: number }[]
}

const TOKEN = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g

function readSource(name: string): Source {
  const text = readFileSync(new URL(name, KERNEL), 'utf8')
  const strings = [...text.matchAll(TOKEN)]
    .filter(([token]) => !token.startsWith('/'))
    .map(({ 0: token, index }) => ({ text: token.slice(1, -1), at: index }))
  const code = text.replace(TOKEN, (token) => token.replace(/[^\n]/g, ' '))
  return { name, code, strings }
}

const SOURCES = readdirSync(KERNEL, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map(readSource)

const placeOf = ({ name, code }: Source, at: number): string =>
  `src/kernel/${name}:${code.slice(0, at).split('\n').length}`

/** Where the group that opens at `open` closes. */
function endOfGroup(code: string, open: number): number {
  let depth = 0
  for (let at = open; at < code.length; at++) {
    if (code[at] === '(') depth++
    else if (code[at] === ')' && --depth === 0) return at
  }
  return code.length
}

/** The number of parameters in a list; commas inside brackets, braces and type arguments do not count. */
function countParameters(list: string): number {
  const flat = list.replace(/=>/g, '  ')
  let depth = 0
  let count = 0
  let isEmpty = true
  for (const character of flat) {
    if ('([{<'.includes(character)) depth++
    else if (')]}>'.includes(character)) depth--
    if (character === ',' && depth === 0) {
      count++
      isEmpty = true
    } else if (/\S/.test(character)) isEmpty = false
  }
  return isEmpty ? count : count + 1
}

/** Whether a group is a list of parameters: an arrow or a body follows it, perhaps after a type. */
function isParameterList(code: string, open: number, end: number): boolean {
  const before = /([\w#$]+)\s*(?:<[^()]*>)?\s*$/.exec(code.slice(Math.max(0, open - 80), open))?.[1]
  if (before !== undefined && /^(if|for|while|switch|catch|with|return|super|await)$/.test(before)) return false
  return /^\)\s*(?::[^;={}()]*(?:\{[^{}]*\}[^;={}()]*)?)?(?:=>|\{)/.test(code.slice(end, end + 200))
}

function parameterLists(code: string): { readonly at: number; readonly count: number }[] {
  return [...code.matchAll(/\(/g)].flatMap(({ index }) => {
    const end = endOfGroup(code, index)
    return isParameterList(code, index, end) ? [{ at: index, count: countParameters(code.slice(index + 1, end)) }] : []
  })
}

test('no function of the kernel has more than four parameters', () => {
  const offending = SOURCES.flatMap((source) =>
    parameterLists(source.code)
      .filter(({ count }) => count > MAX_PARAMETERS)
      .map(({ at, count }) => `${placeOf(source, at)} has ${count}`),
  )
  expect(offending).toEqual([])
})

test.each([
  ['function f(a: Map<string, number>, b = [1, 2], { c, d }: X): void {', 3],
  ['  #m(a: (x: A, y: B) => void, b: B,): { readonly c: C; d: D } | undefined {', 2],
  ['const f = (a, b, c, d, e): number => a', 5],
  ['  readonly f: (a: A, b: B, c: C, d: D, e: E) => void', 5],
  ['  constructor(\n    a: A,\n    b: B,\n  ) {', 2],
  ['if (f(a, b, c, d, e)) { g(a, b, c, d, e) }', 0],
])('the scanner reads %j', (code, most) => {
  expect(Math.max(0, ...parameterLists(code).map(({ count }) => count))).toBe(most)
})

/** What the tables of the dialects call a method, and whatever else is spelled like one. */
const METHODS = new Set(
  Object.values(DIALECTS).flatMap(({ fromClient, fromWorker }) => [
    ...Object.keys(fromClient),
    ...Object.keys(fromWorker),
  ]),
)
const LOOKS_LIKE_METHOD = /^[$_a-z][\w.]*(?:\/[\w$]+)+$/
const PROTOCOL = /^(?:acp|mcp)(?:-\w+)?$/

test.each([
  ['method of a protocol', (text: string) => METHODS.has(text) || LOOKS_LIKE_METHOD.test(text)],
  ['protocol', (text: string) => PROTOCOL.test(text)],
])('no %s is named in the kernel', (_what, isNamed) => {
  const offending = SOURCES.flatMap((source) =>
    source.strings.filter(({ text }) => isNamed(text)).map(({ text, at }) => `${placeOf(source, at)} says ${text}`),
  )
  expect(offending).toEqual([])
})

test('every bound stands in the table of limits', () => {
  const offending = SOURCES.filter(({ name }) => name !== 'limits.ts').flatMap((source) =>
    [...source.code.matchAll(/^(?:export )?const (\w*MAX_\w+|\w+_MS) = [\d(]/gm)].map(
      ({ 1: name, index }) => `${placeOf(source, index)} has ${name}`,
    ),
  )
  expect(offending).toEqual([])
})
