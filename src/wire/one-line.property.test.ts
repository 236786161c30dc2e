import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toOneLine } from './one-line.ts'

const one = (text: string): string => toOneLine(Buffer.from(text)).toString()

test.each([
  ['{\n  "a": 1\r\n}', '{   "a": 1  }'],
  ['{"a":"x\\ny"}\n', '{"a":"x\\ny"} '],
  ['["\\"\\\\",\n"\\\\\\""]', '["\\"\\\\", "\\\\\\""]'],
  ['{"a":\r1}', '{"a": 1}'],
  ['"never ends\n', '"never ends\n'],
  ['\\\n"a\\', '\\ "a\\'],
  ['', ''],
])('%j becomes %j', (text, line) => expect(one(text)).toBe(line))

test('a text without a line break is not copied', () => {
  const bytes = Buffer.from('{"a": "b"}')
  expect(toOneLine(bytes)).toBe(bytes)
})

test('the bytes that are given stay as they are', () => {
  const bytes = Buffer.from('{\n}')
  toOneLine(bytes)
  expect(bytes.toString()).toBe('{\n}')
})

/** JSON in a layout of its own: white space of any kind around every token. */
function laidOut(value: unknown, spaces: readonly string[]): string {
  let next = 0
  const space = (): string => spaces[next++ % spaces.length]!
  const write = (part: unknown): string => {
    const body = Array.isArray(part)
      ? `[${part.map(write).join(',')}]`
      : part !== null && typeof part === 'object'
        ? `{${Object.entries(part)
            .map(([key, inner]) => `${space()}${JSON.stringify(key)}${space()}:${write(inner)}`)
            .join(',')}}`
        : JSON.stringify(part)
    return space() + body + space()
  }
  return write(value)
}

test('JSON of any layout becomes one line that means the same, and nothing but line breaks has changed', () => {
  const spaces = fc.array(fc.constantFrom('', ' ', '\n', '\r\n', '\t', '\r', '\n\n '), { minLength: 1 })
  const value = fc.jsonValue({ stringUnit: 'binary' }).filter((made) => !JSON.stringify(made).includes('-0'))
  fc.assert(
    fc.property(value, spaces, (written, layout) => {
      const text = laidOut(written, layout)
      const line = one(text)
      expect(line).not.toMatch(/[\r\n]/)
      expect(JSON.parse(line)).toEqual(JSON.parse(text))
      expect(line).toBe(text.replace(/[\r\n]/g, ' '))
    }),
  )
})

test('whatever the bytes are, only line breaks change, and only into spaces', () => {
  const part = fc.constantFrom('"', '\\', '\n', '\r', ' ', 'a', '{', 'é')
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const bytes = Buffer.from(parts.join(''))
      const line = toOneLine(bytes)
      expect(line.length).toBe(bytes.length)
      for (const [i, byte] of line.entries()) {
        if (byte !== bytes[i]) expect([byte, '\r\n'.includes(String.fromCharCode(bytes[i]!))]).toEqual([0x20, true])
      }
    }),
  )
})
