/**
 * The Unix socket door. Only the user who runs the bus may connect: the file has mode 0600 before anybody can see it.
 *
 * The socket is bound under a private name beside the path and then moved there, so a stale file is replaced without a
 * gap, and the runtime, which at its end removes the name it bound, can never remove the socket of another bus. A live
 * socket, a symlink and anything that is not a socket are left alone.
 */
import { randomInt } from 'node:crypto'
import { lstatSync, renameSync, type Stats, statSync, unlinkSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { dirname, join } from 'node:path'
import { createAcceptor, listen } from './acceptor.ts'
import { checkSocketPath } from './address.ts'
import { DoorError, systemCode } from './door-error.ts'
import type { Accept, DoorOptions, Listener } from './listener.ts'
import { withSocketLock } from './socket-lock.ts'

const OWNER_ONLY_UMASK = 0o177
const PRIVATE_NAMES = 36 ** 4
const BIND_ATTEMPTS = 5

/** Listens on `path`, replacing a stale socket file, and hands every connection to `accept`. */
export async function listenUnix(path: string, accept: Accept, options: DoorOptions = {}): Promise<Listener> {
  checkSocketPath(path)
  requireDirectory(dirname(path))
  return withSocketLock(path, async () => {
    const stale = await findStale(path)
    const address = `unix:${path}`
    const server = createAcceptor(accept, () => ({ door: 'unix', isLocal: true, listener: address, peer: '' }), options)
    const ours = await bind(server, path, stale)
    return { address, close: async () => close(server, path, ours) }
  })
}

function requireDirectory(directory: string): void {
  const found = lookAt(directory)
  if (found?.isDirectory()) return
  const what = found ? 'is not a directory' : 'does not exist'
  const message = `directory ${directory} of the socket ${what}: create it, or choose another path`
  throw new DoorError('directory_missing', message)
}

function lookAt(directory: string): Stats | undefined {
  try {
    return statSync(directory, { throwIfNoEntry: false })
  } catch (cause) {
    throw cannotBind(directory, cause)
  }
}

/** The file of a socket that nobody listens on, or undefined if nothing is there; anything else is refused. */
async function findStale(path: string): Promise<Stats | undefined> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return undefined
  if (!found.isSocket()) throw taken(path, found)
  const answer = await knock(path)
  if (answer === 'ECONNREFUSED') return found
  if (answer === 'ENOENT') return undefined
  throw live(path, answer)
}

/** Connects and leaves: undefined when somebody listens, else the system's reason. */
function knock(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve(undefined)
    })
    probe.once('error', (error) => resolve(systemCode(error) ?? 'EIO'))
  })
}

async function bind(server: Server, path: string, stale: Stats | undefined): Promise<Stats> {
  const hidden = await bindPrivately(server, dirname(path))
  try {
    const now = lstatSync(path, { throwIfNoEntry: false })
    if (now && !isSame(now, stale)) throw taken(path, now)
    const ours = lstatSync(hidden)
    renameSync(hidden, path)
    return ours
  } catch (cause) {
    server.close()
    throw cause instanceof DoorError ? cause : cannotBind(path, cause)
  }
}

/** Binds a name of five bytes, which fits wherever any socket path does, and tells which. */
async function bindPrivately(server: Server, directory: string): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const hidden = join(directory, `.${randomInt(PRIVATE_NAMES).toString(36).padStart(4, '0')}`)
    try {
      await listenOwnerOnly(server, hidden)
      return hidden
    } catch (cause) {
      if (systemCode(cause) !== 'EADDRINUSE' || attempt === BIND_ATTEMPTS) throw cannotBind(hidden, cause)
    }
  }
}

function listenOwnerOnly(server: Server, path: string): Promise<void> {
  const before = process.umask(OWNER_ONLY_UMASK)
  try {
    return listen(server, { path })
  } finally {
    process.umask(before)
  }
}

/** While we listen nobody takes our file for stale, so looking and removing need no lock. */
function close(server: Server, path: string, ours: Stats): void {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (isSame(found, ours)) unlinkSync(path)
  } finally {
    server.close()
  }
}

function isSame(one: Stats | undefined, other: Stats | undefined): boolean {
  return one !== undefined && one.dev === other?.dev && one.ino === other.ino
}

function taken(path: string, found: Stats): DoorError {
  const what = found.isSymbolicLink() ? 'a symbolic link' : found.isSocket() ? 'a new socket' : 'not a socket'
  return new DoorError('path_taken', `${path} is ${what} and is left alone: remove it yourself, or choose another path`)
}

function live(path: string, answer: string | undefined): DoorError {
  if (answer === undefined || answer === 'EAGAIN') {
    return new DoorError('socket_live', `another process is listening on ${path}: stop it, or choose another path`)
  }
  const message = `${path} is a socket that may be in use (${answer} on connecting): remove it yourself, or choose another path`
  return new DoorError('path_taken', message)
}

function cannotBind(path: string, cause: unknown): DoorError {
  const code = systemCode(cause) ?? 'unknown error'
  const denied = code === 'EACCES' || code === 'EPERM' || code === 'EROFS'
  const advice = `make ${dirname(path)} writable for this user, or choose another path`
  return new DoorError(
    denied ? 'permission_denied' : 'listen_failed',
    `cannot open socket ${path} (${code}): ${advice}`,
    {
      cause,
    },
  )
}
