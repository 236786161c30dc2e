/**
 * Clients that come and go: each asks for a while, some wait for their answers and some leave in the middle.
 *
 * There are never more than `count` at a time, and each has few requests open: the load is bounded.
 */
import { sleep } from './waiting.mjs'

const WINDOW = 3
const ANSWER_MS = 40_000

export class Visitors {
  count = 0
  #stage
  #bus
  #use
  #isOpen = true
  #places

  /** `use(random)` gives what a visitor asks for: a plan. */
  constructor(stage, bus, { count, use }) {
    this.#stage = stage
    this.#bus = bus
    this.#use = use
    this.#places = Array.from({ length: count }, () => this.#occupy())
  }

  /** Lets nobody in any more and waits until all have left. */
  async end() {
    this.#isOpen = false
    await Promise.all(this.#places)
  }

  async #occupy() {
    while (this.#isOpen) await this.#visit()
  }

  async #visit() {
    const { random } = this.#stage
    const player = await this.#stage.player(random.pick(this.#bus.addresses), this.#use(random), { window: WINDOW })
    this.count++
    if (random.fraction() < 0.7) for (let asked = random.between(1, WINDOW); asked > 0; asked--) player.ask()
    else await this.#stay(player)
    if (random.fraction() < 0.3) {
      await sleep(random.between(0, 30))
      return player.abandon()
    }
    await player.rest(ANSWER_MS)
    const state = player.isClosed ? 'closed by the bus' : `waits ${ANSWER_MS / 1_000} s`
    const { pool = '', method = '' } = player.lastAsked
    this.#stage.check(player.open.size === 0, `${player.mark} at ${pool}${method} ${state}: ${[...player.open.keys()]}`)
    player.leave()
  }

  /** Asks in its own time, however quickly it is answered: a refusal costs nothing and is no reason to ask more. */
  async #stay(player) {
    const { random } = this.#stage
    for (let left = random.between(10, 100); left > 0 && this.#isOpen; left--) {
      while (player.open.size < WINDOW && !player.isClosed) player.ask()
      await sleep(random.between(20, 80))
    }
  }
}

/** Does `strike` again and again, after a pause of up to `everyMs` each time, and counts. */
export class Recurring {
  count = 0
  #isOver = false
  #run

  constructor(stage, everyMs, strike) {
    this.#run = this.#repeat(stage, everyMs, strike)
  }

  async end() {
    this.#isOver = true
    await this.#run
  }

  async #repeat({ random }, everyMs, strike) {
    for (;;) {
      await sleep(random.between(everyMs / 4, everyMs))
      if (this.#isOver) return
      if (await strike(this.count)) this.count++
    }
  }
}
