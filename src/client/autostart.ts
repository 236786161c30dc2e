/**
 * Starts a daemon when none runs, once: whoever comes first takes a lock file, starts it and waits for it; the others wait.
 *
 * A lock whose holder is dead is taken over. Two starters that take over at the same moment may both start one; the
 * daemon's own lock on its socket lets only one of them live, and both starters find that one.
 * The daemon outlives its starter, hears none of its signals and writes to a log file of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { BusUnavailable } from './errors.ts'

export interface Autostart {
  /** The folder of the lock and the log. */
  readonly folder: string
  /** Names the daemon among those of this user; part of file names. */
  readonly name: string
  readonly command: string
  /** Asked only by the one who starts it. */
  readonly args: () => Promise<readonly string[]>
  readonly cwd: string
  /** Whether it is up: whatever the caller wants to know of it, or undefined. */
  readonly find: () => Promise<string | undefined>
  /** What it has logged, as it is to be told when it did not start; left out: as it is. */
  readonly explain?: (logged: string) => string
}

/** It ended before it was up; the message has what it said. */
export class DidNotStart extends BusUnavailable {
  readonly daemonExitCode: number | null

  constructor(message: string, daemonExitCode: number | null, options?: ErrorOptions) {
    super(message, options)
    this.daemonExitCode = daemonExitCode
  }
}

const START_TIMEOUT_MS = 30_000
const LOOK_EVERY_MS = 25
const MAX_LOG_BYTES = 1024 * 1024
const TAIL_BYTES = 2_000

/** Gives what `find` found, having started the daemon when it found nothing. */
export async function findOrStart(daemon: Autostart): Promise<string> {
  makeFolder(daemon.folder)
  const lock = join(daemon.folder, `${daemon.name}.lock`)
  const deadlineMs = performance.now() + START_TIMEOUT_MS
  for (;;) {
    const found = await daemon.find()
    if (found !== undefined) return found
    if (take(lock)) return await startLocked(daemon, lock, deadlineMs)
    if (performance.now() > deadlineMs) {
      throw new BusUnavailable(`another process starts the bus and does not get done: look at ${logPath(daemon)}`)
    }
    await sleep(LOOK_EVERY_MS)
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const advice = 'HOME must be a folder in which this user may write'
    throw new BusUnavailable(`cannot make the folder ${folder} (${code}): ${advice}`, { cause })
  }
}

async function startLocked(daemon: Autostart, lock: string, deadlineMs: number): Promise<string> {
  try {
    // Whoever held the lock before may have started it after we looked.
    return (await daemon.find()) ?? (await start(daemon, deadlineMs))
  } finally {
    rmSync(lock, { force: true })
  }
}

async function start(daemon: Autostart, deadlineMs: number): Promise<string> {
  const from = putAside(logPath(daemon))
  const child = launch(daemon, await daemon.args())
  let failure: Error | undefined
  child.once('error', (error) => (failure = error))
  while (performance.now() < deadlineMs) {
    const found = await daemon.find()
    if (found !== undefined) return found
    if (failure !== undefined || child.exitCode !== null || child.signalCode !== null) break
    await sleep(LOOK_EVERY_MS)
  }
  const found = await daemon.find()
  if (found !== undefined) return found
  const said = sayWhy(daemon, from)
  throw new DidNotStart(`the bus did not start: ${said}`, child.exitCode, { cause: failure })
}

/** One that ends at once, again and again, must not fill the disk. Where what it says from now on begins. */
function putAside(log: string): number {
  const { size } = statSync(log, { throwIfNoEntry: false }) ?? { size: 0 }
  if (size <= MAX_LOG_BYTES) return size
  renameSync(log, `${log}.1`)
  return 0
}

function launch(daemon: Autostart, args: readonly string[]): ChildProcess {
  const log = openSync(logPath(daemon), 'a', 0o600)
  const child = spawn(daemon.command, [...args], { cwd: daemon.cwd, detached: true, stdio: ['ignore', log, log] })
  closeSync(log)
  child.unref()
  return child
}

function logPath(daemon: Autostart): string {
  return join(daemon.folder, `${daemon.name}.log`)
}

/** What was logged since `from`, as far as it fits. */
function sayWhy(daemon: Autostart, from: number): string {
  const path = logPath(daemon)
  try {
    const logged = readFileSync(path).subarray(from).toString('utf8').slice(-TAIL_BYTES).trim()
    return `${daemon.explain?.(logged) ?? logged} (from ${path})`
  } catch {
    return `it wrote no log at ${path}`
  }
}

function take(lock: string): boolean {
  try {
    writeFileSync(lock, `${process.pid}\n`, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (isStale(lock)) rmSync(lock, { force: true })
    return false
  }
}

function isStale(lock: string): boolean {
  try {
    const pid = Number.parseInt(readFileSync(lock, 'utf8'), 10)
    // An empty file is a lock whose holder is about to write its name.
    return pid > 0 && !isAlive(pid)
  } catch {
    return false
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
