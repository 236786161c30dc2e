/** Clause 9.8 as a user meets it: `stdio-bus token` as a program, and the access file that it leaves behind. */
import { createHash } from 'node:crypto'
import { chmodSync, readdirSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { runBus, testWorkspace } from '../support/bus.ts'
import type { Finished } from '../support/run.ts'

interface Entry {
  readonly name: string
  readonly role: string
  readonly pools: string[]
  readonly tools?: { allow: string[] }
  readonly rate?: string
  readonly tokens: { sha256: string; expires?: string }[]
}

const FILE = 'stdio-bus.access.json'
const TOKEN = /^sbus_[0-9A-Za-z]{49}\n$/

function stage() {
  const workspace = testWorkspace()
  const token = (...args: string[]): Promise<Finished> => runBus(['token', ...args], { workspace })
  const inFile = (...args: string[]): Promise<Finished> => token(...args, '--file', FILE)
  const text = (): string => workspace.read(FILE)
  const entries = (): Entry[] => JSON.parse(text().replace(/^\s*\/\/.*$/gm, '')).principals
  return { workspace, token, inFile, text, entries }
}

const sha256 = (token: string): string => createHash('sha256').update(token.trim()).digest('hex')
const msUntil = (expires: string | undefined): number => Date.parse(expires ?? '') - Date.now()

test('9.8 add prints the token alone, once, and writes its digest', async () => {
  verifies('9.8-add')
  const { workspace, inFile, text, entries } = stage()
  const done = await inFile('add', 'alice')
  expect(done).toMatchObject({ code: 0, stdout: expect.stringMatching(TOKEN) })
  expect(done.stderr).toMatch(/every pool: "pools": \["\*"\]/)
  expect(done.stderr).not.toContain(done.stdout.trim())
  expect(text()).not.toContain(done.stdout.trim())
  expect(entries()).toEqual([{ name: 'alice', role: 'user', pools: ['*'], tokens: [{ sha256: sha256(done.stdout) }] }])
  expect(statSync(workspace.path(FILE)).mode & 0o777).toBe(0o600)
})

test('9.8 add writes what its flags say', async () => {
  verifies('9.8-add')
  const { inFile, entries } = stage()
  const flags = ['--pools', 'coder,tools-*', '--role', 'observer', '--tools', 'read_*,git::*', '--rate', '50/s']
  const done = await inFile('add', 'a.b@c-d', ...flags, '--expires', '30d')
  expect(done.code).toBe(0)
  expect(done.stderr).not.toContain('every pool')
  const { tokens, ...rest } = entries()[0]!
  expect(rest).toEqual({
    name: 'a.b@c-d',
    role: 'observer',
    pools: ['coder', 'tools-*'],
    tools: { allow: ['read_*', 'git::*'] },
    rate: '50/s',
  })
  const days = msUntil(tokens[0]?.expires) / 86_400_000
  expect(days).toBeGreaterThan(29.9)
  expect(days).toBeLessThanOrEqual(30)
  expect((await inFile('add', 'nothing', '--pools', '')).code).toBe(0)
  expect(entries()[1]?.pools).toEqual([])
})

test('9.8 the configuration says where, also one that lacks a variable', async () => {
  const { workspace, token, entries } = stage()
  const env = { KEY: `\${ONLY_THE_BUS_HAS_IT}` }
  workspace.write('stdio-bus.json', { pools: [{ id: 'a', command: 'cat', env }], access: { file: FILE } })
  expect((await token('add', 'alice')).code).toBe(0)
  expect((await token('add', 'bob', '--config', 'stdio-bus.json')).code).toBe(0)
  expect(entries().map(({ name }) => name)).toEqual(['alice', 'bob'])
  workspace.write('other.json', { pools: [{ id: 'a', command: 'cat' }] })
  expect(await token('ls', '--config', 'other.json')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('"access": { "file"'),
  })
  expect((await token('ls', '--config', 'other.json', '--file', FILE)).code).toBe(2)
})

test('9.8 ls shows neither token nor digest', async () => {
  verifies('9.8-ls')
  const { workspace, inFile } = stage()
  const made = await inFile('add', 'alice', '--pools', 'coder', '--expires', '1h')
  const before = workspace.read(FILE)
  workspace.write(FILE, before.replace('"role"', '"env": { "KEY": "hunter2" }, "role"'))
  chmodSync(workspace.path(FILE), 0o600)
  const [shown, json] = [await inFile('ls'), await inFile('ls', '--json')]
  for (const { code, stdout, stderr } of [shown, json]) {
    expect(code).toBe(0)
    for (const secret of [made.stdout.trim(), sha256(made.stdout), 'hunter2'])
      expect(stdout + stderr).not.toContain(secret)
  }
  expect(shown.stdout).toMatch(/^alice +user +coder +all +- +until \d{4}-/m)
  expect(JSON.parse(json.stdout)).toEqual([
    {
      name: 'alice',
      role: 'user',
      pools: ['coder'],
      env: ['KEY'],
      tokens: [{ expires: expect.any(String), expired: false }],
    },
  ])
})

test('9.8 rm takes a principal out and leaves everything else', async () => {
  verifies('9.8-rm')
  const { workspace, inFile, text } = stage()
  const written =
    '{\n  "principals": [\n    // the first\n    { "name": "a", "pools": [] },\n    // the second\n    { "name": "b", "pools": [] }, // b\n  ],\n}\n'
  workspace.write(FILE, written)
  chmodSync(workspace.path(FILE), 0o600)
  expect(await inFile('rm', 'a')).toMatchObject({ code: 0, stdout: '' })
  expect(text()).toBe(written.replace('    { "name": "a", "pools": [] },\n', ''))
})

test('9.8 rotate ends the old tokens at once, or after a while', async () => {
  verifies('9.8-rotate')
  const { inFile, entries } = stage()
  const first = await inFile('add', 'alice')
  const second = await inFile('rotate', 'alice', '--keep', '1h')
  expect(second.stdout).toMatch(TOKEN)
  const kept = entries()[0]!.tokens
  expect(kept.map((token) => token.sha256)).toEqual([sha256(first.stdout), sha256(second.stdout)])
  expect(msUntil(kept[0]?.expires)).toBeGreaterThan(3_500_000)
  expect(msUntil(kept[0]?.expires)).toBeLessThanOrEqual(3_600_000)
  expect(kept[1]).not.toHaveProperty('expires')
  const third = await inFile('rotate', 'alice', '--expires', '1d')
  const fourth = await inFile('rotate', 'alice')
  expect(third.code).toBe(0)
  const [last, ...more] = entries()[0]!.tokens
  expect([last?.sha256, more]).toEqual([sha256(fourth.stdout), []])
  expect(msUntil(last?.expires)).toBeGreaterThan(86_000_000)
})

test('9.8 rotate --keep has an end: eight tokens', async () => {
  const { inFile, entries } = stage()
  await inFile('add', 'alice')
  for (let count = 2; count <= 8; count++) expect((await inFile('rotate', 'alice', '--keep', '1h')).code).toBe(0)
  expect(await inFile('rotate', 'alice', '--keep', '1h')).toMatchObject({ code: 2, stdout: '' })
  expect(entries()[0]!.tokens.length).toBe(8)
  expect((await inFile('rotate', 'alice')).code).toBe(0)
  expect(entries()[0]!.tokens.length).toBe(1)
})

test('9.8 test names the rule', async () => {
  verifies('9.8-test')
  const { workspace, inFile } = stage()
  const tools = { allow: ['read_*', 'git::*'], deny: ['*_secret'] }
  workspace.write(FILE, {
    principals: [
      { name: 'a', pools: ['coder', 'git'], tools },
      { name: 'o', role: 'observer', pools: ['*'] },
    ],
  })
  chmodSync(workspace.path(FILE), 0o600)
  const rows: [string[], number, string][] = [
    [['a', '--pool', 'coder'], 0, 'pools: "coder"'],
    [['a', '--pool', 'web'], 1, 'no pattern of pools matches: "coder", "git"'],
    [['a', '--pool', 'coder', '--tool', 'read_file'], 0, 'tools.allow: "read_*"'],
    [['a', '--pool', 'coder', '--tool', 'read_secret'], 1, 'tools.deny: "*_secret"'],
    [['a', '--pool', 'coder', '--tool', 'push'], 1, 'no pattern of tools.allow matches: "read_*", "git::*"'],
    [['a', '--pool', 'git', '--tool', 'push'], 0, 'tools.allow: "git::*"'],
    [['o', '--pool', 'coder'], 1, 'role "observer"'],
  ]
  for (const [args, code, rule] of rows) {
    expect(await inFile('test', ...args)).toMatchObject({ code, stdout: expect.stringContaining(rule), stderr: '' })
  }
})

test.each<[string[], number]>([
  [['add', 'alice'], 2],
  [['add', 'local'], 2],
  [['add', 'anonymous'], 2],
  [['add', 'a b'], 2],
  [['add', ''], 2],
  [['add', 'x'.repeat(65)], 2],
  [['add', 'x', '--role', 'root'], 2],
  [['add', 'x', '--rate', '50'], 2],
  [['add', 'x', '--expires', 'soon'], 2],
  [['add', 'x', '--expires', '0s'], 2],
  [['add', 'x', '--pools', 'a,,b'], 2],
  [['add', 'x', '--nonsense'], 2],
  [['add'], 2],
  [['rotate', 'alice', '--keep', '1'], 2],
  [['test', 'alice'], 2],
  [['nonsense'], 2],
  [['rm', 'nobody'], 1],
  [['rotate', 'nobody'], 1],
  [['test', 'nobody', '--pool', 'a'], 1],
])('9.8 token %j is exit %i, and changes nothing', async (args, code) => {
  verifies('9.8-exit-codes')
  const { workspace, inFile, text } = stage()
  await inFile('add', 'alice')
  const before = text()
  const done = await inFile(...args)
  expect(done).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(/\S/) })
  expect(done.stderr).not.toContain('    at ')
  expect(text()).toBe(before)
  expect(readdirSync(workspace.folder).filter((name) => name.startsWith(FILE))).toEqual([FILE])
})

test('9.9 a file that is missing or open to others is exit 2, with what to do', async () => {
  verifies('9.9-modes')
  const { workspace, inFile } = stage()
  expect(await inFile('ls')).toMatchObject({ code: 2, stderr: expect.stringContaining('token add NAME') })
  expect(await inFile('rm', 'a')).toMatchObject({ code: 2, stderr: expect.stringContaining('token add NAME') })
  await inFile('add', 'alice')
  chmodSync(workspace.path(FILE), 0o644)
  for (const args of [['ls'], ['add', 'bob'], ['rotate', 'alice']]) {
    expect(await inFile(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('chmod 600') })
  }
})

test('9.8 of edits by several processes at once none is lost', async () => {
  verifies('9.8-edits')
  const { inFile, entries } = stage()
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const all = await Promise.all(names.map((name) => inFile('add', name)))
  expect(all.map(({ code }) => code)).toEqual(names.map(() => 0))
  expect(
    entries()
      .map(({ name }) => name)
      .sort(),
  ).toEqual(names)
  expect(new Set(entries().map(({ tokens }) => tokens[0]?.sha256))).toEqual(
    new Set(all.map(({ stdout }) => sha256(stdout))),
  )
})

test('9.26 no token is in the help or taken by a flag', async () => {
  const { token } = stage()
  for (const command of ['add', 'ls', 'rm', 'rotate', 'test']) {
    const { code, stdout } = await token(command, '--help')
    expect([code, stdout]).toEqual([0, expect.stringContaining('--file')])
    expect(stdout).not.toMatch(/--token\b/)
  }
})
