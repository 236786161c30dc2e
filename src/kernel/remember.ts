/** Tables of what peers have named; bounded, the oldest is forgotten. */
import { ownMap } from './empty.ts'
import { FIXED } from './limits.ts'

export function remember<Value>(table: Map<string, Value>, key: string, value: Value): Map<string, Value> {
  const own = ownMap(table)
  own.delete(key)
  own.set(key, value)
  if (own.size > FIXED.maxRemembered) forgetOldest(own)
  return own
}

export function forgetOldest<Key>(table: { keys(): Iterable<Key>; delete(key: Key): boolean }): void {
  for (const oldest of table.keys()) {
    table.delete(oldest)
    return
  }
}
