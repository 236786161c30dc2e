/**
 * `HOST:PORT` as people write it, and back: a name, an IPv4 address, or an IPv6 address in brackets (contract 4.1.1).
 *
 * It only reads the text. Whether a name exists, and whether the address may be listened on, is the door's business.
 */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

export interface TcpAddress {
  /** A name, an IPv4 address, or an IPv6 address without its brackets. */
  readonly host: string
  /** 0 picks a free one, where one listens. */
  readonly port: number
}

/** What is wrong with a text that is no address: its form, its host, what is between the brackets, or its port. */
export type AddressFault = 'form' | 'host' | 'brackets' | 'port'

export const MAX_PORT = 65_535
const FORM = /^(?:\[([^[\]]*)\]|([^[\]:\s]+)):(\d{1,5})$/
const MAX_NAME_CHARACTERS = 253
const LABEL = /^[\p{L}\p{N}_]([\p{L}\p{M}\p{N}_-]{0,61}[\p{L}\p{M}\p{N}_])?$/u

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

export function readTcpAddress(text: string): TcpAddress | AddressFault {
  const [, bracketed, bare = '', digits] = FORM.exec(text) ?? []
  if (digits === undefined) return 'form'
  if (bracketed !== undefined && !isIPv6(bracketed)) return 'brackets'
  if (bracketed === undefined && !isHost(bare)) return 'host'
  const port = Number(digits)
  return port > MAX_PORT ? 'port' : { host: bracketed ?? bare, port }
}

/** Writes an address the way it is read. */
export function formatTcpAddress({ host, port }: TcpAddress): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
}

/** The host of a peer alone: ports change with every connection. */
export function hostOf(peer: string): string {
  const address = readTcpAddress(peer)
  return typeof address === 'object' ? address.host : peer
}

/** True for an IP address that only this machine can reach; a name is none. */
export function isLoopbackIp(ip: string): boolean {
  const family = isIP(ip)
  return family !== 0 && LOOPBACK.check(ip, family === 6 ? 'ipv6' : 'ipv4')
}

/** True for `localhost` too, which means this machine wherever it is asked for. */
export function isLoopbackHost(host: string): boolean {
  return host.toLowerCase() === 'localhost' || isLoopbackIp(host)
}

/** Digits and dots are an IPv4 address or a mistake. */
function isHost(text: string): boolean {
  if (/^[\d.]+$/.test(text)) return isIPv4(text)
  const labels = text.replace(/\.$/, '').split('.')
  return text.length <= MAX_NAME_CHARACTERS && labels.every((label) => LABEL.test(label))
}
