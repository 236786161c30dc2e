import { expect, it } from 'vitest'
import { expandTemplate, variablesOf } from './uri-template.ts'

it.each([
  ['demo://item/{id}', { id: 'a b/c' }, 'demo://item/a%20b%2Fc'],
  ['file:///{+path}', { path: 'a/b c%20' }, 'file:///a/b%20c%20'],
  ['x{/a,b}{?q,r}{&s}{#f}', { a: '1', b: '2', q: '', r: 'z', s: 'y', f: 'top' }, 'x/1/2?q=&r=z&s=y#top'],
  ['x{?q}{/a}', {}, 'x'],
  ['{name:3}{list*}{.end}{;v}', { name: 'abcdef', list: 'l', end: 'txt', v: '' }, 'abcl.txt;v'],
  ['{constructor}', {}, ''],
])('%s', (template, values, uri) => expect(expandTemplate(template, values)).toBe(uri))

it('names its variables once each', () => {
  expect(variablesOf('a{x}{?y,z*}{x:2}')).toEqual(['x', 'y', 'z'])
})

it('takes half a character for what it is', () => {
  expect(() => expandTemplate('{x}', { x: '\ud800' })).not.toThrow()
})
