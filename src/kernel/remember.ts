/** Tables of what workers have named; bounded, the oldest is forgotten. */
import { FIXED } from './limits.ts'

export function remember<Value>(table: Map<string, Value>, key: string, value: Value): void {
  table.delete(key)
  table.set(key, value)
  if (table.size <= FIXED.maxRemembered) return
  for (const oldest of table.keys()) {
    table.delete(oldest)
    return
  }
}
