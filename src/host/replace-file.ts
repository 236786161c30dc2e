/**
 * Changes a file that people edit too: under a lock, into a new file beside the old one, which is synced and then takes its
 * place. Whoever reads sees the old file or the new one, and of two changes at once none is lost.
 */
import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { LockFailure, withFileLock } from './file-lock.ts'

const WAIT_MS = 10_000

/** Whose the file is, and who may use it. */
export interface FileTraits {
  readonly mode: number
  /** Left out: whoever changes it. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined
}

export interface NewContent extends FileTraits {
  readonly text: string
}

/** Why there was no change; the message says what to do. */
export class EditFailure extends Error {
  override readonly name: string = 'EditFailure'
}

/** `change` reads the file and gives the new content, or undefined to leave it as it is. Errors of `change` are its own. */
export async function replaceFile(file: string, change: () => NewContent | undefined): Promise<void> {
  try {
    await withFileLock(file, WAIT_MS, async ({ isStillHeld }) => {
      const content = change()
      if (content !== undefined) await put(file, content, isStillHeld)
    })
  } catch (error) {
    throw told(file, error)
  }
}

async function put(file: string, { text, mode, owner }: NewContent, isStillHeld: () => boolean): Promise<void> {
  const draft = `${file}.${randomUUID()}.tmp`
  try {
    await withFile(draft, 'wx', async (handle) => {
      await handle.chmod(mode)
      // Root edits for the bus's user, who has to be able to read it afterwards.
      if (owner !== undefined && process.getuid?.() === 0 && owner.uid !== 0) await handle.chown(owner.uid, owner.gid)
      await handle.writeFile(text)
      await handle.sync()
    })
    // Whoever was stopped for so long that its lock was broken would undo what others did meanwhile.
    if (!isStillHeld()) throw new EditFailure('another edit has taken over: try again')
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
  if (error instanceof LockFailure) return new EditFailure(describeLock(file, error), { cause: error })
  const { code } = error as NodeJS.ErrnoException
  const isOfTheSystem = code !== undefined && error instanceof Error && 'syscall' in error
  return isOfTheSystem
    ? new EditFailure(`cannot write ${file} (${code}): check the folder it is in`, { cause: error })
    : error
}

function describeLock(file: string, { trouble, holder, path, cause, message }: LockFailure): string {
  const who = holder === undefined ? 'another process' : `process ${holder}`
  return trouble === 'held'
    ? `${who} is editing ${file} and holds ${path}: try again, and if nobody is remove that file`
    : `cannot lock ${file}: ${(cause as Error | undefined)?.message ?? message}`
}
