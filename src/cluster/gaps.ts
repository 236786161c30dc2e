/**
 * Numbers that were passed over and may still come: as ranges, so that whoever jumps far costs no more than whoever does not.
 *
 * Invariant: no number is in two ranges, and there are never more ranges than the bound.
 */
interface Range {
  from: number
  to: number
}

export class Gaps {
  readonly #most: number
  #ranges: Range[] = []

  constructor(most: number) {
    this.#most = most
  }

  get isFull(): boolean {
    return this.#ranges.length >= this.#most
  }

  /** How many numbers are missing. */
  get count(): number {
    return this.#ranges.reduce((sum, { from, to }) => sum + to - from + 1, 0)
  }

  /** All from the one to the other are missing; none of them was before. */
  add(from: number, to: number): void {
    if (from <= to && !this.isFull) this.#ranges.push({ from, to })
  }

  has(number: number): boolean {
    return this.#ranges.some((range) => includes(range, number))
  }

  /** It has come; false: it was not missing, or cannot be taken out. */
  take(number: number): boolean {
    const at = this.#ranges.findIndex((range) => includes(range, number))
    if (at === -1) return false
    const { from, to } = this.#ranges[at]!
    const left = [
      { from, to: number - 1 },
      { from: number + 1, to },
    ].filter((range) => range.from <= range.to)
    if (left.length === 2 && this.isFull) return false
    this.#ranges.splice(at, 1, ...left)
    return true
  }

  clear(): void {
    this.#ranges = []
  }
}

function includes({ from, to }: Range, number: number): boolean {
  return from <= number && number <= to
}
