import { describe, expect, test } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { doorPathOfDocument, metadataUrl, type PublicDoor, protectedResource, refusalHead } from './metadata.ts'

const map = [
  { claim: 'scope', equals: 'bus:write', as: 'dev' },
  { claim: 'groups', equals: 'guests', as: 'guest' },
  { claim: 'scope', equals: 'bus:read', as: 'guest' },
]
const door: PublicDoor = {
  publicUrl: 'https://bus.example.com',
  path: '/mcp',
  oauth: { issuer: 'https://id.example.com', map },
}
const METADATA = 'resource_metadata="https://bus.example.com/.well-known/oauth-protected-resource/mcp"'

describe('the document', () => {
  test('says whom to ask, and for what', () => {
    verifies('9.14-document')
    expect(protectedResource(door)).toEqual({
      resource: 'https://bus.example.com/mcp',
      authorization_servers: ['https://id.example.com'],
      scopes_supported: ['bus:write', 'bus:read'],
      bearer_methods_supported: ['header'],
    })
    expect(protectedResource({ ...door, path: '' }).resource).toBe('https://bus.example.com')
  })

  test('is found at the root and at the path of each door, with the path of the public address and without', () => {
    verifies('9.14-document')
    const known = '/.well-known/oauth-protected-resource'
    const publicUrl = 'https://a.example'
    expect(doorPathOfDocument(known, publicUrl)).toBe('')
    expect(doorPathOfDocument(`${known}/acp`, publicUrl)).toBe('/acp')
    for (const path of [`${known}s`, '/mcp', `/x${known}`]) expect(doorPathOfDocument(path, publicUrl)).toBeUndefined()
    const below = 'https://a.example/bus'
    for (const path of ['', '/mcp', '/busy'])
      expect([`${known}${path}`, `${known}/bus${path}`].map((each) => doorPathOfDocument(each, below))).toEqual([
        path,
        path,
      ])
  })

  test('its address has its name between the host and the path', () => {
    verifies('9.14-document')
    expect(metadataUrl({ publicUrl: 'https://a.example/bus', path: '/mcp' })).toBe(
      'https://a.example/.well-known/oauth-protected-resource/bus/mcp',
    )
    expect(metadataUrl({ publicUrl: 'https://a.example', path: '' })).toBe(
      'https://a.example/.well-known/oauth-protected-resource',
    )
  })
})

describe('a refusal', () => {
  const UNAUTHENTICATED = { reason: 'unauthenticated' } as const

  test('asks for a token with the weakest scope, and says whether one came', () => {
    verifies('9.14-challenge')
    expect(refusalHead(UNAUTHENTICATED, door, false)).toEqual({
      status: 401,
      headers: { 'www-authenticate': `Bearer ${METADATA}, scope="bus:read"` },
    })
    expect(refusalHead(UNAUTHENTICATED, door, true)).toEqual({
      status: 401,
      headers: { 'www-authenticate': `Bearer ${METADATA}, scope="bus:read", error="invalid_token"` },
    })
    const without = { ...door, oauth: { ...door.oauth, map: [map[1]!] } }
    expect(refusalHead(UNAUTHENTICATED, without, false).headers).toEqual({ 'www-authenticate': `Bearer ${METADATA}` })
  })

  test('names the scope that would do, where there is one', () => {
    verifies('9.14-scope')
    expect(refusalHead({ reason: 'not_allowed', scope: 'bus:write' }, door, true)).toEqual({
      status: 403,
      headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="bus:write", ${METADATA}` },
    })
    expect(refusalHead({ reason: 'not_allowed' }, door, true)).toEqual({ status: 403, headers: {} })
  })

  test('is plain without oauth', () => {
    verifies('9.14-challenge')
    for (const hadToken of [true, false]) {
      expect(refusalHead(UNAUTHENTICATED, undefined, hadToken)).toEqual({
        status: 401,
        headers: { 'www-authenticate': 'Bearer realm="stdio-bus"' },
      })
    }
    expect(refusalHead({ reason: 'not_allowed', scope: 'x' }, undefined, true)).toEqual({ status: 403, headers: {} })
  })

  test('says when to come again where the keys are missing', () => {
    verifies('9.12-away')
    const head = (retryAfterMs: number): unknown =>
      refusalHead({ reason: 'keys_unavailable', retryAfterMs }, door, true)
    expect(head(4_001)).toEqual({ status: 503, headers: { 'retry-after': '5' } })
    expect(head(1)).toEqual({ status: 503, headers: { 'retry-after': '1' } })
  })

  test('leaves out what would end a quoted value or the header', () => {
    for (const equals of ['a"b', 'a\\', 'a\r\nset-cookie: x', 'é']) {
      const odd = { ...door, oauth: { ...door.oauth, map: [{ claim: 'scope', equals, as: 'dev' }] } }
      expect(refusalHead(UNAUTHENTICATED, odd, false).headers).toEqual({ 'www-authenticate': `Bearer ${METADATA}` })
    }
  })
})
