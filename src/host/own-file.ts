/**
 * Opens a file that must be a plain one: never through a link, never waiting for the other end of a pipe.
 *
 * What stands in its place (a link, a folder, a pipe, a socket, a file of another user) is left as it is, and said. What
 * is looked at is the open descriptor, so nobody can put something else there between the look and the use.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs'

/** Something else is in the place of the file. */
export class NotAPlainFile extends Error {
  override readonly name = 'NotAPlainFile'
  readonly code = 'NOT_A_PLAIN_FILE'
  /** As in `a symbolic link`. */
  readonly what: string

  constructor(path: string, what: string, options?: { readonly cause?: unknown }) {
    super(`${path} is ${what} and is left alone`, options)
    this.what = what
  }
}

export interface OpenFile {
  readonly descriptor: number
  readonly stats: Stats
}

/** What the system says of a link, a folder, and a pipe or socket that nobody serves. */
const WHAT: Readonly<Record<string, string>> = {
  ELOOP: 'a symbolic link',
  EMLINK: 'a symbolic link',
  EISDIR: 'a folder',
  ENXIO: 'a pipe or a socket',
}

/** Fails with NotAPlainFile, or with what the system says. `flags` are those of access and creation. */
export function openPlainFile(path: string, flags: number, mode = 0o600): OpenFile {
  const descriptor = open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, mode)
  const stats = fstatSync(descriptor)
  if (stats.isFile()) return { descriptor, stats }
  closeSync(descriptor)
  throw new NotAPlainFile(path, stats.isDirectory() ? 'a folder' : stats.isFIFO() ? 'a pipe' : 'no plain file')
}

/** The same, for a file that must belong to this user. */
export function openOwnFile(path: string, flags: number): OpenFile {
  const file = openPlainFile(path, flags)
  const own = process.getuid?.()
  if (own === undefined || file.stats.uid === own) return file
  closeSync(file.descriptor)
  throw new NotAPlainFile(path, 'a file of another user')
}

/** The content of a small plain file; undefined if there is none that can be read. */
export function readPlainFile(path: string): string | undefined {
  try {
    const { descriptor } = openPlainFile(path, constants.O_RDONLY)
    try {
      return readFileSync(descriptor, 'utf8')
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (error instanceof NotAPlainFile) throw error
    return undefined
  }
}

/** Whether a plain file with exactly this content is there: for the end, when what is not ours is nobody's trouble. */
export function holdsContent(path: string, content: string): boolean {
  try {
    return readPlainFile(path) === content
  } catch {
    return false
  }
}

function open(path: string, flags: number, mode: number): number {
  try {
    return openSync(path, flags, mode)
  } catch (cause) {
    const what = WHAT[(cause as NodeJS.ErrnoException).code ?? '']
    throw what === undefined ? cause : new NotAPlainFile(path, what, { cause })
  }
}
