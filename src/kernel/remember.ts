/** Tables of what workers have named; bounded, the oldest is forgotten. */
const MAX_REMEMBERED = 10_000

export function remember<Value>(table: Map<string, Value>, key: string, value: Value): void {
  table.delete(key)
  table.set(key, value)
  if (table.size <= MAX_REMEMBERED) return
  for (const oldest of table.keys()) {
    table.delete(oldest)
    return
  }
}
