import { describe, expect, test } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { ruleFor, scopesOf, scopeThatWouldDo } from './mapping.ts'
import type { MapRule } from './settings.ts'

const rule = (claim: string, equals: MapRule['equals'], as = 'dev'): MapRule => ({ claim, equals, as })
const fits = (one: MapRule, claims: object): boolean => ruleFor([one], claims as never) === one

describe('who a token is', () => {
  test('the first rule that fits', () => {
    verifies('9.13-first')
    const map = [rule('scope', 'bus:admin', 'root'), rule('groups', 'devs'), rule('scope', 'bus:write')]
    expect(ruleFor(map, { scope: 'bus:write bus:admin', groups: ['devs'] })?.as).toBe('root')
    expect(ruleFor(map, { scope: 'bus:write', groups: ['devs'] })).toBe(map[1])
    expect(ruleFor(map, { scope: 'bus:write' })).toBe(map[2])
  })

  test('nobody, if none fits', () => {
    verifies('9.13-nobody')
    expect(ruleFor([rule('scope', 'bus:write')], {})).toBeUndefined()
    expect(ruleFor([], { scope: 'bus:write' })).toBeUndefined()
  })

  test('words of scope, members of a list, and whole values', () => {
    verifies('9.13-claims')
    expect(fits(rule('scope', 'bus:write'), { scope: 'openid bus:write' })).toBe(true)
    expect(fits(rule('scope', 'bus:write'), { scope: ['openid', 'bus:write'] })).toBe(true)
    expect(fits(rule('scope', 'bus:write'), { scope: 'bus:write2 xbus:write bus:writ' })).toBe(false)
    expect(fits(rule('scope', 'a b'), { scope: 'a b' })).toBe(false)
    expect(fits(rule('groups', 'devs'), { groups: ['ops', 'devs'] })).toBe(true)
    expect(fits(rule('groups', 'devs'), { groups: 'ops devs' })).toBe(false)
    expect(fits(rule('groups', 'devs'), { groups: [['devs']] })).toBe(false)
    expect(fits(rule('sub', 'ann'), { sub: 'ann' })).toBe(true)
    expect(fits(rule('sub', 'ann'), { sub: 'Ann' })).toBe(false)
    expect(fits(rule('verified', true), { verified: true })).toBe(true)
    expect(fits(rule('verified', 'true'), { verified: true })).toBe(false)
    expect(fits(rule('tenant', 7), { tenant: 7 })).toBe(true)
  })

  test('a dotted path, or a name that has dots', () => {
    verifies('9.13-claims')
    expect(fits(rule('realm_access.roles', 'dev'), { realm_access: { roles: ['dev'] } })).toBe(true)
    expect(fits(rule('a.b.c', 'x'), { a: { b: { c: 'x' } } })).toBe(true)
    expect(fits(rule('https://example.com/roles', 'dev'), { 'https://example.com/roles': ['dev'] })).toBe(true)
    expect(fits(rule('a.b', 'x'), { 'a.b': 'y', a: { b: 'x' } })).toBe(false)
    expect(fits(rule('a.b', 'x'), { a: 'x' })).toBe(false)
    expect(fits(rule('a.b', 'x'), { a: null })).toBe(false)
    expect(fits(rule('a.0', 'x'), { a: ['x'] })).toBe(false)
  })

  test('own claims alone', () => {
    expect(fits(rule('constructor.name', 'Object'), {})).toBe(false)
    expect(fits(rule('__proto__.admin', 'yes'), JSON.parse('{"a":{"__proto__":{"admin":"yes"}}}'))).toBe(false)
    expect(fits(rule('groups.length', 1), { groups: ['x'] })).toBe(false)
    expect(fits(rule('sub.length', 3), { sub: 'ann' })).toBe(false)
  })
})

test('scopes of map, once each; the weakest that would do', () => {
  verifies('9.14-scope')
  const map = [
    rule('scope', 'admin', 'root'),
    rule('groups', 'devs'),
    rule('scope', 'write'),
    rule('scope', 'write', 'x'),
    rule('scope', 'read', 'guest'),
  ]
  expect(scopesOf(map)).toEqual(['admin', 'write', 'read'])
  expect(scopeThatWouldDo(map)).toBe('read')
  expect(scopeThatWouldDo(map, (principal) => principal === 'root' || principal === 'dev')).toBe('write')
  expect(scopeThatWouldDo(map, () => false)).toBeUndefined()
  expect(scopeThatWouldDo([rule('groups', 'devs')])).toBeUndefined()
})
