/**
 * A map that remembers the newest so many entries.
 *
 * The order is kept in a ring: asking a Map for its first key walks over the holes that deleted keys left behind.
 */
export class Recent<Value> {
  readonly #limit: number
  readonly #values = new Map<string, Value>()
  readonly #ring: string[] = []
  #next = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get(key: string): Value | undefined {
    return this.#values.get(key)
  }

  set(key: string, value: Value): void {
    const isNew = !this.#values.has(key)
    this.#values.set(key, value)
    if (!isNew) return
    const oldest = this.#ring[this.#next]
    if (oldest !== undefined) this.#values.delete(oldest)
    this.#ring[this.#next] = key
    this.#next = (this.#next + 1) % this.#limit
  }
}
