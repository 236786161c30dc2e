/** What processes use of the machine, asked of `ps`: one listing of all of them, for systems without `/proc`. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { MAX_PROCESSES, type Usage } from './usage.ts'

type Listing = ReadonlyMap<number, Usage & { readonly parent: number }>

const LISTING_MS = 200
let listing: { readonly atMs: number; readonly rows: Promise<Listing> } | undefined

export async function readUsageByPs(pid: number): Promise<Usage | undefined> {
  const rows = await recentListing()
  const counted = new Set(rows.has(pid) ? [pid] : [])
  let [cpuSec, memoryBytes] = [0, 0]
  for (const each of counted) {
    const row = rows.get(each)!
    cpuSec += row.cpuSec
    memoryBytes += row.memoryBytes
    for (const [child, { parent }] of rows) if (parent === each && counted.size < MAX_PROCESSES) counted.add(child)
  }
  return counted.size === 0 ? undefined : { cpuSec, memoryBytes }
}

/** Whoever asks of several asks for all of them at once. */
function recentListing(): Promise<Listing> {
  const nowMs = performance.now()
  if (listing === undefined || nowMs - listing.atMs > LISTING_MS) listing = { atMs: nowMs, rows: listByPs() }
  return listing.rows
}

async function listByPs(): Promise<Listing> {
  const columns = ['pid', 'ppid', 'rss', 'time'].flatMap((name) => ['-o', `${name}=`])
  const { stdout } = await promisify(execFile)('ps', ['-A', ...columns]).catch(() => ({ stdout: '' }))
  return new Map(
    stdout.split('\n').flatMap((line) => {
      const [pid, parent, kibibytes, time] = line.trim().split(/ +/)
      if (time === undefined) return []
      const usage = { parent: Number(parent), memoryBytes: Number(kibibytes) * 1024, cpuSec: secondsOf(time) }
      return [[Number(pid), usage] as const]
    }),
  )
}

/** `[[DAYS-]HOURS:]MINUTES:SECONDS`, with hundredths on macOS. */
function secondsOf(time: string): number {
  const [, days = '0', rest = ''] = /^(?:(\d+)-)?(.*)$/.exec(time) ?? []
  return rest.split(':').reduce((sum, part) => sum * 60 + Number(part), 0) + Number(days) * 86_400
}
