/**
 * A worker that is a stream to another node (contract 14.4): joined to the kernel by events and actions, as every worker is.
 *
 * The stream is opened with the first bytes: only then it is known whose they are. It ends as the other node says, or with
 * `node_lost`.
 */
import type { StreamEnding } from '../../cluster/ending.ts'
import type { Stream, StreamOwner } from '../../cluster/stream.ts'
import type { WorkerGeneration } from '../../kernel/events.ts'
import type { Reason } from '../../kernel/faults.ts'
import type { Tell } from './client-link.ts'
import type { WorkerPeer } from './ends.ts'

/** Begins the stream; undefined: the node is not there. A text says why it cannot be. */
export type OpenStream = (owner: StreamOwner) => Stream | string | undefined

export interface StreamWorkerHost {
  readonly tell: Tell
  readonly open: OpenStream
  /** After what is being done now. */
  readonly later: (then: () => void) => void
}

const REASONS: Readonly<Record<StreamEnding['reason'], Reason>> = {
  lost: 'node_lost',
  shutting_down: 'shutting_down',
  closed: 'worker_exited',
  refused: 'worker_exited',
}

export class StreamWorker implements WorkerPeer, StreamOwner {
  readonly #of: WorkerGeneration
  readonly #node: string
  readonly #later: StreamWorkerHost['later']
  readonly #tell: Tell
  /** Until it has been asked for. */
  #open: OpenStream | undefined
  #stream: Stream | undefined
  #isPaused = false
  #isOver = false

  constructor(of: WorkerGeneration, node: string, host: StreamWorkerHost) {
    this.#of = of
    this.#node = node
    this.#later = host.later
    this.#tell = host.tell
    this.#open = host.open
    host.later(() => {
      if (!this.#isOver) this.#tell({ type: 'worker-opened', ...of, facts: { address: `cluster:${node}` } })
    })
  }

  // ---- for the kernel ----

  write(buffers: readonly Buffer[]): number {
    if (this.#isOver) return 0
    if (this.#open !== undefined) this.#begin(this.#open)
    return this.#stream?.write(buffers) ?? 0
  }

  #begin(open: OpenStream): void {
    this.#open = undefined
    const stream = open(this)
    if (typeof stream === 'object') {
      if (this.#isPaused) stream.pause()
      this.#stream = stream
    } else this.#fail(stream)
  }

  /** The kernel is in the middle of writing. */
  #fail(why: string | undefined): void {
    const ending: StreamEnding = why === undefined ? { reason: 'lost' } : { reason: 'refused', why }
    this.#later(() => this.ended(ending))
  }

  /** A client that came through other buses uses it: the other node is told as any bus is (contract 11.6). */
  passOn(via: readonly string[]): void {
    const line = JSON.stringify({ jsonrpc: '2.0', method: 'bus::open', params: { via } })
    if (this.#stream !== undefined) this.#stream.write([Buffer.from(`${line}\n`)])
  }

  pause(): void {
    this.#isPaused = true
    this.#stream?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#stream?.resume()
  }

  async stop(how: 'end' | 'kill' | 'clear'): Promise<void> {
    this.#leave(how !== 'end')
  }

  async kill(): Promise<void> {
    this.#leave(true)
  }

  #leave(isAtOnce: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stream?.leave({ reason: 'closed' }, isAtOnce)
    this.#later(() => this.#tellEnd({ isClean: true, how: { why: 'it was ended' } }))
  }

  // ---- for the stream ----

  received(bytes: Buffer): void {
    if (!this.#isOver) this.#tell({ type: 'worker-received', ...this.#of, bytes })
  }

  drained(): void {
    if (!this.#isOver) this.#tell({ type: 'worker-wrote', ...this.#of, pendingBytes: 0 })
  }

  ended({ reason, why }: StreamEnding): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stream?.leave({ reason: 'closed' }, true)
    const how = { node: this.#node, ...(why === undefined ? {} : { why }) }
    this.#tellEnd({ isClean: false, how, reason: REASONS[reason] })
  }

  #tellEnd(ending: { isClean: boolean; how: Record<string, string>; reason?: Reason }): void {
    this.#tell({ type: 'worker-silent', ...this.#of, pipe: 'stdout' })
    this.#tell({ type: 'worker-ended', ...this.#of, ...ending })
  }
}
