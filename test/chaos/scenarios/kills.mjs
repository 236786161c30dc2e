/** `kill -9` of workers and of whole client processes at random under load, in all three sharing modes. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { mixedPlan } from '../stage/plans.mjs'
import { signal } from '../stage/processes.mjs'
import { pool } from '../stage/stage.mjs'
import { sleep } from '../stage/waiting.mjs'

const CROWD = fileURLToPath(new URL('../programs/crowd.mjs', import.meta.url))
const POOLS = ['shared', 'lease', 'isolated']
const SURVIVORS = 18
const CROWDS = 2
const CLIENTS_PER_CROWD = 6

const CONFIG = {
  pools: [
    pool('shared', { instances: 6 }),
    pool('lease', { instances: 3, sharing: 'lease' }),
    pool('isolated', { instances: 1, sharing: 'isolated', max_instances: 64 }),
  ],
  limits: { max_restarts: 1_000, restart_window_sec: 1 },
}

export const kills = {
  name: 'kills',
  title: '`kill -9` of workers and of client processes at random under load',
  async run(stage) {
    const bus = await stage.start(CONFIG)
    const before = await bus.descriptorsAtRest()
    const crowds = Array.from({ length: CROWDS }, () => new Crowd(stage, bus))
    const players = await stage.players(bus, SURVIVORS, () => mixedPlan(stage.random, POOLS))
    const killed = await killForAWhile(stage, bus, crowds, stage.isQuick ? 8_000 : 30_000)
    for (const crowd of crowds) crowd.end()
    await stage.settle(players, 25_000)
    const { dropped } = await bus.status()
    stage.fact(`${killed.workers} workers and ${killed.crowds * CLIENTS_PER_CROWD} clients killed`)
    stage.fact(`${dropped.late_answer ?? 0} late answers of dead clients discarded`)
    stage.check(killed.workers > 0 && killed.crowds > 0, 'nobody was killed')
    await stage.checkDescriptors(bus, before)
    await stage.finish(bus)
  },
}

async function killForAWhile(stage, bus, crowds, durationMs) {
  const killed = { workers: 0, crowds: 0 }
  for (const endMs = performance.now() + durationMs; performance.now() < endMs; ) {
    await sleep(stage.random.between(100, 500))
    if (stage.random.fraction() < 0.25) {
      stage.random.pick(crowds).killAndReplace()
      killed.crowds++
      continue
    }
    const { workers } = await bus.status()
    const alive = workers.filter(({ pid, state }) => pid !== null && state === 'ready')
    if (alive.length > 0 && signal(stage.random.pick(alive).pid, 'SIGKILL')) killed.workers++
  }
  return killed
}

/** A process full of clients; its violations count, its requests are owed nothing once it is dead. */
class Crowd {
  #stage
  #bus
  #child
  #lives = 0

  constructor(stage, bus) {
    this.#stage = stage
    this.#bus = bus
    this.#start()
    stage.onEnd(() => this.end())
  }

  killAndReplace() {
    this.#child.kill('SIGKILL')
    this.#start()
  }

  end() {
    this.#child.kill('SIGKILL')
  }

  #start() {
    const mark = `crowd-${this.#stage.random.between(0, 1e9)}-${++this.#lives}`
    const seed = this.#stage.random.between(0, 2 ** 31)
    const given = { addresses: this.#bus.addresses, pools: POOLS, mark, clients: CLIENTS_PER_CROWD, seed }
    const told = { doubled: 0, misdelivered: 0 }
    this.#child = fork(CROWD, [JSON.stringify(given)], { cwd: '/' })
    this.#child.on('message', (tally) => {
      for (const name of Object.keys(told)) {
        this.#stage.ledger[name] += tally[name] - told[name]
        told[name] = tally[name]
      }
    })
  }
}
