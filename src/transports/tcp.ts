/**
 * The TCP door. It binds the address that was judged, never a name that could have changed since, and refuses to listen
 * where other machines can connect unless that was asked for in so many words.
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
  const { host, port } = await resolveTcpAddress(asked, options)
  let bound = ''
  const server = createAcceptor(accept, (socket) => describe(socket, bound), options)
  try {
    await listen(server, { host, port, exclusive: true })
  } catch (cause) {
    throw listenFailure({ host, port }, cause)
  }
  bound = boundAddress(server)
  return { address: bound, close: async () => void server.close() }
}

function boundAddress(server: Server): string {
  const { address, port } = server.address() as AddressInfo
  return `tcp:${formatTcpAddress({ host: address, port })}`
}

function describe(socket: Socket, listener: string) {
  const { remoteAddress, remotePort } = socket
  const known = remoteAddress !== undefined && remotePort !== undefined
  const peer = known ? formatTcpAddress({ host: remoteAddress, port: remotePort }) : ''
  return { door: 'tcp', isLocal: false, listener, peer } as const
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

function listenFailure(address: TcpAddress, cause: unknown): DoorError {
  const code = systemCode(cause) ?? 'unknown error'
  const [door, advice] = FAILURES[code] ?? ['listen_failed', `the system refused (${code}): choose another address`]
  return new DoorError(door, `cannot listen on tcp ${formatTcpAddress(address)}: ${advice}`, { cause })
}
