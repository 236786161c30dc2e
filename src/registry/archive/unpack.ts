/**
 * Unpacks an archive into an empty folder, by the ending of its name; what has none of the known endings is a program.
 *
 * Nothing but `bzip2` is started for it. The folder is the caller's to remove when this throws.
 */
import { createReadStream } from 'node:fs'
import { copyFile, mkdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { findProgram, ProgramFailed, pipeThrough } from '../programs.ts'
import { untar } from './tar.ts'
import { ArchiveFault, type ArchiveLimits, Tree } from './tree.ts'
import { unzip } from './zip.ts'

type Unpack = (path: string, tree: Tree) => Promise<void>

const FORMATS: Readonly<Record<string, Unpack>> = {
  '.tar.gz': unpackGzip,
  '.tgz': unpackGzip,
  '.tar.bz2': unpackBzip2,
  '.tbz2': unpackBzip2,
  '.zip': unzip,
}

/** Endings that are archives or installers all the same: better named than run. */
const UNSUPPORTED = [
  '.tar.xz',
  '.txz',
  '.tar.zst',
  '.tar',
  '.gz',
  '.xz',
  '.7z',
  '.rar',
  '.dmg',
  '.pkg',
  '.deb',
  '.rpm',
  '.msi',
]

/** `name` is the last part of the address; `program` is what a raw download is to be called. */
export async function unpack(
  path: string,
  name: string,
  program: string,
  folder: string,
  limits?: ArchiveLimits,
): Promise<void> {
  const ending = endingOf(name, Object.keys(FORMATS))
  const format = ending === undefined ? undefined : FORMATS[ending]
  if (format !== undefined) {
    const tree = new Tree(folder, limits)
    await format(path, tree)
    return tree.finish()
  }
  const foreign = endingOf(name, UNSUPPORTED)
  if (foreign !== undefined) throw new ArchiveFault('broken', `the format ${foreign} is not supported`)
  const target = join(folder, program)
  await mkdir(dirname(target), { recursive: true })
  await copyFile(path, target)
}

function endingOf(name: string, endings: readonly string[]): string | undefined {
  const lower = basename(name).toLowerCase()
  return endings.find((ending) => lower.endsWith(ending))
}

async function unpackGzip(path: string, tree: Tree): Promise<void> {
  try {
    // The iterator reports what goes wrong; the callback only keeps `pipeline` from throwing it a second time.
    await untar(
      pipeline(createReadStream(path), createGunzip(), () => {}),
      tree,
    )
  } catch (error) {
    throw isZlibError(error) ? new ArchiveFault('broken', error.message) : error
  }
}

function isZlibError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && String((error as NodeJS.ErrnoException).code).startsWith('Z_')
}

async function unpackBzip2(path: string, tree: Tree): Promise<void> {
  const bzip2 = await findProgram('bzip2')
  try {
    await untar(pipeThrough(bzip2, ['-dc', path]), tree)
  } catch (error) {
    throw error instanceof ProgramFailed ? new ArchiveFault('broken', error.message) : error
  }
}
