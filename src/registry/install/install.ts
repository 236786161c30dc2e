/**
 * Installs an agent once: one process at a time, in a scratch folder, moved to its place when it is whole.
 *
 * Whatever goes wrong, nothing half-made is left where it could be started.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Choice } from '../distribution.ts'
import { describeFailure, RegistryError } from '../errors.ts'
import { installBinary } from './binary.ts'
import { type InstallJob, report } from './job.ts'
import { withLock } from './lock.ts'
import { installNpx } from './npx.ts'
import {
  agentFolder,
  findInstalled,
  folderOf,
  type Installed,
  type InstalledProgram,
  makeScratch,
  publish,
  readInstalled,
  sourceOf,
  sweepScratch,
} from './store.ts'
import { installUvx } from './uvx.ts'

export async function installAgent(job: InstallJob, choice: Choice): Promise<Installed> {
  const present = await findInstalled(job.cacheDir, job.entry, choice)
  if (present !== undefined) return present
  try {
    return await installLocked(job, choice)
  } catch (error) {
    throw explain(error, job)
  }
}

async function installLocked(job: InstallJob, choice: Choice): Promise<Installed> {
  const folder = await folderOf(job.cacheDir, job.entry, choice)
  if (folder === undefined) throw new RegistryError('package_not_found', sourceOf(choice), 'the file is not there')
  await mkdir(agentFolder(job.cacheDir, job.entry.id), { recursive: true, mode: 0o700 })
  const wait = { signal: job.signal, onWait: () => report(job, 'waiting') }
  const installed = await withLock(`${folder}.lock`, wait, async () => {
    return (await readInstalled(folder)) ?? (await installInto(folder, job, choice))
  })
  if (installed === undefined) throw new RegistryError('busy', job.entry.id)
  return installed
}

async function installInto(folder: string, job: InstallJob, choice: Choice): Promise<Installed> {
  await sweepScratch(job.cacheDir, Date.now())
  const scratch = await makeScratch(job.cacheDir, randomUUID())
  try {
    const content = join(scratch, 'content')
    await mkdir(content)
    const program = await bring(job, choice, scratch, content)
    job.signal?.throwIfAborted()
    const { id, version } = job.entry
    const record = { id, version, kind: choice.kind, source: sourceOf(choice), program, installedAtMs: Date.now() }
    const installed = await publish(content, folder, record)
    report(job, 'installed')
    return installed
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

const PACKAGES = { npx: installNpx, uvx: installUvx }

function bring(job: InstallJob, choice: Choice, scratch: string, content: string): Promise<InstalledProgram> {
  if (choice.kind !== 'binary') return PACKAGES[choice.kind](job, choice.target, content)
  const { archive } = choice.target
  if (archive === undefined) throw new RegistryError('bad_entry', job.entry.id, 'the binary has no "archive"')
  return installBinary(job, { ...choice.target, archive }, scratch, content)
}

const DISK_FAULTS = ['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'ENOTDIR']

function explain(error: unknown, job: InstallJob): unknown {
  if (job.signal?.aborted) return new RegistryError('cancelled', job.entry.id, undefined, error)
  if (error instanceof RegistryError) return error
  const code = String((error as NodeJS.ErrnoException).code)
  if (!DISK_FAULTS.includes(code)) return error
  return new RegistryError('cache_unusable', job.cacheDir, describeFailure(error), error)
}
