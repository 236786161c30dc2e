/**
 * The public keys of one issuer: read at once and every ten minutes, and again for a key that is not among them (contract 9.12).
 *
 * Nobody waits for the first set but those who need a key. When the issuer is away the last set serves on for a day. What a
 * peer writes into a token makes us read at most once in five seconds, whether that succeeds or not; all who need it share
 * one reading. The operator is told once when reading begins to fail and once when it works again.
 */
import { type CryptoKey, createLocalJWKSet, errors, type JSONWebKeySet, type JWSHeaderParameters } from 'jose'
import { IssuerFailure, type JsonObject, readDocument } from './issuer-document.ts'
import type { OAuthSettings } from './settings.ts'

export const REFRESH_MS = 10 * 60_000
export const COOL_DOWN_MS = 5_000
export const SERVES_MS = 24 * 3_600_000
export const MAX_KEYS = 100
/** Keys that are tried for a token that names none. */
const MAX_CANDIDATES = 8
const MIN_RETRY_MS = 1_000

export interface KeysOptions {
  /** The wall clock. */
  readonly now: () => number
  /** Told once of each change, with a sentence for the operator. */
  readonly onState: (change: { readonly state: 'ok' | 'failed'; readonly message: string }) => void
}

/** Keys that may have signed, none if no key fits; or when it is worth asking again. */
export type KeyAnswer = { readonly keys: readonly CryptoKey[] } | { readonly retryAfterMs: number }

interface KeySet {
  readonly find: ReturnType<typeof createLocalJWKSet>
  readonly readAtMs: number
}

export class IssuerKeys {
  readonly #issuer: Pick<OAuthSettings, 'issuer' | 'jwksUrl'>
  readonly #options: KeysOptions
  readonly #stop = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #set: KeySet | undefined
  #reading: Promise<void> | undefined
  /** When a token last made us read. */
  #askedAtMs = Number.NEGATIVE_INFINITY
  #isFailing = false

  constructor(issuer: Pick<OAuthSettings, 'issuer' | 'jwksUrl'>, options: KeysOptions) {
    this.#issuer = issuer
    this.#options = options
  }

  /** Begins to read, and waits for nothing. */
  start(): void {
    this.#timer = setInterval(() => void this.#read(), REFRESH_MS).unref()
    void this.#read()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#stop.abort()
  }

  async find(header: JWSHeaderParameters): Promise<KeyAnswer> {
    const known = await this.#lookUp(header)
    if (known.length > 0) return { keys: known }
    await this.#readAgain()
    if (this.#usableSet() === undefined) return { retryAfterMs: Math.max(MIN_RETRY_MS, this.#untilNextReadingMs()) }
    return { keys: await this.#lookUp(header) }
  }

  async #lookUp(header: JWSHeaderParameters): Promise<readonly CryptoKey[]> {
    const set = this.#usableSet()
    if (set === undefined) return []
    try {
      return [await set.find(header)]
    } catch (error) {
      if (error instanceof errors.JWKSMultipleMatchingKeys) return first(error, MAX_CANDIDATES)
      // No key fits, or the one that does cannot be taken in: either way there is none.
      return []
    }
  }

  #usableSet(): KeySet | undefined {
    const set = this.#set
    return set !== undefined && this.#options.now() - set.readAtMs < SERVES_MS ? set : undefined
  }

  async #readAgain(): Promise<void> {
    if (this.#reading === undefined) {
      if (this.#untilNextReadingMs() > 0) return
      this.#askedAtMs = this.#options.now()
    }
    await this.#read()
  }

  /** A clock that was turned back keeps nobody waiting for longer. */
  #untilNextReadingMs(): number {
    const sinceMs = Math.abs(this.#options.now() - this.#askedAtMs)
    return Math.max(0, COOL_DOWN_MS - sinceMs)
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readOnce(): Promise<void> {
    const { signal } = this.#stop
    try {
      const url = this.#issuer.jwksUrl ?? (await discoverKeys(this.#issuer.issuer, signal))
      const find = createLocalJWKSet(asKeySet(await readDocument(url, signal)))
      this.#set = { find, readAtMs: this.#options.now() }
      this.#report(undefined)
    } catch (error) {
      if (!(error instanceof IssuerFailure)) throw error
      this.#report(error.message)
    }
  }

  #report(why: string | undefined): void {
    const isFailing = why !== undefined
    if (isFailing === this.#isFailing || this.#stop.signal.aborted) return
    this.#isFailing = isFailing
    const message = isFailing
      ? `the keys of the token issuer cannot be read: ${why}; check access.oauth`
      : 'the keys of the token issuer can be read again'
    this.#options.onState({ state: isFailing ? 'failed' : 'ok', message })
  }
}

/** Where the issuer's metadata say that its keys are: RFC 8414 first, then OpenID. */
async function discoverKeys(issuer: string, signal: AbortSignal): Promise<string> {
  if (!URL.canParse(issuer)) throw new IssuerFailure('its name is no URL')
  const failures: string[] = []
  for (const url of metadataUrls(issuer)) {
    try {
      return keysUrlIn(await readDocument(url, signal), issuer)
    } catch (error) {
      if (!(error instanceof IssuerFailure)) throw error
      failures.push(error.message)
    }
  }
  throw new IssuerFailure(failures.join('; '))
}

/** RFC 8414 puts its name before the path of the issuer, OpenID behind it. */
export function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
}

function keysUrlIn(metadata: JsonObject, issuer: string): string {
  if (metadata['issuer'] !== issuer) throw new IssuerFailure('its metadata are of another issuer')
  const url = metadata['jwks_uri']
  if (typeof url !== 'string') throw new IssuerFailure('its metadata name no jwks_uri')
  return url
}

function asKeySet(document: JsonObject): JSONWebKeySet {
  const { keys } = document
  if (!Array.isArray(keys) || !keys.every((key) => typeof key === 'object' && key !== null && !Array.isArray(key))) {
    throw new IssuerFailure('what it publishes is no set of keys')
  }
  if (keys.length > MAX_KEYS) throw new IssuerFailure(`it publishes ${keys.length} keys, more than ${MAX_KEYS}`)
  return { keys }
}

async function first(candidates: AsyncIterable<CryptoKey>, count: number): Promise<CryptoKey[]> {
  const keys: CryptoKey[] = []
  for await (const key of candidates) {
    keys.push(key)
    if (keys.length === count) break
  }
  return keys
}
