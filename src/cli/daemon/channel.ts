/**
 * Bytes out to one peer: hands buffers to the system and tells what the system still holds.
 *
 * It keeps no queue of its own. Whoever writes reads `pendingBytes` afterwards: 0 means that everything has left and its
 * buffers may be used again at once; otherwise `onDrained` is called when it has.
 */
import type { Writable } from 'node:stream'

export class Channel {
  readonly #stream: Writable
  readonly #onDrained: () => void
  #isStalled = false
  readonly #written: (error?: Error | null) => void

  constructor(stream: Writable, onDrained: () => void) {
    this.#stream = stream
    this.#onDrained = onDrained
    // One function for all writes: the runtime then batches its calls.
    this.#written = () => {
      if (!this.#isStalled || this.#stream.writableLength > 0) return
      this.#isStalled = false
      this.#onDrained()
    }
  }

  get pendingBytes(): number {
    return this.#stream.writableLength
  }

  /** Returns what the system still holds; a stream that is gone holds nothing and takes nothing. */
  write(buffers: readonly Buffer[]): number {
    const stream = this.#stream
    if (stream.destroyed || stream.writableEnded) return 0
    if (buffers.length === 1) stream.write(buffers[0], this.#written)
    else {
      stream.cork()
      for (const buffer of buffers) stream.write(buffer, this.#written)
      stream.uncork()
    }
    const pendingBytes = stream.writableLength
    this.#isStalled = pendingBytes > 0
    return pendingBytes
  }
}
