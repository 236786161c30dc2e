/**
 * The last lines of the log, kept for whoever looks, and handed on to whoever follows.
 *
 * Invariant: never more than so many lines and so many characters; the oldest go first.
 */
/** Told of a line and its number; numbers count from 1 and are never used again. */
type Follower = (line: string, number: number) => void

export interface RecentBounds {
  readonly maxLines: number
  readonly maxChars: number
}

export const RECENT_BOUNDS: RecentBounds = { maxLines: 5_000, maxChars: 4 * 1024 * 1024 }

export class RecentLines {
  readonly #bounds: RecentBounds
  readonly #followers = new Set<Follower>()
  #lines: string[] = []
  /** Those before it are forgotten; they are cut off together, now and then. */
  #first = 0
  #chars = 0
  /** Lines that were cut off: what is left goes on counting from there. */
  #cutOff = 0

  constructor(bounds: RecentBounds = RECENT_BOUNDS) {
    this.#bounds = bounds
  }

  push(line: string): void {
    this.#lines.push(line)
    this.#chars += line.length
    while (this.#isOver() && this.#first < this.#lines.length - 1) {
      this.#chars -= this.#lines[this.#first]!.length
      this.#lines[this.#first++] = ''
    }
    if (this.#first > this.#bounds.maxLines) this.#cut()
    const number = this.#cutOff + this.#lines.length
    for (const follower of this.#followers) follower(line, number)
  }

  /** The newest last. */
  all(): readonly string[] {
    return this.#lines.slice(this.#first)
  }

  /** The number of the first of them. */
  get firstNumber(): number {
    return this.#cutOff + this.#first + 1
  }

  /** Every line from now on, until the returned function is called. */
  follow(follower: Follower): () => void {
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }

  #isOver(): boolean {
    return this.#lines.length - this.#first > this.#bounds.maxLines || this.#chars > this.#bounds.maxChars
  }

  #cut(): void {
    this.#lines = this.#lines.slice(this.#first)
    this.#cutOff += this.#first
    this.#first = 0
  }
}
