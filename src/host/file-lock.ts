/**
 * A lock that makes "look at a file, then replace it" one step among processes.
 *
 * `<path>.lock` is created exclusively and names its holder; it is held for milliseconds, never while serving. A lock is
 * stale when its holder is dead or it is far older than any holder needs. Whoever breaks a stale lock holds
 * `<path>.lock.break` meanwhile and looks again: nobody ever removes a lock that somebody has just taken. What is no plain
 * file is no lock: it is neither read nor removed, and the act is refused.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, lstatSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { holdsContent, readPlainFile } from './own-file.ts'

const RETRY_MS = 20
const STALE_AFTER_MS = 10_000

/** Why there is no lock: it cannot be made, cannot be removed, something else is in its place, or another has it. */
export type LockTrouble = 'not_created' | 'not_removed' | 'taken' | 'held'

export class LockFailure extends Error {
  override readonly name = 'LockFailure'
  readonly trouble: LockTrouble
  readonly path: string
  /** Of whoever has it, where that is known. */
  readonly holder: number | undefined

  constructor(trouble: LockTrouble, path: string, about: { readonly cause?: unknown; readonly holder?: number } = {}) {
    super(`the lock ${path} is ${trouble.replace('_', ' ')}`, { cause: about.cause })
    this.trouble = trouble
    this.path = path
    this.holder = about.holder
  }
}

/** What whoever has the lock can ask. */
export interface HeldLock {
  /** False once somebody has taken it for stale, as that of a process which was stopped in the middle. */
  isStillHeld(): boolean
}

/** Runs `act` while nobody else can act on `path`; waits for `waitMs`, then fails. */
export async function withFileLock<T>(path: string, waitMs: number, act: (lock: HeldLock) => Promise<T>): Promise<T> {
  const lock = `${path}.lock`
  const ticket = `${process.pid} ${randomUUID()}\n`
  await take(lock, ticket, waitMs)
  try {
    return await act({ isStillHeld: () => holdsContent(lock, ticket) })
  } finally {
    if (holdsContent(lock, ticket)) remove(lock)
  }
}

async function take(lock: string, ticket: string, waitMs: number): Promise<void> {
  const deadlineMs = performance.now() + waitMs
  while (!create(lock, ticket)) {
    breakIfStale(lock)
    if (performance.now() > deadlineMs) throw held(lock)
    await sleep(RETRY_MS * (0.5 + Math.random()))
  }
}

function create(path: string, content: string): boolean {
  try {
    const descriptor = openSync(path, 'wx', 0o600)
    writeSync(descriptor, content)
    closeSync(descriptor)
    return true
  } catch (cause) {
    if (codeOf(cause) === 'EEXIST') return false
    throw new LockFailure('not_created', path, { cause })
  }
}

function breakIfStale(lock: string): void {
  if (!isStale(lock)) return
  const breaker = `${lock}.break`
  if (!create(breaker, `${process.pid}\n`)) {
    // Its holder needs microseconds; only one that was killed within them leaves it behind.
    if (ageMs(breaker) > STALE_AFTER_MS) remove(breaker)
    return
  }
  if (isStale(lock)) remove(lock)
  remove(breaker)
}

function isStale(lock: string): boolean {
  const pid = holderOf(lock)
  if (ageMs(lock) > STALE_AFTER_MS) return true
  // An empty file is a lock whose holder is about to write its name.
  return pid !== undefined && !isAlive(pid)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) !== 'ESRCH'
  }
}

function ageMs(path: string): number {
  return Date.now() - (lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
}

function holderOf(lock: string): number | undefined {
  try {
    const pid = Number.parseInt(readPlainFile(lock) ?? '', 10)
    return pid > 0 ? pid : undefined
  } catch (cause) {
    throw new LockFailure('taken', lock, { cause })
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path)
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT') throw new LockFailure('not_removed', path, { cause })
  }
}

function held(lock: string): LockFailure {
  const holder = holderOf(lock)
  return new LockFailure('held', lock, holder === undefined ? {} : { holder })
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | null)?.code
}
