/**
 * What a process and its descendants use of the machine, as the system tells it in `/proc`, or `ps` where there is none
 * (macOS); undefined where neither does.
 *
 * It looks and touches nothing. How many are counted is bounded: a worker may have as many children as it likes.
 */
import { readFile } from 'node:fs/promises'
import { readUsageByPs } from './usage-by-ps.ts'

export interface Usage {
  /** Of all of them together, since each began. */
  readonly cpuSec: number
  /** What is in memory now; pages that several share count for each. */
  readonly memoryBytes: number
}

export const MAX_PROCESSES = 128
/** The unit of `stat`, the same on every Linux that Node runs on. */
const TICKS_PER_SEC = 100
/** After the name of the program, which may hold anything: user and system time (proc_pid_stat fields 14 and 15). */
const USER_TICKS = 11
const SYSTEM_TICKS = 12

export async function readUsage(pid: number): Promise<Usage | undefined> {
  const own = await readOne(pid)
  if (own === undefined) return (await read('/proc/self/stat')) === undefined ? readUsageByPs(pid) : undefined
  let [cpuSec, memoryBytes] = [own.cpuSec, own.memoryBytes]
  const seen = new Set([pid])
  // A child that is found on the way is looked at in its turn.
  for (const parent of seen) {
    for (const child of await childrenOf(parent)) {
      if (seen.has(child) || seen.size >= MAX_PROCESSES) continue
      seen.add(child)
      const usage = await readOne(child)
      cpuSec += usage?.cpuSec ?? 0
      memoryBytes += usage?.memoryBytes ?? 0
    }
  }
  return { cpuSec, memoryBytes }
}

/** What this process has in memory; without `/proc` on Linux the runtime cannot tell, and it is the most it ever had. */
export function ownMemoryBytes(): number {
  try {
    return process.memoryUsage.rss()
  } catch {
    return process.resourceUsage().maxRSS * 1024
  }
}

async function readOne(pid: number): Promise<Usage | undefined> {
  const [stat, status] = await Promise.all([read(`/proc/${pid}/stat`), read(`/proc/${pid}/status`)])
  if (stat === undefined) return undefined
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[USER_TICKS]) + Number(fields[SYSTEM_TICKS])
  const kibibytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status ?? '')?.[1] ?? 0)
  return Number.isFinite(ticks) ? { cpuSec: ticks / TICKS_PER_SEC, memoryBytes: kibibytes * 1024 } : undefined
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await read(`/proc/${pid}/task/${pid}/children`)
  return (text ?? '').split(' ').filter(Boolean).map(Number)
}

function read(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined)
}
