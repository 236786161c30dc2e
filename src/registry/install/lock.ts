/**
 * Lets one process at a time install a thing, by a file that only one can create.
 *
 * It saves work, it does not guard the result: that appears whole by a rename. So a lock whose owner has died may be taken
 * over by two at once without harm. The owner keeps its lock young; an old one has no owner any more.
 */
import { randomUUID } from 'node:crypto'
import { rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { holdsContent, readPlainFile } from '../../host/own-file.ts'
import { RegistryError } from '../errors.ts'

export interface LockTimes {
  readonly pollMs: number
  readonly refreshMs: number
  readonly staleMs: number
  readonly waitMs: number
}

export const LOCK_TIMES: LockTimes = { pollMs: 150, refreshMs: 5_000, staleMs: 60_000, waitMs: 20 * 60_000 }

export interface LockWait {
  readonly signal?: AbortSignal | undefined
  /** Called once, when somebody else has the lock. */
  readonly onWait: () => void
  readonly times?: LockTimes
}

/** Runs `work` under the lock; undefined when another held it for longer than `waitMs`. */
export async function withLock<T>(path: string, wait: LockWait, work: () => Promise<T>): Promise<T | undefined> {
  const times = wait.times ?? LOCK_TIMES
  const mark = `${process.pid} ${hostname()} ${randomUUID()}`
  if (!(await acquire(path, mark, wait, times))) return undefined
  const keepYoung = setInterval(() => void touch(path), times.refreshMs)
  try {
    return await work()
  } finally {
    clearInterval(keepYoung)
    if (holdsContent(path, mark)) await rm(path, { force: true })
  }
}

async function acquire(path: string, mark: string, wait: LockWait, times: LockTimes): Promise<boolean> {
  const giveUpAtMs = Date.now() + times.waitMs
  for (let told = false; !(await create(path, mark)); ) {
    if (await isStale(path, times)) await rm(path, { force: true })
    else if (Date.now() > giveUpAtMs) return false
    else {
      if (!told) wait.onWait()
      told = true
      await sleep(times.pollMs, undefined, { ...(wait.signal && { signal: wait.signal }) })
    }
  }
  return true
}

async function create(path: string, mark: string): Promise<boolean> {
  try {
    await writeFile(path, mark, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

async function isStale(path: string, times: LockTimes): Promise<boolean> {
  const mark = readMark(path)
  const state = await stat(path).catch(() => undefined)
  // Gone meanwhile: not stale, just free.
  if (mark === undefined || state === undefined) return false
  if (Date.now() - state.mtimeMs > times.staleMs) return true
  const [pid, host] = mark.split(' ')
  return host === hostname() && !isAlive(Number(pid))
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** A pipe in its place would be waited for, a link would lead elsewhere: both are refused. */
function readMark(path: string): string | undefined {
  try {
    return readPlainFile(path)
  } catch (cause) {
    throw new RegistryError('cache_unusable', path, (cause as Error).message, cause)
  }
}

async function touch(path: string): Promise<void> {
  const now = new Date()
  await utimes(path, now, now).catch(() => undefined)
}
