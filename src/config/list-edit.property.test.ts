import fc from 'fast-check'
import { parse } from 'jsonc-parser'
import { describe, expect, it } from 'vitest'
import { append, removeElement, setValue } from './list-edit.ts'

const read = (text: string): { list: unknown[] } => parse(text, [], { allowTrailingComma: true })
const isRight = (text: string): boolean => {
  const errors: { error: number }[] = []
  parse(text, errors as never, { allowTrailingComma: true })
  return errors.length === 0
}

describe('append', () => {
  it('begins an empty list, a line for each key', () => {
    const text = '{\n  // who\n  "list": []\n}\n'
    expect(append(text, ['list'], { name: 'a', role: 'user', pools: ['x', 'y'] })).toBe(
      '{\n  // who\n  "list": [\n    {\n      "name": "a",\n      "role": "user",\n      "pools": ["x", "y"]\n    }\n  ]\n}\n',
    )
  })

  it('leaves the comments of the others where they are', () => {
    const text = '{ "list": [\n  // first\n  1, // one\n  2 // two\n  // the end\n] }'
    expect(append(text, ['list'], 3)).toBe('{ "list": [\n  // first\n  1, // one\n  2, // two\n  // the end\n  3\n] }')
  })

  it('keeps a list on one line, and a trailing comma', () => {
    expect(append('{ "list": [1] }', ['list'], 2)).toBe('{ "list": [1, 2] }')
    expect(append('{ "list": [1,] }', ['list'], 2)).toBe('{ "list": [1, 2,] }')
    expect(append('{\r\n"list": [\r\n  1,\r\n]}', ['list'], 2)).toBe('{\r\n"list": [\r\n  1,\r\n  2,\r\n]}')
  })
})

describe('removeElement', () => {
  it.each([
    ['the only one', '{ "list": [\n  1\n] }', 0, '{ "list": [\n] }'],
    ['the first', '{ "list": [\n  // one\n  1, // 1\n  2\n] }', 0, '{ "list": [\n  // one\n  // 1\n  2\n] }'],
    ['the last', '{ "list": [\n  1, // 1\n  2\n] }', 1, '{ "list": [\n  1 // 1\n] }'],
    ['the last before a comma', '{ "list": [\n  1,\n  2,\n] }', 1, '{ "list": [\n  1,\n] }'],
    ['one on a line', '{ "list": [1, 2, 3] }', 1, '{ "list": [1, 3] }'],
    ['a comma after a comment', '{ "list": [1 /* a */ , 2] }', 0, '{ "list": [/* a */  2] }'],
  ])('%s', (_title, text, index, rest) => {
    expect(removeElement(text, ['list', index])).toBe(rest)
  })
})

it('setValue changes one value or adds one, and nothing else', () => {
  expect(setValue('{ "list": [{ "a": 1 /* x */ }] }', ['list', 0, 'a'], 2)).toBe('{ "list": [{ "a": 2 /* x */ }] }')
  expect(read(setValue('{ "list": [{ "a": 1 /* x */ }] }', ['list', 0, 'b'], 'c')).list).toEqual([{ a: 1, b: 'c' }])
})

/** A list with comments and blanks wherever they may stand. */
const trivia = fc
  .array(fc.constantFrom(' ', '\n', '\r\n', '\t', ' /* c */ ', ' // d\n', '/**/'), { maxLength: 3 })
  .map((parts) => parts.join(''))
const element = fc.oneof(
  fc.nat(9).map(String),
  fc.constantFrom('"a,b"', '[1, 2]', '{ "x": 1 }', '{\n "x": [1, /* , */ 2],\n}', '"//"'),
)
const listText = fc
  .tuple(fc.array(fc.tuple(trivia, element, trivia), { maxLength: 5 }), fc.boolean(), trivia)
  .map(([rows, hasTrailing, last]) => {
    const inner = rows.map((row) => row.join('')).join(',') + (hasTrailing && rows.length > 0 ? ',' : '')
    return `{ "list": [${inner}${last}] }`
  })
const commentsOf = (text: string): string[] => text.replace(/"\/\/"/g, '').match(/\/\*.*?\*\/|\/\/ d/g) ?? []

it('whatever is appended to or taken from a list, all else and every comment stays', () => {
  fc.assert(
    fc.property(listText, fc.nat(5), (text, at) => {
      const before = read(text).list
      const more = append(text, ['list'], { name: 'n', a: 1, b: [] })
      expect(isRight(more)).toBe(true)
      expect(read(more).list).toEqual([...before, { name: 'n', a: 1, b: [] }])
      expect(commentsOf(more)).toEqual(commentsOf(text))
      fc.pre(at < before.length)
      const less = removeElement(text, ['list', at])
      expect(isRight(less)).toBe(true)
      expect(read(less).list).toEqual(before.toSpliced(at, 1))
      expect(commentsOf(less.replaceAll('/* , */', '')).length).toBe(commentsOf(text.replaceAll('/* , */', '')).length)
    }),
    { numRuns: 2_000 },
  )
})
