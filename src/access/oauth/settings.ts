/** What the configuration says of the issuer of signed tokens (contract 9.11 to 9.13). Types only. */

/** Whoever has this value in this claim is that principal. */
export interface MapRule {
  /** A dotted path. */
  readonly claim: string
  readonly equals: string | number | boolean
  /** A principal of the access file. */
  readonly as: string
}

export interface OAuthSettings {
  readonly issuer: string
  /** Empty: the address of the door that was asked, as the public knows it. */
  readonly audience: readonly string[]
  /** Left out: found by the metadata of the issuer. */
  readonly jwksUrl?: string | undefined
  /** Strongest first. */
  readonly map: readonly MapRule[]
}
