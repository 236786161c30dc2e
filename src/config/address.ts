/**
 * `HOST:PORT` as people write it: a name, an IPv4 address or an IPv6 address in brackets (contract 4.1.1).
 *
 * It only reads the text. Whether a name exists, and whether the address may be listened on, is the door's business.
 */
import { isIPv4, isIPv6 } from 'node:net'

export interface TcpAddress {
  /** Without brackets. */
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
}

const MAX_PORT = 65_535
const MAX_NAME_CHARS = 253
const LABEL = /^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/

/** The address, or nothing when the text is none. */
export function parseAddress(text: string): TcpAddress | undefined {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  if (match === null) return undefined
  const [, bracketed, bare, digits] = match
  const port = Number(digits)
  if (port > MAX_PORT) return undefined
  if (bracketed !== undefined) return isIPv6(bracketed) ? { host: bracketed, port } : undefined
  return bare !== undefined && isHost(bare) ? { host: bare, port } : undefined
}

/** What somebody who wrote a malformed address probably meant. */
export function suggestAddress(text: string): string | undefined {
  const port = /^:?(\d{1,5})$/.exec(text)?.[1]
  const candidates = [port && `127.0.0.1:${port}`, text.replace(/^[a-z]+:\/\//i, '').replace(/\/$/, ''), bracket(text)]
  return candidates.find((candidate) => candidate !== undefined && candidate !== text && parseAddress(candidate))
}

/** Whether only this machine can reach it, as far as the text tells; other names are not looked up. */
export function isLoopback({ host }: TcpAddress): boolean {
  return host.toLowerCase() === 'localhost' || (isIPv4(host) && host.startsWith('127.')) || host === '::1'
}

function isHost(text: string): boolean {
  if (/^[\d.]+$/.test(text)) return isIPv4(text)
  const labels = text.replace(/\.$/, '').split('.')
  return text.length <= MAX_NAME_CHARS && labels.every((label) => LABEL.test(label))
}

function bracket(text: string): string | undefined {
  const colon = text.lastIndexOf(':')
  return colon > 0 && isIPv6(text.slice(0, colon)) ? `[${text.slice(0, colon)}]${text.slice(colon)}` : undefined
}
