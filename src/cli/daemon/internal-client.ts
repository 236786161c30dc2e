/**
 * A client of the kernel that is no connection: one exchange of the gateway with a worker.
 *
 * What the kernel writes to it is handed to a listener, line by line, after the kernel has its buffers back. It never holds
 * anything up: what it is given it has read.
 */
import type { BusEvent, WorkerGeneration } from '../../kernel/events.ts'
import type { CallCause, ClientId, WorkerId } from '../../kernel/vocabulary.ts'
import type { ErrorObject } from '../../wire/jsonrpc.ts'
import { WrittenLines } from './written-lines.ts'

export interface InternalListener {
  /** A message of this client is on its way to that process. */
  routed(worker: WorkerGeneration): void
  /** Something a worker, or the bus in its place, says to this client. `bytes` is the length of the line. */
  received(message: Record<string, unknown>, bytes: number): void
  /** The bus refuses or fails its request. */
  failed(error: ErrorObject): void
}

/** The worker that shall have its message, the connection for whose principal it is, and the call for which it is. */
export interface Wishes {
  readonly prefer?: WorkerId
  readonly behalfOf?: ClientId
  readonly cause?: CallCause
}

export class InternalClient {
  readonly id: ClientId
  readonly #tell: (event: BusEvent) => void
  #listener: InternalListener | undefined
  readonly #lines = new WrittenLines()
  #worker: WorkerGeneration | undefined

  constructor(id: ClientId, listener: InternalListener, tell: (event: BusEvent) => void) {
    this.id = id
    this.#listener = listener
    this.#tell = tell
  }

  /** The process that has its message. */
  get worker(): WorkerGeneration | undefined {
    return this.#worker
  }

  send(message: Record<string, unknown>): void {
    this.#tell({ type: 'client-received', client: this.id, bytes: Buffer.from(`${JSON.stringify(message)}\n`) })
  }

  /** `isSettled`: it has got all it wanted; otherwise the worker is told that nobody waits. */
  leave(isSettled: boolean): void {
    if (this.#listener === undefined) return
    this.#listener = undefined
    this.#tell({ type: 'client-closed', client: this.id, isSettled })
  }

  routed(worker: WorkerGeneration): void {
    this.#worker = worker
    this.#listener?.routed(worker)
  }

  failed(error: ErrorObject): void {
    this.#listener?.failed(error)
  }

  write(buffers: readonly Buffer[]): number {
    this.#lines.take(buffers)
    return 0
  }

  /** The listener hears what was written. */
  deliver(): void {
    for (const line of this.#lines.release()) this.#listener?.received(JSON.parse(line.utf8Slice()), line.length)
  }

  pause(): void {}

  resume(): void {}

  close(): void {
    this.#listener = undefined
  }
}
