/** Keys of a real issuer on this machine: where they are found, when they are read, and what happens when they cannot be. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { Issuer, KEYS, makeKey, OPENID, RFC_8414, type SigningKey } from '../../../test/support/issuer.ts'
import { eventually } from '../../../test/support/waiting.ts'
import { DOCUMENT_TIMEOUT_MS, MAX_DOCUMENT_BYTES } from './issuer-document.ts'
import { COOL_DOWN_MS, IssuerKeys, type KeyAnswer, MAX_KEYS, metadataUrls, REFRESH_MS, SERVES_MS } from './keys.ts'

const HOUR_MS = 3_600_000

let issuer: Issuer
let key: SigningKey
let nowMs: number
let told: string[]
const opened: IssuerKeys[] = []

beforeEach(async () => {
  nowMs = 1_000_000
  told = []
  issuer = await Issuer.start()
  key = await makeKey('ES256')
  issuer.publish(key)
})

afterEach(async () => {
  vi.useRealTimers()
  for (const keys of opened.splice(0)) keys.close()
  await issuer.close()
})

function start(settings: { issuer?: string; jwksUrl?: string } = {}): IssuerKeys {
  const keys = new IssuerKeys(
    { issuer: issuer.url, ...settings },
    { now: () => nowMs, onState: ({ state, message }) => told.push(`${state}: ${message}`) },
  )
  opened.push(keys)
  keys.start()
  return keys
}

const askFor = (keys: IssuerKeys, { alg, kid } = key): Promise<KeyAnswer> => keys.find({ alg, kid })
const isFound = (answer: KeyAnswer): boolean => 'keys' in answer && answer.keys.length === 1
const UNKNOWN = { keys: [] }

describe('where they are', () => {
  test('at jwks_url, and nothing else is asked', async () => {
    verifies('9.12-discovery')
    expect(isFound(await askFor(start({ jwksUrl: issuer.keysUrl })))).toBe(true)
    expect(issuer.asked).toEqual([KEYS])
  })

  test('where RFC 8414 says, or else OpenID', async () => {
    verifies('9.12-discovery')
    expect(isFound(await askFor(start()))).toBe(true)
    expect(issuer.asked).toEqual([RFC_8414, KEYS])
    issuer.asked.length = 0
    issuer.misbehave = ({ url }, response) => {
      if (url === OPENID) response.end(JSON.stringify(issuer.metadata))
      else if (url === RFC_8414) response.writeHead(404).end()
      return url !== KEYS
    }
    expect(isFound(await askFor(start()))).toBe(true)
    expect(issuer.asked).toEqual([RFC_8414, OPENID, KEYS])
  })

  test('the path of an issuer comes after the one name and before the other', () => {
    verifies('9.12-discovery')
    const expected = [
      'https://id.example.com/.well-known/oauth-authorization-server/realms/a',
      'https://id.example.com/realms/a/.well-known/openid-configuration',
    ]
    expect(metadataUrls('https://id.example.com/realms/a')).toEqual(expected)
    expect(metadataUrls('https://id.example.com/realms/a/')).toEqual(expected)
    expect(metadataUrls('https://id.example.com')[0]).toBe(
      'https://id.example.com/.well-known/oauth-authorization-server',
    )
  })

  test.each([
    ['of another issuer', { issuer: 'https://id.example.com' }],
    ['of nearly the same issuer', (url: string) => ({ issuer: `${url}/` })],
    ['of nobody', { issuer: undefined }],
    ['without jwks_uri', { jwks_uri: undefined }],
    ['with a jwks_uri that is no text', { jwks_uri: ['x'] }],
    ['with a jwks_uri that is no URL', { jwks_uri: 'keys' }],
  ])('metadata %s are not believed', async (_what, change) => {
    verifies('9.12-discovery')
    Object.assign(issuer.metadata, typeof change === 'function' ? change(issuer.url) : change)
    expect(await askFor(start())).toHaveProperty('retryAfterMs')
    expect(issuer.asked).not.toContain(KEYS)
  })

  test.each([
    'http://192.0.2.1/keys',
    'http://example.com/keys',
    'ftp://127.0.0.1/keys',
    'file:///etc/hosts',
    'data:,{}',
  ])('%s is not read', async (jwksUrl) => {
    verifies('9.12-https')
    expect(await askFor(start({ jwksUrl }))).toHaveProperty('retryAfterMs')
    expect(told).toEqual([expect.stringContaining('neither https nor http on this machine')])
    issuer.metadata = { ...issuer.metadata, jwks_uri: jwksUrl }
    expect(await askFor(start())).toHaveProperty('retryAfterMs')
  })

  test('what is told of a failure has no user, password or query in it', async () => {
    for (const jwksUrl of [
      'http://ann:sesame@example.com/keys?key=sesame',
      `${issuer.url.replace('//', '//ann:sesame@')}/keys?key=sesame`,
    ]) {
      await askFor(start({ jwksUrl }))
    }
    expect(told).toHaveLength(2)
    expect(told.join()).not.toContain('sesame')
  })
})

describe('what is not taken for keys', () => {
  const keysAnswer = (head: (response: import('node:http').ServerResponse) => void): void => {
    issuer.misbehave = ({ url }, response) => {
      if (url === KEYS) head(response)
      return url === KEYS
    }
  }

  test.each([301, 302, 303, 307, 308])('a redirect (%i)', async (status) => {
    verifies('9.12-bounds')
    issuer.misbehave = ({ url }, response) => {
      if (url === KEYS) response.writeHead(status, { location: '/elsewhere' }).end()
      else response.end(JSON.stringify(issuer.published))
      return true
    }
    expect(await askFor(start({ jwksUrl: issuer.keysUrl }))).toHaveProperty('retryAfterMs')
    expect(issuer.asked).not.toContain('/elsewhere')
    expect(told).toEqual([expect.stringContaining(`HTTP ${status}`)])
  })

  test('what takes longer than 5 s, however slowly it comes', async () => {
    verifies('9.12-bounds')
    const drips: NodeJS.Timeout[] = []
    keysAnswer((response) => {
      response.write('{')
      drips.push(setInterval(() => response.write(' '), 100))
    })
    // One that takes connections and says nothing: there is not even a handshake.
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const startedMs = performance.now()
    for (const answer of await Promise.all(
      [issuer.keysUrl, `https://127.0.0.1:${port}`].map((jwksUrl) => askFor(start({ jwksUrl }))),
    )) {
      expect(answer).toHaveProperty('retryAfterMs')
    }
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(DOCUMENT_TIMEOUT_MS - 50)
    drips.forEach(clearInterval)
    silent.close()
    expect(told).toEqual(Array(2).fill(expect.stringContaining('nothing whole within 5 s')))
  })

  test('256 KiB are read, one byte more is not, packed or plain', async () => {
    verifies('9.12-bounds')
    const body = JSON.stringify(issuer.published)
    const exact = body.padEnd(MAX_DOCUMENT_BYTES)
    for (const [text, isTaken] of [
      [exact, true],
      [`${exact} `, false],
    ] as const) {
      keysAnswer((response) => response.end(text))
      expect(isFound(await askFor(start({ jwksUrl: issuer.keysUrl })))).toBe(isTaken)
      keysAnswer((response) => response.setHeader('content-encoding', 'gzip').end(gzipSync(text)))
      expect(isFound(await askFor(start({ jwksUrl: issuer.keysUrl })))).toBe(isTaken)
    }
  })

  test('100 keys are taken, 101 are not', async () => {
    verifies('9.12-bounds')
    const others = (count: number): object[] =>
      Array.from({ length: count }, (_, n) => ({ ...key.publicJwk, kid: `o${n}` }))
    issuer.published = { keys: [...others(MAX_KEYS - 1), key.publicJwk] }
    expect(isFound(await askFor(start()))).toBe(true)
    issuer.published = { keys: [...others(MAX_KEYS), key.publicJwk] }
    expect(await askFor(start())).toHaveProperty('retryAfterMs')
  })

  test.each([
    '',
    'keys',
    '[]',
    'null',
    '{}',
    '{"keys":{}}',
    '{"keys":[1]}',
    '{"keys":[null]}',
    '{"keys":[[]]}',
    '<html>',
  ])('what is no set of keys: %s', async (text) => {
    keysAnswer((response) => response.end(text))
    expect(await askFor(start({ jwksUrl: issuer.keysUrl }))).toHaveProperty('retryAfterMs')
    expect(told).toHaveLength(1)
  })

  test.each([204, 400, 401, 404, 500, 503])('a page with status %i', async (status) => {
    keysAnswer((response) =>
      response.writeHead(status).end(status === 204 ? undefined : JSON.stringify(issuer.published)),
    )
    expect(await askFor(start({ jwksUrl: issuer.keysUrl }))).toHaveProperty('retryAfterMs')
  })

  test('a connection that breaks off', async () => {
    keysAnswer((response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('{"keys":')
      setImmediate(() => response.destroy())
    })
    expect(await askFor(start({ jwksUrl: issuer.keysUrl }))).toHaveProperty('retryAfterMs')
  })

  test('keys that cannot be used are as if they were not there, and keep no other from its use', async () => {
    const broken = [
      { kty: 'EC', crv: 'P-256', kid: 'broken', alg: 'ES256', x: 'AA', y: 'AA' },
      { kty: 'dance', kid: 'broken' },
      { ...key.publicJwk, kid: 'encrypts', use: 'enc' },
      { ...key.publicJwk, kid: 'private', d: 'AA' },
      {},
    ]
    issuer.published = { keys: [...broken, key.publicJwk] }
    const keys = start()
    expect(isFound(await askFor(keys))).toBe(true)
    for (const kid of ['broken', 'encrypts', 'private']) {
      expect(await keys.find({ alg: 'ES256', kid })).toEqual(UNKNOWN)
    }
  })
})

describe('when they are read', () => {
  test('the start waits for nobody, and a token that comes meanwhile waits for the keys', async () => {
    verifies('9.12-start')
    const held: (() => void)[] = []
    issuer.misbehave = (_request, response) => {
      held.push(() => response.end(JSON.stringify(issuer.published)))
      return true
    }
    const keys = start({ jwksUrl: issuer.keysUrl })
    const asked = [askFor(keys), askFor(keys), askFor(keys)]
    await issuer.askedFor(KEYS, 1)
    held[0]!()
    expect((await Promise.all(asked)).every(isFound)).toBe(true)
    expect(issuer.countOf(KEYS)).toBe(1)
  })

  test('every ten minutes', async () => {
    verifies('9.12-again')
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const keys = start({ jwksUrl: issuer.keysUrl })
    await askFor(keys)
    const next = await makeKey('ES256')
    issuer.publish(next)
    vi.advanceTimersByTime(REFRESH_MS - 1)
    expect(issuer.countOf(KEYS)).toBe(1)
    vi.advanceTimersByTime(1)
    await issuer.askedFor(KEYS, 2)
    expect(isFound(await askFor(keys, next))).toBe(true)
    expect(await askFor(keys, key)).toEqual(UNKNOWN)
    keys.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('again for a key that is not known: rotation costs nobody a refusal', async () => {
    verifies('9.12-again')
    const keys = start()
    await askFor(keys)
    const next = await makeKey('ES256')
    issuer.publish(key, next)
    expect(isFound(await askFor(keys, next))).toBe(true)
    expect(isFound(await askFor(keys, key))).toBe(true)
  })

  test('a flood of unknown keys makes us read once in 5 s', async () => {
    verifies('9.12-again')
    const keys = start({ jwksUrl: issuer.keysUrl })
    await askFor(keys)
    const flood = (name: string) =>
      Promise.all(Array.from({ length: 500 }, (_, n) => keys.find({ alg: 'ES256', kid: `${name}${n}` })))
    for (const answer of await flood('a')) expect(answer).toEqual(UNKNOWN)
    expect(issuer.countOf(KEYS)).toBe(2)
    nowMs += COOL_DOWN_MS - 1
    await flood('b')
    expect(issuer.countOf(KEYS)).toBe(2)
    nowMs += 1
    await flood('c')
    expect(issuer.countOf(KEYS)).toBe(3)
    expect(isFound(await askFor(keys))).toBe(true)
  })

  test('also when reading fails, with and without a set', async () => {
    verifies('9.12-again', '9.12-away')
    issuer.misbehave = (_request, response) => {
      response.writeHead(500).end()
      return true
    }
    const keys = start({ jwksUrl: issuer.keysUrl })
    expect(await askFor(keys)).toEqual({ retryAfterMs: 1_000 })
    expect(await askFor(keys)).toEqual({ retryAfterMs: COOL_DOWN_MS })
    nowMs += 2_000
    for (let n = 0; n < 50; n++) expect(await askFor(keys)).toEqual({ retryAfterMs: 3_000 })
    expect(issuer.countOf(KEYS)).toBe(2)
    nowMs += 3_000
    issuer.misbehave = () => false
    expect(isFound(await askFor(keys))).toBe(true)
    expect(told.map((line) => line.split(':')[0])).toEqual(['failed', 'ok'])
    issuer.misbehave = (_request, response) => {
      response.writeHead(500).end()
      return true
    }
    const stranger = await makeKey('ES256')
    nowMs += COOL_DOWN_MS
    for (let n = 0; n < 50; n++) expect(await askFor(keys, stranger)).toEqual(UNKNOWN)
    expect(issuer.countOf(KEYS)).toBe(4)
  })

  test('a clock that is turned back keeps nobody waiting', async () => {
    const keys = start({ jwksUrl: issuer.keysUrl })
    await askFor(keys)
    await keys.find({ alg: 'ES256', kid: 'unknown' })
    nowMs -= 24 * HOUR_MS
    const next = await makeKey('ES256')
    issuer.publish(next)
    expect(isFound(await askFor(keys, next))).toBe(true)
  })
})

describe('when the issuer is away', () => {
  test('the last set serves for a day, then there is none', async () => {
    verifies('9.12-away')
    const keys = start({ jwksUrl: issuer.keysUrl })
    await askFor(keys)
    issuer.misbehave = (_request, response) => {
      response.destroy()
      return true
    }
    nowMs += SERVES_MS - 1
    expect(isFound(await askFor(keys))).toBe(true)
    nowMs += 1
    expect(await askFor(keys)).toHaveProperty('retryAfterMs')
    nowMs += COOL_DOWN_MS
    issuer.misbehave = () => false
    expect(isFound(await askFor(keys))).toBe(true)
  })

  test('what a reading that failed has brought does not take the place of the last set', async () => {
    verifies('9.12-away')
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const keys = start({ jwksUrl: issuer.keysUrl })
    await askFor(keys)
    issuer.published = { keys: 'gone' }
    vi.advanceTimersByTime(REFRESH_MS)
    await eventually('the failure to be told', () => told.length === 1)
    expect(isFound(await askFor(keys))).toBe(true)
    vi.advanceTimersByTime(REFRESH_MS)
    await issuer.askedFor(KEYS, 3)
    expect(told).toHaveLength(1)
  })

  test('nobody there at all is told in words', async () => {
    const { url } = issuer
    await issuer.close()
    expect(await askFor(start({ issuer: url }))).toEqual({ retryAfterMs: 1_000 })
    expect(told).toEqual([expect.stringMatching(/ECONNREFUSED.*ECONNREFUSED.*check access\.oauth$/)])
    issuer = await Issuer.start()
  })
})
