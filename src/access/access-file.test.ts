// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file itself spells its references so
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { type AccessReading, parseAccessFile, readAccessFile } from './access-file.ts'
import { environmentFor, Principals } from './principals.ts'
import { digestOf } from './token.ts'

const ENVIRONMENT = { ALICE_KEY: 's3cret' }
const DIGEST = digestOf('one')

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'access-'))
  file = join(folder, 'access.json')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const parse = (text: string, environment: Record<string, string> | undefined = ENVIRONMENT): AccessReading =>
  parseAccessFile('access.json', Buffer.from(text), environment)

function problemsOf(reading: AccessReading): string[] {
  if (reading.ok) return []
  return reading.problems.map((it) => `${it.line}:${it.column} ${it.path} ${it.found}; ${it.allowed}; ${it.suggestion}`)
}

function principalsOf(value: unknown): Principals {
  const reading = parse(JSON.stringify(value))
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems))
  return reading.principals
}

describe('a file that is right', () => {
  it('9.9 becomes rights, by name and by token', () => {
    const principals = principalsOf({
      _comment: 'stays out',
      principals: [
        {
          name: 'alice',
          role: 'observer',
          pools: ['coder', 'tools-*'],
          tools: { allow: ['read_*', 'git::*'], deny: ['*_secret'] },
          rate: '50/s',
          max_pending: 100,
          max_connections: 256,
          tokens: [{ sha256: DIGEST.toUpperCase(), expires: '2027-11-16T09:00:00Z' }],
        },
        { name: 'bob', pools: [] },
      ],
    })
    const rights = {
      role: 'observer',
      pools: ['coder', 'tools-*'],
      tools: { allow: ['read_*', 'git::*'], deny: ['*_secret'] },
      rate: { count: 50, perMs: 1000 },
      maxPending: 100,
      maxConnections: 256,
    }
    expect(principals.names()).toEqual(['alice', 'bob'])
    expect(principals.byName('alice')).toEqual(rights)
    expect(principals.byName('bob')).toEqual({ role: 'user', pools: [] })
    expect(principals.byName('carol')).toBeUndefined()
    expect(principals.byToken(DIGEST)).toEqual({ principal: 'alice', rights, expiresAtMs: Date.UTC(2027, 10, 16, 9) })
    expect(principals.byToken(digestOf('two'))).toBeUndefined()
    expect(Principals.NONE.byToken(DIGEST)).toBeUndefined()
  })

  it('9.22 has variables for all pools and for single ones, which win', () => {
    const env = { KEY: '${ALICE_KEY}', chat: { KEY: 'chat', _MORE: '$${x}' } }
    const principals = principalsOf({ principals: [{ name: 'alice', pools: ['*'], env }] })
    expect(principals.byName('alice')?.environmentFor).toEqual(['*'])
    expect(principals.environmentOf('alice', 'other')).toEqual({ KEY: 's3cret' })
    expect(principals.environmentOf('alice', 'chat')).toEqual({ KEY: 'chat', _MORE: '${x}' })
    expect(principals.environmentOf('bob', 'chat')).toEqual({})
    expect(environmentFor({ chat: { A: '1' } }, 'toString')).toEqual({})
    const only = principalsOf({ principals: [{ name: 'alice', pools: ['*'], env: { chat: { A: '1' } } }] })
    expect(only.byName('alice')?.environmentFor).toEqual(['chat'])
  })

  it('9.8 references are left alone by whoever only edits', () => {
    const text = JSON.stringify({ principals: [{ name: 'a', pools: [], env: { K: '${MISSING}' } }] })
    expect(parseAccessFile('access.json', Buffer.from(text)).ok).toBe(true)
    expect(problemsOf(parse(text))).toEqual([
      expect.stringMatching(/principals\[0\]\.env\.K \$\{MISSING\}, which is not set/),
    ])
  })
})

const at = (key: string, value: string): string[] => [
  '{ "principals": [{ "name": "a", "pools": [],',
  `"${key}": ${value} }] }`,
]

describe('8.4 what is wrong has its place and its words', () => {
  it.each<[string, string[], RegExp]>([
    ['an empty file', [''], /0:0 {2}an empty file; an object with "principals"/],
    ['no principals', ['{}'], /1:1 principals nothing; a list of at most 10000; add "principals"/],
    ['a list', ['[]'], /1:1 {2}a list; an object/],
    ['an unknown key', at('pool', '[]'), /2:1 principals\[0\]\.pool the unknown key "pool".*did you mean "pools"/],
    ['no pools', ['{ "principals": [', '{ "name": "a" }] }'], /2:1 principals\[0\]\.pools nothing.*add "pools"/],
    [
      'pools in one word',
      ['{ "principals": [{ "name": "a",', '"pools": "x" }] }'],
      /2:10 principals\[0\]\.pools "x"; a list/,
    ],
    [
      'an empty pattern',
      ['{ "principals": [{ "name": "a",', '"pools": [""] }] }'],
      /2:11 principals\[0\]\.pools\[0\] "";/,
    ],
    ['an unknown role', at('role', '"root"'), /2:9 principals\[0\]\.role "root"; "user", "observer" or "admin"/],
    ['a rate of nothing', at('rate', '"0/s"'), /2:9 principals\[0\]\.rate "0\/s"/],
    [
      'half a time',
      at('tokens', `[{ "sha256": "${DIGEST}", "expires": "2027" }]`),
      /tokens\[0\]\.expires a string.*2027-11-16T/,
    ],
    [
      'a day that is none',
      at('tokens', `[{ "sha256": "${DIGEST}", "expires": "2027-02-31T00:00:00Z" }]`),
      /expires a string/,
    ],
    ['a token in place of its digest', at('tokens', '[{ "sha256": "sbus_secret" }]'), /sha256 a string; 64 hex/],
    ['a token in place of a row', at('tokens', '["sbus_secret"]'), /tokens\[0\] a string; an object/],
    ['a number as variable', at('env', '{ "K": 5 }'), /2:15 principals\[0\]\.env\.K a number/],
    ['a limit of nothing', at('max_pending', '0'), /2:16 principals\[0\]\.max_pending 0; a whole number from 1/],
    [
      'a second name',
      ['{ "principals": [{ "name": "a", "pools": [] },', '{ "name": "a", "pools": [] }] }'],
      /2:11 principals\[1\]\.name "a" a second time/,
    ],
    [
      'a reserved name',
      ['{ "principals": [', '{ "name": "local", "pools": [] }] }'],
      /2:11 principals\[0\]\.name "local".*reserved/,
    ],
    [
      'a name with a blank',
      ['{ "principals": [', '{ "name": "a b", "pools": [] }] }'],
      /2:11 principals\[0\]\.name "a b".*1 to 64/,
    ],
    ['a second key', at('pools', '["*"]'), /2:1 principals\[0\]\.pools "pools" a second time/],
    [
      'a second token',
      at('tokens', `[{ "sha256": "${DIGEST}" }, { "sha256": "${DIGEST.toUpperCase()}" }]`),
      /tokens\[1\] a token a second time/,
    ],
    ['a file that is cut', ['{ "principals": [{ "name": "a", "pools": ['], /1:/],
    ['a deep file', ['['.repeat(100_000)], /0:0 {2}more than 64 levels/],
  ])('%s', (_title, lines, words) => {
    verifies('9.9-mistakes')
    const problems = problemsOf(parse(lines.join('\n')))
    expect(
      problems.some((problem) => words.test(problem)),
      problems.join('\n'),
    ).toBe(true)
    expect(problems.join('\n')).not.toContain('sbus_secret')
  })

  it('9.9 at a bound it is right, one beyond it is not', () => {
    verifies('9.9-bounds')
    const tokens = (count: number) => Array.from({ length: count }, (_, index) => ({ sha256: digestOf(String(index)) }))
    const text = (entry: object) => JSON.stringify({ principals: [{ name: 'a', pools: [], ...entry }] })
    const rows = (count: number) => ({
      principals: Array.from({ length: count }, (_, index) => ({ name: `p${index}`, pools: [] })),
    })
    expect(parse(text({ tokens: tokens(8) })).ok).toBe(true)
    expect(problemsOf(parse(text({ tokens: tokens(9) })))).toEqual([expect.stringMatching(/a list of at most 8/)])
    expect(parse(text({ pools: Array(256).fill('x'.repeat(256)) })).ok).toBe(true)
    expect(parse(text({ pools: Array(257).fill('x') })).ok).toBe(false)
    expect(parse(text({ pools: ['x'.repeat(257)] })).ok).toBe(false)
    expect(parse(text({ name: 'x'.repeat(64) })).ok).toBe(true)
    expect(parse(text({ name: 'x'.repeat(65) })).ok).toBe(false)
    expect(parse(JSON.stringify(rows(10_000))).ok).toBe(true)
    expect(problemsOf(parse(JSON.stringify(rows(10_001))))).toEqual([expect.stringMatching(/a list of at most 10000/)])
  })

  it('any text is read or refused, never thrown, with at most a hundred problems', () => {
    const right = JSON.stringify(
      {
        principals: [
          { name: 'a', pools: ['*'], tools: { allow: [] }, env: { a: { b: 'c' } }, tokens: [{ sha256: DIGEST }] },
        ],
      },
      null,
      1,
    )
    const cut = fc.tuple(fc.nat(right.length), fc.nat(20), fc.string({ unit: 'binary', maxLength: 8 }))
    fc.assert(
      fc.property(cut, ([from, length, put]) => {
        const reading = parse(right.slice(0, from) + put + right.slice(from + length))
        if (!reading.ok) expect(reading.problems.length).toBeGreaterThan(0)
      }),
      { numRuns: 500 },
    )
    const many = `{${'"a": 1,\n'.repeat(20_000)}}`
    expect(problemsOf(parse(many)).length).toBe(100)
    const wrong = JSON.stringify({ principals: Array(10_000).fill({ nam: 1 }) }, null, 1)
    expect(problemsOf(parse(wrong)).length).toBe(100)
  })

  it('what is not UTF-8 is said', () => {
    expect(problemsOf(parseAccessFile('access.json', Buffer.from([0x7b, 0xff, 0x7d]), {}))).toEqual([
      expect.stringMatching(/not UTF-8/),
    ])
  })
})

describe('9.9 what stands in its place', () => {
  const write = (text = '{ "principals": [] }', mode = 0o600): void => writeFileSync(file, text, { mode })

  it.each([0o600, 0o400, 0o700])('a file of our own with mode %o is read', (mode) => {
    write()
    chmodSync(file, mode)
    expect(readAccessFile(file, {}).ok).toBe(true)
  })

  it.each([0o640, 0o604, 0o601, 0o620, 0o660, 0o644])('one with mode %o is refused', (mode) => {
    verifies('9.9-modes')
    write()
    chmodSync(file, mode)
    expect(problemsOf(readAccessFile(file, {}))).toEqual([
      expect.stringMatching(/^0:0 {2}a file that others may use \(mode 06..\);.*chmod 600/),
    ])
  })

  it.each<[string, () => void, RegExp]>([
    ['nothing', () => {}, /no such file.*token add NAME/],
    ['a pipe', () => void execFileSync('mkfifo', ['-m', '600', file]), /a pipe/],
    ['a folder', () => mkdirSync(file), /a folder/],
    [
      'a link',
      () => {
        write()
        renameSync(file, `${file}.real`)
        symlinkSync(`${file}.real`, file)
      },
      /a symbolic link/,
    ],
    ['a device', () => symlinkSync('/dev/zero', file), /a symbolic link/],
    ['more than 4 MiB', () => write(' '.repeat(4 * 1024 * 1024 + 1)), /too large; at most 4194304/],
  ])('%s is told at once', (_title, put, words) => {
    verifies('9.9-modes')
    put()
    expect(problemsOf(readAccessFile(file, {}))).toEqual([expect.stringMatching(words)])
  })

  it('4 MiB are read', () => {
    const text = '{ "principals": [] }'
    write(text + ' '.repeat(4 * 1024 * 1024 - text.length))
    expect(readAccessFile(file, {}).ok).toBe(true)
  })

  it.runIf(process.getuid?.() === 0)('a file of another user is refused', () => {
    write()
    chownSync(file, 12_345, 12_345)
    expect(problemsOf(readAccessFile(file, {}))).toEqual([expect.stringMatching(/another user \(12345\)/)])
  })

  it('only a missing file says that it is missing', () => {
    expect(readAccessFile(file, {})).toMatchObject({ ok: false, isMissing: true })
    mkdirSync(file)
    expect(readAccessFile(file, {})).not.toHaveProperty('isMissing')
  })
})
