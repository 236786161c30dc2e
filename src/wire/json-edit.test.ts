import { expect, test } from 'vitest'
import { withMember } from './json-edit.ts'

const edit = (text: string, path: string[], value: string, replaces?: boolean): string =>
  withMember(Buffer.from(text), path, value, replaces).toString()

test.each([
  ['{}', ['a', 'b'], '1', undefined, '{"a":{"b":1}}'],
  ['{ "x" : 1 }', ['a'], 'true', undefined, '{"a":true, "x" : 1 }'],
  ['{"a":{"c": [1 ,2]},"z":0}', ['a', 'b'], '{}', undefined, '{"a":{"b":{},"c": [1 ,2]},"z":0}'],
  ['{"a":false}', ['a'], 'true', true, '{"a":true}'],
  ['{"a":{"b":{"_meta":1}}}', ['a', 'b'], '{}', undefined, '{"a":{"b":{"_meta":1}}}'],
  ['{"a":null}', ['a', 'b'], '{}', undefined, '{"a":{"b":{}}}'],
  ['{"\\u0061":{}}', ['a', 'b'], '1', undefined, '{"\\u0061":{"b":1}}'],
])('%s with %j', (text, path, value, replaces, expected) => {
  expect(edit(text, path, value, replaces)).toBe(expected)
})
