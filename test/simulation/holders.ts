/**
 * Whether those who are closed because the bus retains too much are those who hold most (contract 8.3).
 *
 * The bus says in its log whom it closes for that; what everybody held before and after the event is counted here. What is
 * read in an event is gone before the event is judged, so only who held more all the time was to be closed first; and what
 * an event brings is held by then, so whoever is closed may have held that too.
 */
import type { Core } from '../../src/kernel/core.ts'
import type { Action } from '../../src/kernel/events.ts'
import { demand } from './violation.ts'

/** Who holds more than the closed one by so much was to be closed first. */
const SLACK_BYTES = 1_000
const CLOSED = 'client closed: the bus retains more than max_total_buffer'

export class Holders {
  #bytes = new Map<string, number>()
  /** Closed in the event at hand, and what each held at the most. */
  #closed = new Map<string, number>()

  /** The bus says whom it closes, in an event that has brought so many bytes. */
  hear(actions: readonly Action[], broughtBytes: number): void {
    for (const action of actions) {
      if (action.do !== 'log' || action.text !== CLOSED) continue
      const key = `client ${action.about['client']}`
      this.#closed.set(key, (this.#bytes.get(key) ?? 0) + broughtBytes)
    }
  }

  /** The event is over. */
  look(core: Core): void {
    const before = this.#bytes
    this.#bytes = new Map()
    for (const { id, retainedBytes } of core.clients.values()) this.#bytes.set(`client ${id}`, retainedBytes)
    for (const { id, generation, retainedBytes, isAlive } of core.workers.values())
      if (isAlive) this.#bytes.set(`worker ${id}.${generation}`, retainedBytes)
    for (const [key, closed] of this.#closed) this.#demandLargest(key, closed, before)
    this.#closed.clear()
  }

  #demandLargest(key: string, closed: number, before: ReadonlyMap<string, number>): void {
    for (const [other, after] of this.#bytes) {
      const bytes = Math.min(before.get(other) ?? 0, after)
      demand(
        bytes <= closed * 1.5 + SLACK_BYTES,
        'justified',
        () => `${key} was closed for its ${closed} bytes, and ${other} with ${bytes} was not`,
      )
    }
  }
}
