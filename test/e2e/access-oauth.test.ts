/** Signed tokens on real lines, with an issuer on this machine (contract 9.11 to 9.13, 9.5). */
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { AUDIENCE, Issuer, KEYS, makeKey, type SigningKey } from '../support/issuer.ts'
import { pool } from '../support/pools.ts'
import { NOT_ALLOWED, sharedHouse, startHouse, UNKNOWN } from './access-harness.ts'

const now = () => Math.floor(Date.now() / 1_000)
const MAP = [
  { claim: 'scope', equals: 'bus:write', as: 'dev' },
  { claim: 'scope', equals: 'bus:read', as: 'watch' },
]
const PRINCIPALS = { dev: { rate: '3/h' }, watch: { role: 'observer' } }

let issuer: Issuer
let key: SigningKey
let forger: SigningKey
let none: Issuer

beforeAll(async () => {
  issuer = await Issuer.start()
  none = await Issuer.start()
  key = await makeKey('ES256', 'known')
  forger = await makeKey('ES256', 'known')
  issuer.publish(key)
})
afterAll(() => Promise.all([issuer.close(), none.close()]))

const oauth = () => ({ issuer: issuer.url, audience: AUDIENCE, map: MAP })

describe('9.11 signed tokens', () => {
  const house = sharedHouse({
    principals: PRINCIPALS,
    get access() {
      return { oauth: oauth(), audit: 'audit.log' }
    },
  })

  test('9.11 prove a principal, and 9.13 a subject that counts for itself', async () => {
    verifies('9.11-lines', '9.13-on-lines')
    const token = await issuer.sign(key, { scope: 'openid bus:write', sub: 'ann' })
    const [ann, answer] = await house().present(token)
    expect(answer.result).toMatchObject({ principal: 'dev', subject: 'ann', role: 'user' })
    expect((await ann.ask({ id: 'who', method: 'bus::whoami' })).result).toMatchObject({
      principal: 'dev',
      subject: 'ann',
      via: 'jwt',
      expires: expect.any(String),
    })
    const again = await house().enter(token)
    for (const client of [ann, again, ann])
      expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    expect(await again.ask({ id: 2, method: 'm' })).toMatchObject({ error: { data: { reason: 'rate_limited' } } })
    const ben = await house().enter(await issuer.sign(key, { scope: 'bus:write', sub: 'ben' }))
    expect(await ben.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    expect(await house().audited({ event: 'call', subject: 'ben' })).toMatchObject({ principal: 'dev', via: 'jwt' })
    const { principals } = (await house().bus.status()) as unknown as { principals: { name: string }[] }
    expect(principals.map(({ name }) => name)).toEqual(expect.arrayContaining(['dev/ann', 'dev/ben']))
    const other = {
      id: 3,
      method: 'bus::open',
      params: { token: await issuer.sign(key, { scope: 'bus:write', sub: 'eve' }) },
    }
    expect(await ben.ask(other)).toMatchObject(NOT_ALLOWED)
    const fresh = {
      id: 4,
      method: 'bus::open',
      params: { token: await issuer.sign(key, { scope: 'bus:write', sub: 'ben', jti: '2' }) },
    }
    expect(await ben.ask(fresh)).toMatchObject({ result: { subject: 'ben' } })
  })

  test('9.13 the first row that matches counts, and none is not_allowed', async () => {
    verifies('9.13-on-lines')
    const [, both] = await house().present(await issuer.sign(key, { scope: 'bus:read bus:write', sub: 'x' }))
    expect(both.result).toMatchObject({ principal: 'dev' })
    const [, read] = await house().present(await issuer.sign(key, { scope: 'bus:read', sub: 'y' }))
    expect(read.result).toMatchObject({ principal: 'watch', role: 'observer' })
    const [client, nobody] = await house().present(await issuer.sign(key, { scope: 'bus:readwrite', sub: 'z' }))
    expect(nobody).toMatchObject(NOT_ALLOWED)
    expect(await client.untilClosed()).toEqual([])
  })

  const forged: [string, () => Promise<string> | string][] = [
    ['of another key under a known name', () => issuer.sign(forger)],
    ['of another issuer', () => issuer.sign(key, { iss: 'https://elsewhere.example.com' })],
    ['with a slash at the issuer', () => issuer.sign(key, { iss: `${issuer.url}/` })],
    ['for another audience', () => issuer.sign(key, { aud: 'https://other.example.com' })],
    ['without an audience', () => issuer.sign(key, { aud: undefined })],
    ['without an end', () => issuer.sign(key, { exp: undefined })],
    ['for later', () => issuer.sign(key, { nbf: now() + 300 })],
    ['of none', async () => `${btoa('{"alg":"none"}').replace(/=/g, '')}.${(await issuer.sign(key)).split('.')[1]}.`],
    ['cut', async () => (await issuer.sign(key)).slice(0, -3)],
    [
      'with a changed claim',
      async () => swapClaims(await issuer.sign(key), await issuer.sign(key, { scope: 'bus:write' })),
    ],
    ['with three dots', async () => `${await issuer.sign(key)}.x`],
    ['beyond 8 KiB', () => issuer.sign(key, { more: 'x'.repeat(8_192) })],
  ]

  test.each(forged)('9.11 one %s is unauthenticated', async (_what, make) => {
    verifies('9.11-forged')
    const token = await make()
    const [client, answer] = await house().present(token)
    expect(answer).toMatchObject(UNKNOWN)
    expect(await client.untilClosed()).toEqual([])
    expect(house().bus.log.text).not.toContain(token.slice(-40))
  })

  test('9.11 one that has expired says so', async () => {
    verifies('9.11-forged')
    const [, answer] = await house().present(await issuer.sign(key, { exp: now() - 60 }))
    expect(answer).toMatchObject({ error: { data: { reason: 'unauthenticated', why: 'expired' } } })
  })

  test('9.12 a key that is new is read when it is needed; what follows the token waits, in order', async () => {
    verifies('9.12-on-lines', '9.3-in-order')
    const next = await makeKey('ES256')
    issuer.publish(key, next)
    // An unknown key may have been asked for a moment ago, and is asked for again once in 5 s.
    const token = await issuer.sign(next, { scope: 'bus:write', sub: 'new' })
    const before = issuer.countOf(KEYS)
    let answers: { id: unknown; result?: unknown }[] = []
    for (let round = 0; round < 30 && answers[1]?.result === undefined; round++) {
      if (round > 0) await new Promise((resolve) => setTimeout(resolve, 500))
      const client = await house().knock()
      const open = { id: 'open', method: 'bus::open', params: { token } }
      client.sendRaw(`${JSON.stringify(open)}\n{"id":"behind","method":"m"}\n`)
      client.endWriting()
      answers = await client.untilClosed()
    }
    expect(answers).toMatchObject([
      { id: 'open', result: { subject: 'new' } },
      { id: 'behind', result: {} },
    ])
    expect(issuer.countOf(KEYS)).toBeGreaterThan(before)
  })
})

test('9.5 a connection ends with its signed token, within a second of exp', async () => {
  verifies('9.5-expired')
  const house = await startHouse({ principals: PRINCIPALS, access: { oauth: oauth() }, pools: [pool('silent')] })
  const exp = now() + 2
  const client = await house.enter(await issuer.sign(key, { scope: 'bus:write', exp }))
  client.send({ id: 1, method: 'm' })
  const last = await client.untilClosed()
  expect(last).toMatchObject([{ id: 1, error: { data: { reason: 'unauthenticated', why: 'expired' } } }, { id: null }])
  expect(Date.now()).toBeGreaterThanOrEqual(exp * 1_000)
})

test('9.12 without keys it is keys_unavailable; the start does not wait, and others come in', async () => {
  verifies('9.12-on-lines')
  const held: ServerResponse[] = []
  none.misbehave = (_request, response) => held.push(response) > 0
  const access = { oauth: { ...oauth(), issuer: none.url } }
  const house = await startHouse({ principals: { ...PRINCIPALS, alice: {} }, access })
  const alice = await house.enter('alice')
  // Its issuer does not answer: what it has sent is held, and nobody else is.
  const waiting = await house.knock()
  const token = await none.sign(key)
  waiting.send({ id: 'open', method: 'bus::open', params: { token } })
  waiting.send({ id: 'behind', method: 'never-heard' })
  expect(await alice.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
  const leaves = await house.knock()
  leaves.send({ id: 'open', method: 'bus::open', params: { token } })
  leaves.reset()
  const fail = (response: ServerResponse): void => {
    response.statusCode = 500
    response.end()
  }
  none.misbehave = (_request, response) => {
    fail(response)
    return true
  }
  for (const response of held) fail(response)
  const answers = await waiting.untilClosed()
  expect(answers).toHaveLength(1)
  expect(answers[0].error.data.reason).toMatch(/keys_unavailable|unauthenticated/)
  const [, refused] = await house.present(token)
  expect(refused).toMatchObject({ error: { code: -32603, data: { reason: 'keys_unavailable', retryable: true } } })
  expect(refused.error.data.retry_after_ms).toBeGreaterThan(0)
})

function swapClaims(token: string, other: string): string {
  const [head, , signature] = token.split('.')
  return [head, other.split('.')[1], signature].join('.')
}
