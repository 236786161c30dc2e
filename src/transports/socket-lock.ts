/**
 * The lock that makes "look at the socket file, then replace it" one step among starters of the bus (contract 8.6).
 *
 * `<path>.lock` is created exclusively and names its holder; it is held for milliseconds, never while serving. A lock is
 * stale when its holder is dead or it is far older than any holder needs. Whoever breaks a stale lock holds
 * `<path>.lock.break` meanwhile and looks again: nobody ever removes a lock that somebody has just taken. What is no plain
 * file is no lock: it is neither read nor removed, and the start is refused.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, lstatSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { holdsContent, readPlainFile } from '../host/own-file.ts'
import { DoorError, systemCode } from './door-error.ts'

const WAIT_MS = 3_000
const RETRY_MS = 20
const STALE_AFTER_MS = 10_000

/** Runs `act` while no other starter can act on `path`. */
export async function withSocketLock<T>(path: string, act: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`
  const ticket = `${process.pid} ${randomUUID()}\n`
  await take(lock, ticket)
  try {
    return await act()
  } finally {
    if (holdsContent(lock, ticket)) remove(lock)
  }
}

async function take(lock: string, ticket: string): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS
  while (!create(lock, ticket)) {
    breakIfStale(lock)
    if (performance.now() > deadlineMs) throw locked(lock)
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
    if (systemCode(cause) === 'EEXIST') return false
    const message = `cannot create ${path} (${systemCode(cause)}): make ${dirname(path)} writable for this user, or choose another path`
    throw new DoorError('permission_denied', message, { cause })
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
  const content = read(lock)
  if (ageMs(lock) > STALE_AFTER_MS) return true
  const pid = Number.parseInt(content ?? '', 10)
  // An empty file is a lock whose holder is about to write its name.
  return pid > 0 && !isAlive(pid)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return systemCode(error) !== 'ESRCH'
  }
}

function ageMs(path: string): number {
  return Date.now() - (lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
}

function read(lock: string): string | undefined {
  try {
    return readPlainFile(lock)
  } catch (cause) {
    const message = `${(cause as Error).message}: it stands where the lock of the socket belongs, remove it yourself`
    throw new DoorError('path_taken', message, { cause })
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path)
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return
    throw new DoorError('permission_denied', `cannot remove ${path} (${systemCode(cause)}): remove it by hand`, {
      cause,
    })
  }
}

function locked(lock: string): DoorError {
  const pid = Number.parseInt(read(lock) ?? '', 10)
  const holder = pid > 0 ? `process ${pid}` : 'another process'
  return new DoorError(
    'socket_locked',
    `${holder} is opening this socket too and holds ${lock}: try again, and if no bus is starting there remove that file`,
  )
}
