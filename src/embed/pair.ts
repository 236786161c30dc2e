/**
 * Two streams that are each other's far end, for a client in the same process as its bus.
 *
 * What is written is copied, as a socket would: the bus lends its bytes and uses their memory again. A side that is not
 * read holds the other's writes, and one that is destroyed is the end of the other.
 */
import { Duplex } from 'node:stream'

type Done = (error?: Error | null) => void

class End extends Duplex {
  other!: End
  /** The write that waits until this side reads. */
  #waiting: Done | undefined

  constructor() {
    super({ allowHalfOpen: true })
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.other.#receive(Buffer.from(chunk), done)
  }

  override _final(done: Done): void {
    this.other.push(null)
    done()
  }

  override _read(): void {
    const done = this.#waiting
    this.#waiting = undefined
    // Whoever reads is in the middle of something.
    if (done !== undefined) process.nextTick(done)
  }

  override _destroy(error: Error | null, done: Done): void {
    const { other } = this
    if (!other.destroyed) process.nextTick(() => other.#ended())
    done(error)
  }

  #receive(chunk: Buffer, done: Done): void {
    if (this.destroyed) return done()
    if (this.push(chunk)) return done()
    this.#waiting = done
  }

  #ended(): void {
    this._read()
    if (!this.readableEnded && !this.destroyed) this.push(null)
    if (!this.writableEnded) this.end()
  }
}

export function streamPair(): readonly [Duplex, Duplex] {
  const [one, other] = [new End(), new End()]
  one.other = other
  other.other = one
  return [one, other]
}
