import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { isGatewayMethod, joinName, splitName } from './names.ts'

const agent = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
const method = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_.]{0,40}$/)

describe('names of agents and methods', () => {
  it.each([
    ['reader::resources.list', { agent: 'reader', method: 'resources.list' }],
    ['math_agent::tools.call', { agent: 'math_agent', method: 'tools.call' }],
    ['a-1.b::_x', { agent: 'a-1.b', method: '_x' }],
    [`${'a'.repeat(64)}::m`, { agent: 'a'.repeat(64), method: 'm' }],
    ['x::__proto__', { agent: 'x', method: '__proto__' }],
  ])('%s is split at the first separator', (text, name) => {
    expect(splitName(text)).toEqual(name)
  })

  it.each([
    'a::',
    '::b',
    '::',
    'ab',
    'a::b::c',
    '-a::b',
    `${'a'.repeat(65)}::m`,
    'a::1b',
    'a::.b',
    'a b::c',
    'a::b c',
    'a::b\n',
    'ä::b',
    `a::${'b'.repeat(257)}`,
  ])('%j is no name', (text) => {
    expect(splitName(text)).toBeUndefined()
  })

  it('splits what it joins, whatever the names', () => {
    fc.assert(
      fc.property(agent, method, (a, m) => {
        expect(splitName(joinName(a, m))).toEqual({ agent: a, method: m })
      }),
    )
  })

  it('accepts nothing outside the grammar', () => {
    verifies('N2-grammar')
    const grammar = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}::[A-Za-z_][A-Za-z0-9_.]{0,255}$/
    const noise = fc.oneof(
      fc.string(),
      fc.string().map((text) => `a::${text}`),
      fc.string().map((text) => `${text}::b`),
    )
    fc.assert(
      fc.property(noise, (text) => {
        expect(splitName(text) !== undefined).toBe(grammar.test(text) && !text.endsWith('\n'))
      }),
    )
  })

  it.each([
    ['reader::x', true, true],
    ['reader::x', false, false],
    ['help', true, true],
    ['help', false, false],
    ['bus::help', false, true],
    ['bus::traces.get', true, true],
    ['tools/call', true, false],
  ])('%s with AIO on=%s goes to the gateway: %s', (text, aioOn, expected) => {
    expect(isGatewayMethod(text, aioOn)).toBe(expected)
  })
})
