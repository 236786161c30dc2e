/**
 * The part of accepting that the socket doors share: half-open sockets, and no death by exhausted descriptors.
 *
 * The last descriptors of the process are kept for the bus itself (restarting a worker takes several): a connection that
 * lands on one of them is closed at once and reported. Without that reserve the runtime sheds connections silently, and
 * the supervision fails with them.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type ListenOptions, type Server, type Socket } from 'node:net'
import type { Accept, ConnectionInfo, DoorOptions } from './listener.ts'

const RESERVED_DESCRIPTORS = 32
const KEEPALIVE_DELAY_MS = 60_000
const TROUBLE_INTERVAL_MS = 1_000

export type Describe = (socket: Socket) => ConnectionInfo

/** A server that hands every connection to `accept` and survives what goes wrong with accepting. */
export function createAcceptor(accept: Accept, describe: Describe, options: DoorOptions): Server {
  const report = rarely(options.onTrouble ?? (() => {}))
  const limit = descriptorLimit()
  const firstReserved = limit - Math.min(RESERVED_DESCRIPTORS, limit / 4)
  const sockets = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEPALIVE_DELAY_MS }
  const server = createServer(sockets, (socket) => {
    if (descriptorOf(socket) < firstReserved) return accept(socket, describe(socket))
    socket.destroy()
    report('a connection was closed because the process is out of file descriptors: raise its limit (ulimit -n)')
  })
  server.on('listening', () => server.on('error', (error) => report(`accepting a connection failed: ${error.message}`)))
  return server
}

/** Binds and listens; both happen before this returns when `where` is a path or an IP address. */
export function listen(server: Server, where: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** Passes on at most one message per interval, with the number of those held back. */
export function rarely(tell: (message: string) => void): (message: string) => void {
  let quietUntilMs = 0
  let held = 0
  return (message) => {
    const nowMs = performance.now()
    if (nowMs < quietUntilMs) {
      held += 1
      return
    }
    tell(held === 0 ? message : `${message} (and ${held} times before)`)
    held = 0
    quietUntilMs = nowMs + TROUBLE_INTERVAL_MS
  }
}

/** The soft limit of open files; without bound where the system does not tell. */
export function descriptorLimit(limitsFile = '/proc/self/limits'): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync(limitsFile, 'utf8'))?.[1]
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    // Where there is no such file (macOS), a child tells: it inherits the limit.
    const { stdout } = spawnSync('/bin/sh', ['-c', 'ulimit -n'], { encoding: 'utf8' })
    return Number.parseInt(stdout ?? '', 10) || Number.POSITIVE_INFINITY
  }
}

/** Descriptors are given out lowest first, so the number tells how many are in use. */
function descriptorOf(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly fd?: number } | null }
  return handle?.fd ?? 0
}
