/** Every kind of credential before the judge, as a door would bring it, with the tokens of a real issuer. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { AUDIENCE, Issuer, KEYS, makeKey, type SigningKey } from '../../test/support/issuer.ts'
import type { Rights } from '../kernel/rights.ts'
import { callerOf } from './caller.ts'
import type { Identity, Verdict } from './identity.ts'
import { Judge, type JudgeSettings, type KnownPrincipals } from './judge.ts'
import { digestOf, makeToken } from './token.ts'

const UNAUTHENTICATED = { refusal: { reason: 'unauthenticated' } }
const EXPIRED = { refusal: { reason: 'unauthenticated', why: 'expired' } }
const AGENT = new X509Certificate(readFileSync(new URL('../../test/fixtures/access/agent.pem', import.meta.url)))

const user = (...pools: string[]): Rights => ({ role: 'user', pools })

interface Entry {
  readonly rights: Rights
  readonly tokens?: readonly { readonly token: string; readonly expiresAtMs?: number }[]
}

/** An access file in memory, as the judge asks it. */
function principalsOf(entries: Readonly<Record<string, Entry>>): KnownPrincipals {
  const holders = Object.entries(entries).flatMap(([principal, { rights, tokens = [] }]) =>
    tokens.map(({ token, ...rest }) => [digestOf(token), { principal, rights, ...rest }] as const),
  )
  const byDigest = new Map(holders)
  return { byName: (name) => entries[name]?.rights, byToken: (digest) => byDigest.get(digest) }
}

let issuer: Issuer
let key: SigningKey
let judge: Judge
let nowMs: number
let told: string[]

beforeEach(async () => {
  nowMs = Date.now()
  told = []
  issuer = await Issuer.start()
  key = await makeKey('Ed25519')
  issuer.publish(key)
  judge = new Judge({ now: () => nowMs, onState: ({ message }) => told.push(message) })
})

afterEach(async () => {
  judge.close()
  await issuer.close()
})

function settings(changes: Partial<JudgeSettings> = {}): JudgeSettings {
  const map = [
    { claim: 'scope', equals: 'bus:write', as: 'dev' },
    { claim: 'scope', equals: 'bus:read', as: 'guest' },
  ]
  return {
    anonymous: false,
    oauth: { issuer: issuer.url, audience: [AUDIENCE], map },
    certificates: [{ subject: 'URI:spiffe://corp/agents/*', as: 'agent' }],
    ...changes,
  }
}

function identityIn(verdict: Verdict | undefined): Identity {
  if (verdict === undefined || 'refusal' in verdict) throw new Error(`no identity: ${JSON.stringify(verdict)}`)
  return verdict.identity
}

describe('nobody in particular', () => {
  test('is everybody without access, and with it whom the file describes, or nobody', () => {
    verifies('9.1-anonymous')
    expect(judge.anonymous()).toEqual({ identity: { principal: 'anonymous', rights: user('*'), via: 'anonymous' } })
    judge.adopt(principalsOf({}), settings())
    expect(judge.anonymous()).toEqual(UNAUTHENTICATED)
    judge.adopt(principalsOf({}), settings({ anonymous: user('open') }))
    expect(identityIn(judge.anonymous()).rights).toEqual(user('open'))
    judge.adopt(principalsOf({}), undefined)
    expect(identityIn(judge.anonymous()).rights).toEqual(user('*'))
  })

  test('is never who brought a bad credential', async () => {
    verifies('9.2-bad-credential')
    judge.adopt(principalsOf({}), { anonymous: user('open'), certificates: [] })
    for (const token of [
      '',
      'x',
      makeToken(),
      'a.b.c',
      'sbus_a.b.c',
      await issuer.sign(key),
      'Bearer x',
      'x'.repeat(1e6),
    ]) {
      expect(await judge.ofToken(token)).toEqual(UNAUTHENTICATED)
    }
  })

  test('any text at all is refused, and nothing throws', async () => {
    verifies('9.2-bad-credential')
    judge.adopt(principalsOf({ ann: { rights: user('*'), tokens: [{ token: makeToken() }] } }), settings())
    const dotted = fc.array(fc.base64String(), { minLength: 3, maxLength: 3 }).map((parts) => parts.join('.'))
    const almost = fc.string().map((text) => `sbus_${text}`)
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string({ unit: 'binary' }), dotted, almost), async (token) => {
        expect(await judge.ofToken(token)).toEqual(UNAUTHENTICATED)
      }),
    )
  })
})

describe('a token of the bus', () => {
  test('is judged at once, by what the file says now', () => {
    const token = makeToken()
    judge.adopt(principalsOf({ ann: { rights: user('a'), tokens: [{ token, expiresAtMs: nowMs + 5 }] } }), settings())
    const verdict = judge.ofToken(token)
    expect(verdict).toEqual({
      identity: {
        ...{ principal: 'ann', rights: user('a'), via: 'token' },
        ...{ credential: digestOf(token).slice(0, 8), expiresAtMs: nowMs + 5 },
      },
    })
    expect(callerOf(identityIn(verdict as Verdict))).toBe('ann')
  })

  test('unknown and revoked read alike, expired says so', () => {
    verifies('9.7-alike')
    const token = makeToken()
    const entry = { rights: user('a'), tokens: [{ token, expiresAtMs: nowMs + 5 }] }
    judge.adopt(principalsOf({ ann: entry }), settings())
    nowMs += 4
    expect(judge.ofToken(token)).toHaveProperty('identity')
    nowMs += 1
    expect(judge.ofToken(token)).toEqual(EXPIRED)
    judge.adopt(principalsOf({ ann: { rights: user('a') } }), settings())
    expect(judge.ofToken(token)).toEqual(UNAUTHENTICATED)
    expect(judge.ofToken(makeToken())).toEqual(UNAUTHENTICATED)
  })

  test('holds on as long as the file has it, with the rights of now', () => {
    verifies('9.5-still-good', '9.10-new-rights')
    const [token, other] = [makeToken(), makeToken()]
    const digest = digestOf(token)
    judge.adopt(principalsOf({ ann: { rights: user('a', 'b'), tokens: [{ token }] } }), settings())
    const identity = identityIn(judge.ofToken(token) as Verdict)
    judge.adopt(principalsOf({ ann: { rights: user('a'), tokens: [{ token, expiresAtMs: nowMs + 9 }] } }), settings())
    expect(judge.stillHolds(identity, digest)).toEqual({
      identity: { ...identity, rights: user('a'), expiresAtMs: nowMs + 9 },
    })
    nowMs += 9
    expect(judge.stillHolds(identity, digest)).toEqual(EXPIRED)
    judge.adopt(principalsOf({ ann: { rights: user('a'), tokens: [{ token: other }] } }), settings())
    expect(judge.stillHolds(identity, digest)).toEqual(UNAUTHENTICATED)
    judge.adopt(principalsOf({ bob: { rights: user('a'), tokens: [{ token }] } }), settings())
    expect(judge.stillHolds(identity, digest)).toEqual(UNAUTHENTICATED)
    expect(judge.stillHolds(identity)).toEqual(UNAUTHENTICATED)
  })
})

describe('a signed token', () => {
  const people = (): KnownPrincipals => principalsOf({ dev: { rights: user('a') }, guest: { rights: user('g') } })

  test('is a principal of the file, and a subject of its own', async () => {
    verifies('9.13-subject', '9.13-first')
    judge.adopt(people(), settings())
    const exp = Math.floor(nowMs / 1_000) + 60
    const token = await issuer.sign(key, { exp, scope: 'bus:read bus:write', sub: 'ann@corp' })
    const identity = identityIn(await judge.ofToken(token))
    expect(identity).toEqual({
      ...{ principal: 'dev', subject: 'ann@corp', rights: user('a'), via: 'jwt' },
      ...{ credential: digestOf(token).slice(0, 8), expiresAtMs: exp * 1_000 },
    })
    expect(callerOf(identity)).toBe('dev/ann@corp')
    const again = judge.ofToken(token) as Verdict
    expect(identityIn(again), 'the same, at once').toBe(identity)
  })

  test('whatever is done to it, it is refused, or proves the same', async () => {
    verifies('9.2-bad-credential')
    judge.adopt(people(), settings())
    const [mine, hers] = await Promise.all([
      issuer.sign(key, { sub: 'ann' }),
      issuer.sign(key, { sub: 'root', scope: 'bus:write' }),
    ])
    const good = new Map([
      ['ann', 'guest'],
      ['root', 'dev'],
    ])
    const parts = [...mine.split('.'), ...hers.split('.'), '']
    const swapped = fc.array(fc.constantFrom(...parts), { minLength: 3, maxLength: 3 }).map((three) => three.join('.'))
    const changed = fc
      .record({ token: fc.constantFrom(mine, hers), at: fc.nat(mine.length), cut: fc.nat(3), put: fc.base64String() })
      .map(({ token, at, cut, put }) => token.slice(0, at) + put.slice(0, 3) + token.slice(at + cut))
    await fc.assert(
      fc.asyncProperty(fc.oneof(swapped, changed), async (token) => {
        const verdict = await judge.ofToken(token)
        if ('refusal' in verdict) {
          expect(verdict).toEqual(UNAUTHENTICATED)
          return
        }
        const { principal, subject } = verdict.identity
        expect(good.get(subject!)).toBe(principal)
        const like = subject === 'ann' ? mine : hers
        expect(token.split('.').slice(0, 2)).toEqual(like.split('.').slice(0, 2))
      }),
      { numRuns: 1_000 },
    )
  })

  test('that is kept has the rights of now, and none when its principal has gone', async () => {
    verifies('9.10-new-rights', '9.13-nobody')
    judge.adopt(people(), settings())
    const token = await issuer.sign(key)
    await judge.ofToken(token)
    judge.adopt(principalsOf({ guest: { rights: user('new') } }), settings())
    expect(identityIn(judge.ofToken(token) as Verdict).rights).toEqual(user('new'))
    judge.adopt(principalsOf({}), settings())
    expect(judge.ofToken(token)).toEqual({ refusal: { reason: 'not_allowed' } })
    expect(issuer.countOf(KEYS)).toBe(1)
  })

  test('of nobody here is not allowed, and told the scope that would do', async () => {
    verifies('9.13-nobody', '9.14-scope')
    judge.adopt(people(), settings())
    const token = await issuer.sign(key, { scope: 'openid' })
    expect(await judge.ofToken(token)).toEqual({ refusal: { reason: 'not_allowed', scope: 'bus:read' } })
    judge.adopt(principalsOf({ dev: { rights: user('a') } }), settings())
    expect(await judge.ofToken(token)).toEqual({ refusal: { reason: 'not_allowed', scope: 'bus:write' } })
    expect(judge.scopeThatWouldDo(({ pools }) => pools.includes('a'))).toBe('bus:write')
    expect(judge.scopeThatWouldDo(({ pools }) => pools.includes('z'))).toBeUndefined()
  })

  test('waits for its keys at most once, and is told when to come again', async () => {
    verifies('9.12-away', '9.12-start')
    issuer.misbehave = (_request, response) => {
      response.writeHead(503).end()
      return true
    }
    judge.adopt(people(), settings())
    const token = await issuer.sign(key)
    expect(await judge.ofToken(token)).toEqual({ refusal: { reason: 'keys_unavailable', retryAfterMs: 1_000 } })
    expect(told).toHaveLength(1)
    issuer.misbehave = () => false
    expect(await judge.ofToken(token)).toHaveProperty('identity')
    expect(told).toHaveLength(2)
  })

  test('is refused where there is no issuer, and by another one', async () => {
    const token = await issuer.sign(key)
    judge.adopt(people(), { anonymous: false, certificates: [] })
    expect(judge.ofToken(token)).toEqual(UNAUTHENTICATED)
    const other = await Issuer.start()
    other.publish(key)
    judge.adopt(people(), settings({ oauth: { issuer: other.url, audience: [AUDIENCE], map: settings().oauth!.map } }))
    expect(await judge.ofToken(token)).toEqual(UNAUTHENTICATED)
    await other.close()
  })

  test('of an issuer that has been replaced costs no reading any more', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    judge.adopt(people(), settings())
    judge.adopt(people(), settings({ oauth: { ...settings().oauth!, jwksUrl: issuer.keysUrl } }))
    expect(vi.getTimerCount()).toBe(1)
    judge.adopt(people(), undefined)
    expect(vi.getTimerCount()).toBe(0)
    vi.useRealTimers()
  })

  test('is for the door as the public knows it where no audience is named', async () => {
    verifies('9.11-default-audience')
    const oauth = { ...settings().oauth!, audience: [] }
    judge.adopt(people(), settings({ oauth, publicUrl: AUDIENCE }))
    const [whole, door] = [await issuer.sign(key), await issuer.sign(key, { aud: `${AUDIENCE}/mcp` })]
    expect(await judge.ofToken(whole)).toHaveProperty('identity')
    expect(await judge.ofToken(whole, `${AUDIENCE}/mcp`)).toEqual(UNAUTHENTICATED)
    expect(await judge.ofToken(door)).toEqual(UNAUTHENTICATED)
    expect(await judge.ofToken(door, `${AUDIENCE}/mcp`)).toHaveProperty('identity')
  })

  test('that is under way when the settings change is judged by the new ones', async () => {
    verifies('9.10-new-rights')
    let release = (): void => {}
    issuer.misbehave = ({ url }, response) => {
      if (url === KEYS) release = () => response.end(JSON.stringify(issuer.published))
      return url === KEYS
    }
    judge.adopt(people(), settings())
    const verdict = judge.ofToken(await issuer.sign(key))
    await issuer.askedFor(KEYS, 1)
    const map = [{ claim: 'scope', equals: 'bus:read', as: 'dev' }]
    judge.adopt(people(), settings({ oauth: { ...settings().oauth!, map } }))
    release()
    expect(identityIn(await verdict).principal).toBe('dev')
  })

  test('holds on while its principal, its rule and its issuer do, and until it expires', async () => {
    verifies('9.5-still-good', '9.10-new-rights')
    judge.adopt(people(), settings())
    const exp = Math.floor(nowMs / 1_000) + 60
    const identity = identityIn(await judge.ofToken(await issuer.sign(key, { exp })))
    const { oauth } = settings()
    judge.adopt(principalsOf({ guest: { rights: user('new') } }), settings())
    expect(judge.stillHolds(identity)).toEqual({ identity: { ...identity, rights: user('new') } })
    const again = identityIn(judge.stillHolds(identity))
    const changes: (Partial<JudgeSettings> | undefined)[] = [
      { oauth: { ...oauth!, map: [{ claim: 'groups', equals: 'x', as: 'guest' }] } },
      { oauth: { ...oauth!, issuer: 'https://127.0.0.1:1' } },
      { oauth: { ...oauth!, audience: ['other'] } },
      { oauth: { ...oauth!, audience: [] } },
      undefined,
    ]
    for (const change of changes) {
      judge.adopt(people(), change && settings(change))
      expect(judge.stillHolds(identity)).toEqual(UNAUTHENTICATED)
      expect(judge.stillHolds(again)).toEqual(UNAUTHENTICATED)
    }
    judge.adopt(principalsOf({ dev: { rights: user('a') } }), settings())
    expect(judge.stillHolds(identity)).toEqual(UNAUTHENTICATED)
    judge.adopt(people(), settings({ oauth: { ...oauth!, audience: [AUDIENCE, 'other'] } }))
    const meanwhile = identityIn(judge.stillHolds(identity))
    judge.adopt(people(), settings())
    expect(judge.stillHolds(meanwhile)).toHaveProperty('identity')
    expect(judge.stillHolds({ ...identity })).toHaveProperty('identity')
    nowMs = exp * 1_000
    expect(judge.stillHolds(identity)).toEqual(EXPIRED)
  })
})

describe('a certificate', () => {
  const agents = (rights: Rights): KnownPrincipals => principalsOf({ agent: { rights } })

  test('is the principal of its rule until it ends; of no rule it is nothing', () => {
    verifies('9.16-subject')
    judge.adopt(agents(user('a')), settings())
    expect(judge.ofCertificate(AGENT)).toEqual({
      identity: {
        ...{ principal: 'agent', rights: user('a'), via: 'certificate', expiresAtMs: Date.parse(AGENT.validTo) },
        credential: AGENT.fingerprint256.replaceAll(':', '').slice(0, 8).toLowerCase(),
      },
    })
    judge.adopt(principalsOf({}), settings())
    expect(judge.ofCertificate(AGENT)).toEqual(UNAUTHENTICATED)
    judge.adopt(agents(user('a')), settings({ certificates: [{ subject: 'CN=other', as: 'agent' }] }))
    expect(judge.ofCertificate(AGENT)).toBeUndefined()
  })

  test('holds on while its principal and its rule do, and until it ends', () => {
    verifies('9.5-still-good', '9.10-new-rights')
    judge.adopt(agents(user('a')), settings())
    const identity = identityIn(judge.ofCertificate(AGENT))
    judge.adopt(agents(user('b')), settings())
    expect(identityIn(judge.stillHolds(identity)).rights).toEqual(user('b'))
    judge.adopt(agents(user('b')), settings({ certificates: [{ subject: 'CN=other', as: 'agent' }] }))
    expect(judge.stillHolds(identity)).toEqual(UNAUTHENTICATED)
    judge.adopt(principalsOf({}), settings())
    expect(judge.stillHolds(identity)).toEqual(UNAUTHENTICATED)
    judge.adopt(agents(user('b')), settings())
    nowMs = Date.parse(AGENT.validTo)
    expect(judge.stillHolds(identity)).toEqual(EXPIRED)
    expect(judge.ofCertificate(AGENT)).toEqual(EXPIRED)
  })
})

test('local is always local, and anonymous as long as it may be', () => {
  verifies('9.5-still-good')
  judge.adopt(principalsOf({}), settings({ anonymous: user('open') }))
  const identity = identityIn(judge.anonymous())
  expect(judge.stillHolds(identityIn(judge.local()))).toEqual(judge.local())
  expect(judge.stillHolds(identity)).toEqual(judge.anonymous())
  judge.adopt(principalsOf({}), settings())
  expect(judge.stillHolds(identity)).toEqual(UNAUTHENTICATED)
})

test('no credential is in what is told', async () => {
  verifies('9.26-no-credential')
  const [token, signed] = [makeToken(), await issuer.sign(key)]
  judge.adopt(principalsOf({ guest: { rights: user('a'), tokens: [{ token }] } }), settings())
  const verdicts = [await judge.ofToken(token), await judge.ofToken(signed), await judge.ofToken(`${signed}x`)]
  await issuer.close()
  verdicts.push(await judge.ofToken(await issuer.sign(await makeKey('Ed25519'))))
  const seen = inspect({ verdicts, told }, { depth: Number.POSITIVE_INFINITY, showHidden: true })
  for (const secret of [token, signed, ...signed.split('.'), digestOf(token), digestOf(signed)])
    expect(seen).not.toContain(secret)
  issuer = await Issuer.start()
})
