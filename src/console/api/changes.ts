/**
 * A topic that only says that something is other than before: whoever follows asks again for what it sees of it (contract 15.19).
 *
 * So nothing is told to anybody who may not see it, and however much happens, it is said four times a second.
 */
import type { ApiCall } from './api-call.ts'
import type { Topic } from './feed.ts'

const INTERVAL_MS = 250

export class ChangeTopic implements Topic {
  readonly #follow: (changed: () => void) => () => void
  readonly #senders = new Set<(data: unknown) => void>()
  #changes = 0
  #timer: NodeJS.Timeout | undefined
  #stop: () => void = () => {}

  /** `follow`: calls back whenever something changes, until what it returns is called. */
  constructor(follow: (changed: () => void) => () => void) {
    this.#follow = follow
  }

  follow(_call: ApiCall, send: (data: unknown) => void): () => void {
    if (this.#senders.size === 0) this.#stop = this.#follow(() => this.#changed())
    this.#senders.add(send)
    send({ changes: this.#changes })
    return () => this.#leave(send)
  }

  #changed(): void {
    this.#changes++
    this.#timer ??= setTimeout(() => this.#tell(), INTERVAL_MS)
  }

  #tell(): void {
    this.#timer = undefined
    for (const send of this.#senders) send({ changes: this.#changes })
  }

  #leave(send: (data: unknown) => void): void {
    if (!this.#senders.delete(send) || this.#senders.size > 0) return
    this.#stop()
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
