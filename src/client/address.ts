/**
 * Where a bus is, and how it is reached: one attempt, one socket.
 *
 * It tries nothing twice and keeps no state. Invariant: a socket that is handed out is connected; one that is not is gone.
 */
import { connect, type Socket } from 'node:net'
import { formatTcpAddress, readTcpAddress, type TcpAddress } from '../host/address.ts'
import { BusUnavailable } from './errors.ts'

/** A Unix socket, or a host and port. */
export type BusAddress = { readonly unix: string } | { readonly tcp: TcpAddress }

const CONNECT_TIMEOUT_MS = 5_000
const KEEP_ALIVE_MS = 30_000

/** Reads `HOST:PORT` (`[IPv6]:PORT`). */
export function parseTcp(text: string): TcpAddress {
  const read = readTcpAddress(text)
  if (typeof read !== 'string' && read.port > 0) return read
  throw new RangeError(`${JSON.stringify(text)} is no TCP address: write HOST:PORT, like 127.0.0.1:7400 or [::1]:7400`)
}

/** Reads an address as the bus announces it: `unix:/path`, `tcp:127.0.0.1:7400`; undefined for any other door. */
export function parseAnnounced(text: string): BusAddress | undefined {
  if (text.startsWith('unix:')) return { unix: text.slice('unix:'.length) }
  return text.startsWith('tcp:') ? { tcp: parseTcp(text.slice('tcp:'.length)) } : undefined
}

export function showAddress(address: BusAddress): string {
  return 'unix' in address ? address.unix : formatTcpAddress(address.tcp)
}

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such socket',
  ECONNREFUSED: 'nobody listens there',
  EACCES: 'this user may not use it',
  ENOTSOCK: 'it is not a socket',
  ETIMEDOUT: 'it does not answer',
  ENOTFOUND: 'the host name is unknown',
}

/** Connects once; fails with BusUnavailable. */
export function dial(address: BusAddress): Promise<Socket> {
  // A half-open socket stays readable after the bus has ended its side: its last lines must still arrive.
  const target = 'unix' in address ? { path: address.unix } : { ...address.tcp, noDelay: true }
  const socket = connect({ ...target, allowHalfOpen: true })
  return new Promise((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException): void => {
      clearTimeout(timer)
      socket.destroy()
      const why = WHY[cause.code ?? ''] ?? cause.message
      reject(new BusUnavailable(`no bus answers at ${showAddress(address)}: ${why}`, { cause }))
    }
    const timer = setTimeout(
      () => fail(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })),
      CONNECT_TIMEOUT_MS,
    )
    socket.once('error', fail)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.off('error', fail)
      if (!('unix' in address)) socket.setKeepAlive(true, KEEP_ALIVE_MS)
      resolve(socket)
    })
  })
}
