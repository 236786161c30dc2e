import { describe, expect, it } from 'vitest'
import { initialItem, initialValue, rechosen } from './initial.ts'
import { choicesOf, type Field, planForm } from './plan.ts'
import { withValue } from './value.ts'

const plan = (schema: unknown, value: unknown = initialValue(schema), chosen = new Map<string, number>()): Field =>
  planForm(schema, { value, chosen })

/** Names and kinds, as deep as they go. */
function outline({ name, kind, fields }: Field): unknown {
  return fields.length === 0 ? `${name}: ${kind}` : { [`${name}: ${kind}`]: fields.map(outline) }
}

const outlineOf = (schema: unknown, value?: unknown): unknown => outline(plan(schema, value))

describe('from a schema to a form', () => {
  it('draws every type, and JSON where nothing is said', () => {
    const properties = {
      text: { type: 'string' },
      figure: { type: 'number' },
      whole: { type: 'integer' },
      flag: { type: 'boolean' },
      nothing: { type: 'null' },
      colour: { enum: ['red', 'green'] },
      named: { oneOf: [{ const: 'r', title: 'Red' }, { const: 'g' }] },
      list: { type: 'array', items: { type: 'string' } },
      inner: { type: 'object', properties: { a: { type: 'string' } } },
      anything: {},
      map: { type: 'object' },
      implied: { minLength: 1 },
      forbidden: false,
    }
    expect(outlineOf({ type: 'object', properties })).toEqual({
      ': object': [
        'text: text',
        'figure: number',
        'whole: number',
        'flag: boolean',
        'nothing: null',
        'colour: values',
        'named: values',
        'list: list',
        'inner: object',
        'anything: json',
        'map: json',
        'implied: text',
        'forbidden: json',
      ],
    })
    expect(plan({ properties }).fields[6]!.options.map(({ label }) => label)).toEqual(['r (Red)', 'g'])
  })

  it('follows references, puts allOf together, and draws what contains itself as far as it was entered', () => {
    const schema = {
      $defs: {
        named: { properties: { name: { type: 'string', title: 'Name' } }, required: ['name'] },
        node: { allOf: [{ $ref: '#/$defs/named' }, { properties: { next: { $ref: '#/$defs/node' } } }] },
      },
      $ref: '#/$defs/node',
    }
    expect(outlineOf(schema, {})).toEqual({ ': object': ['name: text', 'next: object'] })
    expect(plan(schema, {}).fields.map(({ isRequired }) => isRequired)).toEqual([true, false])
    expect(outlineOf(schema, { next: { next: {} } })).toEqual({
      ': object': [
        'name: text',
        { 'next: object': ['name: text', { 'next: object': ['name: text', 'next: object'] }] },
      ],
    })
  })

  it('offers a choice, at the root too, with what holds beside it', () => {
    const schema = {
      type: 'object',
      properties: { shared: { type: 'string' } },
      oneOf: [
        { title: 'By name', properties: { name: { type: 'string' } }, required: ['name'] },
        { properties: { kind: { const: 'id' }, id: { type: 'integer' } }, required: ['kind', 'id'] },
      ],
    }
    const first = plan(schema)
    expect(first.options.map(({ label }) => label)).toEqual(['By name', 'id'])
    expect(outline(first)).toEqual({ ': choice': [{ ': object': ['name: text', 'shared: text'] }] })
    const second = plan(schema, { kind: 'id', id: 1 })
    expect(second.chosen).toBe(1)
    expect(rechosen({ shared: 'x', name: 'y' }, choicesOf(second.schema)![1], schema)).toEqual({
      kind: 'id',
      shared: 'x',
    })
  })

  it('offers null beside a type, and takes the default', () => {
    const schema = {
      properties: {
        a: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null },
        b: { type: ['number', 'null'] },
      },
    }
    expect(initialValue(schema)).toEqual({ a: null })
    expect(plan(schema).fields.map(({ kind, chosen }) => [kind, chosen])).toEqual([
      ['choice', 1],
      ['choice', 0],
    ])
  })

  it('begins with defaults and what can only be one value; left out is absent', () => {
    const schema = {
      properties: {
        a: { type: 'string' },
        b: { type: 'number', default: 5 },
        kind: { const: 'x' },
        maybe: { const: 'y' },
        inner: { type: 'object', properties: { c: { type: 'boolean', default: false } }, required: ['c'] },
        must: { type: 'object', properties: { c: { type: 'boolean', default: false } } },
        list: { type: 'array', items: { type: 'string' } },
      },
      required: ['a', 'kind', 'must', 'list'],
    }
    expect(initialValue(schema)).toEqual({ b: 5, kind: 'x', must: { c: false }, list: [] })
    expect(initialItem({ type: 'string' }, schema)).toBe('')
    expect(withValue({ a: 1, b: [1, 2] }, ['b', 0], undefined)).toEqual({ a: 1, b: [2] })
    expect(withValue({ a: 1 }, ['a'], undefined)).toEqual({})
  })

  it('ends, whatever a schema contains', () => {
    const loop = { $ref: '#' }
    expect(plan(loop)).toMatchObject({ kind: 'json', note: expect.stringContaining('circles') })
    const must = { properties: { me: { $ref: '#' } }, required: ['me'] }
    expect(JSON.stringify(initialValue(must)).length).toBeLessThan(200)
    plan(must)
    const wide = { properties: Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`p${at}`, { $ref: '#' }])) }
    expect(plan(wide)).toMatchObject({ leftOff: 4_850 })
    const branches = {
      $defs: { t: { anyOf: Array.from({ length: 40 }, () => ({ $ref: '#/$defs/t' })) } },
      $ref: '#/$defs/t',
    }
    expect(plan(branches, { a: 1 }).kind).toBe('choice')
    expect(plan({ $ref: 'other.json' })).toMatchObject({ kind: 'json', note: expect.stringContaining('another') })
    expect(plan({ properties: { a: { $ref: '#/nowhere' } } }).fields[0]).toMatchObject({ kind: 'json' })
  })

  it('takes no name of a peer for one of the language', () => {
    const schema = JSON.parse('{"properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}}}')
    const value = withValue({}, ['__proto__'], 'x')
    expect(Object.keys(value as object)).toEqual(['__proto__'])
    expect(plan(schema, {}).fields.map((field) => field.value)).toEqual([undefined, undefined])
    expect(plan(schema, value).fields[0]!.value).toBe('x')
  })
})
