/**
 * Changes the access file (contract 9.8): under a lock, into a new file of mode 0600 beside the old one, which is synced
 * and then takes its place. Whoever reads sees the old file or the new one, and of two edits at once none is lost.
 *
 * The text is edited, not written anew: comments, order and spelling of everything else stay. A file with mistakes is not
 * touched. It knows tokens only by their digests.
 */
import type { Problem } from '../config/problem.ts'
import { EditFailure, type FileTraits, replaceFile } from '../host/replace-file.ts'
import { parseAccessFile, readAccessBytes } from './access-file.ts'
import type { PrincipalEntry } from './access-schema.ts'

const OWN = 0o600
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
    await replaceFile(file, () => {
      const { current, owner } = readCurrent(file, mayCreate)
      const text = change(current)
      if (text === undefined) return undefined
      const checked = parseAccessFile(file, Buffer.from(text))
      if (!checked.ok) throw new AccessEditFailure(`the edit would spoil ${file}`, { problems: checked.problems })
      return { text, mode: OWN, owner }
    })
  } catch (error) {
    throw error instanceof EditFailure ? new AccessEditFailure(error.message, { cause: error }) : error
  }
}

function readCurrent(file: string, mayCreate: boolean): { current: EditableFile; owner: FileTraits['owner'] } {
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
