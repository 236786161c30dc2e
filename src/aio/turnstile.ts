/**
 * Lets a fixed number in at a time; the others wait in order, bounded in number and time (contract 6.7).
 *
 * It knows nothing of what is done inside. Whoever was let in must leave exactly once.
 */
export const MAX_WAITERS = 1_024
export const WAIT_MS = 30_000

interface Waiter {
  readonly admitted: () => void
  readonly timer: NodeJS.Timeout
}

export class Turnstile {
  readonly places: number
  #inside = 0
  readonly #waiters = new Set<Waiter>()

  constructor(places: number) {
    this.places = places
  }

  get isEmpty(): boolean {
    return this.#inside === 0 && this.#waiters.size === 0
  }

  /** Calls `admitted` or `refused`, now or later; what it returns gives up waiting. */
  enter(admitted: () => void, refused: () => void): () => void {
    if (this.#inside < this.places) {
      this.#inside += 1
      admitted()
      return () => {}
    }
    if (this.#waiters.size >= MAX_WAITERS) {
      refused()
      return () => {}
    }
    return this.#wait(admitted, refused)
  }

  leave(): void {
    this.#inside -= 1
    const [next] = this.#waiters
    if (next === undefined) return
    this.#waiters.delete(next)
    clearTimeout(next.timer)
    this.#inside += 1
    next.admitted()
  }

  #wait(admitted: () => void, refused: () => void): () => void {
    const timer = setTimeout(() => {
      this.#waiters.delete(waiter)
      refused()
    }, WAIT_MS)
    const waiter: Waiter = { admitted, timer }
    this.#waiters.add(waiter)
    return () => {
      this.#waiters.delete(waiter)
      clearTimeout(timer)
    }
  }
}
