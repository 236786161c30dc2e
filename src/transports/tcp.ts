/**
 * The TCP door. It binds the address that was judged, never a name that could have changed since, and refuses to listen
 * where other machines can connect unless that was asked for in so many words. The TLS door stands on it.
 */
import type { AddressInfo, Server, Socket } from 'node:net'
import { formatTcpAddress, type TcpAddress } from '../host/address.ts'
import { createAcceptor, listen } from './acceptor.ts'
import { parseTcpAddress, resolveTcpAddress, type TcpPolicy } from './address.ts'
import { type DoorCode, DoorError, systemCode } from './door-error.ts'
import type { Accept, DoorOptions, Listener } from './listener.ts'

export interface TcpOptions extends TcpPolicy, DoorOptions {}

/** Listens on `address` (`HOST:PORT`; port 0 picks one) and hands every connection to `accept`. */
export async function listenTcp(address: TcpAddress | string, options: TcpOptions, accept: Accept): Promise<Listener> {
  const asked = typeof address === 'string' ? parseTcpAddress(address) : address
  return bindTcp('tcp', await resolveTcpAddress(asked, options), options, accept)
}

/** Listens on an address that was judged, as the door that is named. */
export async function bindTcp(
  door: 'tcp' | 'tls',
  judged: TcpAddress,
  options: DoorOptions,
  accept: Accept,
): Promise<Listener> {
  let bound = ''
  const describe = (socket: Socket) => ({ door, isLocal: false, listener: bound, peer: peerOf(socket) })
  const server = createAcceptor(accept, describe, options)
  try {
    await listen(server, { ...judged, exclusive: true })
  } catch (cause) {
    throw listenFailure(door, judged, cause)
  }
  bound = `${door}:${boundAddress(server)}`
  return { address: bound, close: async () => void server.close() }
}

function boundAddress(server: Server): string {
  const { address, port } = server.address() as AddressInfo
  return formatTcpAddress({ host: address, port })
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  const known = remoteAddress !== undefined && remotePort !== undefined
  return known ? formatTcpAddress({ host: remoteAddress, port: remotePort }) : ''
}

const FAILURES: Readonly<Record<string, readonly [DoorCode, string]>> = {
  EADDRINUSE: [
    'port_in_use',
    'the port is in use: stop the program that has it, or choose another (0 picks a free one)',
  ],
  EADDRNOTAVAIL: ['address_unavailable', 'this machine has no such address: listen on one it has, such as 127.0.0.1'],
  EAFNOSUPPORT: ['address_unavailable', 'this machine does not speak that family of addresses: try the other one'],
  EACCES: ['permission_denied', 'permission denied: choose a port above 1023'],
}

function listenFailure(kind: string, address: TcpAddress, cause: unknown): DoorError {
  const code = systemCode(cause) ?? 'unknown error'
  const [door, advice] = FAILURES[code] ?? ['listen_failed', `the system refused (${code}): choose another address`]
  return new DoorError(door, `cannot listen on ${kind} ${formatTcpAddress(address)}: ${advice}`, { cause })
}
