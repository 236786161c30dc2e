/**
 * Standard input and output as a host gives them, and whether somebody still reads the output.
 *
 * The end of the input alone does not tell a host that has said everything from one that was killed: what it is owed
 * must reach the first and is of no use to the second. A socket tells when its other end is closed, so it is read; a pipe
 * tells whoever opens it anew, where the system has a name for it; where it has not (macOS), the host has gone when this
 * process has another parent. Where nothing can tell, a write that fails does.
 */
import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'

export interface HostPipes {
  readonly stdin: Readable
  /** Closes when its reader goes, where it can tell by itself. */
  readonly stdout: Writable
  /** Looks whether the reader has gone, where that can be seen. */
  readonly isReaderGone: () => boolean
}

const STDIN = 0
const STDOUT = 1
/** Opens the very pipe, not a copy of the descriptor: without a reader the system refuses. */
const STDOUT_AGAIN = `/proc/self/fd/${STDOUT}`

export function openHostPipes(): HostPipes {
  const { stdin } = process
  const [input, output] = [statOf(STDIN), statOf(STDOUT)]
  const isShared = input !== undefined && input.dev === output?.dev && input.ino === output.ino
  // One socket for both directions is read as the input already.
  if (!output?.isSocket() || isShared) {
    const parent = process.ppid
    const isReaderGone = output?.isFIFO() ? () => isUnread(parent) : () => false
    return { stdin, stdout: process.stdout, isReaderGone }
  }
  const stdout = new Socket({ fd: STDOUT, readable: true, writable: true, allowHalfOpen: true })
  stdout.once('end', () => stdout.destroy()).resume()
  return { stdin, stdout, isReaderGone: () => stdout.destroyed }
}

function statOf(descriptor: number): Stats | undefined {
  try {
    return fstatSync(descriptor)
  } catch {
    return undefined
  }
}

function isUnread(parent: number): boolean {
  try {
    closeSync(openSync(STDOUT_AGAIN, constants.O_WRONLY | constants.O_NONBLOCK))
    return false
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    return code === 'ENXIO' || (code === 'ENOENT' && process.ppid !== parent)
  }
}
