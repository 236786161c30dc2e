/**
 * Does something once at a time for everybody who asks, and always once more for those who ask meanwhile.
 *
 * Whoever asks gets the outcome of a run that began after the question, so what was changed before it is seen. Those who
 * ask while a run is under way share the one that follows: however many ask, there are two at most.
 */
export class InTurn<T> {
  readonly #act: () => Promise<T>
  #current: Promise<T> | undefined
  #next: Promise<T> | undefined

  constructor(act: () => Promise<T>) {
    this.#act = act
  }

  ask(): Promise<T> {
    if (this.#next !== undefined) return this.#next
    if (this.#current === undefined) return this.#begin()
    const goOn = (): Promise<T> => {
      this.#next = undefined
      return this.#begin()
    }
    this.#next = this.#current.then(goOn, goOn)
    return this.#next
  }

  #begin(): Promise<T> {
    this.#current = this.#act().finally(() => {
      this.#current = undefined
    })
    return this.#current
  }
}
