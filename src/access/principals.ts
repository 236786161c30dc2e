/**
 * The principals of an access file and what they may do (contract 9.9): looked up by name, and by the digest of a token.
 *
 * It never changes: another file is another set. It holds digests and the variables of workers, and shows neither; whether
 * a token has expired is for whoever has a clock.
 */
import type { PrincipalEnvironment } from '../config/bus-config.ts'
import type { Rights } from '../kernel/rights.ts'
import { isSameDigest } from './token.ts'

export interface PrincipalToken {
  /** 64 hexadecimal digits in lower case. */
  readonly digest: string
  readonly expiresAtMs?: number
}

export interface Principal {
  readonly name: string
  readonly rights: Rights
  /** References resolved: it may hold secrets. */
  readonly environment: PrincipalEnvironment
  readonly tokens: readonly PrincipalToken[]
}

export interface TokenHolder {
  readonly principal: string
  readonly rights: Rights
  /** By the wall clock; left out: never. */
  readonly expiresAtMs?: number
}

const RESERVED = new Set(['local', 'anonymous'])

/** Names that say how somebody came, and that no file can give away. */
export function isReservedName(name: string): boolean {
  return RESERVED.has(name)
}

export class Principals {
  static readonly NONE = new Principals([])

  readonly #byName: ReadonlyMap<string, Principal>
  readonly #byDigest: ReadonlyMap<string, { readonly digest: string; readonly holder: TokenHolder }>

  constructor(principals: readonly Principal[]) {
    this.#byName = new Map(principals.map((principal) => [principal.name, principal]))
    this.#byDigest = new Map(principals.flatMap(holdersOf))
  }

  names(): string[] {
    return [...this.#byName.keys()]
  }

  byName(name: string): Rights | undefined {
    return this.#byName.get(name)?.rights
  }

  /** Whose token has this digest, expired or not. */
  byToken(digest: string): TokenHolder | undefined {
    const found = this.#byDigest.get(digest)
    return found !== undefined && isSameDigest(found.digest, digest) ? found.holder : undefined
  }

  /** Variables for a worker of `pool` that is started for this principal; nobody has none. */
  environmentOf(name: string, pool: string): Record<string, string> {
    return environmentFor(this.#byName.get(name)?.environment ?? {}, pool)
  }
}

/** What is for every pool, then what is for this one alone (contract 9.22). */
export function environmentFor(environment: PrincipalEnvironment, pool: string): Record<string, string> {
  const forAll = Object.entries(environment).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  const own = Object.hasOwn(environment, pool) ? environment[pool] : undefined
  return { ...Object.fromEntries(forAll), ...(typeof own === 'object' ? own : {}) }
}

function holdersOf({ name, rights, tokens }: Principal) {
  return tokens.map(({ digest, expiresAtMs }) => {
    const holder: TokenHolder = { principal: name, rights, ...(expiresAtMs === undefined ? {} : { expiresAtMs }) }
    return [digest, { digest, holder }] as const
  })
}
