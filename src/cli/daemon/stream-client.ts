/**
 * A client that has come from another node on a stream (contract 14.4): joined to the kernel by events and actions, as every
 * client is.
 */
import type { StreamEnding } from '../../cluster/ending.ts'
import type { Stream, StreamOwner } from '../../cluster/stream.ts'
import type { ClientId } from '../../kernel/vocabulary.ts'
import type { Tell } from './client-link.ts'
import type { ClientPeer } from './ends.ts'

export interface StreamClientHost {
  readonly tell: Tell
  /** Why the bus itself ends it. */
  readonly endingOf: () => StreamEnding
  /** It is there no more. */
  readonly gone: () => void
}

export class StreamClient implements ClientPeer, StreamOwner {
  readonly #client: ClientId
  readonly #stream: Stream
  readonly #host: StreamClientHost
  readonly #tell: Tell
  #isOver = false

  constructor(client: ClientId, stream: Stream, host: StreamClientHost) {
    this.#client = client
    this.#stream = stream
    this.#host = host
    this.#tell = host.tell
  }

  /** From now on what comes is told. */
  open(): void {
    if (!this.#isOver) this.#stream.adopt(this)
  }

  // ---- for the kernel ----

  write(buffers: readonly Buffer[]): number {
    return this.#isOver ? 0 : this.#stream.write(buffers)
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  close(how: 'flush' | 'drop'): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stream.leave(this.#host.endingOf(), how === 'drop')
    this.#host.gone()
  }

  // ---- for the stream ----

  received(bytes: Buffer): void {
    if (!this.#isOver) this.#tell({ type: 'client-received', client: this.#client, bytes })
  }

  drained(): void {
    if (!this.#isOver) this.#tell({ type: 'client-wrote', client: this.#client, pendingBytes: 0 })
  }

  ended(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stream.leave({ reason: 'closed' }, true)
    this.#host.gone()
    this.#tell({ type: 'client-closed', client: this.#client })
  }
}
