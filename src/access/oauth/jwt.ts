/**
 * Judges signed tokens of one issuer (contract 9.11): whether it was its issuer who signed it, for us, and for now.
 *
 * Which keys may have signed is the issuer's word alone: keys and addresses of keys in a token are not looked at. Nothing that
 * a peer writes throws, and no part of a token is in what is told of it. Of a good token the proof is kept by its digest until it
 * expires; of a bad one nothing, or whoever makes up tokens could push the good ones out.
 */
import {
  type CryptoKey,
  errors,
  type JWSHeaderParameters,
  type JWTPayload,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose'
import type { Refusal } from '../identity.ts'
import { LastUsed } from '../last-used.ts'
import { digestOf, shortDigest } from '../token.ts'
import type { IssuerKeys } from './keys.ts'
import { ruleFor } from './mapping.ts'
import type { MapRule, OAuthSettings } from './settings.ts'

export const MAX_TOKEN_BYTES = 8 * 1024
export const SKEW_SEC = 30
export const MAX_KEPT = 10_000
/** `EdDSA` is the older name of Ed25519, and the only curve that is taken under it. */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 Ed25519 EdDSA'.split(' ')
/** The last moment that can be written as a date. */
const END_OF_TIME_MS = 8.64e15

/** What a token has proved; without a rule it is a good token of nobody we know. */
export interface Proof {
  readonly rule: MapRule | undefined
  readonly subject: string | undefined
  /** 8 digits of its digest. */
  readonly credential: string
  readonly expiresAtMs: number
}

/** Two dots, and of a size that is looked at. */
export function isSigned(token: string): boolean {
  return token.length <= MAX_TOKEN_BYTES && token.split('.').length === 3
}

type Verified = { readonly proof: Omit<Proof, 'credential'> } | { readonly refusal: Refusal }
export type Judged = { readonly proof: Proof } | { readonly refusal: Refusal }

class KeysUnavailable extends Error {
  readonly retryAfterMs: number
  constructor(retryAfterMs: number) {
    super('no keys of the issuer')
    this.retryAfterMs = retryAfterMs
  }
}

export class SignedTokens {
  readonly #settings: OAuthSettings
  readonly #keys: Pick<IssuerKeys, 'find'>
  readonly #now: () => number
  readonly #kept = new LastUsed<Proof>(MAX_KEPT)

  constructor(settings: OAuthSettings, keys: Pick<IssuerKeys, 'find'>, now: () => number) {
    this.#settings = settings
    this.#keys = keys
    this.#now = now
  }

  /** At once for a token that was seen before. Where the configuration names no audience, `resource` is it. */
  judge(token: string, resource?: string): Judged | Promise<Judged> {
    if (!isSigned(token)) return UNAUTHENTICATED
    const digest = digestOf(token)
    // A token for one door proves nothing at another.
    const place = this.#settings.audience.length > 0 ? digest : `${digest} ${resource}`
    const proof = this.#kept.get(place)
    if (proof !== undefined && proof.expiresAtMs > this.#now()) return { proof }
    return this.#verify(token, resource).then((judged) => {
      if ('refusal' in judged) return judged
      const proof = { ...judged.proof, credential: shortDigest(digest) }
      this.#kept.set(place, proof)
      return { proof }
    })
  }

  async #verify(token: string, resource: string | undefined): Promise<Verified> {
    const { issuer, audience } = this.#settings
    const options: JWTVerifyOptions = {
      algorithms: ALGORITHMS,
      issuer,
      audience: audience.length > 0 ? [...audience] : resource === undefined ? [] : [resource],
      clockTolerance: SKEW_SEC,
      currentDate: new Date(this.#now()),
    }
    let claims: JWTPayload
    try {
      claims = await this.#claimsOf(token, options)
    } catch (error) {
      // Whatever the library and the platform's cryptography find wrong with a token or its key, the token is not good.
      return refusalFor(error)
    }
    const { sub, exp } = claims
    if (exp === undefined || (sub !== undefined && (typeof sub !== 'string' || sub === ''))) return UNAUTHENTICATED
    return { proof: { rule: ruleFor(this.#settings.map, claims), subject: sub, expiresAtMs: this.#goodUntilMs(exp) } }
  }

  async #claimsOf(token: string, options: JWTVerifyOptions): Promise<JWTPayload> {
    const others: CryptoKey[] = []
    const firstKey = async (header: JWSHeaderParameters): Promise<CryptoKey> => {
      const answer = await this.#keys.find(header)
      if ('retryAfterMs' in answer) throw new KeysUnavailable(answer.retryAfterMs)
      const [key, ...rest] = answer.keys
      if (key === undefined) throw new errors.JWKSNoMatchingKey()
      others.push(...rest)
      return key
    }
    let { payload, failure } = await attempt(() => jwtVerify(token, firstKey, options))
    for (const key of others) {
      if (payload !== undefined) break
      ;({ payload, failure } = await attempt(() => jwtVerify(token, key, options)))
    }
    if (payload === undefined) throw failure
    return payload
  }

  /** A token that comes after its time, within the skew, is good until the skew ends; any other until its time. */
  #goodUntilMs(exp: number): number {
    const atMs = Math.min(exp * 1_000, END_OF_TIME_MS)
    return atMs > this.#now() ? atMs : atMs + SKEW_SEC * 1_000
  }
}

const UNAUTHENTICATED: { readonly refusal: Refusal } = { refusal: { reason: 'unauthenticated' } }

function refusalFor(error: unknown): { readonly refusal: Refusal } {
  if (error instanceof KeysUnavailable) {
    return { refusal: { reason: 'keys_unavailable', retryAfterMs: error.retryAfterMs } }
  }
  if (error instanceof errors.JWTExpired) return { refusal: { reason: 'unauthenticated', why: 'expired' } }
  return UNAUTHENTICATED
}

/** Another key may have signed what this one has not; any other failure is final. */
async function attempt(
  verify: () => Promise<{ readonly payload: JWTPayload }>,
): Promise<{ payload?: JWTPayload; failure?: unknown }> {
  try {
    return await verify()
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed) return { failure: error }
    throw error
  }
}
