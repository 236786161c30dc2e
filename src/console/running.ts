/**
 * Which buses run for this user: one small record per bus beside its control socket (contract 8.6).
 *
 * Found from HOME alone, because hosts strip the environment. A record whose socket nobody listens on is stale; it is
 * passed over, and removed by the next bus that starts.
 */
import { mkdirSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { readPlainFile } from '../host/own-file.ts'

export interface RunRecord {
  readonly pid: number
  readonly control: string
  /** Where clients connect, as the log says it: `unix:/path`, `tcp:127.0.0.1:7400`. */
  readonly addresses: readonly string[]
  readonly config: string
  /** Its log, where that is a file. */
  readonly log?: string
  /** Of one that `stdio-bus start` or `connect --autostart` has put into the background: how to start it again. */
  readonly started?: { readonly args: readonly string[]; readonly cwd: string }
}

/** The folder of this user's buses. */
export function runDirectory(): string {
  return join(homedir(), '.stdio-bus')
}

export function ensureRunDirectory(): string {
  const directory = runDirectory()
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  return directory
}

export function defaultControlPath(pid: number): string {
  return join(runDirectory(), `${pid}.sock`)
}

function recordPath(pid: number): string {
  return join(runDirectory(), `${pid}.json`)
}

export function writeRecord(record: RunRecord): void {
  ensureRunDirectory()
  // What a bus with the same number left behind goes first: a record is never written through a link.
  removeRecord(record.pid)
  writeFileSync(recordPath(record.pid), `${JSON.stringify(record)}\n`, { mode: 0o600, flag: 'wx' })
}

export function removeRecord(pid: number): void {
  try {
    rmSync(recordPath(pid), { force: true })
  } catch (error) {
    // Where HOME is no directory there is none.
    if ((error as NodeJS.ErrnoException).code !== 'ENOTDIR') throw error
  }
}

function readRecords(): RunRecord[] {
  let names: string[]
  try {
    names = readdirSync(runDirectory())
  } catch {
    return []
  }
  return names
    .filter((name) => /^\d+\.json$/.test(name))
    .flatMap((name) => readRecord(join(runDirectory(), name)) ?? [])
}

/** Undefined: it is no record, or not all of it is there. */
function readRecord(path: string): RunRecord | undefined {
  try {
    const record = JSON.parse(readPlainFile(path) ?? '') as RunRecord
    const isWhole = typeof record.pid === 'number' && typeof record.control === 'string'
    return isWhole && Array.isArray(record.addresses) ? record : undefined
  } catch {
    return undefined
  }
}

/** Somebody listens on the socket. */
export function isLive(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', () => resolve(false))
  })
}

export async function findRunning(): Promise<readonly RunRecord[]> {
  const records = readRecords()
  const live = await Promise.all(records.map(({ control }) => isLive(control)))
  return records.filter((_record, index) => live[index]).filter(isNotReplaced)
}

/** What a bus is started with that is told no other. */
const FILE_OF_A_FOLDER = 'stdio-bus.json'

/** Of several the one with the configuration of the folder we are in is meant, if there is one: else all of them. */
export function preferHere(buses: readonly RunRecord[]): readonly RunRecord[] {
  if (buses.length < 2) return buses
  const file = realPath(FILE_OF_A_FOLDER)
  const here = buses.filter((bus) => realPath(bus.config) === file)
  return here.length === 1 ? here : buses
}

/** Of two with one control socket the first was killed and has left its record behind. */
function isNotReplaced(record: RunRecord, _index: number, all: readonly RunRecord[]): boolean {
  const others = all.filter((other) => other !== record && other.control === record.control)
  return others.length === 0 || isAlive(record.pid)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Removes what buses that were killed left behind. */
export async function sweepStale(): Promise<void> {
  for (const { pid, control } of readRecords()) {
    if (await isLive(control)) continue
    removeRecord(pid)
    if (control === defaultControlPath(pid)) rmSync(control, { force: true })
  }
}

/** The file behind links, by which a configuration is known; the path itself when it leads nowhere. */
export function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}
