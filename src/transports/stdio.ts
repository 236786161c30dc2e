/**
 * The stdio door: exactly one client, who is there from the start (contract 4.1.1).
 *
 * It joins standard input and output into one connection that ends in halves: the end of input leaves output open for
 * what is still owed. It buffers nothing of its own beyond what a stream must.
 */
import { Duplex, type Readable, type Writable } from 'node:stream'
import type { Accept, Listener } from './listener.ts'

export interface StdioStreams {
  readonly stdin: Readable
  readonly stdout: Writable
}

/** Hands the one client of standard input and output to `accept`. */
export function openStdio(accept: Accept, { stdin, stdout }: StdioStreams = process): Listener {
  const address = 'stdio'
  accept(new StdioConnection(stdin, stdout), { door: 'stdio', isLocal: true, listener: address, peer: '' })
  return { address, close: async () => {} }
}

class StdioConnection extends Duplex {
  readonly #in: Readable
  readonly #out: Writable

  constructor(stdin: Readable, stdout: Writable) {
    super({ allowHalfOpen: true })
    this.#in = stdin
    this.#out = stdout
    stdin.pause()
    stdin.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) stdin.pause()
    })
    stdin.on('end', () => this.push(null))
    stdin.on('error', (error) => this.destroy(error))
    stdout.on('error', (error) => this.destroy(error))
  }

  override _read(): void {
    this.#in.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#out.write(chunk, done)
  }

  override _writev(chunks: Array<{ chunk: Buffer }>, done: (error?: Error | null) => void): void {
    this.#out.cork()
    for (const [index, { chunk }] of chunks.entries()) {
      this.#out.write(chunk, index === chunks.length - 1 ? done : undefined)
    }
    this.#out.uncork()
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#out.end(done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#in.destroy()
    this.#out.destroy()
    done(error)
  }
}
