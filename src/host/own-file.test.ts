import { execFileSync } from 'node:child_process'
import {
  chownSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { holdsContent, NotAPlainFile, openOwnFile, openPlainFile, openToAppend, readPlainFile } from './own-file.ts'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'own-file-'))
  path = join(folder, 'file')
})
afterEach(() => rmSync(folder, { recursive: true }))

const PLACES: Readonly<Record<string, () => void>> = {
  'a pipe': () => void execFileSync('mkfifo', [path]),
  'a folder': () => mkdirSync(path),
  'a symbolic link': () => {
    writeFileSync(`${path}.target`, 'content')
    symlinkSync(`${path}.target`, path)
  },
  'a symbolic link to nowhere': () => symlinkSync(`${path}.target`, path),
}

it.each(Object.keys(PLACES))('%s is refused at once and left alone', (what) => {
  PLACES[what]!()
  const before = lstatSync(path)
  for (const flags of [constants.O_RDONLY, constants.O_RDWR | constants.O_CREAT]) {
    expect(() => openPlainFile(path, flags)).toThrow(NotAPlainFile)
  }
  expect(() => readPlainFile(path)).toThrow(NotAPlainFile)
  expect(holdsContent(path, 'content')).toBe(false)
  expect(lstatSync(path)).toMatchObject({ mode: before.mode, ino: before.ino })
})

it('a plain file of our own is opened and read', () => {
  writeFileSync(path, 'content')
  const { descriptor, stats } = openOwnFile(path, constants.O_RDWR)
  closeSync(descriptor)
  expect(stats.size).toBe(7)
  expect(readPlainFile(path)).toBe('content')
  expect(holdsContent(path, 'content')).toBe(true)
})

it('a file of another user is refused', () => {
  writeFileSync(path, '')
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(path, 12_345, 12_345)
  expect(() => openOwnFile(isRoot ? path : '/etc/passwd', constants.O_RDONLY)).toThrow('of another user')
})

it.each(['a folder', 'a symbolic link', 'a symbolic link to nowhere'])('nothing is appended to %s', (what) => {
  PLACES[what]!()
  expect(() => openToAppend(path)).toThrow(NotAPlainFile)
  expect(readdirSync(folder)).toHaveLength(what === 'a symbolic link' ? 2 : 1)
})

it('nothing is appended to what is another user’s: he could read it', () => {
  const isRoot = process.getuid?.() === 0
  for (const place of [() => writeFileSync(path, ''), () => void execFileSync('mkfifo', [path])]) {
    place()
    if (isRoot) chownSync(path, 12_345, 12_345)
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    if (isRoot) expect(() => openToAppend(path)).toThrow('of another user')
    else closeSync(openToAppend(path).descriptor)
    closeSync(reader)
    rmSync(path)
  }
})

it('what is not there is not there', () => {
  expect(readPlainFile(path)).toBeUndefined()
  expect(() => openPlainFile(path, constants.O_RDONLY)).toThrow('ENOENT')
})
