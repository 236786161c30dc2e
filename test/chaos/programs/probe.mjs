/**
 * A well-behaved client that measures how long its answers take: one request every few milliseconds, whether or not the last
 * is answered. Told `take`, it gives what it has measured since; told `end`, it waits for what it is owed and gives its books.
 */
import { Ledger } from '../stage/ledger.mjs'
import { steadyPlan } from '../stage/plans.mjs'
import { Player } from '../stage/player.mjs'

const EVERY_MS = 3
const [address, pool] = process.argv.slice(2)
const ledger = new Ledger()
let latenciesMs = []
const startedMs = new Map()

const player = await Player.connect(address, { mark: 'probe', ledger, plan: steadyPlan(pool) })
player.onAnswer = (n) => {
  latenciesMs.push(performance.now() - startedMs.get(n))
  startedMs.delete(n)
}

let asked = 0
const timer = setInterval(() => {
  startedMs.set(++asked, performance.now())
  player.ask()
}, EVERY_MS)

const ORDERS = {
  take() {
    process.send(latenciesMs)
    latenciesMs = []
  },
  async end() {
    clearInterval(timer)
    await player.rest(10_000)
    process.send(ledger, () => process.exit())
  },
}
process.on('message', (order) => ORDERS[order]())
process.on('disconnect', () => process.exit())
process.send('measuring')
