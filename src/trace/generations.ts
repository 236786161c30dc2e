/**
 * A map that forgets what nobody asked for lately, half of it at a time.
 *
 * No order is kept: finding the oldest key of a large Map walks over the holes that deleted ones left behind.
 */
export class Generations<Value> {
  readonly #limit: number
  readonly #retire: (key: string, value: Value) => void
  #young = new Map<string, Value>()
  #old = new Map<string, Value>()

  /** At least half of `limit` entries are remembered, at most `limit`. */
  constructor(limit: number, retire: (key: string, value: Value) => void = () => {}) {
    this.#limit = limit
    this.#retire = retire
  }

  get(key: string): Value | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old === undefined) return undefined
    this.#old.delete(key)
    this.set(key, old)
    return old
  }

  has(key: string): boolean {
    return this.#young.has(key) || this.#old.has(key)
  }

  set(key: string, value: Value): void {
    this.#young.set(key, value)
    if (this.#young.size * 2 >= this.#limit) this.#turn()
  }

  #turn(): void {
    const gone = this.#old
    this.#old = this.#young
    this.#young = new Map()
    for (const [key, value] of gone) if (!this.#old.has(key)) this.#retire(key, value)
  }
}
