import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LOCK_TIMES, withLock } from './lock.ts'

let folder: string
let path: string
const times = { ...LOCK_TIMES, pollMs: 5 }
const wait = { onWait: () => {}, times }

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-'))
  path = join(folder, 'x.lock')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('the lock', () => {
  it('lets one in at a time and is gone afterwards', async () => {
    let inside = 0
    let most = 0
    const work = async () => {
      inside += 1
      most = Math.max(most, inside)
      await sleep(5)
      inside -= 1
    }
    await Promise.all(Array.from({ length: 10 }, () => withLock(path, wait, work)))
    expect(most).toBe(1)
    expect(existsSync(path)).toBe(false)
  })

  it.each<[string, () => void]>([
    ['a pipe', () => void execFileSync('mkfifo', [path])],
    ['a folder', () => mkdirSync(path)],
    ['a symbolic link', () => symlinkSync('/etc/passwd', path)],
  ])('is refused at once when %s is in its place', async (_what, put) => {
    put()
    const refused = withLock(path, wait, async () => 'never')
    await expect(refused).rejects.toMatchObject({ reason: 'cache_unusable', exitCode: 1 })
    expect(lstatSync(path, { throwIfNoEntry: false })).toBeDefined()
  })

  it('is released when the work fails', async () => {
    const failing = withLock(path, wait, () => Promise.reject(new Error('no')))
    await expect(failing).rejects.toThrow('no')
    expect(await withLock(path, wait, async () => 'next')).toBe('next')
  })

  it('of a dead process is taken over', async () => {
    const child = spawn(process.execPath, ['-e', ''])
    await once(child, 'exit')
    writeFileSync(path, `${child.pid} ${hostname()} x`)
    expect(await withLock(path, wait, async () => 'mine')).toBe('mine')
  })

  it('of another machine is taken over when it is old', async () => {
    writeFileSync(path, '1 another-machine x')
    utimesSync(path, 1, 1)
    expect(await withLock(path, wait, async () => 'mine')).toBe('mine')
  })

  it('of a living process is waited for, told once, and given up on after a while', async () => {
    writeFileSync(path, `${process.pid} ${hostname()} x`)
    let told = 0
    const patience = { onWait: () => (told += 1), times: { ...times, waitMs: 50 } }
    expect(await withLock(path, patience, async () => 'mine')).toBeUndefined()
    expect(told).toBe(1)
    expect(existsSync(path)).toBe(true)
  })

  it('is kept young while the work goes on', async () => {
    const quick = { onWait: () => {}, times: { ...times, refreshMs: 10, staleMs: 60 } }
    let inside = 0
    const work = async () => {
      expect((inside += 1)).toBe(1)
      await sleep(150)
      inside -= 1
    }
    await Promise.all([withLock(path, quick, work), withLock(path, quick, work)])
  })
})
