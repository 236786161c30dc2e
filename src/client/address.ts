/**
 * Where a bus is, and how it is reached: one attempt, one socket.
 *
 * It tries nothing twice and keeps no state. Invariant: a socket that is handed out is connected; one that is not is gone.
 */
import { connect, type Socket } from 'node:net'
import { formatTcpAddress, readTcpAddress, type TcpAddress } from '../host/address.ts'
import type { TlsFiles } from '../host/tls-files.ts'
import { type BusError, BusUnavailable, BusUntrusted } from './errors.ts'
import { refusedHandshake, whyUntrusted } from './tls-failures.ts'

/** A Unix socket, a host and port, or a host and port with TLS and its files, which are read anew for every attempt. */
export type BusAddress =
  | { readonly unix: string }
  | { readonly tcp: TcpAddress }
  | { readonly tls: TcpAddress; readonly files?: TlsFiles }

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
  if ('unix' in address) return address.unix
  return formatTcpAddress('tcp' in address ? address.tcp : address.tls)
}

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such socket',
  ECONNREFUSED: 'nobody listens there',
  EACCES: 'this user may not use it',
  ENOTSOCK: 'it is not a socket',
  ETIMEDOUT: 'it does not answer',
  ENOTFOUND: 'the host name is unknown',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS',
}

/** Connects once; fails with BusUnavailable, BusUntrusted or BusRefused, or because a file cannot be used. */
export async function dial(address: BusAddress): Promise<Socket> {
  const socket = await open(address)
  const opened = 'tls' in address ? 'secureConnect' : 'connect'
  return new Promise((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException): void => {
      clearTimeout(timer)
      socket.destroy()
      reject(explain(address, cause))
    }
    const timer = setTimeout(
      () => fail(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })),
      CONNECT_TIMEOUT_MS,
    )
    socket.once('error', fail)
    socket.once(opened, () => {
      clearTimeout(timer)
      socket.off('error', fail)
      if (!('unix' in address)) socket.setKeepAlive(true, KEEP_ALIVE_MS)
      resolve(socket)
    })
  })
}

async function open(address: BusAddress): Promise<Socket> {
  // A half-open socket stays readable after the bus has ended its side: its last lines must still arrive.
  if ('unix' in address) return connect({ path: address.unix, allowHalfOpen: true })
  if ('tcp' in address) return connect({ ...address.tcp, noDelay: true, allowHalfOpen: true })
  const { openTls } = await import('./open-tls.ts')
  return openTls(address.tls, address.files)
}

function explain(address: BusAddress, cause: NodeJS.ErrnoException): BusError {
  const where = showAddress(address)
  const untrusted = whyUntrusted(cause)
  if (untrusted !== undefined) return new BusUntrusted(`${where} is not trusted: ${untrusted}`, { cause })
  const why = WHY[cause.code ?? ''] ?? cause.message
  return refusedHandshake(cause) ?? new BusUnavailable(`no bus answers at ${where}: ${why}`, { cause })
}
