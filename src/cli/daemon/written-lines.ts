/**
 * Makes lines of what the kernel writes to a client that is no socket. A line may lie in several of its buffers, and the buffers
 * are the kernel's again as soon as they are taken: what is kept is a copy.
 */
import { LineSplitter } from '../../wire/frame.ts'

export class WrittenLines {
  readonly #splitter = new LineSplitter(Number.POSITIVE_INFINITY)
  #lines: Buffer[] = []

  take(buffers: readonly Buffer[]): void {
    for (const buffer of buffers) {
      this.#splitter.push(buffer, 0, (bytes, start, end) => {
        this.#lines.push(Buffer.from(bytes.subarray(start, end)))
        return true
      })
    }
  }

  /** What has come since the last time, each without its newline. */
  release(): readonly Buffer[] {
    const lines = this.#lines
    this.#lines = []
    return lines
  }
}
