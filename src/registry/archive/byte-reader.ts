/**
 * Pulls exact numbers of bytes out of a stream of chunks.
 *
 * It holds one chunk at most: what is larger than a header is handed on piece by piece, never collected.
 */
import { ArchiveFault } from './tree.ts'

export class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  #held: Uint8Array = new Uint8Array(0)

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** Exactly `count` bytes; undefined at the very end of the stream. */
  async read(count: number): Promise<Buffer | undefined> {
    const parts: Uint8Array[] = []
    let missing = count
    while (missing > 0) {
      const part = await this.#take(missing)
      if (part === undefined) break
      parts.push(part)
      missing -= part.length
    }
    if (missing === count && count > 0) return undefined
    if (missing > 0) throw new ArchiveFault('broken', 'it ends in the middle of an entry')
    return Buffer.concat(parts)
  }

  /** The next `count` bytes as they come; must be read to the end before anything else is. */
  async *stream(count: number): AsyncGenerator<Uint8Array> {
    for (let missing = count; missing > 0; ) {
      const part = await this.#take(missing)
      if (part === undefined) throw new ArchiveFault('broken', 'it ends in the middle of an entry')
      missing -= part.length
      yield part
    }
  }

  async skip(count: number): Promise<void> {
    for await (const _ of this.stream(count));
  }

  /** Tells the source that nothing more is wanted. */
  async close(): Promise<void> {
    await this.#chunks.return?.()
  }

  async #take(most: number): Promise<Uint8Array | undefined> {
    while (this.#held.length === 0) {
      const next = await this.#chunks.next()
      if (next.done) return undefined
      this.#held = next.value
    }
    const part = this.#held.subarray(0, most)
    this.#held = this.#held.subarray(part.length)
    return part
  }
}
