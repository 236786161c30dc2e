/** Where an upstream is, as it may be shown: no query, no user, no password. */
import { pathToFileURL } from 'node:url'
import type { TcpAddress } from '../host/address.ts'
import { explainConnection } from '../host/connection-failures.ts'
import type { SocketAddress } from '../host/dial.ts'
import { UnusableFile } from '../host/given-file.ts'
import type { TlsFiles } from '../host/tls-files.ts'
import { type Upstream, UpstreamFailure } from './upstream.ts'

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'ws:': 80, 'https:': 443, 'wss:': 443 }

/** A path of a Unix socket as a URL, whatever characters it has. */
export function unixUrl(path: string): URL {
  return new URL(`unix:${pathToFileURL(path).pathname}`)
}

export function showAddress(url: URL): string {
  if (url.protocol === 'unix:') return `unix:${pathOf(url)}`
  const shown = new URL(url)
  shown.username = shown.password = shown.search = shown.hash = ''
  return shown.href
}

export function isSecure({ protocol }: URL): boolean {
  return protocol === 'https:' || protocol === 'wss:' || protocol === 'tls:'
}

/** The host of a URL as sockets take it: without the brackets of IPv6. */
export function tcpOf(url: URL): TcpAddress {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return { host, port: url.port === '' ? DEFAULT_PORTS[url.protocol]! : Number(url.port) }
}

export function socketOf({ url, tls }: Upstream): SocketAddress {
  if (url.protocol === 'unix:') return { unix: pathOf(url) }
  return isSecure(url) ? { tls: tcpOf(url), files: filesOf(tls) } : { tcp: tcpOf(url) }
}

function pathOf({ pathname }: URL): string {
  return decodeURIComponent(pathname)
}

function filesOf({ ca, cert, key }: TlsFiles): TlsFiles {
  return { ca, cert, key }
}

/** Why it could not be connected to. */
export function explainFailure(cause: unknown): UpstreamFailure {
  if (cause instanceof UpstreamFailure) return cause
  if (cause instanceof UnusableFile) return new UpstreamFailure(cause.message, { isRefusal: true, cause })
  const { trouble, why } = explainConnection(cause)
  return new UpstreamFailure(why, { isRefusal: trouble !== 'unreachable', cause })
}
