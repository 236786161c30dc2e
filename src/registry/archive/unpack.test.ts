import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { type ArchiveEntry, paxRecord, tar, tarGz, tarHeader, zip } from '../../../test/fixtures/registry/archives.ts'
import { RegistryError } from '../errors.ts'
import { ArchiveFault } from './tree.ts'
import { unpack } from './unpack.ts'

let folder: string
let root: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'unpack-'))
  root = join(folder, 'inner', 'root')
  mkdirSync(root, { recursive: true })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function unpackBytes(name: string, bytes: Buffer, limits?: { maxEntries: number; maxTotalBytes: number }) {
  const path = join(folder, 'download')
  writeFileSync(path, bytes)
  await unpack(path, name, 'agent', root, limits)
}

const HONEST: readonly ArchiveEntry[] = [
  { name: './bin', folder: true },
  { name: './bin/agent', content: '#!/bin/sh\necho hi\n', executable: true },
  { name: 'share/doc/readme.txt', content: 'text' },
  { name: 'share/agent', link: '../bin/agent' },
]

const FORMATS = [
  ['tar.gz', (entries: readonly ArchiveEntry[]) => tarGz(entries)],
  ['zip', (entries: readonly ArchiveEntry[]) => zip(entries)],
] as const

for (const [ending, make] of FORMATS) {
  describe(`an archive .${ending}`, () => {
    it('keeps content, folders, the executable bit and links inside', async () => {
      await unpackBytes(`x.${ending}`, make(HONEST))
      expect(readFileSync(join(root, 'bin/agent'), 'utf8')).toContain('echo hi')
      expect(lstatSync(join(root, 'bin/agent')).mode & 0o777).toBe(0o755)
      expect(lstatSync(join(root, 'share/doc/readme.txt')).mode & 0o111).toBe(0)
      expect(readlinkSync(join(root, 'share/agent'))).toBe('../bin/agent')
    })

    const HOSTILE: readonly (readonly [string, readonly ArchiveEntry[]])[] = [
      ['..', [{ name: '../outside', content: 'x' }]],
      ['.. in the middle', [{ name: 'a/../../outside', content: 'x' }]],
      ['an absolute path', [{ name: '/tmp/outside-absolute', content: 'x' }]],
      ['a drive letter', [{ name: 'C:/outside', content: 'x' }]],
      ['a backslash', [{ name: '..\\outside', content: 'x' }]],
      ['an absolute link', [{ name: 'l', link: '/etc/passwd' }]],
      ['a link upwards', [{ name: 'a/l', link: '../../outside' }]],
      ['a link upwards after a name', [{ name: 'a/l', link: 'b/../../../outside' }]],
      [
        'a folder link that leaves by another link',
        [
          { name: 'a/b/c/up', link: '../../..' },
          { name: 'out', link: 'a/b/c/up/../../../..' },
        ],
      ],
    ]
    for (const [title, entries] of HOSTILE) {
      it(`is refused whole: ${title}`, async () => {
        verifies('R3-whole')
        const fault = await unpackBytes(`x.${ending}`, make([...entries])).catch((error) => error)
        expect(fault).toBeInstanceOf(ArchiveFault)
        expect(fault.kind).toBe('unsafe')
        expect(existsSync(join(folder, 'inner', 'outside'))).toBe(false)
        expect(existsSync(join(folder, 'outside'))).toBe(false)
      })
    }

    it('never writes through a link of its own', async () => {
      const entries = [
        { name: 'd', link: '.' },
        { name: 'd/file', content: 'x' },
      ]
      await expect(unpackBytes(`x.${ending}`, make(entries))).rejects.toThrow()
      expect(existsSync(join(root, 'file'))).toBe(false)
    })

    it('is refused with the same name twice', async () => {
      const entries = [
        { name: 'a', content: '1' },
        { name: './a', content: '2' },
      ]
      await expect(unpackBytes(`x.${ending}`, make(entries))).rejects.toThrow(/twice/)
    })

    it('is bounded in bytes: at, and one over', async () => {
      verifies('R3-bounded')
      const entries = [
        { name: 'a', content: '12345' },
        { name: 'b', content: '12345' },
      ]
      await unpackBytes(`x.${ending}`, make(entries), { maxEntries: 10, maxTotalBytes: 10 })
      rmSync(join(root, 'a'))
      rmSync(join(root, 'b'))
      const fault = unpackBytes(`x.${ending}`, make(entries), { maxEntries: 10, maxTotalBytes: 9 })
      await expect(fault).rejects.toMatchObject({ kind: 'large' })
    })

    it('is bounded in entries: at, and one over', async () => {
      verifies('R3-bounded')
      const entries = [
        { name: 'a', folder: true },
        { name: 'b', folder: true },
      ]
      await unpackBytes(`x.${ending}`, make(entries), { maxEntries: 2, maxTotalBytes: 10 })
      const fault = unpackBytes(`x.${ending}`, make(entries), { maxEntries: 1, maxTotalBytes: 10 })
      await expect(fault).rejects.toMatchObject({ kind: 'large' })
    })

    it('is broken when cut anywhere', async () => {
      const whole = make(HONEST)
      for (const part of [0.1, 0.5, 0.9]) {
        rmSync(root, { recursive: true })
        mkdirSync(root)
        const cut = unpackBytes(`x.${ending}`, whole.subarray(0, Math.floor(whole.length * part)))
        await expect(cut).rejects.toMatchObject({ name: 'ArchiveFault', kind: 'broken' })
      }
    })
  })
}

describe('tar', () => {
  it('takes a name from a pax header and judges that one', async () => {
    const long = `${'d'.repeat(90)}/${'f'.repeat(90)}`
    await unpackBytes(
      'x.tgz',
      tarGz([
        { name: 'p', type: 'x', content: paxRecord('path', long) },
        { name: 'short', content: 'x' },
      ]),
    )
    expect(readFileSync(join(root, long), 'utf8')).toBe('x')
    const hostile = tarGz([
      { name: 'p', type: 'x', content: paxRecord('path', '../outside') },
      { name: 'ok', content: 'x' },
    ])
    await expect(unpackBytes('x.tgz', hostile)).rejects.toMatchObject({ kind: 'unsafe' })
  })

  it('takes a long name from a GNU header and judges that one', async () => {
    const long = `${'g'.repeat(90)}/${'h'.repeat(90)}`
    await unpackBytes(
      'x.tgz',
      tarGz([
        { name: 'l', type: 'L', content: `${long}\0` },
        { name: 'short', content: 'x' },
      ]),
    )
    expect(readFileSync(join(root, long), 'utf8')).toBe('x')
    const hostile = tarGz([
      { name: 'l', type: 'K', content: '/etc\0' },
      { name: 'ok', link: 'fine' },
    ])
    await expect(unpackBytes('x.tgz', hostile)).rejects.toMatchObject({ kind: 'unsafe' })
  })

  it('makes hard links to files of its own only', async () => {
    const entries = [
      { name: 'a', content: 'x' },
      { name: 'b', hardLink: 'a' },
    ]
    await unpackBytes('x.tgz', tarGz(entries))
    expect(lstatSync(join(root, 'b')).ino).toBe(lstatSync(join(root, 'a')).ino)
    writeFileSync(join(folder, 'outside'), 'secret')
    for (const hardLink of ['../../outside', '/etc/passwd', 'absent']) {
      await expect(unpackBytes('x.tgz', tarGz([{ name: 'c', hardLink }]))).rejects.toMatchObject({ kind: 'unsafe' })
    }
  })

  it('makes no hard link to a symbolic one', async () => {
    const entries = [
      { name: 'l', link: 'x' },
      { name: 'h', hardLink: 'l' },
    ]
    await expect(unpackBytes('x.tgz', tarGz(entries))).rejects.toMatchObject({ kind: 'unsafe' })
  })

  it.each(['3', '4', '6'])('refuses a device or pipe, type %s', async (type) => {
    await expect(unpackBytes('x.tgz', tarGz([{ name: 'n', type }]))).rejects.toMatchObject({ kind: 'unsafe' })
  })

  it('refuses a damaged header, a bad number and sparse files', async () => {
    const damaged = tar(HONEST)
    damaged.write('Z', 3)
    await expect(unpackBytes('x.tgz', gzipSync(damaged))).rejects.toThrow(/checksum/)
    const sparse = tarGz([{ name: 'p', type: 'x', content: paxRecord('GNU.sparse.major', '1') }])
    await expect(unpackBytes('x.tgz', sparse)).rejects.toThrow(/sparse/)
    const huge = gzipSync(tarHeader('n', 0o77777777777, 'x', 0o644, ''))
    await expect(unpackBytes('x.tgz', huge)).rejects.toMatchObject({ kind: 'large' })
  })

  it('reads what the system writes', async () => {
    const source = join(folder, 'source')
    const deep = join(source, 'x'.repeat(80), 'y'.repeat(80))
    mkdirSync(deep, { recursive: true })
    writeFileSync(join(deep, 'long name ä'), 'deep')
    writeFileSync(join(source, 'run'), 'x'.repeat(100_000))
    chmodSync(join(source, 'run'), 0o755)
    symlinkSync('run', join(source, 'alias'))
    const archive = join(folder, 'system.tgz')
    execFileSync('tar', ['-czf', archive, '-C', source, '.'])
    await unpack(archive, 'system.tgz', 'agent', root)
    const copy = join(root, 'x'.repeat(80), 'y'.repeat(80), 'long name ä')
    expect(readFileSync(copy, 'utf8')).toBe('deep')
    expect(readFileSync(join(root, 'alias'))).toHaveLength(100_000)
  })

  it('unpacks bzip2 where the program is, and says what is missing where it is not', async () => {
    const { error, stdout } = spawnSync('bzip2', ['-c'], { input: tar(HONEST) })
    if (error) {
      const missing = await unpackBytes('x.tar.bz2', Buffer.from('BZh')).catch((fault) => fault)
      expect(missing).toBeInstanceOf(RegistryError)
      expect(missing.reason).toBe('runtime_missing')
      return
    }
    await unpackBytes('x.tar.bz2', stdout)
    expect(readFileSync(join(root, 'share/doc/readme.txt'), 'utf8')).toBe('text')
    await expect(unpackBytes('x.tbz2', Buffer.from('no bzip2'))).rejects.toMatchObject({ kind: 'broken' })
  })

  it('names the missing bzip2', async () => {
    const path = process.env['PATH']
    process.env['PATH'] = root
    try {
      await expect(unpackBytes('x.tar.bz2', Buffer.from('BZh'))).rejects.toMatchObject({ reason: 'runtime_missing' })
    } finally {
      process.env['PATH'] = path
    }
  })
})

describe('zip', () => {
  it.each([
    ['a wrong checksum', { crc: 1 }],
    ['an entry longer than it says', { bytes: 1 }],
    ['an entry shorter than it says', { bytes: 99 }],
    ['encryption', { flags: 1 }],
    ['an unknown method', { method: 12 }],
  ])('refuses %s', async (_title, flaws) => {
    const bytes = zip([{ name: 'a', content: 'some text' }], flaws)
    await expect(unpackBytes('x.zip', bytes)).rejects.toMatchObject({ name: 'ArchiveFault', kind: 'broken' })
  })

  it('reads stored entries', async () => {
    await unpackBytes('x.zip', zip([{ name: 'e', content: 'as it is' }], { method: 0 }))
    expect(readFileSync(join(root, 'e'), 'utf8')).toBe('as it is')
  })
})

describe('what is no archive', () => {
  it('is the program itself', async () => {
    await unpackBytes('agent-linux', Buffer.from('#!/bin/sh\n'))
    expect(readFileSync(join(root, 'agent'), 'utf8')).toBe('#!/bin/sh\n')
  })

  it.each(['x.tar.xz', 'x.dmg', 'x.7z'])('is refused when it is %s', async (name) => {
    await expect(unpackBytes(name, Buffer.from('x'))).rejects.toThrow(/not supported/)
  })
})
