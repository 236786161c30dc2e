/**
 * Installs an agent from an archive or a single program: download, checksum, unpack, and the program must be there.
 *
 * Nothing is unpacked before the checksum has been compared.
 */
import { chmod, mkdir, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { splitEntryPath } from '../archive/entry-path.ts'
import { ArchiveFault } from '../archive/tree.ts'
import { unpack } from '../archive/unpack.ts'
import type { BinaryTarget } from '../entry.ts'
import { describeFailure, RegistryError } from '../errors.ts'
import { download, withoutSecrets } from '../fetch.ts'
import { type InstallJob, report } from './job.ts'
import type { InstalledProgram } from './store.ts'

const REASONS = { unsafe: 'archive_refused', broken: 'archive_broken', large: 'too_large' } as const
/** What the file system says of an archive whose entries contradict one another. */
const CONTRADICTIONS = ['ENOTDIR', 'EISDIR', 'EEXIST', 'ENAMETOOLONG', 'ELOOP', 'EINVAL', 'EILSEQ']
const FILES = 'files'

export async function installBinary(
  job: InstallJob,
  target: BinaryTarget & { readonly archive: string },
  scratch: string,
  content: string,
): Promise<InstalledProgram> {
  const program = splitEntryPath(target.cmd)?.join('/') ?? ''
  if (program === '') throw new RegistryError('bad_entry', job.entry.id, '"cmd" must be a path inside the archive')
  const shown = withoutSecrets(target.archive)
  if (target.sha256 === undefined) job.onWarning(`${shown} has no sha256 in the index: its content is not checked`)
  const archive = join(scratch, 'archive')
  await download(target.archive, {
    path: archive,
    maxBytes: job.maxArchiveBytes,
    sha256: target.sha256,
    signal: job.signal,
    onProgress: (done, total) => report(job, 'downloading', done, total),
  })
  job.signal?.throwIfAborted()
  report(job, 'unpacking')
  const files = join(content, FILES)
  await mkdir(files)
  await unpackOrExplain(archive, new URL(target.archive).pathname, program, files, job)
  await requireProgram(files, program, shown)
  return { runner: 'system', path: join(FILES, program) }
}

async function unpackOrExplain(
  archive: string,
  name: string,
  program: string,
  folder: string,
  job: InstallJob,
): Promise<void> {
  try {
    await unpack(archive, decodeURIComponent(name), program, folder, job.archiveLimits)
  } catch (error) {
    if (error instanceof ArchiveFault) throw new RegistryError(REASONS[error.kind], nameOf(name), error.message, error)
    if (!CONTRADICTIONS.includes(String((error as NodeJS.ErrnoException).code))) throw error
    throw new RegistryError('archive_broken', nameOf(name), describeFailure(error), error)
  }
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

async function requireProgram(files: string, program: string, archive: string): Promise<void> {
  const path = await realpath(join(files, program)).catch(() => undefined)
  const inside = path?.startsWith((await realpath(files)) + sep)
  if (path === undefined || !inside || !(await stat(path)).isFile()) {
    throw new RegistryError('command_missing', archive, `there is no ${program} in it`)
  }
  await chmod(path, 0o755)
}
