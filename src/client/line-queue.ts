/** Lines that wait for the bus to come back. It is full above its limit; its bound is the limit and one portion more. */
export class LineQueue {
  #lines: Buffer[] = []
  #bytes = 0
  readonly maxBytes: number

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  get isFull(): boolean {
    return this.#bytes > this.maxBytes
  }

  add(lines: Buffer): void {
    // A slice would keep the whole chunk it came in.
    this.#lines.push(Buffer.from(lines))
    this.#bytes += lines.length
  }

  takeAll(): Buffer[] {
    const lines = this.#lines
    this.#lines = []
    this.#bytes = 0
    return lines
  }
}
