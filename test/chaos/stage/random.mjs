/** Chance that can be repeated: the same seed gives the same run of numbers (mulberry32). */
export class Random {
  #state

  constructor(seed) {
    this.#state = seed >>> 0
  }

  /** From 0 up to 1. */
  fraction() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from `low` to `high`, both possible. */
  between(low, high) {
    return low + Math.floor(this.fraction() * (high - low + 1))
  }

  pick(list) {
    return list[this.between(0, list.length - 1)]
  }
}
