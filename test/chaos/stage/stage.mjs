/**
 * What a scenario is given: buses, chance, players, and a sheet on which figures, facts and violations are written.
 *
 * At the end of a scenario its buses are cleared away, whatever happened.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Bus } from './bus.mjs'
import { Ledger } from './ledger.mjs'
import { steadyPlan } from './plans.mjs'
import { openSocket, Player } from './player.mjs'
import { Random } from './random.mjs'

const WORKER = fileURLToPath(new URL('../programs/worker.mjs', import.meta.url))

/** A pool of the common worker. */
export const pool = (id, more = {}) => ({ id, command: process.execPath, args: [WORKER], ...more })

export class Stage {
  isQuick
  /** The one part of the scenario that is wanted; undefined: all. */
  part
  random
  ledger = new Ledger()
  facts = []
  violations = []
  leaked = 0
  orphans = 0
  peakRssMib = 0
  #program
  #name
  #buses = []
  #cleanups = []
  #marks = 0

  constructor(program, { name, seed, isQuick, part }) {
    this.part = part
    this.#program = program
    this.#name = name
    this.isQuick = isQuick
    this.random = new Random(seed)
  }

  start(config, options) {
    return this.#startIn(join(this.#program.folder, `${this.#name}${this.#buses.length}`), config, options)
  }

  /** A bus that is not waited for. */
  launch(config) {
    const bus = new Bus(this.#program.main, join(this.#program.folder, `${this.#name}${this.#buses.length}`), config)
    this.#buses.push(bus)
    return bus
  }

  /** Where `bus` was, over whatever it has left there. */
  startAgain({ folder }, config) {
    return this.#startIn(folder, config)
  }

  async #startIn(folder, config, options) {
    const bus = await Bus.start(this.#program.main, folder, config, options)
    this.#buses.push(bus)
    if (options?.unready !== true) await bus.allReady()
    await this.#warmUp(bus)
    return bus
  }

  /** The runtime opens some descriptors at the first connection of each door and keeps them. */
  async #warmUp(bus) {
    for (const address of bus.addresses) (await openSocket(address)).destroy()
  }

  async player(address, plan, { ledger = this.ledger, window } = {}) {
    return Player.connect(address, { mark: `${this.#name}-${++this.#marks}`, ledger, plan, window })
  }

  /** `count` players that take turns at the doors of `bus`; they play already. */
  async players(bus, count, plan, options) {
    const players = []
    for (let index = 0; index < count; index++) {
      const address = bus.addresses[index % bus.addresses.length]
      const player = await this.player(address, plan(index), options)
      players.push(player)
      player.play()
    }
    return players
  }

  steady(bus, count, poolId, params, options) {
    return this.players(bus, count, () => steadyPlan(poolId, params), options)
  }

  /** Asks no more, waits for what is owed, leaves. */
  async settle(players, timeoutMs = 20_000) {
    await Promise.all(players.map((player) => player.rest(timeoutMs)))
    for (const player of players) player.leave()
  }

  async checkDescriptors(bus, before) {
    const leaked = await bus.leakedSince(before)
    this.leaked += leaked.length
    this.check(leaked.length === 0, `open descriptors: ${leaked.join(' ')}`)
  }

  /** Ends the bus in an orderly way and looks for what is left. */
  async finish(bus) {
    this.notePeak(bus)
    const { exit, orphans, socketLeft } = await bus.end()
    this.orphans += orphans
    this.check(exit?.code === 0, `the bus ended with ${JSON.stringify(exit)} instead of exit 0`)
    this.check(!socketLeft, 'the socket file is still there')
  }

  notePeak(bus) {
    this.peakRssMib = Math.max(this.peakRssMib, bus.peakRssMib)
  }

  check(holds, violation) {
    if (!holds) this.violations.push(violation)
  }

  fact(text) {
    this.facts.push(text)
  }

  onEnd(cleanup) {
    this.#cleanups.push(cleanup)
  }

  async clear() {
    for (const cleanup of this.#cleanups) await cleanup()
    for (const bus of this.#buses) await bus.clear()
  }

  sheet() {
    const { ledger, leaked, orphans } = this
    const left = [
      ...(leaked > 0 ? [`${leaked} descriptors leaked`] : []),
      ...(orphans > 0 ? [`${orphans} orphans`] : []),
    ]
    return {
      name: this.#name,
      requests: ledger.requests,
      answered: ledger.answered,
      errors: ledger.errors,
      closed: ledger.closed,
      abandoned: ledger.abandoned,
      lost: ledger.lost,
      doubled: ledger.doubled,
      misdelivered: ledger.misdelivered,
      orphans,
      leaked,
      peakRssMib: this.peakRssMib,
      facts: this.facts,
      violations: [...ledger.violations(), ...left, ...this.violations],
    }
  }
}
