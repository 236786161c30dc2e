/**
 * From the claims of a signed token to a principal (contract 9.13): the first rule that fits, and the operator wrote the
 * strongest first. It reads claims that were proved, and own properties alone; what a claim is called is the issuer's affair.
 */
import type { MapRule } from './settings.ts'

export type Claims = Readonly<Record<string, unknown>>

export function ruleFor(map: readonly MapRule[], claims: Claims): MapRule | undefined {
  return map.find((rule) => fits(rule, claims))
}

/** The scopes that `map` knows, strongest first. */
export function scopesOf(map: readonly MapRule[]): string[] {
  return [...new Set(map.flatMap((rule) => (isScope(rule) ? [rule.equals] : [])))]
}

/** The weakest scope that makes its bearer a principal who may: what to ask for, and no more. */
export function scopeThatWouldDo(
  map: readonly MapRule[],
  mayDo: (principal: string) => boolean = () => true,
): string | undefined {
  return map.findLast((rule) => isScope(rule) && mayDo(rule.as))?.equals as string | undefined
}

function isScope(rule: MapRule): rule is MapRule & { readonly equals: string } {
  return rule.claim === 'scope' && typeof rule.equals === 'string'
}

function fits({ claim, equals }: MapRule, claims: Claims): boolean {
  const value = valueAt(claims, claim)
  if (Array.isArray(value)) return value.includes(equals)
  if (claim === 'scope' && typeof value === 'string') return value.split(' ').includes(String(equals))
  return value === equals
}

/** Some issuers put dots into names of claims (`https://example.com/roles`): a name as it stands comes before a path. */
function valueAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let value: unknown = claims
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, name))
      return undefined
    value = (value as Claims)[name]
  }
  return value
}
