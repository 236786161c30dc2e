import { describe, expect, test } from 'vitest'
import { Trials, UriTemplate } from './uri-templates.ts'

describe('a URI fits a template', () => {
  test.each([
    ['note://{id}', 'note://5', true],
    ['note://{id}', 'note://5/6', false],
    ['note://{+path}', 'note://5/6', true],
    ['file:///{path*}', 'file:///a/b', true],
    ['a://{x}/b/{y}', 'a://1/b/2', true],
    ['a://{x}/b/{y}', 'a://1/2/b/3', false],
    ['a://{+x}/b/{y}', 'a://1/b/2/b/3', true],
    ['a://{x}-{y}.txt', 'a://1-2-3.txt', true],
    ['a://{x}', 'b://1', false],
    ['a://fixed', 'a://fixed', true],
    ['a://fixed', 'a://fixed2', false],
    ['search://find{?q,page}', 'search://find?q=1&page=2', true],
    ['', '', false],
  ])('%s and %s: %s', (template, uri, fits) => {
    expect(new UriTemplate(template).matches(uri)).toBe(fits)
  })
})

describe('templates that can fit in very many ways', () => {
  const many = new UriTemplate(`${'{a}x'.repeat(60)}y`)
  const uri = 'x'.repeat(8_000)

  test('are given up', () => {
    expect(many.matches(uri)).toBe(false)
    expect(new UriTemplate('{+a}x'.repeat(100)).matches(uri)).toBe(false)
  })

  test('share what may be tried, so that ten thousand cost no more than one', () => {
    const trials = new Trials()
    for (let n = 0; n < 10_000; n++) expect(many.matches(uri, trials)).toBe(false)
    expect(new UriTemplate('{a}x').matches('1x', trials)).toBe(false)
    expect(new UriTemplate('{a}x').matches('1x')).toBe(true)
  })

  test('fit nothing that is longer than a URI is', () => {
    expect(new UriTemplate('a:{x}').matches(`a:${'1'.repeat(8_190)}`)).toBe(true)
    expect(new UriTemplate('a:{x}').matches(`a:${'1'.repeat(8_191)}`)).toBe(false)
  })
})
