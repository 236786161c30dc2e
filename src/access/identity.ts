/** What a credential has proved, and why one was refused: what every door and every judge of credentials shares. Types only. */
import type { Rights } from '../kernel/rights.ts'

/** What a credential has proved. */
export interface Identity {
  /** The name in the access file, or `local`, `anonymous`. */
  readonly principal: string
  /** Of a signed token. */
  readonly subject?: string
  readonly rights: Rights
  readonly via: 'local' | 'anonymous' | 'token' | 'jwt' | 'certificate' | 'cluster'
  /** 8 hex digits of its digest. */
  readonly credential?: string
  /** By the wall clock. */
  readonly expiresAtMs?: number
}

export type Refusal = {
  readonly reason: 'unauthenticated' | 'not_allowed' | 'keys_unavailable'
  readonly why?: 'expired'
  readonly retryAfterMs?: number
  /** The scope of `map` that would do (contract 9.14). */
  readonly scope?: string
}

export type Verdict = { readonly identity: Identity } | { readonly refusal: Refusal }
