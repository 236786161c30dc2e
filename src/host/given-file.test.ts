import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readGivenFile, readSecretFile, UnusableFile } from './given-file.ts'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'given-file-'))
  path = join(folder, 'file')
})
afterEach(() => rmSync(folder, { recursive: true }))

function write(mode: number): void {
  writeFileSync(path, 'content')
  chmodSync(path, mode)
}

describe('a file that is named', () => {
  it.each<[string, () => void, RegExp]>([
    ['a pipe', () => void execFileSync('mkfifo', ['-m', '600', path]), /is no plain file/],
    ['none', () => {}, /does not exist/],
    ['a folder', () => mkdirSync(path), /is a folder/],
    ['a link to nowhere', () => symlinkSync(`${path}.none`, path), /does not exist/],
    [
      'one that is too long',
      () => {
        write(0o600)
        truncateSync(path, 4 * 1024 * 1024 + 1)
      },
      /is larger than/,
    ],
  ])('%s is refused at once', (_what, put, why) => {
    put()
    for (const read of [readGivenFile, readSecretFile]) {
      expect(() => read(path)).toThrow(UnusableFile)
      expect(() => read(path)).toThrow(why)
    }
  })

  it('is read through a link, and may be seen by others unless it is a secret', () => {
    write(0o644)
    const link = `${path}.link`
    symlinkSync(path, link)
    expect(readGivenFile(link)).toBe('content')
    expect(() => readSecretFile(link)).toThrow(`${link} is open to other users`)
    chmodSync(path, 0o600)
    expect(readSecretFile(link)).toBe('content')
  })

  it.each([0o640, 0o620, 0o610, 0o604, 0o602, 0o601])('a secret with mode %o is refused', (mode) => {
    write(mode)
    expect(() => readSecretFile(path)).toThrow(/chmod 600/)
  })

  it.runIf(process.getuid?.() === 0)('a secret of another user is refused', () => {
    write(0o600)
    chownSync(path, 12_345, 12_345)
    expect(() => readSecretFile(path)).toThrow('belongs to another user')
    expect(readGivenFile(path)).toBe('content')
  })
})
