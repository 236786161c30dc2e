/**
 * A map that keeps the `least` entries used last, and never holds more than twice as many.
 *
 * Two generations: a full one becomes the old one, and the old one is forgotten as a whole. So nothing is searched for
 * what to forget, however fast keys of others come in.
 */
export class LastUsed<Value> {
  readonly #least: number
  #young = new Map<string, Value>()
  #old = new Map<string, Value>()

  constructor(least: number) {
    this.#least = least
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(key: string): Value | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: string, value: Value): void {
    this.#old.delete(key)
    if (this.#young.size >= this.#least && !this.#young.has(key)) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }

  delete(key: string): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }
}
