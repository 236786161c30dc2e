import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseToml, TomlMistake } from './toml.ts'

const plain = (text: string): unknown => JSON.parse(JSON.stringify(parseToml(text)))

describe('TOML', () => {
  test('what people write', () => {
    const text = `
# a comment
model = "o3"   # another
approval = 'on-request'
depth = 1_000
ratio = 0.5
hex = 0xff
day = 2026-03-01 10:00:00
off = false

[mcp_servers.docs]
command = "npx"
args = [
  "-y",     # yes
  'C:\\tools',
  """two
lines""",
]
env = { KEY = "a \\"b\\" \\u00e9", "dotted.key" = "x" }

[mcp_servers."with space"]
url = "https://example.com/mcp"
http_headers.X-Team = "docs"

[[rows]]
a = 1
[[rows]]
a = 2
`
    expect(plain(text)).toEqual({
      model: 'o3',
      approval: 'on-request',
      depth: 1000,
      ratio: 0.5,
      hex: 255,
      day: '2026-03-01 10:00:00',
      off: false,
      mcp_servers: {
        docs: {
          command: 'npx',
          args: ['-y', 'C:\\tools', 'two\nlines'],
          env: { KEY: 'a "b" é', 'dotted.key': 'x' },
        },
        'with space': { url: 'https://example.com/mcp', http_headers: { 'X-Team': 'docs' } },
      },
      rows: [{ a: 1 }, { a: 2 }],
    })
  })

  test('Windows lines, a byte order mark, an empty file', () => {
    expect(plain('\ufeffa = 1\r\nb = """\r\nx\\\r\n   y"""\r\n')).toEqual({ a: 1, b: 'xy' })
    expect(plain('')).toEqual({})
  })

  test.each([
    ['a = ', 'line 1: no value'],
    ['\n\na = b', 'line 3: "b" is no value'],
    ['a = "x', 'line 1: text that does not end'],
    ['a = [1, 2', 'line 1: a list that does not end'],
    ['[a', 'line 1: a table that does not end'],
    ['a = 1\na = 2', 'line 2: a a second time'],
    ['a = 1\n[a.b]', 'line 2: a is a table and something else'],
    ['a = 1 b = 2', 'line 1: something follows'],
    [`a = ${'['.repeat(100)}`, 'levels of nesting'],
  ])('%j is a mistake', (text, said) => {
    expect(() => parseToml(text)).toThrow(said)
  })

  test('no key is special', () => {
    const value = parseToml('[__proto__]\npolluted = true\n[constructor.prototype]\nx = 1\n')
    expect(Object.hasOwn(value, '__proto__')).toBe(true)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  test('any text is a value or a mistake, and strings come back', () => {
    const token = fc.constantFrom(
      'a',
      '=',
      '"',
      "'",
      '"""',
      '[',
      ']',
      '{',
      '}',
      ',',
      '.',
      '\n',
      ' ',
      '#',
      '\\',
      '1',
      'true',
      '\u0000',
    )
    fc.assert(
      fc.property(
        fc.array(token).map((parts) => parts.join('')),
        (text) => {
          try {
            parseToml(text)
          } catch (error) {
            expect(error).toBeInstanceOf(TomlMistake)
          }
        },
      ),
      { numRuns: 500 },
    )
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string()), (map) => {
        const rows = Object.entries(map).map(([key, value]) => `${JSON.stringify(key)} = ${JSON.stringify(value)}`)
        expect(Object.entries(parseToml(rows.join('\n')))).toEqual(Object.entries(map))
      }),
      { numRuns: 200 },
    )
  })
})
