/** Really signed tokens of a real issuer, good and bad. */
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { CompactSign, type CryptoKey, exportSPKI, FlattenedSign, importJWK, type JWK } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { AUDIENCE, Issuer, KEYS, makeKey, type SigningKey } from '../../../test/support/issuer.ts'
import { digestOf } from '../token.ts'
import { type Judged, MAX_TOKEN_BYTES, type Proof, SignedTokens } from './jwt.ts'
import { COOL_DOWN_MS, IssuerKeys } from './keys.ts'
import type { OAuthSettings } from './settings.ts'

const ALLOWED = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'Ed25519', 'EdDSA']
const READER = { claim: 'scope', equals: 'bus:read', as: 'reader' }
const UNAUTHENTICATED = { refusal: { reason: 'unauthenticated' } }
const EXPIRED = { refusal: { reason: 'unauthenticated', why: 'expired' } }

let issuer: Issuer
let keys: IssuerKeys
let key: SigningKey
let nowMs = Date.now()
/** Goes on by itself, so that a token can be judged at any time with keys that are read when they are needed. */
let keysNowMs = 0
let tokens: SignedTokens

const clock = (): number => nowMs
const nowSec = (): number => Math.floor(nowMs / 1_000)

function tokensFor(settings: Partial<OAuthSettings> = {}): SignedTokens {
  return new SignedTokens({ issuer: issuer.url, audience: [AUDIENCE], map: [READER], ...settings }, keys, clock)
}

async function judge(token: string, resource?: string): Promise<Judged> {
  return tokens.judge(token, resource)
}

async function proofOf(token: string): Promise<Proof> {
  const judged = await judge(token)
  if ('refusal' in judged) throw new Error(`refused: ${JSON.stringify(judged)}`)
  return judged.proof
}

const segment = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const goodClaims = (): object => ({
  iss: issuer.url,
  aud: AUDIENCE,
  sub: 'ann',
  scope: 'bus:read',
  exp: nowSec() + 600,
})

beforeAll(async () => {
  issuer = await Issuer.start()
  key = await makeKey('ES256')
  issuer.publish(key)
  keys = new IssuerKeys({ issuer: issuer.url, jwksUrl: issuer.keysUrl }, { now: () => keysNowMs, onState: () => {} })
  keys.start()
})

beforeEach(() => {
  nowMs = Date.now()
  tokens = tokensFor()
})

afterAll(async () => {
  keys.close()
  await issuer.close()
})

/** Publishes keys beside the usual one, and lets the next unknown one be read for. */
function publishToo(...others: SigningKey[]): void {
  issuer.publish(key, ...others)
  keysNowMs += COOL_DOWN_MS
}

describe('who signed it', () => {
  test.each(ALLOWED)('%s is taken', async (alg) => {
    verifies('9.11-algorithms')
    const signer = await makeKey(alg)
    publishToo(signer)
    expect(await proofOf(await issuer.sign(signer))).toMatchObject({ rule: READER, subject: 'ann' })
  })

  test('none is not', async () => {
    verifies('9.11-algorithms')
    for (const alg of ['none', 'None', '']) {
      expect(await judge(`${segment({ alg, kid: key.kid })}.${segment(goodClaims())}.`)).toEqual(UNAUTHENTICATED)
      expect(await judge(`${segment({ alg, kid: key.kid })}.${segment(goodClaims())}.AAAA`)).toEqual(UNAUTHENTICATED)
    }
  })

  test.each(['HS256', 'HS384', 'HS512'])('%s is not, whatever public text the secret is', async (alg) => {
    verifies('9.11-algorithms')
    const rsa = await makeKey('RS256')
    publishToo(rsa)
    const spki = await exportSPKI((await importJWK(rsa.publicJwk, 'RS256', { extractable: true })) as CryptoKey)
    for (const secret of [spki, spki.trim(), JSON.stringify(rsa.publicJwk), rsa.publicJwk.n!, '']) {
      const signed = `${segment({ alg, kid: rsa.kid })}.${segment(goodClaims())}`
      const mac = createHmac(`sha${alg.slice(2)}`, secret)
        .update(signed)
        .digest('base64url')
      expect(await judge(`${signed}.${mac}`)).toEqual(UNAUTHENTICATED)
    }
  })

  test('a secret key among the published ones verifies nothing', async () => {
    verifies('9.11-algorithms')
    const secret = Buffer.alloc(32, 7)
    publishToo({ ...key, publicJwk: { kty: 'oct', k: secret.toString('base64url'), kid: 'oct', alg: 'HS256' } })
    const signed = `${segment({ alg: 'HS256', kid: 'oct' })}.${segment(goodClaims())}`
    const mac = createHmac('sha256', secret).update(signed).digest('base64url')
    expect(await judge(`${signed}.${mac}`)).toEqual(UNAUTHENTICATED)
  })

  test('a shared secret is not taken, whatever key is found for it', async () => {
    verifies('9.11-algorithms')
    const secret = (await importJWK({ kty: 'oct', k: segment('secret') }, 'HS256')) as Uint8Array
    const found = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
    const careless = { find: async () => ({ keys: [found] }) }
    tokens = new SignedTokens({ issuer: issuer.url, audience: [AUDIENCE], map: [READER] }, careless, clock)
    const signed = `${segment({ alg: 'HS256' })}.${segment(goodClaims())}`
    const mac = createHmac('sha256', secret).update(signed).digest('base64url')
    expect(await judge(`${signed}.${mac}`)).toEqual(UNAUTHENTICATED)
  })

  test('another algorithm than that of the key is not taken', async () => {
    verifies('9.11-algorithms')
    const rsa = await makeKey('RS256')
    publishToo(rsa)
    for (const alg of ['PS256', 'RS512', 'ES256', 'Ed25519', 'ES256K', 'ML-DSA-44', 'rs256']) {
      const [, claims, signature] = (await issuer.sign(rsa)).split('.')
      expect(await judge(`${segment({ alg, kid: rsa.kid })}.${claims}.${signature}`)).toEqual(UNAUTHENTICATED)
    }
    for (const alg of [256, null, ['RS256'], {}]) {
      expect(await judge(`${segment({ alg, kid: rsa.kid })}.${segment(goodClaims())}.AAAA`)).toEqual(UNAUTHENTICATED)
    }
  })

  test('RSA of 1,024 bits is refused, of 2,048 taken', async () => {
    verifies('9.11-small-rsa')
    for (const [modulusLength, isTaken] of [
      [1_024, false],
      [2_048, true],
    ] as const) {
      const pair = generateKeyPairSync('rsa', { modulusLength })
      const jwk = pair.publicKey.export({ format: 'jwk' }) as JWK
      const kid = `rsa-${modulusLength}`
      publishToo({ ...key, publicJwk: { ...jwk, kid, alg: 'RS256', use: 'sig' } })
      const signed = `${segment({ alg: 'RS256', kid })}.${segment(goodClaims())}`
      const signature = sign('sha256', Buffer.from(signed), pair.privateKey).toString('base64url')
      const judged = await judge(`${signed}.${signature}`)
      expect('proof' in judged, kid).toBe(isTaken)
    }
  })

  test('a key that the token brings along is not looked at', async () => {
    verifies('9.11-header')
    const forger = await makeKey('ES256', key.kid)
    const asked = issuer.asked.length
    const away = `${issuer.url}/forged`
    for (const header of [{ jwk: forger.publicJwk }, { jku: away }, { x5u: away }, { x5c: ['AAAA'] }]) {
      expect(await judge(await issuer.sign(forger, {}, header))).toEqual(UNAUTHENTICATED)
      expect(await proofOf(await issuer.sign(key, {}, header))).toMatchObject({ subject: 'ann' })
    }
    expect(issuer.asked.slice(asked)).not.toContain('/forged')
  })

  test('an unknown crit is refused, one that is not signed for too', async () => {
    verifies('9.11-header')
    const [, claims, signature] = (await issuer.sign(key)).split('.')
    for (const crit of [['exp'], ['x'], [], 'exp', ['b64', 'b64'], [1]]) {
      const header = segment({ alg: 'ES256', kid: key.kid, crit, exp: 1, x: 1, b64: true })
      expect(await judge(`${header}.${claims}.${signature}`)).toEqual(UNAUTHENTICATED)
    }
    const signed = await new FlattenedSign(new TextEncoder().encode(JSON.stringify(goodClaims())))
      .setProtectedHeader({ alg: 'ES256', kid: key.kid, crit: ['urn:x'], 'urn:x': 1 })
      .sign(key.privateKey, { crit: { 'urn:x': true } })
    expect(await judge(`${signed.protected}.${signed.payload}.${signed.signature}`)).toEqual(UNAUTHENTICATED)
  })

  test('a payload that is not encoded is refused', async () => {
    const claims = JSON.stringify(goodClaims()).replaceAll('.', '\\u002e')
    const { protected: header, signature } = await new FlattenedSign(Buffer.from(claims))
      .setProtectedHeader({ alg: 'ES256', kid: key.kid, crit: ['b64'], b64: false })
      .sign(key.privateKey)
    expect(await judge(`${header}.${claims}.${signature}`)).toEqual(UNAUTHENTICATED)
  })

  test('one changed bit anywhere is refused', async () => {
    const token = await issuer.sign(key)
    const parts = token.split('.')
    for (const [index, part] of parts.entries()) {
      const bytes = Buffer.from(part, 'base64url')
      bytes[bytes.length >> 1]! ^= 1
      expect(await judge(parts.with(index, bytes.toString('base64url')).join('.'))).toEqual(UNAUTHENTICATED)
    }
  })

  test('a token without a kid is tried with every key that could have signed it', async () => {
    const [old, fresh] = [await makeKey('ES384'), await makeKey('ES384')]
    issuer.publish(key, old, fresh)
    keysNowMs += COOL_DOWN_MS
    expect(await proofOf(await issuer.sign(old))).toMatchObject({ subject: 'ann' })
    for (const signer of [old, fresh]) {
      expect(await proofOf(await issuer.sign(signer, {}, { kid: undefined }))).toMatchObject({ subject: 'ann' })
    }
    const stranger = await makeKey('ES384')
    expect(await judge(await issuer.sign(stranger, {}, { kid: undefined }))).toEqual(UNAUTHENTICATED)
  })

  test('a kid that is no text is that of no key', async () => {
    for (const kid of [1, null, {}, [key.kid]]) {
      expect(await judge(await issuer.sign(key, {}, { kid }))).toEqual(UNAUTHENTICATED)
    }
  })
})

describe('what it says', () => {
  test('iss is exact', async () => {
    verifies('9.11-claims')
    for (const iss of [`${issuer.url}/`, issuer.url.toUpperCase(), '', undefined, null, [issuer.url], 1]) {
      expect(await judge(await issuer.sign(key, { iss }))).toEqual(UNAUTHENTICATED)
    }
  })

  test('aud is among the audience, as a text or in a list', async () => {
    verifies('9.11-claims')
    tokens = tokensFor({ audience: [AUDIENCE, 'bus'] })
    for (const aud of [AUDIENCE, 'bus', [AUDIENCE], ['other', 'bus'], [1, 'bus']]) {
      expect(await proofOf(await issuer.sign(key, { aud }))).toMatchObject({ subject: 'ann' })
    }
    for (const aud of [`${AUDIENCE}/`, 'BUS', '', [], ['other'], undefined, null, { bus: 'bus' }, [['bus']]]) {
      expect(await judge(await issuer.sign(key, { aud }))).toEqual(UNAUTHENTICATED)
    }
  })

  test('without an audience a token is for the door it was made for, and proves nothing at another', async () => {
    verifies('9.11-default-audience')
    tokens = tokensFor({ audience: [] })
    const token = await issuer.sign(key, { aud: `${AUDIENCE}/mcp` })
    expect(await judge(token, `${AUDIENCE}/mcp`)).toMatchObject({ proof: { subject: 'ann' } })
    expect(await judge(token, `${AUDIENCE}/acp`)).toEqual(UNAUTHENTICATED)
    expect(await judge(token, undefined)).toEqual(UNAUTHENTICATED)
    expect(await judge(token, `${AUDIENCE}/mcp`)).toMatchObject({ proof: { subject: 'ann' } })
  })

  test('exp is required, a number, and ahead, by at most 30 s of difference', async () => {
    verifies('9.11-claims', '9.11-skew')
    const now = nowSec()
    nowMs = now * 1_000
    for (const exp of [undefined, null, String(now + 60), [now + 60]]) {
      expect(await judge(await issuer.sign(key, { exp }))).toEqual(UNAUTHENTICATED)
    }
    expect(await judge(await issuer.sign(key, { exp: now - 30 }))).toEqual(EXPIRED)
    expect(await judge(await issuer.sign(key, { exp: -1 }))).toEqual(EXPIRED)
    expect(await proofOf(await issuer.sign(key, { exp: now - 29 }))).toMatchObject({ expiresAtMs: (now + 1) * 1_000 })
    expect(await proofOf(await issuer.sign(key, { exp: now + 1 }))).toMatchObject({ expiresAtMs: (now + 1) * 1_000 })
    const { expiresAtMs } = await proofOf(await issuer.sign(key, { exp: 1e300 }))
    expect(new Date(expiresAtMs).toISOString()).toBe('+275760-09-13T00:00:00.000Z')
  })

  test('nbf holds, by at most 30 s of difference', async () => {
    verifies('9.11-claims', '9.11-skew')
    const now = nowSec()
    nowMs = now * 1_000
    expect(await proofOf(await issuer.sign(key, { nbf: now + 30 }))).toMatchObject({ subject: 'ann' })
    expect(await judge(await issuer.sign(key, { nbf: now + 31 }))).toEqual(UNAUTHENTICATED)
    expect(await judge(await issuer.sign(key, { nbf: 'soon' }))).toEqual(UNAUTHENTICATED)
  })

  test('expired is said only of a token that was good once', async () => {
    const exp = nowSec() - 3_600
    const forged = await makeKey('ES256', key.kid)
    expect(await judge(await issuer.sign(key, { exp }))).toEqual(EXPIRED)
    expect(await judge(await issuer.sign(forged, { exp }))).toEqual(UNAUTHENTICATED)
    expect(await judge(await issuer.sign(key, { exp, aud: 'other' }))).toEqual(UNAUTHENTICATED)
  })

  test('a subject is a text or missing', async () => {
    verifies('9.13-subject')
    expect(await proofOf(await issuer.sign(key, { sub: undefined }))).toMatchObject({ subject: undefined })
    for (const sub of [1, null, '', ['ann'], {}]) {
      expect(await judge(await issuer.sign(key, { sub }))).toEqual(UNAUTHENTICATED)
    }
  })

  test('claims that are no object are refused', async () => {
    for (const text of ['[]', 'null', '"x"', '', '{', '\uFEFF{}', '[{"iss":1}]']) {
      const token = await new CompactSign(new TextEncoder().encode(text))
        .setProtectedHeader({ alg: 'ES256', kid: key.kid })
        .sign(key.privateKey)
      expect(await judge(token)).toEqual(UNAUTHENTICATED)
    }
  })
})

describe('its size and its form', () => {
  /** Three letters are four of a token, so not every size can be met by claims alone. */
  async function sized(bytes: number): Promise<string> {
    for (const x of ['', 'x', 'xx', 'xxx']) {
      for (let pad = 5_700, size = 0; size < bytes; pad++) {
        const token = await issuer.sign(key, { pad: 'x'.repeat(pad) }, { x })
        size = token.length
        if (size === bytes) return token
      }
    }
    throw new Error(`no token of ${bytes} bytes`)
  }

  test('8 KiB are taken, one byte more is not, and is not looked at', async () => {
    verifies('9.11-size')
    const [token, longer] = [await sized(MAX_TOKEN_BYTES), await sized(MAX_TOKEN_BYTES + 1)]
    expect(await proofOf(token)).toMatchObject({ subject: 'ann' })
    expect(await judge(longer)).toEqual(UNAUTHENTICATED)
    expect(await judge('a.'.repeat(5_000_000))).toEqual(UNAUTHENTICATED)
  })

  test.each([
    '..',
    'a.b.c',
    '.a.',
    'a..b',
    '\u0000.\u0000.\u0000',
    'é.é.é',
    '{}.{}.{}',
    `${'['.repeat(4_000)}..`,
    '🔑.🔑.🔑',
    ' . . ',
  ])('what is no token at all is refused: %j', async (token) => expect(await judge(token)).toEqual(UNAUTHENTICATED))

  test('a header of a million brackets, or one that names a prototype, is refused', async () => {
    const deep = Buffer.from(`{"alg":${'['.repeat(2_900)}${']'.repeat(2_900)}}`).toString('base64url')
    const proto = Buffer.from('{"__proto__":{"alg":"none"},"alg":"constructor"}').toString('base64url')
    for (const header of [deep, proto])
      expect(await judge(`${header}.${segment(goodClaims())}.AA`)).toEqual(UNAUTHENTICATED)
  })
})

describe('what is kept of it', () => {
  test('a good token is judged at once from then on, until it expires', async () => {
    verifies('9.12-kept')
    const exp = nowSec() + 100
    const token = await issuer.sign(key, { exp })
    const judged = tokens.judge(token)
    expect(judged).toBeInstanceOf(Promise)
    await judged
    expect(tokens.judge(token)).toEqual({
      proof: { rule: READER, subject: 'ann', credential: digestOf(token).slice(0, 8), expiresAtMs: exp * 1_000 },
    })
    nowMs = exp * 1_000
    const late = tokens.judge(token)
    expect(late).toBeInstanceOf(Promise)
    expect(await late).toMatchObject({ proof: { expiresAtMs: (exp + 30) * 1_000 } })
    nowMs = (exp + 30) * 1_000
    expect(await tokens.judge(token)).toEqual(EXPIRED)
  })

  test('of a bad one nothing is kept', async () => {
    verifies('9.12-kept')
    const token = await issuer.sign(key, { aud: 'other' })
    await tokens.judge(token)
    expect(tokens.judge(token)).toBeInstanceOf(Promise)
  })

  test('a forged token does not profit from a good one with the same signature or the same claims', async () => {
    const good = await issuer.sign(key)
    await judge(good)
    const [header, claims, signature] = good.split('.')
    expect(await judge(`${header}.${segment({ ...goodClaims(), scope: 'bus:admin' })}.${signature}`)).toEqual(
      UNAUTHENTICATED,
    )
    expect(await judge(`${header}.${claims}.${signature!.replace(/^./, (c) => (c === 'A' ? 'B' : 'A'))}`)).toEqual(
      UNAUTHENTICATED,
    )
  })
})

test('keys are asked for at their address alone', () => {
  expect(new Set(issuer.asked)).toEqual(new Set([KEYS]))
})
