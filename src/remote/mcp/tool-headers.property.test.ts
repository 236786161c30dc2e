import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fieldValue, ToolHeaders } from './tool-headers.ts'

const tool = (properties: unknown, name = 't') => ({ name, inputSchema: { type: 'object', properties } })

function headersOf(properties: unknown, args: unknown): Record<string, string> {
  const headers = new ToolHeaders()
  headers.learn([tool(properties)])
  return headers.headersFor('t', args)
}

test('what a tool wants is taken from where it lies', () => {
  const properties = {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    deep: { type: 'object', properties: { on: { type: 'boolean', 'x-mcp-header': 'On' } } },
    count: { type: 'integer', 'x-mcp-header': 'Count' },
    list: { type: 'array', 'x-mcp-header': 'List' },
    bad: { type: 'string', 'x-mcp-header': 'a b' },
  }
  const args = { region: 'eu', deep: { on: false }, count: 3, list: [1], bad: 'x' }
  expect(headersOf(properties, args)).toEqual({
    'mcp-param-region': 'eu',
    'mcp-param-on': 'false',
    'mcp-param-count': '3',
  })
  expect(headersOf(properties, { region: null, deep: 7, count: 2 ** 60 })).toEqual({})
  expect(headersOf(properties, undefined)).toEqual({})
})

test('the last list counts', () => {
  const headers = new ToolHeaders()
  headers.learn([tool({ a: { type: 'string', 'x-mcp-header': 'A' } })])
  headers.learn([tool({ a: { type: 'string' } })])
  expect(headers.headersFor('t', { a: 'x' })).toEqual({})
})

test('whatever a list holds, every value can be sent as a header, and means what was said', () => {
  const text = fc.string({ unit: 'binary' })
  fc.assert(
    fc.property(text, (said) => {
      const value = headersOf({ a: { type: 'string', 'x-mcp-header': 'A' } }, { a: said })['mcp-param-a']!
      expect(value).toMatch(/^[\t\x20-\x7e]+$/)
      const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1]
      expect(encoded === undefined ? value : Buffer.from(encoded, 'base64').toString()).toBe(said)
    }),
  )
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (tools, args) => {
      const headers = new ToolHeaders()
      headers.learn(tools)
      headers.learn([tools, { name: 'x', inputSchema: tools }])
      expect(headers.headersFor('x', args)).toBeTypeOf('object')
    }),
  )
})

test.each([
  ['plain', 'plain'],
  ['', '=?base64??='],
  [' a', '=?base64?IGE=?='],
  ['=?base64?eA==?=', '=?base64?PT9iYXNlNjQ/ZUE9PT89?='],
])('%j is sent as %s', (text, value) => expect(fieldValue(text)).toBe(value))
