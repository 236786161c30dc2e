import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Autostart, findOrStart } from './autostart.ts'

/** A daemon that says it is up by writing a file, and how often it was started. */
function fakeDaemon(script?: string): { daemon: Autostart; starts: () => number; file: (name: string) => string } {
  const folder = mkdtempSync(join(tmpdir(), 'sb-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = (name: string) => join(folder, name)
  const up = `const fs = require('fs'); fs.appendFileSync('starts', 'x'); setTimeout(() => fs.writeFileSync('up', ''), 100)`
  const daemon: Autostart = {
    folder,
    name: 'daemon',
    command: process.execPath,
    args: async () => ['-e', script ?? up],
    cwd: folder,
    find: async () => (existsSync(file('up')) ? 'up' : undefined),
  }
  return { daemon, file, starts: () => readFileSync(file('starts'), 'utf8').length }
}

test('many at once start one', async () => {
  const { daemon, starts, file } = fakeDaemon()
  const found = await Promise.all(Array.from({ length: 5 }, () => findOrStart(daemon)))
  expect(found).toEqual(Array(5).fill('up'))
  expect(starts()).toBe(1)
  expect(existsSync(file('daemon.lock'))).toBe(false)
})

test('a lock whose holder is dead is taken over', async () => {
  const { daemon, starts, file } = fakeDaemon()
  // The largest process id there can be on Linux: nobody has it.
  writeFileSync(file('daemon.lock'), '4194305\n')
  await findOrStart(daemon)
  expect(starts()).toBe(1)
})

test('one that is up is not started', async () => {
  const { daemon, file } = fakeDaemon()
  writeFileSync(file('up'), '')
  await findOrStart(daemon)
  expect(existsSync(file('starts'))).toBe(false)
})

test('one that ends at once is reported with what it said, and leaves no lock', async () => {
  const { daemon, file } = fakeDaemon('console.error("no good"); process.exit(2)')
  await expect(findOrStart(daemon)).rejects.toThrow(/the bus did not start: no good \(from .*daemon\.log\)/)
  expect(existsSync(file('daemon.lock'))).toBe(false)
})

test('a log that has grown large is put aside', async () => {
  const { daemon, file } = fakeDaemon()
  writeFileSync(file('daemon.log'), 'x'.repeat(1024 * 1024 + 1))
  await findOrStart(daemon)
  expect(readFileSync(file('daemon.log'), 'utf8')).toBe('')
  expect(existsSync(file('daemon.log.1'))).toBe(true)
})
