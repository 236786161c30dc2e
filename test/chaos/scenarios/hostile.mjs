/**
 * Hostile clients, one attack at a time, while a well-behaved client of another worker measures its answers.
 *
 * What a busy machine adds is not the bus's doing: a twin of the bus, which nobody attacks, is measured at the same time,
 * and the quiet value is the larger of the twin's and that of the bus right before. Every attack has one attempt.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ATTACKS } from '../attacks/table.mjs'
import { echoOnce } from '../stage/changing-pools.mjs'
import { rssMib } from '../stage/processes.mjs'
import { pool } from '../stage/stage.mjs'
import { sleep } from '../stage/waiting.mjs'

const PROBE = fileURLToPath(new URL('../programs/probe.mjs', import.meta.url))
const DEAF = fileURLToPath(new URL('../programs/deaf-caller.mjs', import.meta.url))
const ATTACKER = fileURLToPath(new URL('../programs/attacker.mjs', import.meta.url))
const MIB = 1024 * 1024
const MAX_TOTAL_MIB = 64
/** What the runtime needs beside the data: lines that grow leave twice their size as garbage, 100,000 sessions need tables. */
const RUNTIME_MIB = 3 * MAX_TOTAL_MIB
const WORST_RATIO = 3
const LOOK_MS = 250
const WARM_UP_MS = 1_000
/** An attack that is not over by then has got stuck. */
const ATTACK_MS = 90_000

/** The workers that attackers reach run at the lowest priority: two cores are not to be the bottleneck. */
function exposed(id, more = {}) {
  const { command, args, ...rest } = { ...pool(id), ...more }
  return { ...rest, command: 'nice', args: ['-n', '19', command, ...args] }
}

const CONFIG = {
  pools: [pool('others'), exposed('target'), exposed('mcp', { protocol: 'mcp', era: 'modern' })],
  limits: { max_total_buffer: MAX_TOTAL_MIB * MIB, half_close_timeout_sec: 1 },
}

/** For attacks on agents: a short queue, so that what is held for those who do not read is seen. */
const QUEUE_MIB = 1
const ASKED = {
  config: {
    pools: [
      pool('others'),
      exposed('agent', { aio: { type: 'stdio' } }),
      exposed('deaf', { args: [DEAF], aio: { type: 'stdio' } }),
      exposed('once', { command: 'sed', args: echoOnce, instances: 2, aio: { type: 'stdio', mode: 'oneshot' } }),
    ],
    aio: { store: { path: 'traces.db' } },
    limits: { ...CONFIG.limits, max_output_queue: QUEUE_MIB * MIB },
  },
  /** The caller's queue and the agent's, and a line for each source. */
  queueBoundMib: 4 * QUEUE_MIB,
}

export const hostile = {
  name: 'hostile',
  title: 'hostile clients, one attack after the other, each beside a well-behaved client of another worker',
  async run(stage) {
    stage.extra = { attacks: [] }
    const twin = await watch(stage, await stage.start({ pools: [pool('others')] }))
    const names = Object.keys(ATTACKS).filter((name) => stage.part === undefined || name === stage.part)
    for (const name of names) stage.extra.attacks.push(await strike(stage, name, twin))
    stage.ledger.add(await twin.end())
    stage.check(stage.ledger.errorCount === 0, `the others got ${JSON.stringify(stage.ledger.errors)}`)
    stage.fact('the requests in this row are those of the well-behaved clients')
  },
}

async function strike(stage, name, twin) {
  const row = await measure(stage, name, twin)
  const { peakRssMib, boundMib, queueMib, queueBoundMib, ratio, worst } = row
  for (const violation of row.violations) stage.check(false, `${name}: ${violation}`)
  stage.check(peakRssMib < boundMib, `${name}: ${Math.round(peakRssMib)} MiB of ${Math.round(boundMib)}`)
  stage.check(queueMib <= queueBoundMib, `${name}: queues of ${queueMib.toFixed(1)} MiB of ${queueBoundMib}`)
  stage.check(ratio <= worst, `${name}: p99 of others is ${ratio.toFixed(1)} times its quiet value`)
  return row
}

/** On a bus of its own, right after a quiet time: what an attack leaves behind is not counted against the next. */
async function measure(stage, name, twin) {
  const { asks, worst = WORST_RATIO } = ATTACKS[name]
  const { config = CONFIG, queueBoundMib = MAX_TOTAL_MIB } = asks ? ASKED : {}
  const bus = await stage.start(config)
  const before = await bus.descriptorsAtRest()
  const probe = await watch(stage, bus)
  await probe.over(WARM_UP_MS)
  const before99Ms = (await probe.over(stage.isQuick ? 1_500 : 3_000)).p99Ms
  const boundMib = rssMib(bus.pid) + MAX_TOTAL_MIB + RUNTIME_MIB
  await twin.take()
  const queues = new Queues(bus)
  const books = await attack(bus, name, stage.isQuick ? 0.2 : 1)
  const queueMib = (await queues.peakBytes()) / MIB
  const { p99Ms } = summary(await probe.take())
  const twin99Ms = summary(await twin.take()).p99Ms
  stage.ledger.add(await probe.end())
  stage.notePeak(bus)
  const ratio = p99Ms / Math.max(before99Ms, twin99Ms)
  const { peakRssMib } = bus
  await stage.checkDescriptors(bus, before)
  await stage.finish(bus)
  return { ...books, name, before99Ms, twin99Ms, p99Ms, ratio, worst, boundMib, peakRssMib, queueMib, queueBoundMib }
}

/** The most that the bus has said it holds in its queues. */
class Queues {
  #peakBytes = 0
  #isOver = false
  #looking

  constructor(bus) {
    this.#looking = this.#look(bus)
  }

  async peakBytes() {
    this.#isOver = true
    await this.#looking
    return this.#peakBytes
  }

  async #look(bus) {
    for (; !this.#isOver; await sleep(LOOK_MS)) {
      const status = await bus.status()
      this.#peakBytes = Math.max(this.#peakBytes, status?.queue_bytes ?? 0)
    }
  }
}

async function watch(stage, bus) {
  const probe = new Probe(bus)
  stage.onEnd(() => probe.kill())
  await probe.ready
  return probe
}

function attack(bus, name, scale) {
  const child = fork(ATTACKER, [name, bus.address('unix'), String(scale)], { cwd: '/' })
  const timer = setTimeout(() => child.kill('SIGKILL'), ATTACK_MS)
  return new Promise((resolve, reject) => {
    child.once('message', (books) => {
      clearTimeout(timer)
      resolve(books)
    })
    child.once('exit', (code) => reject(new Error(`the attacker ${name} broke off (exit ${code})`)))
  })
}

function summary(latenciesMs) {
  const sorted = [...latenciesMs].sort((one, other) => one - other)
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50Ms: at(0.5), p99Ms: at(0.99), samples: sorted.length }
}

class Probe {
  ready
  #child

  constructor(bus) {
    this.#child = fork(PROBE, [bus.address('unix'), 'others'], { cwd: '/' })
    this.ready = this.#heard()
  }

  take() {
    return this.#told('take')
  }

  end() {
    return this.#told('end')
  }

  async over(durationMs) {
    await this.take()
    await sleep(durationMs)
    return summary(await this.take())
  }

  kill() {
    this.#child.kill('SIGKILL')
  }

  #told(order) {
    const answer = this.#heard()
    this.#child.send(order)
    return answer
  }

  #heard() {
    return new Promise((resolve) => this.#child.once('message', resolve))
  }
}
