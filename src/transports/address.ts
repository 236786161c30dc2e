/**
 * Reads the addresses a user may give to a door: `HOST:PORT` and socket paths (contract 4.1.1).
 *
 * Opens nothing. Whether a host is loopback is decided on the addresses it resolves to, and those very addresses are
 * handed on, so that what was judged is what is bound.
 */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import {
  type AddressFault,
  formatTcpAddress,
  isLoopbackIp,
  MAX_PORT,
  readTcpAddress,
  type TcpAddress,
} from '../host/address.ts'
import { AddressProblem, DoorError } from './door-error.ts'

export interface TcpPolicy {
  /** Listen where other machines can connect, although nobody is asked who they are. */
  readonly allowUnauthenticated: boolean
}

/** The shortest `sun_path` of the systems we run on holds 104 bytes, the last of them a NUL. */
export const MAX_SOCKET_PATH_BYTES = 103

const EXPECTED = 'expected HOST:PORT, for example 127.0.0.1:7400, localhost:0 or [::1]:7400'
const WRONG: Readonly<Record<AddressFault, string>> = {
  form: EXPECTED,
  host: `its host is neither a name nor an address; ${EXPECTED}`,
  brackets: `what is between the brackets is not an IPv6 address; ${EXPECTED}`,
  port: `a port is a number from 0 (any free one) to ${MAX_PORT}`,
}

/** Reads `HOST:PORT`; throws an AddressProblem that says what is wrong with it. */
export function parseTcpAddress(text: string): TcpAddress {
  const read = readTcpAddress(text)
  if (typeof read !== 'string') return read
  throw new AddressProblem('address_invalid', `tcp address ${JSON.stringify(text)} is not valid: ${WRONG[read]}`)
}

/** The IP address to bind for `address`, or the reason why the bus does not listen there. */
export async function resolveTcpAddress(address: TcpAddress, policy: TcpPolicy): Promise<TcpAddress> {
  const ips = await resolveHost(address.host)
  const exposed = ips.find((ip) => !isLoopbackIp(ip))
  if (exposed !== undefined && !policy.allowUnauthenticated) throw notLoopback(address, exposed)
  return { host: ips[0]!, port: address.port }
}

/** Refuses a path that no socket can have. Whether something is there already is the door's question. */
export function checkSocketPath(path: string): void {
  const bytes = Buffer.byteLength(path)
  if (bytes > MAX_SOCKET_PATH_BYTES) {
    throw new AddressProblem(
      'path_invalid',
      `socket path ${path} has ${bytes} bytes, the system takes at most ${MAX_SOCKET_PATH_BYTES}: choose a shorter one`,
    )
  }
  if (path === '' || path.endsWith('/') || path.includes('\0')) {
    throw new AddressProblem(
      'path_invalid',
      `socket path ${JSON.stringify(path)} names no file: give a path such as /run/user/1000/stdio-bus.sock`,
    )
  }
}

async function resolveHost(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host]
  try {
    // IPv4 first: a client that knows only one family will more likely know that one.
    const found = await lookup(host, { all: true, verbatim: false })
    return found.map(({ address }) => address)
  } catch (cause) {
    const message = `host name ${host} cannot be resolved: check its spelling, or give an IP address`
    throw new DoorError('name_unresolved', message, { cause })
  }
}

function notLoopback(address: TcpAddress, exposed: string): AddressProblem {
  const shown = formatTcpAddress(address)
  const reached = exposed === address.host ? '' : ` (it resolves to ${exposed})`
  return new AddressProblem(
    'not_loopback',
    `tcp address ${shown} is not loopback${reached}: other machines could connect, and the bus does not ask who they are, ` +
      'so anybody on the network could use your workers. Listen on 127.0.0.1, or put a tunnel in front; ' +
      'if every machine that can reach this address may use the bus, add --allow-unauthenticated',
  )
}
