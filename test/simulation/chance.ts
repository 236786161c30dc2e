/**
 * A source of chance with a seed, and nothing else: the same seed and step always yield the same numbers.
 *
 * Every step of a run is reseeded by its own number, so that a step means the same whatever steps are left out around it.
 */
export class Chance {
  #state: number

  constructor(seed: number, step = 0) {
    this.#state = 0
    this.reseed(seed, step)
  }

  reseed(seed: number, step: number): void {
    this.#state = mix(Math.imul(seed | 0, 0x9e3779b1) ^ mix(step | 0))
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    return mix(this.#state) / 4_294_967_296
  }

  /** In [0, count). */
  int(count: number): number {
    return Math.floor(this.next() * count)
  }

  /** In [least, most]. */
  between(least: number, most: number): number {
    return least + this.int(most - least + 1)
  }

  is(probability: number): boolean {
    return this.next() < probability
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.int(items.length)]!
  }

  /** One of the rows, as often as its weight says. */
  weigh<Item>(rows: readonly (readonly [weight: number, item: Item])[]): Item {
    let total = 0
    for (const row of rows) total += row[0]
    let at = this.next() * total
    for (const row of rows) {
      at -= row[0]
      if (at < 0) return row[1]
    }
    return rows[rows.length - 1]![1]
  }
}

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
