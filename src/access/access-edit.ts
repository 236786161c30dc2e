/**
 * Changes the access file (contract 9.8): under a lock, into a new file of mode 0600 beside the old one, which is synced
 * and then takes its place. Whoever reads sees the old file or the new one, and of two edits at once none is lost.
 *
 * The text is edited, not written anew: comments, order and spelling of everything else stay. A file with mistakes is not
 * touched. It knows tokens only by their digests.
 */
import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Problem } from '../config/problem.ts'
import { LockFailure, withFileLock } from '../host/file-lock.ts'
import { parseAccessFile, readAccessBytes } from './access-file.ts'
import type { PrincipalEntry } from './access-schema.ts'

const WAIT_MS = 10_000
const EMPTY = `{
  // Who may use this bus beside those on this machine. "stdio-bus token" adds to it, and comments stay.
  "principals": []
}
`

/** The file as it is while nobody else can change it. */
export interface EditableFile {
  readonly text: string
  readonly entries: readonly PrincipalEntry[]
}

/** A new text, or undefined to leave everything as it is. */
export type Change = (file: EditableFile) => string | undefined

/** Why there was no edit. */
export class AccessEditFailure extends Error {
  override readonly name = 'AccessEditFailure'
  /** Of the file as it stood there; then nothing was tried. */
  readonly problems: readonly Problem[]

  constructor(message: string, about: { readonly problems?: readonly Problem[]; readonly cause?: unknown } = {}) {
    super(message, { cause: about.cause })
    this.problems = about.problems ?? []
  }
}

/** A file that is not there yet is made, if `mayCreate`. */
export async function editAccessFile(file: string, mayCreate: boolean, change: Change): Promise<void> {
  try {
    await withFileLock(file, WAIT_MS, async ({ isStillHeld }) => {
      const { current, owner } = readCurrent(file, mayCreate)
      const text = change(current)
      if (text === undefined) return
      const checked = parseAccessFile(file, Buffer.from(text))
      if (!checked.ok) throw new AccessEditFailure(`the edit would spoil ${file}`, { problems: checked.problems })
      await replace(file, text, owner, isStillHeld)
    })
  } catch (error) {
    throw told(file, error)
  }
}

interface Owner {
  readonly uid: number
  readonly gid: number
}

function readCurrent(file: string, mayCreate: boolean): { current: EditableFile; owner: Owner | undefined } {
  const read = readAccessBytes(file, { isForOthers: true })
  if (!read.ok) {
    if (read.isMissing && mayCreate) return { current: { text: EMPTY, entries: [] }, owner: undefined }
    throw new AccessEditFailure(`${file} cannot be used as it is`, { problems: read.problems })
  }
  const reading = parseAccessFile(file, read.bytes)
  if (!reading.ok)
    throw new AccessEditFailure(`${file} has mistakes: correct them first`, { problems: reading.problems })
  return { current: { text: read.bytes.toString(), entries: reading.entries }, owner: read.stats }
}

async function replace(
  file: string,
  text: string,
  owner: Owner | undefined,
  isStillHeld: () => boolean,
): Promise<void> {
  const draft = `${file}.${randomUUID()}.tmp`
  try {
    await withFile(draft, 'wx', async (handle) => {
      // Root edits for the bus's user, who has to be able to read it afterwards.
      if (owner !== undefined && process.getuid?.() === 0 && owner.uid !== 0) await handle.chown(owner.uid, owner.gid)
      await handle.writeFile(text)
      await handle.sync()
    })
    // Whoever was stopped for so long that its lock was broken would undo what others did meanwhile.
    if (!isStillHeld()) throw new AccessEditFailure('another edit has taken over: try again')
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
  await withFile(dirname(file), 'r', (handle) => handle.sync())
}

async function withFile(path: string, flags: string, act: (handle: FileHandle) => Promise<void>): Promise<void> {
  const handle = await open(path, flags, 0o600)
  try {
    await act(handle)
  } finally {
    await handle.close()
  }
}

function told(file: string, error: unknown): unknown {
  const lockedBy = (holder: number | undefined): string =>
    holder === undefined ? 'another process' : `process ${holder}`
  if (error instanceof LockFailure) {
    const message =
      error.trouble === 'held'
        ? `${lockedBy(error.holder)} is editing ${file} and holds ${error.path}: try again, and if nobody is remove that file`
        : `cannot lock ${file}: ${(error.cause as Error | undefined)?.message ?? error.message}`
    return new AccessEditFailure(message, { cause: error })
  }
  const code = (error as NodeJS.ErrnoException).code
  return code === undefined || error instanceof AccessEditFailure
    ? error
    : new AccessEditFailure(`cannot write ${file} (${code}): check the folder it is in`, { cause: error })
}
