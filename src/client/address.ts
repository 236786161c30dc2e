/**
 * Where a bus is, and how it is reached: one attempt, one socket.
 *
 * It tries nothing twice and keeps no state.
 */
import type { Socket } from 'node:net'
import { formatTcpAddress, readTcpAddress, type TcpAddress } from '../host/address.ts'
import { explainConnection } from '../host/connection-failures.ts'
import { dialSocket, type SocketAddress } from '../host/dial.ts'
import { UnusableFile } from '../host/given-file.ts'
import { type BusError, BusUnavailable, BusUntrusted } from './errors.ts'
import { refusedFor } from './turned-away.ts'

export type BusAddress = SocketAddress

const CONNECT_TIMEOUT_MS = 5_000

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

/** Connects once; fails with BusUnavailable, BusUntrusted or BusRefused, or because a file cannot be used. */
export async function dial(address: BusAddress): Promise<Socket> {
  try {
    return await dialSocket(address, CONNECT_TIMEOUT_MS)
  } catch (cause) {
    throw cause instanceof UnusableFile ? cause : explain(address, cause)
  }
}

function explain(address: BusAddress, cause: unknown): BusError {
  const where = showAddress(address)
  const { trouble, why } = explainConnection(cause)
  if (trouble === 'untrusted') return new BusUntrusted(`${where} is not trusted: ${why}`, { cause })
  if (trouble === 'refused') return refusedFor(why)
  return new BusUnavailable(`no bus answers at ${where}: ${why}`, { cause })
}
