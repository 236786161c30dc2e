import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { append } from '../config/list-edit.ts'
import { AccessEditFailure, type Change, editAccessFile } from './access-edit.ts'
import { readAccessFile } from './access-file.ts'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'access-'))
  file = join(folder, 'access.json')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const adding =
  (name: string): Change =>
  ({ text }) =>
    append(text, ['principals'], { name, role: 'user', pools: ['*'] })

function names(): string[] {
  const reading = readAccessFile(file, {})
  return reading.ok ? reading.principals.names() : [JSON.stringify(reading.problems)]
}

it('9.8 a file is made with mode 0600, and nothing is left beside it', async () => {
  verifies('9.8-edits')
  await editAccessFile(file, true, adding('a'))
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toEqual(['access.json'])
  expect(names()).toEqual(['a'])
})

it('9.8 comments are kept', async () => {
  verifies('9.8-edits')
  writeFileSync(file, '{\n  // the team\n  "principals": [\n    { "name": "a", "pools": [] }, // first\n  ]\n}\n', {
    mode: 0o600,
  })
  await editAccessFile(file, false, adding('b'))
  const text = readFileSync(file, 'utf8')
  expect(text).toContain('  // the team\n')
  expect(text).toContain('{ "name": "a", "pools": [] }, // first\n')
  expect(names()).toEqual(['a', 'b'])
})

it('9.8 of many edits at once none is lost', async () => {
  verifies('9.8-edits')
  const wanted = Array.from({ length: 20 }, (_, index) => `p${index}`)
  await Promise.all(wanted.map((name) => editAccessFile(file, true, adding(name))))
  expect(names().sort()).toEqual(wanted.sort())
  expect(readdirSync(folder)).toEqual(['access.json'])
})

it.each<[string, () => void, boolean]>([
  ['is missing and may not be made', () => {}, false],
  ['has a mistake', () => writeFileSync(file, '{ "principals": [{ "name": "a" }] }', { mode: 0o600 }), true],
  ['is open to others', () => writeFileSync(file, '{ "principals": [] }', { mode: 0o644 }), true],
])('9.8 a file that %s is left alone', async (_title, put, mayCreate) => {
  put()
  const before = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
  const failure = await editAccessFile(file, mayCreate, adding('b')).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(AccessEditFailure)
  expect((failure as AccessEditFailure).problems.length).toBe(1)
  expect(readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))).toEqual(before)
})

it('9.8 an edit that would spoil the file, or that fails, changes nothing', async () => {
  await editAccessFile(file, true, adding('a'))
  await expect(editAccessFile(file, true, adding('a'))).rejects.toThrow('would spoil')
  await expect(
    editAccessFile(file, true, () => {
      throw new Error('no')
    }),
  ).rejects.toThrow('no')
  await editAccessFile(file, true, () => undefined)
  expect(names()).toEqual(['a'])
  expect(readdirSync(folder)).toEqual(['access.json'])
})

it('9.8 whoever lost its lock changes nothing', async () => {
  await editAccessFile(file, true, adding('a'))
  const stopped = editAccessFile(file, true, ({ text }) => {
    writeFileSync(`${file}.lock`, '1 another\n')
    return append(text, ['principals'], { name: 'b', role: 'user', pools: [] })
  })
  await expect(stopped).rejects.toThrow('taken over')
  expect(names()).toEqual(['a'])
  expect(readdirSync(folder).sort()).toEqual(['access.json', 'access.json.lock'])
})

it('9.8 a folder that is not there is said', async () => {
  await expect(editAccessFile(join(folder, 'gone', 'a.json'), true, adding('a'))).rejects.toThrow(
    /cannot lock .*ENOENT/,
  )
})

it.runIf(process.getuid?.() === 0)('9.8 what root edits stays the file of its user', async () => {
  await editAccessFile(file, true, adding('a'))
  chownSync(file, 12_345, 12_346)
  await editAccessFile(file, true, adding('b'))
  expect(statSync(file)).toMatchObject({ uid: 12_345, gid: 12_346 })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(names()).toEqual([expect.stringContaining('another user')])
})
