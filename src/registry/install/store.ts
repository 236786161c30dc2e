/**
 * What is installed, as folders on disk: `<cache>/agents/<id>/<version>-<kind>-<hash>/`, each with a record of how to
 * start it.
 *
 * A folder appears by one rename, whole and with its record, and is never changed afterwards. The hash covers where the
 * agent comes from, so another source, even under the same version, is another folder.
 */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { access, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { Choice } from '../distribution.ts'
import type { AgentEntry } from '../entry.ts'

const RECORD = 'stdio-bus.json'

/** The program to start: by this Node, or by the system itself. The path is relative to the folder. */
const programSchema = z.object({ runner: z.enum(['node', 'system']), path: z.string() })
export type InstalledProgram = z.infer<typeof programSchema>

const recordSchema = z.object({
  id: z.string(),
  version: z.string(),
  kind: z.enum(['binary', 'npx', 'uvx']),
  source: z.string(),
  program: programSchema,
  installedAtMs: z.number(),
})

export type InstallRecord = z.infer<typeof recordSchema>

export interface Installed {
  readonly folder: string
  readonly record: InstallRecord
}

/** Where an entry comes from, as text: the package or the address. */
export function sourceOf(choice: Choice): string {
  return choice.kind === 'binary' ? (choice.target.archive ?? choice.target.cmd) : choice.target.package
}

/** What is on disk for this entry and choice, if it is whole. */
export async function findInstalled(
  cacheDir: string,
  entry: AgentEntry,
  choice: Choice,
): Promise<Installed | undefined> {
  const folder = await folderOf(cacheDir, entry, choice)
  return folder === undefined ? findByRecord(cacheDir, entry, choice) : readInstalled(folder)
}

/** The folder for this entry and choice; undefined when the local file that it is made from is not there any more. */
export async function folderOf(cacheDir: string, entry: AgentEntry, choice: Choice): Promise<string | undefined> {
  const source = sourceOf(choice)
  const state = source.startsWith('file:') ? await stateOfFile(source) : ''
  if (state === undefined) return undefined
  const checksum = choice.kind === 'binary' ? choice.target.sha256 : undefined
  const identity = JSON.stringify([choice.kind, entry.version, source, choice.target.cmd, checksum, state])
  const hash = createHash('sha256').update(identity).digest('hex').slice(0, 12)
  return join(agentFolder(cacheDir, entry.id), `${entry.version}-${choice.kind}-${hash}`)
}

export function agentFolder(cacheDir: string, id: string): string {
  return join(cacheDir, 'agents', id)
}

export async function readInstalled(folder: string): Promise<Installed | undefined> {
  try {
    const record = recordSchema.parse(JSON.parse(await readFile(join(folder, RECORD), 'utf8')))
    const needed = record.program.runner === 'node' ? constants.R_OK : constants.X_OK
    await access(join(folder, record.program.path), needed)
    return { folder, record }
  } catch {
    return undefined
  }
}

/** Makes a finished folder the installed one; when another was faster, that one stands. */
export async function publish(content: string, folder: string, record: InstallRecord): Promise<Installed> {
  await writeFile(join(content, RECORD), `${JSON.stringify(record, null, 2)}\n`)
  if ((await readInstalled(folder)) === undefined) await rm(folder, { recursive: true, force: true })
  try {
    await rename(content, folder)
    return { folder, record }
  } catch (error) {
    const other = await readInstalled(folder)
    if (other === undefined) throw error
    return other
  }
}

/** A new folder for an installation that is under way, on the same file system as its destination. */
export async function makeScratch(cacheDir: string, name: string): Promise<string> {
  const scratch = join(cacheDir, 'tmp', name)
  await mkdir(scratch, { recursive: true, mode: 0o700 })
  return scratch
}

const ABANDONED_MS = 24 * 60 * 60_000

/** Removes what interrupted installations have left behind. */
export async function sweepScratch(cacheDir: string, nowMs: number): Promise<void> {
  const parent = join(cacheDir, 'tmp')
  for (const name of await readdir(parent).catch(() => [])) {
    const state = await stat(join(parent, name)).catch(() => undefined)
    if (state !== undefined && nowMs - state.mtimeMs > ABANDONED_MS) {
      await rm(join(parent, name), { recursive: true, force: true })
    }
  }
}

async function findByRecord(cacheDir: string, entry: AgentEntry, choice: Choice): Promise<Installed | undefined> {
  const parent = agentFolder(cacheDir, entry.id)
  const names = await readdir(parent).catch(() => [])
  const all = await Promise.all(names.map((name) => readInstalled(join(parent, name))))
  return all
    .filter((found) => found !== undefined)
    .filter(({ record }) => record.kind === choice.kind && record.source === sourceOf(choice))
    .filter(({ record }) => record.version === entry.version)
    .sort((a, b) => b.record.installedAtMs - a.record.installedAtMs)[0]
}

/** A local file may be replaced under the same name: its size and time stand for its content. */
async function stateOfFile(url: string): Promise<string | undefined> {
  try {
    const { size, mtimeMs } = await stat(url.startsWith('file://') ? fileURLToPath(url) : url.slice('file:'.length))
    return `${size} ${mtimeMs}`
  } catch {
    return undefined
  }
}
