/**
 * What a configuration wants to know of `HOST:PORT`: what was meant by one that is none, and who could reach it.
 */
import { isIPv6 } from 'node:net'
import { isLoopbackHost, readTcpAddress, type TcpAddress } from '../host/address.ts'

/** The address, or nothing when the text is none. */
export function parseAddress(text: string): TcpAddress | undefined {
  const read = readTcpAddress(text)
  return typeof read === 'string' ? undefined : read
}

/** What somebody who wrote a malformed address probably meant. */
export function suggestAddress(text: string): string | undefined {
  const port = /^:?(\d{1,5})$/.exec(text)?.[1]
  const candidates = [port && `127.0.0.1:${port}`, text.replace(/^[a-z]+:\/\//i, '').replace(/\/$/, ''), bracket(text)]
  return candidates.find((candidate) => candidate !== undefined && candidate !== text && parseAddress(candidate))
}

/** Whether only this machine can reach it, as far as the text tells; other names are not looked up. */
export function isLoopback({ host }: TcpAddress): boolean {
  return isLoopbackHost(host)
}

function bracket(text: string): string | undefined {
  const colon = text.lastIndexOf(':')
  return colon > 0 && isIPv6(text.slice(0, colon)) ? `[${text.slice(0, colon)}]${text.slice(colon)}` : undefined
}
