/**
 * Notifications and answers on their way to a server: one after the other, so that they arrive as they were said.
 *
 * One that the server does not take costs nobody else anything but a bounded wait.
 */
import type { Outgoing } from './message.ts'

const POST_MS = 30_000

export class Lane {
  /** Of what has not been sent. */
  bytes = 0
  readonly #send: (message: Outgoing, signal: AbortSignal) => Promise<void>
  readonly #moved: () => void
  #messages: Outgoing[] = []
  #isMoving = false

  /** `send` never fails; `moved` is told when there is less to be sent. */
  constructor(send: (message: Outgoing, signal: AbortSignal) => Promise<void>, moved: () => void) {
    this.#send = send
    this.#moved = moved
  }

  push(message: Outgoing): void {
    this.bytes += message.body.length
    this.#messages.push(message)
    if (!this.#isMoving) void this.#move()
  }

  clear(): void {
    this.#messages = []
    this.bytes = 0
  }

  async #move(): Promise<void> {
    this.#isMoving = true
    for (let next = this.#messages.shift(); next !== undefined; next = this.#messages.shift()) {
      await this.#send(next, AbortSignal.timeout(POST_MS))
      this.bytes = Math.max(0, this.bytes - next.body.length)
      this.#moved()
    }
    this.#isMoving = false
  }
}
