/**
 * What every row measures with: targets that are kept while the next row wants them too, rounds, and alternating pairs of rounds.
 *
 * A machine is never quiet: two things are compared only by rounds that take turns within the same minute, never by figures of
 * different runs.
 */
import { hasNative, nativeRound } from './native.mjs'
import { choosePlacement } from './placement.mjs'
import { forgetPeakRss, peakRssMib } from './process-figures.mjs'
import { startLoad, startTarget } from './targets.mjs'

export class Bench {
  #targets = new Map()
  #loads = new Map()

  /** `start` holds what every target is started with: the program to measure, where profiles go. */
  constructor(pace, placement, start) {
    this.pace = pace
    this.placement = placement
    this.start = start
  }

  /** The wanted targets, started unless they run already; all others are stopped. A want is `{ kind, as?, placement?, ...options }`. */
  async use(...wants) {
    const keys = wants.map((want) => JSON.stringify(want))
    for (const [key, target] of this.#targets) {
      if (keys.includes(key)) continue
      this.#targets.delete(key)
      await target.stop()
    }
    for (const [index, key] of keys.entries()) {
      if (this.#targets.has(key)) continue
      const { kind, as, placement, ...options } = wants[index]
      const target = await startTarget(kind, { ...options, ...this.start })
      target.placement = placement === undefined ? this.placement : choosePlacement(placement)
      target.placement.placeSubject(target.pid)
      target.placement.placeOthers(...target.workerPids)
      this.#targets.set(key, target)
    }
    return keys.map((key) => this.#targets.get(key))
  }

  /** A load generator by name: a second one may hold idle connections while the first one works. */
  load(name = 'load') {
    if (!this.#loads.has(name)) {
      const load = startLoad()
      this.placement.placeOthers(load.pid)
      this.#loads.set(name, load)
    }
    return this.#loads.get(name)
  }

  /** One round against `target`; figures per line count a round trip as the lines that it carries. */
  async round(target, door, spec) {
    forgetPeakRss(target.pid)
    const { warmMs, roundMs } = this.pace
    const watch = { bus: [target.pid], worker: target.workerPids }
    const order = { address: target[door], warmMs, roundMs, ...spec, watch }
    const figures = await this.#run(target.placement, order)
    const { requestsPerSecond, p50Us, p99Us, busy, cpu, answered } = figures
    return {
      requestsPerSecond,
      p50Us,
      p99Us,
      cpuUsPerLine: (cpu.bus * 1e6) / (target.lines * answered),
      peakRssMib: peakRssMib(target.pid),
      busyBus: busy.bus,
      busyWorker: busy.worker,
      busyLoad: busy.load,
    }
  }

  /** Many sessions, laps before the round, and TLS are beyond the generator in C. */
  #run(placement, order) {
    const isSimple = order.sessions === undefined && order.ring === undefined && order.warmLaps === undefined
    const isPlain = isSimple && order.address.ca === undefined
    if (isPlain && hasNative()) return nativeRound(order, (pid) => placement.placeOthers(pid))
    const load = this.load()
    placement.placeOthers(load.pid)
    return load.ask('run', order)
  }

  /** Rounds that take turns; the order within a pair alternates too. Each side is `() => round`; the first pair only warms up. */
  async pairs(count, subject, limit) {
    const pairs = []
    for (let index = 0; index <= count; index++) {
      const pair = {}
      const sides = [
        ['subject', subject],
        ['limit', limit],
      ]
      for (const [name, run] of index % 2 === 0 ? sides : sides.reverse()) pair[name] = await run()
      pairs.push(pair)
    }
    return compare(pairs.slice(1))
  }

  async close() {
    await this.use()
    for (const load of this.#loads.values()) load.stop()
  }
}

/** Medians of either side, and the medians of the ratios of the pairs. */
function compare(pairs) {
  const ratioOf = (figure) => median(pairs.map(({ subject, limit }) => subject[figure] / limit[figure]))
  const limit = medians(pairs.map((pair) => pair.limit))
  return {
    ...medians(pairs.map((pair) => pair.subject)),
    cpuRatio: ratioOf('cpuUsPerLine'),
    p50Ratio: ratioOf('p50Us'),
    rateRatio: ratioOf('requestsPerSecond'),
    limit,
    pairs: pairs.length,
  }
}

export function medians(rounds) {
  return Object.fromEntries(
    Object.keys(rounds[0]).map((figure) => [figure, median(rounds.map((round) => round[figure]))]),
  )
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
