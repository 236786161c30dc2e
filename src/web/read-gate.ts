/** Whether more of a client may be read now: bodies wait here while the queue they would fill is full (contract 10.16). */
export class ReadGate {
  #waiting: (() => void)[] = []
  #isShut = false

  pause(): void {
    this.#isShut = true
  }

  resume(): void {
    this.#isShut = false
    const waiting = this.#waiting
    this.#waiting = []
    for (const go of waiting) go()
  }

  /** Settles as soon as there is room. */
  async pass(): Promise<void> {
    while (this.#isShut) await new Promise<void>((go) => this.#waiting.push(go))
  }
}
