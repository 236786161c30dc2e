import { describe, expect, it } from 'vitest'
import { numberOf } from '../exact.ts'
import { check } from './check.ts'
import { Unread } from './value.ts'

const told = (value: unknown, schema: unknown): string[] =>
  check(value, schema, schema).map(({ path, message }) => `${path.join('.')}: ${message}`)

describe('what is wrong with a value', () => {
  it.each<[string, unknown, unknown, string[]]>([
    ['a text for a number', 'x', { type: 'number' }, [': must be a number']],
    ['a fraction for a whole number', 1.5, { type: 'integer' }, [': must be a whole number']],
    ['a number out of bounds', 11, { type: 'number', maximum: 10 }, [': must be at most 10']],
    ['an excluded bound', 0, { exclusiveMinimum: 0 }, [': must be more than 0']],
    ['no multiple', 7, { multipleOf: 2 }, [': must be a multiple of 2']],
    ['tenths', 0.3, { multipleOf: 0.1 }, []],
    ['too short', '', { type: 'string', minLength: 1 }, [': must have at least 1 characters, has 0']],
    ['characters, not halves of them', '😀', { maxLength: 1 }, []],
    ['not of the enumeration', 'c', { enum: ['a', 1] }, [': must be one of "a", 1']],
    ['another constant', 2, { const: 1 }, [': must be 1']],
    ['a bad date', '2026-02-30', { format: 'date' }, [': must be of the format date, such as 2026-01-31']],
    ['a leap day', '2024-02-29', { format: 'date' }, []],
    ['a bad address', 'nobody', { format: 'email' }, [': must be of the format email, such as name@example.com']],
    ['a format nobody knows', 'x', { format: 'colour' }, []],
    ['a bad pattern', 'A', { pattern: '^[a-z]$' }, [': must fit ^[a-z]$']],
    ['what is missing', {}, { required: ['a', 'b'] }, ['a: is required', 'b: is required']],
    ['what is inside', { a: ['x', 1] }, { properties: { a: { items: { type: 'string' } } } }, ['a.1: must be text']],
    [
      'the first items',
      [1, 'x'],
      { prefixItems: [{ type: 'string' }], items: { type: 'string' } },
      ['0: must be text'],
    ],
    ['too many', [1, 2], { maxItems: 1 }, [': must have at most 1 items, has 2']],
    [
      'twice the same',
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      { uniqueItems: true },
      [': must have no item twice'],
    ],
    [
      'a property too many',
      { b: 1 },
      { properties: { a: {} }, additionalProperties: false },
      ['b: is not allowed here'],
    ],
    ['other properties', { b: 1 }, { additionalProperties: { type: 'string' } }, ['b: must be text']],
    [
      'properties by pattern',
      { x1: 'a' },
      { patternProperties: { '^x': { type: 'number' } } },
      ['x1: must be a number'],
    ],
    ['what another wants', { a: 1 }, { dependentRequired: { a: ['b'] } }, ['b: is required']],
    ['all of them', 5, { allOf: [{ minimum: 6 }, { maximum: 4 }] }, [': must be at least 6', ': must be at most 4']],
    ['none of them', true, { anyOf: [{ type: 'string' }, { type: 'number' }] }, [': must be text']],
    [
      'more than one',
      5,
      { oneOf: [{ minimum: 1 }, { minimum: 2 }] },
      [': fits 2 of the choices, of which only one may hold'],
    ],
    ['what is forbidden', 5, { not: { type: 'number' } }, [': is what its schema forbids']],
    ['a condition', { a: 1 }, JSON.parse('{"if":{"required":["a"]},"then":{"required":["b"]}}'), ['b: is required']],
    [
      'a reference',
      { a: 1 },
      { $defs: { t: { type: 'string' } }, properties: { a: { $ref: '#/$defs/t' } } },
      ['a: must be text'],
    ],
    ['text that is no JSON', { a: new Unread('{') }, {}, ['a: is not JSON']],
    ['nothing in a list', [new Unread('')], { items: { type: 'number' } }, ['0: is required']],
    [
      'a name of the language',
      JSON.parse('{"__proto__":1}'),
      { properties: { a: {} }, additionalProperties: false },
      ['__proto__: is not allowed here'],
    ],
  ])('%s', (_what, value, schema, problems) => {
    expect(told(value, schema)).toEqual(problems)
  })

  it('says what is wrong with what was chosen', () => {
    const schema = { oneOf: [{ required: ['a'] }, { required: ['b'] }] }
    expect(check({}, schema, schema, new Map([['', 1]]))).toEqual([{ path: ['b'], message: 'is required' }])
  })

  it('takes a whole number of any size', () => {
    expect(told(numberOf('12345678901234567890'), { type: 'integer' })).toEqual([])
  })

  it('ends, whatever a schema contains', () => {
    const circle = { $ref: '#' }
    expect(told({}, circle)).toEqual([])
    const wide = { $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }] } }, $ref: '#/$defs/a' }
    expect(told({}, wide)).toEqual([])
    expect(told({}, { $ref: 'https://example.test/elsewhere' })).toEqual([])
    const expressions = Object.fromEntries(
      Array.from({ length: 500 }, (_, at) => [`p${at}`, { pattern: '(a?){400}b' }]),
    )
    const value = Object.fromEntries(Object.keys(expressions).map((name) => [name, 'a'.repeat(4_000)]))
    expect(told(value, { properties: expressions })).toEqual([])
  })
})
