/**
 * A client of the kernel that is no connection: it speaks for a client of an aggregate to one member (contract 13.3), or for
 * a caller to an agent that has sessions (13.14).
 *
 * It has no queue: what the kernel tells it is handed on at once, and whoever it speaks for is held up in its place.
 */
import type { BusEvent, WorkerGeneration } from '../../kernel/events.ts'
import type { ClientId } from '../../kernel/vocabulary.ts'

/** Gets each line with the process that said it; undefined: the bus did. */
export type DelegateEar = (line: Buffer, source: WorkerGeneration | undefined) => void

export class DelegateClient {
  readonly id: ClientId
  readonly #tell: (event: BusEvent) => void
  #received: DelegateEar | undefined

  constructor(id: ClientId, received: DelegateEar, tell: (event: BusEvent) => void) {
    this.id = id
    this.#received = received
    this.#tell = tell
  }

  send(bytes: Buffer): void {
    if (this.#received !== undefined) this.#tell({ type: 'client-received', client: this.id, bytes })
  }

  leave(): void {
    if (this.#received === undefined) return
    this.#received = undefined
    this.#tell({ type: 'client-closed', client: this.id })
  }

  hear(line: Buffer, source: WorkerGeneration | undefined): void {
    this.#received?.(line, source)
  }

  close(): void {
    this.#received = undefined
  }
}
