import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { withFileLock } from './file-lock.ts'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'file-lock-'))
  path = join(folder, 'file')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

it('one acts at a time, and nothing is left', async () => {
  let inside = 0
  const act = async () => {
    expect(++inside).toBe(1)
    await nextTurn()
    inside--
  }
  await Promise.all(Array.from({ length: 10 }, () => withFileLock(path, 10_000, act)))
  expect(readdirSync(folder)).toEqual([])
})

it('it is given up when the act fails', async () => {
  await expect(withFileLock(path, 0, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await withFileLock(path, 0, async () => 'next')).toBe('next')
})

it('of a living process it is waited for, then told', async () => {
  writeFileSync(`${path}.lock`, `${process.pid} x\n`)
  await expect(withFileLock(path, 30, async () => 'never')).rejects.toMatchObject({
    trouble: 'held',
    holder: process.pid,
  })
  expect(existsSync(`${path}.lock`)).toBe(true)
})

it('of a dead process it is broken', async () => {
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  writeFileSync(`${path}.lock`, `${pid} x\n`)
  expect(await withFileLock(path, 10_000, async () => 'mine')).toBe('mine')
  expect(readdirSync(folder)).toEqual([])
})

it('what is no plain file in its place is left alone and told', async () => {
  execFileSync('mkfifo', [`${path}.lock`])
  await expect(withFileLock(path, 10_000, async () => 'never')).rejects.toMatchObject({ trouble: 'taken' })
  expect(lstatSync(`${path}.lock`).isFIFO()).toBe(true)
})

it('a folder that is not there is told', async () => {
  const gone = join(folder, 'gone', 'file')
  await expect(withFileLock(gone, 0, async () => 'never')).rejects.toMatchObject({ trouble: 'not_created' })
})

it('whoever lost it is told when it asks, and does not remove that of another', async () => {
  await withFileLock(path, 0, async ({ isStillHeld }) => {
    expect(isStillHeld()).toBe(true)
    writeFileSync(`${path}.lock`, '1 another\n')
    expect(isStillHeld()).toBe(false)
  })
  expect(existsSync(`${path}.lock`)).toBe(true)
})
