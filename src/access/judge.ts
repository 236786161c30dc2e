/**
 * Judges credentials: a token of the bus, a signed token, a client certificate, or none at all (contract 9.1, 9.2, 9.7, 9.11, 9.16).
 *
 * A credential that is not good is refused, never taken for none. Unknown and revoked read alike; only what was good once is
 * called expired. Nothing throws for what a peer sends, and no part of a credential is in a verdict but 8 digits of its digest.
 * Rights are always those of the principals adopted last.
 */
import type { X509Certificate } from 'node:crypto'
import type { PeerCertificate } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import { LOCAL_IDENTITY, type Rights } from '../kernel/rights.ts'
import { type CertificateRule, proofOfCertificate } from './certificates.ts'
import type { Identity, Refusal, Verdict } from './identity.ts'
import { isSigned, type Judged, type Proof, SignedTokens } from './oauth/jwt.ts'
import { IssuerKeys, type KeysOptions } from './oauth/keys.ts'
import { scopeThatWouldDo } from './oauth/mapping.ts'
import type { MapRule, OAuthSettings } from './oauth/settings.ts'
import { digestOf, isToken, shortDigest } from './token.ts'

/** The principals of the access file, as far as a judge asks for them. */
export interface KnownPrincipals {
  byName(name: string): Rights | undefined
  byToken(
    digest: string,
  ): { readonly principal: string; readonly rights: Rights; readonly expiresAtMs?: number } | undefined
}

/** The part of `access` that a judge reads. */
export interface JudgeSettings {
  readonly anonymous: false | Rights
  readonly oauth?: OAuthSettings
  readonly certificates: readonly CertificateRule[]
  readonly publicUrl?: string
}

/** By which rule, and by which settings, somebody was let in who has shown no token of the bus. */
interface Admission {
  readonly rule: MapRule | CertificateRule
  readonly oauth: OAuthSettings | undefined
}

/** Where nobody is asked who they are. */
const OPEN: JudgeSettings = { anonymous: { role: 'user', pools: ['*'] }, certificates: [] }
const UNAUTHENTICATED: Verdict = { refusal: { reason: 'unauthenticated' } }
const EXPIRED: Verdict = { refusal: { reason: 'unauthenticated', why: 'expired' } }
const LOCAL: Verdict = { identity: { principal: 'local', rights: LOCAL_IDENTITY.rights, via: 'local' } }

export class Judge {
  readonly #options: KeysOptions
  #principals: KnownPrincipals = { byName: () => undefined, byToken: () => undefined }
  #settings = OPEN
  #keys: IssuerKeys | undefined
  #tokens: SignedTokens | undefined
  readonly #admissions = new WeakMap<Identity, Admission>()
  /** Whoever shows the same signed token again is the same, while the rights are. */
  readonly #identities = new WeakMap<Proof, Identity>()

  constructor(options: Partial<KeysOptions> = {}) {
    this.#options = { now: Date.now, onState: () => {}, ...options }
  }

  /** From now on these principals and settings hold; without settings everybody may come. Waits for nothing. */
  adopt(principals: KnownPrincipals, settings: JudgeSettings | undefined): void {
    const before = this.#settings.oauth
    this.#principals = principals
    this.#settings = settings ?? OPEN
    const { oauth } = this.#settings
    if (isDeepStrictEqual(before, oauth)) return
    if (!isDeepStrictEqual(before && issuerOf(before), oauth && issuerOf(oauth))) {
      this.#keys?.close()
      this.#keys = oauth && new IssuerKeys(oauth, this.#options)
      this.#keys?.start()
    }
    this.#tokens = oauth && this.#keys && new SignedTokens(oauth, this.#keys, this.#options.now)
  }

  close(): void {
    this.#keys?.close()
  }

  local(): Verdict {
    return LOCAL
  }

  /** Whether nobody in particular may come; at which doors, the doors know. */
  anonymous(): Verdict {
    const { anonymous } = this.#settings
    if (anonymous === false) return UNAUTHENTICATED
    return { identity: { principal: 'anonymous', rights: anonymous, via: 'anonymous' } }
  }

  /** At once for a token of the bus, and for a signed one that was seen before. `resource` is the door as the public knows it. */
  ofToken(token: string, resource?: string): Verdict | Promise<Verdict> {
    if (isToken(token)) return this.#ofDigest(digestOf(token))
    return isSigned(token) ? this.#ofSigned(token, resource ?? this.#settings.publicUrl) : UNAUTHENTICATED
  }

  /** Of a certificate that the handshake has verified; nothing if it is nobody's, and a token is needed. */
  ofCertificate(certificate: PeerCertificate | X509Certificate): Verdict | undefined {
    const proof = proofOfCertificate(this.#settings.certificates, certificate)
    if (proof === undefined) return undefined
    const { rule, credential, expiresAtMs } = proof
    const rights = this.#principals.byName(rule.as)
    if (rights === undefined) return UNAUTHENTICATED
    return this.#admit(
      { principal: rule.as, rights, via: 'certificate', credential, expiresAtMs },
      { rule, oauth: undefined },
    )
  }

  /**
   * Whether what was judged earlier is still good, with the rights of now (contract 9.5, 9.10). Of a token of the bus the
   * digest is needed.
   */
  stillHolds(identity: Identity, credentialDigest?: string): Verdict {
    if (identity.via === 'local') return LOCAL
    if (identity.via === 'anonymous') return this.anonymous()
    if (identity.via === 'token') {
      const verdict = credentialDigest === undefined ? UNAUTHENTICATED : this.#ofDigest(credentialDigest)
      return 'identity' in verdict && verdict.identity.principal !== identity.principal ? UNAUTHENTICATED : verdict
    }
    const rights = this.#principals.byName(identity.principal)
    const admission = this.#admissionOf(identity)
    if (rights === undefined || admission === undefined) return UNAUTHENTICATED
    return this.#admit({ ...identity, rights }, admission)
  }

  /** The scope to ask for by whoever may not do something that others may (contract 9.14). */
  scopeThatWouldDo(mayDo: (rights: Rights) => boolean): string | undefined {
    return scopeThatWouldDo(this.#settings.oauth?.map ?? [], (name) => {
      const rights = this.#principals.byName(name)
      return rights !== undefined && mayDo(rights)
    })
  }

  #ofDigest(digest: string): Verdict {
    const holder = this.#principals.byToken(digest)
    if (holder === undefined) return UNAUTHENTICATED
    return this.#unlessExpired({ ...holder, via: 'token', credential: shortDigest(digest) })
  }

  #ofSigned(token: string, resource: string | undefined): Verdict | Promise<Verdict> {
    const tokens = this.#tokens
    if (tokens === undefined) return UNAUTHENTICATED
    const judged = tokens.judge(token, resource)
    if (!(judged instanceof Promise)) return this.#verdictOf(judged)
    // What was judged by settings that no longer hold is judged again.
    return judged.then((known) => (tokens === this.#tokens ? this.#verdictOf(known) : this.ofToken(token, resource)))
  }

  #verdictOf(judged: Judged): Verdict {
    if ('refusal' in judged) return judged
    const { proof } = judged
    const rights = proof.rule && this.#principals.byName(proof.rule.as)
    if (proof.rule === undefined || rights === undefined) return { refusal: this.#nobody() }
    const known = this.#identities.get(proof)
    if (known?.rights === rights) return this.#unlessExpired(known)
    const { rule, subject, credential, expiresAtMs } = proof
    const who = { principal: rule.as, ...(subject === undefined ? {} : { subject }) }
    const identity: Identity = { ...who, rights, via: 'jwt', credential, expiresAtMs }
    this.#identities.set(proof, identity)
    return this.#admit(identity, { rule, oauth: this.#settings.oauth })
  }

  /** A good token of nobody here. */
  #nobody(): Refusal {
    const scope = this.scopeThatWouldDo(() => true)
    return { reason: 'not_allowed', ...(scope === undefined ? {} : { scope }) }
  }

  #admit(identity: Identity, admission: Admission): Verdict {
    this.#admissions.set(identity, admission)
    return this.#unlessExpired(identity)
  }

  #unlessExpired(identity: Identity): Verdict {
    return identity.expiresAtMs !== undefined && identity.expiresAtMs <= this.#options.now() ? EXPIRED : { identity }
  }

  /** What let somebody in, if it still would; for an identity that is a copy, any rule for the same principal. */
  #admissionOf(identity: Identity): Admission | undefined {
    const { oauth, certificates } = this.#settings
    const rules: readonly Admission['rule'][] = identity.via === 'jwt' ? (oauth?.map ?? []) : certificates
    const known = this.#admissions.get(identity)
    if (known === undefined) {
      const rule = rules.find(({ as }) => as === identity.principal)
      return rule && { rule, oauth }
    }
    if (identity.via === 'jwt' && !isStillMeant(known.oauth, oauth)) return undefined
    return rules.some((rule) => isDeepStrictEqual(rule, known.rule)) ? known : undefined
  }
}

function issuerOf({ issuer, jwksUrl }: OAuthSettings): object {
  return { issuer, jwksUrl }
}

/** Whether whoever was believed, and addressed, by the old settings still is by the new. */
function isStillMeant(old: OAuthSettings | undefined, now: OAuthSettings | undefined): boolean {
  if (old === undefined || now === undefined || old.issuer !== now.issuer) return false
  return old.audience.length === 0
    ? now.audience.length === 0
    : old.audience.every((audience) => now.audience.includes(audience))
}
