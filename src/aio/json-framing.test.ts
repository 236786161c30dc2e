import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { JsonObjectSplitter } from './json-framing.ts'

function split(
  chunks: readonly (string | Uint8Array)[],
  limit = 1_000_000,
): { found: string[]; splitter: JsonObjectSplitter } {
  const splitter = new JsonObjectSplitter(limit)
  const found: string[] = []
  for (const chunk of chunks) splitter.push(Buffer.from(chunk), (object) => found.push(object.toString()))
  return { found, splitter }
}

describe('objects in a stream', () => {
  it('takes an indented object as one line', () => {
    const { found } = split([`${JSON.stringify({ a: [1, { b: '}' }] }, null, 2)}\r\n`])
    expect(found).toHaveLength(1)
    expect(found[0]).not.toMatch(/[\r\n]/)
    expect(JSON.parse(found[0]!)).toEqual({ a: [1, { b: '}' }] })
  })

  it('takes several objects on one line, and an empty one', () => {
    expect(split(['{"a":1}{"b":2} {}\n']).found).toEqual(['{"a":1}', '{"b":2}', '{}'])
  })

  it.each([
    ['words', 'Loading model...\n{"a":1}\n'],
    ['brackets in words', 'loading [model] {fast}\n{"a":1}\n'],
    ['an opening brace that is no object', '{fast}\n{"a":1}\n'],
    ['a string that is never closed', '{"oops\n{"a":1}\n'],
    ['an escape at the end of the line', '{"oops\\\n{"a":1}\n'],
    ['an array', '[1,2]\n{"a":1}\n'],
  ])('skips %s', (_title, text) => {
    expect(split([text]).found).toEqual(['{"a":1}'])
  })

  it('knows when an object is not finished', () => {
    const { found, splitter } = split(['{"a":'])
    expect(found).toEqual([])
    expect(splitter.unfinished).toBe(true)
  })

  it.each([
    ['at the limit', 7, ['{"a":1}'], false],
    ['one over', 6, [], true],
    ['one under', 8, ['{"a":1}'], false],
  ])('an object %s', (_title, limit, expected, overflowed) => {
    for (const chunks of [['{"a":1}'], ['{"a"', ':1}'], [...'{"a":1}']]) {
      const { found, splitter } = split(chunks, limit)
      expect(found).toEqual(expected)
      expect(splitter.overflowed).toBe(overflowed)
    }
  })

  it('finds every object however it is indented and cut', () => {
    const objects = fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 4 })
    fc.assert(
      fc.property(objects, fc.constantFrom(0, 2, 8), fc.array(fc.nat(200)), (values, indent, cuts) => {
        const bytes = Buffer.from(values.map((value) => JSON.stringify(value, null, indent)).join('\n'))
        const at = [0, ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length]
        const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
        expect(split(chunks).found.map((text) => JSON.parse(text))).toEqual(JSON.parse(JSON.stringify(values)))
      }),
    )
  })
})
