import { describe, expect, it } from 'vitest'
import { fitsPattern } from './pattern.ts'

describe('the pattern of a schema', () => {
  it.each([
    ['^[a-z]+(-[a-z]+)*$', ['a', 'ab-cd', 'a-b-c'], ['', '-a', 'a-', 'A']],
    ['b', ['abc', 'b'], ['', 'ac']],
    ['^(?:a|bc){2,3}$', ['aa', 'abc', 'bcbcbc'], ['a', 'aaaa', 'b']],
    ['^\\d{4}-\\d{2}$', ['2026-01'], ['2026-1', 'x2026-01']],
    ['^\\p{L}+$', ['Zoë', '漢字'], ['a1']],
    ['^.$', ['a', '😀'], ['', 'ab', '\n']],
    ['^a{3}b?c*$', ['aaa', 'aaabccc'], ['aa', 'aaabb']],
    ['^[^\\]x-z]$', ['a'], [']', 'y']],
    ['^\\$\\.\\/$', ['$./'], ['x']],
    ['^(?<year>\\d+)$|^none$', ['12', 'none'], ['none1']],
    ['', ['', 'anything'], []],
  ])('%s', (pattern, fitting, others) => {
    const expression = new RegExp(pattern, 'u')
    for (const text of fitting) expect([text, fitsPattern(text, pattern)]).toEqual([text, true])
    for (const text of others) expect([text, fitsPattern(text, pattern)]).toEqual([text, false])
    for (const text of [...fitting, ...others]) expect(fitsPattern(text, pattern)).toBe(expression.test(text))
  })

  it.each(['(?=a)b', '(a)\\1', '\\bword\\b', '(', 'a{3000}', '[b-a]', '((a{400}){400}){400}', '*'])(
    'leaves %s to the server',
    (pattern) => expect(fitsPattern('a', pattern)).toBeUndefined(),
  )

  it('is not kept busy by an expression that would keep a browser busy for years', () => {
    const text = `${'a'.repeat(2_000)}!`
    expect(fitsPattern(text, '^(a+)+$')).toBe(false)
    expect(fitsPattern(text, '^(a|aa)+$')).toBe(false)
    expect(fitsPattern(text, '^(a|a?)+$')).toBe(false)
    expect(fitsPattern('a'.repeat(5_000_000), '^(a?){500}$')).toBeUndefined()
  })
})
