/**
 * Opens a file that must be a plain one: never through a link, never waiting for the other end of a pipe.
 *
 * What stands in its place (a link, a folder, a pipe, a socket, a file of another user) is left as it is, and said. What
 * is looked at is the open descriptor, so nobody can put something else there between the look and the use.
 */
import { closeSync, constants, fchmodSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs'

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

/** Descriptors that the program was given, by the names that the system has for them. */
const GIVEN = /^\/(?:dev\/(?:(?<name>stdout|stderr)|fd\/(?<device>\d+))|proc\/self\/fd\/(?<process>\d+))$/

export interface AppendTarget extends OpenFile {
  /** The program was given it, and does not close it. */
  readonly isGiven: boolean
}

/**
 * Opens what lines are appended to: a plain file, which is then its owner's alone, or a pipe or device that stands there;
 * never through a link, unless it is one of the system's names for what the program was given. Writing never waits. It must
 * belong to this user or to root, who could read it anyway.
 */
export function openToAppend(path: string): AppendTarget {
  const given = GIVEN.exec(path)?.groups
  if (given !== undefined)
    return openGiven(path, Number(given['device'] ?? given['process'] ?? NUMBERS[given['name']!]))
  const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants
  const descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
  const stats = fstatSync(descriptor)
  const problem = problemOfTarget(stats)
  if (problem !== undefined) {
    closeSync(descriptor)
    throw new NotAPlainFile(path, problem)
  }
  const isOpenToOthers = stats.isFile() && (stats.mode & 0o077) !== 0
  if (isOpenToOthers && stats.uid === process.getuid?.()) fchmodSync(descriptor, 0o600)
  return { descriptor, stats, isGiven: false }
}

const NUMBERS: Readonly<Record<string, number>> = { stdout: 1, stderr: 2 }

/** A socket cannot be opened by its name, only used; whatever else it is gets a description of its own, which never waits. */
function openGiven(path: string, descriptor: number): AppendTarget {
  const stats = fstatSync(descriptor)
  if (stats.isSocket()) return { descriptor, stats, isGiven: true }
  const own = openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK)
  return { descriptor: own, stats, isGiven: false }
}

function problemOfTarget(stats: Stats): string | undefined {
  if (!stats.isFile() && !stats.isFIFO() && !stats.isCharacterDevice()) return 'neither a file nor a pipe nor a device'
  const own = process.getuid?.()
  return own === undefined || stats.uid === own || stats.uid === 0 ? undefined : 'of another user'
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
