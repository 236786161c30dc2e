/**
 * The credential of a request: a bearer token in its head, or, for browsers that cannot set one on a WebSocket, among its
 * subprotocols (contract 9.4). A query or a cookie is none.
 */
import type { WebRequest } from './web-request.ts'

/** The first of them is the protocol; the second carries the token and is never echoed. */
export const SUBPROTOCOL = 'stdio-bus'
const TOKEN_PREFIX = 'stdio-bus.token.'

/** What was shown as a bearer token; anything else in that header is a credential too, and a bad one. */
export function bearerOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  return /^Bearer +([^\s]+) *$/i.exec(header)?.[1] ?? ''
}

export function subprotocolTokenOf(web: WebRequest): string | undefined {
  const offered = subprotocolsOf(web)
  if (!offered.includes(SUBPROTOCOL)) return undefined
  return offered.find((name) => name.startsWith(TOKEN_PREFIX))?.slice(TOKEN_PREFIX.length)
}

export function subprotocolsOf(web: WebRequest): readonly string[] {
  return (web.header('sec-websocket-protocol') ?? '').split(',').map((name) => name.trim())
}
