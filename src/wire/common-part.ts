/** What two JSON values have in common: of two objects the members that stand in both; `false` where there is nothing. */
export function commonPart(a: unknown, b: unknown): unknown {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b ? a : false
  const other = b as Record<string, unknown>
  const common = Object.entries(a).filter(([key]) => Object.hasOwn(other, key))
  return Object.fromEntries(common.map(([key, value]) => [key, commonPart(value, other[key])]))
}
