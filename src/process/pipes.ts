/**
 * The three standard streams of a worker: those that the runtime makes, or FIFOs.
 *
 * The runtime makes socket pairs, which no program can open again by name: `echo x > /dev/stdout` fails in a worker. A FIFO
 * can be opened so. It needs a path for a moment: it is made in a directory that only we can enter, both ends are opened,
 * and its name is gone before the worker starts. Invariant: whatever goes wrong, no file and no descriptor stays behind.
 */
import { type ChildProcess, execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { PipeKind } from './launch.ts'

export interface WorkerPipes {
  readonly stdin: Socket
  readonly stdout: Socket
  readonly stderr: Readable
}

/** What a process is started with, and how its streams are had once it runs. */
export interface Prepared {
  readonly stdio: 'pipe' | number[]
  /** Our ends. The worker's own, which it has now, are closed here. */
  join(child: ChildProcess): WorkerPipes
  /** The process was not started. */
  abandon(): void
}

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants
const MAKE_TIMEOUT_MS = 5_000

export function preparePipes(kind: PipeKind = 'default'): Prepared {
  return kind === 'fifo' ? prepareFifos() : DEFAULT_PIPES
}

const DEFAULT_PIPES: Prepared = {
  stdio: 'pipe',
  join: ({ stdin, stdout, stderr }) => ({ stdin: asSocket(stdin), stdout: asSocket(stdout), stderr: stderr! }),
  abandon: () => {},
}

/** A pipe of the child, or a closed one in its place. A broken pipe is its owner's to hear of, never a crash. */
export function asSocket(stream: unknown): Socket {
  const socket = stream instanceof Socket ? stream : new Socket().destroy()
  return socket.on('error', () => {})
}

function prepareFifos(): Prepared {
  const opened: number[] = []
  const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-pipes-'))
  const open = (name: string, flags: number): number => {
    const descriptor = openSync(join(folder, name), flags)
    opened.push(descriptor)
    return descriptor
  }
  try {
    makeFifos(folder)
    const ends = openEnds(open)
    return {
      stdio: ends.theirs,
      join: () => joinEnds(ends),
      abandon: () => closeAll([...ends.ours, ...ends.theirs]),
    }
  } catch (error) {
    closeAll(opened)
    throw error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The runtime cannot make them, this program of every Unix can. To set their mode it would need `/proc`, and they need none. */
function makeFifos(folder: string): void {
  const paths = NAMES.map((name) => join(folder, name))
  try {
    execFileSync('mkfifo', paths, { stdio: 'ignore', timeout: MAKE_TIMEOUT_MS })
  } catch (cause) {
    throw new NoFifos(cause)
  }
}

const NAMES = ['stdin', 'stdout', 'stderr'] as const

/** FIFOs are not to be had here. */
export class NoFifos extends Error {
  override readonly name = 'NoFifos'
  readonly code = 'NOFIFO'

  constructor(cause: unknown) {
    super('pipes "fifo" needs the program mkfifo in the PATH of the bus: install it, or leave pipes out', { cause })
  }
}

interface Ends {
  readonly ours: readonly [stdin: number, stdout: number, stderr: number]
  readonly theirs: number[]
}

/** An end that does not wait comes first, so that the worker's, which has to be an ordinary one that waits, opens at once. */
function openEnds(open: (name: string, flags: number) => number): Ends {
  const reader = open('stdin', O_RDONLY | O_NONBLOCK)
  const stdin = [open('stdin', O_WRONLY | O_NONBLOCK), open('stdin', O_RDONLY)] as const
  const stdout = [open('stdout', O_RDONLY | O_NONBLOCK), open('stdout', O_WRONLY)] as const
  const stderr = [open('stderr', O_RDONLY | O_NONBLOCK), open('stderr', O_WRONLY)] as const
  closeSync(reader)
  return { ours: [stdin[0], stdout[0], stderr[0]], theirs: [stdin[1], stdout[1], stderr[1]] }
}

function joinEnds({ ours: [stdin, stdout, stderr], theirs }: Ends): WorkerPipes {
  closeAll(theirs)
  return {
    stdin: asSocket(new Socket({ fd: stdin, readable: false, writable: true })),
    stdout: asSocket(new Socket({ fd: stdout, readable: true, writable: false })),
    stderr: asSocket(new Socket({ fd: stderr, readable: true, writable: false })),
  }
}

function closeAll(descriptors: readonly number[]): void {
  for (const descriptor of descriptors) closeSync(descriptor)
}
