/**
 * What the operating system knows of processes: who lives, whose child it is, where it works.
 *
 * A zombie counts as gone: it runs nothing and holds nothing, it only waits to be reaped by somebody who is not us.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export interface ProcessRow {
  readonly pid: number
  readonly ppid: number
  readonly pgid: number
  readonly zombie: boolean
}

export function processTable(): ProcessRow[] {
  const text = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat='], { encoding: 'utf8' })
  return text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .map(([pid, ppid, pgid, stat]) => ({
      pid: Number(pid),
      ppid: Number(ppid),
      pgid: Number(pgid),
      zombie: stat?.startsWith('Z') ?? false,
    }))
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  return processTable().some((row) => row.pid === pid && !row.zombie)
}

export function groupOf(pid: number): number | undefined {
  return processTable().find((row) => row.pid === pid)?.pgid
}

/** Every living process below `pid`, at any depth. */
export function descendantsOf(pid: number): number[] {
  const table = processTable()
  const found: number[] = []
  const queue = [pid]
  for (let parent = queue.shift(); parent !== undefined; parent = queue.shift()) {
    for (const row of table) {
      if (row.ppid !== parent || row.zombie) continue
      found.push(row.pid)
      queue.push(row.pid)
    }
  }
  return found
}

/** Every process whose working directory is `folder` or below: what a test started, orphans included. */
export function processesWorkingIn(folder: string): number[] {
  const isInside = (pid: string): boolean => {
    try {
      const cwd = readlinkSync(`/proc/${pid}/cwd`).replace(/ \(deleted\)$/, '')
      return cwd === folder || cwd.startsWith(`${folder}/`)
    } catch {
      return false
    }
  }
  return listProc().filter(isInside).map(Number)
}

function listProc(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return []
  }
}

/** What the open descriptors of a process lead to: `socket:[1234]`, `pipe:[5]`, a path. */
export function descriptorsOf(pid: number): Map<number, string> {
  const found = new Map<number, string>()
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      found.set(Number(fd), readlinkSync(`/proc/${pid}/fd/${fd}`))
    } catch {
      // closed between the listing and the look
    }
  }
  return found
}

/** Resident memory of a process, in bytes. */
export function residentBytes(pid: number): number {
  const match = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(match?.[1] ?? 0) * 1024
}

/** SIGKILL to one process; being gone already is fine. */
export function killHard(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // gone already
  }
}
