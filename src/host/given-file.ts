/**
 * Reads a file that the user names: a certificate, a key, a token. Links are followed, because those who exchange such
 * files do it by links; everything else is judged on the open descriptor, so what was judged is what is read.
 *
 * A file that holds a secret must belong to this user or to root, and nobody else may do anything with it. No message
 * here holds anything of the content.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs'

/** What was named cannot be used; the message says why and what to do. The exit code is a user's mistake (contract 8.4). */
export class UnusableFile extends Error {
  override readonly name = 'UnusableFile'
  readonly exitCode = 2
  readonly file: string
  /** As in `does not exist`, and what to do after a colon. */
  readonly why: string

  constructor(file: string, why: string, options?: { readonly cause?: unknown }) {
    super(`${file} ${why}`, options)
    this.file = file
    this.why = why
  }
}

const MAX_BYTES = 4 * 1024 * 1024
/** Every right of the group and of all others. */
const OF_OTHERS = 0o077
const ROOT = 0

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EACCES: 'cannot be read by this user',
  EISDIR: 'is a folder',
}

/** The text of a file that anybody may see. */
export function readGivenFile(path: string): string {
  return readChecked(path, () => undefined)
}

/** The text of a file that is nobody else's business. */
export function readSecretFile(path: string): string {
  return readChecked(path, whyExposed)
}

function readChecked(path: string, judge: (stats: Stats) => string | undefined): string {
  const descriptor = open(path)
  try {
    const stats = fstatSync(descriptor)
    const why = whyUnreadable(stats) ?? judge(stats)
    if (why !== undefined) throw new UnusableFile(path, why)
    return readFileSync(descriptor, 'utf8')
  } finally {
    closeSync(descriptor)
  }
}

function open(path: string): number {
  try {
    // A pipe is not waited for.
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new UnusableFile(path, WHY[code] ?? `cannot be read (${code})`, { cause })
  }
}

function whyUnreadable(stats: Stats): string | undefined {
  if (stats.isDirectory()) return WHY['EISDIR']
  if (!stats.isFile()) return 'is no plain file'
  return stats.size > MAX_BYTES ? `is larger than ${MAX_BYTES} bytes` : undefined
}

function whyExposed({ uid, mode }: Stats): string | undefined {
  const own = process.getuid?.()
  // Where files have no owners and modes, there is nothing to judge.
  if (own === undefined) return undefined
  if (uid !== own && uid !== ROOT) return 'belongs to another user: a secret must be a file of your own'
  return (mode & OF_OTHERS) === 0 ? undefined : 'is open to other users: protect it with chmod 600'
}
