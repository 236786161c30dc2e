/**
 * A client of the kernel that is no connection: one exchange of the gateway with a worker.
 *
 * What the kernel writes to it is handed to a listener, line by line, after the kernel has its buffers back. It never holds
 * anything up: what it is given it has read.
 */
import type { BusEvent, WorkerGeneration } from '../../kernel/events.ts'
import type { ClientId, WorkerId } from '../../kernel/vocabulary.ts'
import type { ErrorObject } from '../../wire/jsonrpc.ts'

export interface InternalListener {
  /** A message of this client is on its way to that process. */
  routed(worker: WorkerGeneration): void
  /** Something a worker, or the bus in its place, says to this client. `bytes` is the length of the line. */
  received(message: Record<string, unknown>, bytes: number): void
  /** The bus refuses or fails its request. */
  failed(error: ErrorObject): void
}

/** The worker that shall have its message, and the connection for whose principal it is. */
export interface Wishes {
  readonly prefer?: WorkerId
  readonly behalfOf?: ClientId
}

const NEWLINE = 0x0a

export class InternalClient {
  readonly id: ClientId
  readonly #tell: (event: BusEvent) => void
  #listener: InternalListener | undefined
  #held: string[] = []
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

  /** The kernel hands over whole lines only; its buffers are its own again when this returns. */
  write(buffers: readonly Buffer[]): number {
    for (const buffer of buffers) {
      let start = 0
      for (let end = buffer.indexOf(NEWLINE); end !== -1; end = buffer.indexOf(NEWLINE, start)) {
        this.#held.push(buffer.utf8Slice(start, end))
        start = end + 1
      }
    }
    return 0
  }

  /** The listener hears what was written. */
  deliver(): void {
    const lines = this.#held
    this.#held = []
    for (const line of lines) this.#listener?.received(JSON.parse(line), Buffer.byteLength(line))
  }

  pause(): void {}

  resume(): void {}

  close(): void {
    this.#listener = undefined
  }
}
