/**
 * What a web door tells of how to be admitted (contract 9.14): the protected-resource document of RFC 9728, and the head of a
 * refusal with its challenge. Values and texts only; it serves nothing and judges nobody.
 */
import type { Refusal } from '../identity.ts'
import { scopesOf, scopeThatWouldDo } from './mapping.ts'
import type { OAuthSettings } from './settings.ts'

export const METADATA_PATH = '/.well-known/oauth-protected-resource'

/** A door as the public knows it; without `oauth` it takes tokens that no issuer signs. */
export interface PublicDoor {
  /** Without a slash at its end. */
  readonly publicUrl: string
  readonly path: string
  readonly oauth: Pick<OAuthSettings, 'issuer' | 'map'>
}

export interface ProtectedResource {
  readonly resource: string
  readonly authorization_servers: readonly string[]
  readonly scopes_supported: readonly string[]
  readonly bearer_methods_supported: readonly ['header']
}

export interface RefusalHead {
  readonly status: 401 | 403 | 503
  readonly headers: Readonly<Record<string, string>>
}

export function resourceOf({ publicUrl, path }: Pick<PublicDoor, 'publicUrl' | 'path'>): string {
  return `${publicUrl}${path}`
}

export function protectedResource(door: PublicDoor): ProtectedResource {
  return {
    resource: resourceOf(door),
    authorization_servers: [door.oauth.issuer],
    scopes_supported: scopesOf(door.oauth.map),
    bearer_methods_supported: ['header'],
  }
}

/**
 * The path of the door whose document is asked for at this path of ours; nothing if it is none. The path that `publicUrl` may
 * have stands in front of it where a proxy passes on what the public asks for, and does not where it takes that away.
 */
export function doorPathOfDocument(requestPath: string, publicUrl: string): string | undefined {
  const asked = pathBelow(METADATA_PATH, requestPath)
  return asked === undefined ? undefined : (pathBelow(new URL(publicUrl).pathname, asked) ?? asked)
}

function pathBelow(base: string, path: string): string | undefined {
  if (base === '/') return path
  return path === base || path.startsWith(`${base}/`) ? path.slice(base.length) : undefined
}

/** Where the public finds the document: its name goes between the host and the path of the resource. */
export function metadataUrl(door: Pick<PublicDoor, 'publicUrl' | 'path'>): string {
  const { origin, pathname } = new URL(resourceOf(door))
  return `${origin}${METADATA_PATH}${pathname === '/' ? '' : pathname}`
}

/** Status and headers for whoever was refused; a token that came and was not good is told apart from none. */
export function refusalHead(refusal: Refusal, door: PublicDoor | undefined, hadToken: boolean): RefusalHead {
  if (refusal.reason === 'keys_unavailable') {
    return { status: 503, headers: { 'retry-after': String(Math.ceil((refusal.retryAfterMs ?? 1_000) / 1_000)) } }
  }
  if (refusal.reason === 'unauthenticated') return { status: 401, headers: challenge(door, hadToken) }
  if (door === undefined || refusal.scope === undefined) return { status: 403, headers: {} }
  const parameters = { error: 'insufficient_scope', scope: refusal.scope, resource_metadata: metadataUrl(door) }
  return { status: 403, headers: { 'www-authenticate': bearer(parameters) } }
}

function challenge(door: PublicDoor | undefined, hadToken: boolean): Record<string, string> {
  if (door === undefined) return { 'www-authenticate': bearer({ realm: 'stdio-bus' }) }
  const parameters = {
    resource_metadata: metadataUrl(door),
    scope: scopeThatWouldDo(door.oauth.map),
    error: hadToken ? 'invalid_token' : undefined,
  }
  return { 'www-authenticate': bearer(parameters) }
}

function bearer(parameters: Readonly<Record<string, string | undefined>>): string {
  const written = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined || UNQUOTABLE.test(value) ? [] : [`${name}="${value}"`],
  )
  return `Bearer ${written.join(', ')}`
}

/** No scope, address or word of ours has these; in a header they would end the value. */
const UNQUOTABLE = /[^\x20-\x7e]|["\\]/
