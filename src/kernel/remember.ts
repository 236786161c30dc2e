/** Tables of what peers have named; bounded, the oldest is forgotten. */
import { FIXED } from './limits.ts'

export function remember<Value>(table: Map<string, Value>, key: string, value: Value): void {
  table.delete(key)
  table.set(key, value)
  if (table.size > FIXED.maxRemembered) forgetOldest(table)
}

export function forgetOldest<Key>(table: { keys(): Iterable<Key>; delete(key: Key): boolean }): void {
  for (const oldest of table.keys()) {
    table.delete(oldest)
    return
  }
}
