/**
 * What one client was given over HTTP and has not left yet, over all its streams and answers (contract 8.3, 10.16).
 */
import type { ServerResponse } from 'node:http'

export class Outflow {
  readonly #responses = new Set<ServerResponse>()
  readonly #drained: () => void

  constructor(drained: () => void) {
    this.#drained = drained
  }

  get unsentBytes(): number {
    let bytes = 0
    for (const response of this.#responses) if (!response.destroyed) bytes += response.writableLength
    return bytes
  }

  /** A stream: from now on it counts. */
  add(response: ServerResponse): void {
    if (response.destroyed) return
    this.#responses.add(response)
    response.once('close', () => {
      this.#responses.delete(response)
      this.drained()
    })
  }

  /** An answer that has been given whole: it counts while it is on its way. */
  addAnswer(response: ServerResponse): void {
    if (response.writableLength > 0 && !this.#responses.has(response)) this.add(response)
  }

  /** Something has left. */
  drained(): void {
    if (this.unsentBytes === 0) this.#drained()
  }

  destroy(): void {
    for (const response of this.#responses) response.destroy()
  }
}
