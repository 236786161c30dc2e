/**
 * Whether a request was meant for this door: its Host and its Origin (contract 10.2). Pure; judges nobody's identity.
 *
 * A page of somebody else's that a browser shows can reach every address the browser's machine can. Such a page names its own host
 * (if a name was made to point here) or its own origin, and is refused by that.
 */
import { isIP } from 'node:net'
import { readTcpAddress } from '../host/address.ts'

/** What a door is called. */
export interface DoorNames {
  /** As it was bound: a name or an address. */
  readonly bound: string
  readonly publicUrl: string | undefined
  readonly hosts: readonly string[]
  readonly origins: readonly string[]
}

/** Whether the door is known by this `Host`; ports count for nothing. */
export function isKnownHost(header: string | undefined, door: DoorNames): boolean {
  const host = hostOf(header)
  if (host === undefined) return false
  if (host === 'localhost' || isIP(host) !== 0) return true
  const names = [door.bound, ...door.hosts, ...(door.publicUrl === undefined ? [] : [new URL(door.publicUrl).hostname])]
  return names.some((name) => plainHost(name) === host)
}

/** Whether a page of this origin may talk to the door; without an origin it is no page's request. */
export function isKnownOrigin(origin: string | undefined, host: string | undefined, door: DoorNames): boolean {
  if (origin === undefined) return true
  if (isHostOf(origin, host) || isListedOrigin(origin, door)) return true
  const asked = originOf(origin)
  return asked !== undefined && originOf(door.publicUrl ?? '')?.origin === asked.origin
}

/** Whether a page of this origin was served under that very `Host`, port included. */
export function isHostOf(origin: string, host: string | undefined): boolean {
  const asked = originOf(origin)?.host
  return asked !== undefined && ['http:', 'https:'].some((scheme) => originOf(`${scheme}//${host}`)?.host === asked)
}

/** Whether it is one of those that the configuration lets in from elsewhere: only they hear of CORS. */
export function isListedOrigin(origin: string, { origins }: DoorNames): boolean {
  const asked = originOf(origin)?.origin
  return asked !== undefined && origins.some((known) => originOf(known)?.origin === asked)
}

const EXPOSED = 'Mcp-Session-Id, Acp-Connection-Id, WWW-Authenticate, Retry-After'
const ALLOWED =
  'Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, ' +
  'Acp-Connection-Id, Acp-Session-Id'

/** What a page of a listed origin may read; others are told nothing. */
export function corsHeaders(origin: string | undefined, door: DoorNames): Record<string, string> {
  if (origin === undefined || !isListedOrigin(origin, door)) return {}
  return { 'access-control-allow-origin': origin, vary: 'Origin', 'access-control-expose-headers': EXPOSED }
}

/** The answer to what a browser asks first; headers that begin as those of the protocols do are allowed by their name. */
export function preflightHeaders(asked: string | undefined, methods: string): Record<string, string> {
  const more = (asked ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => /^(?:mcp|acp)-[a-z0-9-]{1,64}$/i.test(name))
    .slice(0, 32)
  return {
    'access-control-allow-methods': methods,
    'access-control-allow-headers': [ALLOWED, ...more].join(', '),
    'access-control-max-age': '600',
  }
}

function hostOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const named = [header, `${header}:0`].map(readTcpAddress).find((read) => typeof read === 'object')
  return named === undefined ? undefined : plainHost(named.host)
}

/** In small letters, without brackets and without the dot that may end a name. */
function plainHost(host: string): string {
  return host
    .replace(/^\[|\]$/g, '')
    .toLowerCase()
    .replace(/\.$/, '')
}

function originOf(text: string): URL | undefined {
  try {
    const url = new URL(text)
    return url.protocol === 'http:' || url.protocol === 'https:' ? url : undefined
  } catch {
    return undefined
  }
}
