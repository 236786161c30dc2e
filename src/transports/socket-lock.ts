/**
 * The lock that makes "look at the socket file, then replace it" one step among starters of the bus (contract 8.6), and
 * what a user is told when there is none.
 */
import { dirname } from 'node:path'
import { LockFailure, type LockTrouble, withFileLock } from '../host/file-lock.ts'
import { type DoorCode, DoorError, systemCode } from './door-error.ts'

const WAIT_MS = 3_000

interface Told {
  readonly code: DoorCode
  readonly message: (failure: LockFailure) => string
}

const TOLD: Readonly<Record<LockTrouble, Told>> = {
  not_created: {
    code: 'permission_denied',
    message: ({ path, cause }) =>
      `cannot create ${path} (${systemCode(cause)}): make ${dirname(path)} writable for this user, or choose another path`,
  },
  not_removed: {
    code: 'permission_denied',
    message: ({ path, cause }) => `cannot remove ${path} (${systemCode(cause)}): remove it by hand`,
  },
  taken: {
    code: 'path_taken',
    message: ({ cause }) =>
      `${(cause as Error).message}: it stands where the lock of the socket belongs, remove it yourself`,
  },
  held: {
    code: 'socket_locked',
    message: ({ path, holder }) =>
      `${holder === undefined ? 'another process' : `process ${holder}`} is opening this socket too and holds ${path}: try again, and if no bus is starting there remove that file`,
  },
}

/** Runs `act` while no other starter can act on `path`. */
export async function withSocketLock<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await withFileLock(path, WAIT_MS, act)
  } catch (failure) {
    if (!(failure instanceof LockFailure)) throw failure
    const { code, message } = TOLD[failure.trouble]
    throw new DoorError(code, message(failure), { cause: failure.cause })
  }
}
