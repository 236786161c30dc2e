/**
 * Keeps what is installed in order: finds it, tells what an index names no longer, removes it, and brings newer versions
 * beside the old.
 *
 * A folder disappears by one rename, as it appeared, so nothing half-removed is ever started.
 */
import { randomUUID } from 'node:crypto'
import { readdir, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { choicesOf, type Kind } from './distribution.ts'
import { agentId } from './entry.ts'
import { describeFailure, RegistryError } from './errors.ts'
import { agentFolder, findInstalled, type InstallRecord, makeScratch, readInstalled } from './install/store.ts'
import { currentPlatform } from './platform.ts'
import type { Registry } from './resolve.ts'

export interface Installation {
  readonly id: string
  readonly folder: string
  /** Undefined for what cannot be started any more. */
  readonly record: InstallRecord | undefined
}

/** All of them, or those of one agent: none of it is an error. */
export async function findInstallations(cacheDir: string, id?: string): Promise<readonly Installation[]> {
  const parent = join(cacheDir, 'agents')
  const ids = id === undefined ? await foldersIn(parent) : [id]
  const known = ids.filter((name) => agentId.safeParse(name).success)
  return (await Promise.all(known.map((name) => installationsOf(cacheDir, name)))).flat()
}

async function installationsOf(cacheDir: string, id: string): Promise<readonly Installation[]> {
  const names = await foldersIn(agentFolder(cacheDir, id))
  return Promise.all(
    names.map(async (name) => {
      const folder = join(agentFolder(cacheDir, id), name)
      return { id, folder, record: (await readInstalled(folder))?.record }
    }),
  )
}

/** Links are passed over: what they lead to is not ours. */
async function foldersIn(path: string): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

/** What was installed of one agent; that nothing was is the user's mistake. */
export async function requireInstallations(cacheDir: string, id: string): Promise<readonly Installation[]> {
  const found = await findInstallations(cacheDir, id)
  if (found.length > 0) return found
  const ids = [...new Set((await findInstallations(cacheDir)).map((installation) => installation.id))]
  throw new RegistryError('not_installed', id, ids.length === 0 ? 'nothing is' : `installed: ${ids.join(', ')}`)
}

export async function removeInstallations(cacheDir: string, installations: readonly Installation[]): Promise<void> {
  try {
    for (const { folder } of installations) {
      const scratch = await makeScratch(cacheDir, randomUUID())
      await rename(folder, join(scratch, 'removed'))
      await rm(scratch, { recursive: true, force: true })
    }
  } catch (error) {
    throw new RegistryError('cache_unusable', cacheDir, describeFailure(error), error)
  }
  const parents = new Set(installations.map(({ id }) => agentFolder(cacheDir, id)))
  // Another version or somebody's lock may be in it.
  for (const parent of parents) await rmdir(parent).catch(() => undefined)
}

/** What no pool would start by the index as it is: other versions, other sources, agents it has no longer. */
export async function findOutdated(cacheDir: string, registry: Registry): Promise<readonly Installation[]> {
  requireIndex(registry)
  const current = new Set<string>()
  for (const { entry } of registry.catalogue.agents.values()) {
    const choices = choicesOf(entry, currentPlatform())
    const found = await Promise.all(choices.map((choice) => findInstalled(cacheDir, entry, choice)))
    for (const installed of found) if (installed !== undefined) current.add(installed.folder)
  }
  return (await findInstallations(cacheDir)).filter(({ folder }) => !current.has(folder))
}

export interface Update {
  readonly id: string
  readonly kind: Kind
  /** What was there before. */
  readonly from: string
  /** Null for an agent that the index has no longer. */
  readonly to: string | null
  readonly isNew: boolean
}

/** Brings what the index has now of an agent, in the ways in which it was installed. */
export async function updateAgent(registry: Registry, installations: readonly Installation[]): Promise<Update[]> {
  requireIndex(registry)
  const updates: Update[] = []
  for (const record of newestOfEachKind(installations)) {
    const { id, kind, version: from } = record
    const agent = registry.catalogue.agents.get(id)
    if (agent === undefined) {
      updates.push({ id, kind, from, to: null, isNew: false })
      continue
    }
    const isSame = agent.entry.distribution[kind] !== undefined
    const wish = isSame ? { distribution: kind } : {}
    const isNew = (await registry.isInstalled(id, wish)) !== true
    const resolved = await registry.resolve(id, wish)
    updates.push({ id, kind: resolved.kind, from, to: resolved.version, isNew })
  }
  return updates
}

function newestOfEachKind(installations: readonly Installation[]): readonly InstallRecord[] {
  const records = installations.flatMap(({ record }) => record ?? [])
  const newest = new Map<Kind, InstallRecord>()
  for (const record of records.toSorted((a, b) => a.installedAtMs - b.installedAtMs)) newest.set(record.kind, record)
  return [...newest.values()]
}

function requireIndex({ catalogue }: Registry): void {
  if (catalogue.indexState !== 'absent') return
  throw new RegistryError('index_absent', 'there is no copy of it either')
}
