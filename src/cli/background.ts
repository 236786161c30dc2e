/**
 * Puts a bus into the background: with a log file, a door where its configuration has none, and once.
 *
 * `stdio-bus start`, `restart` and `connect --autostart` start the same bus for the same configuration: what is named after
 * it in the folder of this user's buses (lock, log, socket) is the same for all of them.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findOrStart } from '../client/autostart.ts'
import { realPath, runDirectory } from '../console/running.ts'
import { readLogLine } from './daemon/log-fields.ts'

/** Tells a bus that it is in the background, so that it leaves word how to start it again. */
export const BACKGROUND = '--background'

const PROGRAM = fileURLToPath(new URL('./main.js', import.meta.url))
const DOORS = ['--unix', '--tcp', '--tls', '--http']
const MAX_FOLDER_CHARS = 20

export interface Background {
  /** Absolute. */
  readonly config: string
  /** Flags of `serve` beside `--config`. */
  readonly flags: readonly string[]
  readonly cwd: string
  /** Whether it is up. */
  readonly find: () => Promise<string | undefined>
}

/** Resolves when the bus is up; fails with DidNotStart and what it said. */
export async function startInBackground({ config, flags, cwd, find }: Background): Promise<void> {
  const name = nameFor(config)
  await findOrStart({
    folder: runDirectory(),
    name,
    command: process.execPath,
    args: async () => [PROGRAM, ...(await argumentsFor(config, flags))],
    cwd,
    find,
    explain: explainLog,
  })
}

/** The same again, as its record says. */
export async function startAgain(config: string, started: Started, find: Background['find']): Promise<void> {
  await findOrStart({
    folder: runDirectory(),
    name: nameFor(config),
    command: process.execPath,
    args: async () => [PROGRAM, ...started.args],
    cwd: started.cwd,
    find,
    explain: explainLog,
  })
}

interface Started {
  readonly args: readonly string[]
  readonly cwd: string
}

/** Where a bus with this configuration logs when it is in the background. */
export function logFileFor(config: string): string {
  return join(runDirectory(), `${nameFor(config)}.log`)
}

/** The folder of the configuration as people know it, and a mark that tells it from others of that name. */
function nameFor(config: string): string {
  const path = realPath(config)
  const folder = basename(dirname(path))
    .replace(/[^A-Za-z0-9._-]/g, '_')
    .slice(0, MAX_FOLDER_CHARS)
  const mark = createHash('sha256').update(path).digest('hex').slice(0, 8)
  return `${folder === '' || folder.startsWith('.') ? 'bus' : folder}-${mark}`
}

async function argumentsFor(config: string, flags: readonly string[]): Promise<readonly string[]> {
  const isNamed = (names: readonly string[]): boolean =>
    flags.some((flag) => names.some((name) => flag === name || flag.startsWith(`${name}=`)))
  const door =
    isNamed(DOORS) || (await hasDoor(config)) ? [] : ['--unix', join(runDirectory(), `${nameFor(config)}.sock`)]
  const log = isNamed(['--log-file']) ? [] : ['--log-file', logFileFor(config)]
  return ['serve', '--config', config, ...flags, ...door, ...log, BACKGROUND]
}

/** Whether `listen` opens anything. What is wrong with a configuration is for the daemon to say. */
async function hasDoor(config: string): Promise<boolean> {
  const { parse } = await import('jsonc-parser')
  const text = await readFile(config, 'utf8').catch(() => '')
  const { listen } = (parse(text) ?? {}) as { listen?: unknown }
  return typeof listen === 'object' && listen !== null && Object.keys(listen).length > 0
}

/** What the program says when it ends at once is for people; the rest of the log is for later. */
function explainLog(logged: string): string {
  const lines = logged.split('\n').filter((line) => line !== '')
  const plain = lines.filter((line) => readLogLine(line) === undefined)
  if (plain.length > 0) return plain.join('\n').replace(/^stdio-bus: /, '')
  const said = lines.map(readLogLine).filter((fields) => fields?.['level'] === 'error')
  return said.length > 0 ? said.map((fields) => String(fields?.['msg'])).join('\n') : 'it has logged no error'
}
