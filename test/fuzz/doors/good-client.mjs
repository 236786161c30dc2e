/** A client that behaves, on a connection of its own: whatever happens elsewhere, each of its requests is answered. */
import { createInterface } from 'node:readline'
import { sleep } from '../../chaos/stage/waiting.mjs'

const EVERY_MS = 10
const TIMEOUT_MS = 10_000

export class GoodClient {
  answered = 0
  wrong
  #stream
  #leave
  #waiting
  #done
  #isOver = false

  constructor(house) {
    const { input, leave } = house.enter('unix')
    this.#stream = input
    this.#leave = leave
    createInterface({ input }).on('line', (line) => this.#waiting?.(JSON.parse(line)))
    input.on('close', () => this.#waiting?.(undefined))
    input.on('error', () => {})
    this.#done = this.#ask()
  }

  async #ask() {
    for (let id = 1; !this.#isOver && this.wrong === undefined; id++) {
      const answer = new Promise((resolve) => (this.#waiting = resolve))
      const timer = setTimeout(this.#waiting, TIMEOUT_MS)
      this.#stream.write(`{"jsonrpc":"2.0","id":${id},"method":"m","pool":"quiet"}\n`)
      const got = await answer
      clearTimeout(timer)
      if (got?.id !== id || got.result === undefined) this.wrong = `neighbour: request ${id} got ${JSON.stringify(got)}`
      else this.answered++
      await sleep(EVERY_MS)
    }
  }

  /** Ends it and gives a finding, or undefined. */
  async end() {
    this.#isOver = true
    await this.#done
    this.#leave()
    return this.wrong ?? (this.answered === 0 ? 'neighbour: it was never answered' : undefined)
  }
}
