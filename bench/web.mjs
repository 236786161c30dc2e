/**
 * What the web doors cost (contract 10, 11): 20 clients of server-everything over HTTP, side by side with the gateways of today and
 * with the server itself; /ws beside the Unix door; what an idle session holds; others beside a reader that is stuck; two buses
 * beside one. Sides take turns, and only ratios mean anything.
 *
 * node bench/web.mjs [--quick] [--program FILE] [--only calls,sockets,memory,stuck,buses]
 */
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readOptions } from '../test/support/options.mjs'
import { rssMib } from './process-figures.mjs'
import { FrameLane, LineLane } from './web/echo-lanes.mjs'
import { HttpLane } from './web/http-lane.mjs'
import { everythingPool, installPeers, startBus, startDirect, startPeer } from './web/subjects.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const WORKER = join(ROOT, 'bench/web/plain-worker.mjs')
const CLIENTS = 20
const USAGE = `usage: node bench/web.mjs [options]: what the web doors cost, beside other gateways and the server itself (contract 10, 11)

  --quick         short rounds
  --program FILE  another build than dist/cli/main.js
  --only LIST     some of calls,sockets,memory,stuck,buses`

const options = readOptions(USAGE, {
  quick: { type: 'boolean', default: false },
  program: { type: 'string', default: join(ROOT, 'dist/cli/main.js') },
  only: { type: 'string', default: 'calls,sockets,memory,stuck,buses' },
})
const ROUNDS = options.quick ? 3 : 7
const ROUND_MS = options.quick ? 1_000 : 3_000
/** Before anything is measured: a program that has just begun is several times slower, and the slower the fewer calls it has had. */
const WARMING = { calls: 8_000, mostMs: 10_000 }
const IDLE_SESSIONS = options.quick ? 500 : 2_000

const rows = []
const report = (name, figure, bound, isReached) => {
  rows.push({ name, isReached })
  console.log(`${isReached ? 'reached' : 'MISSED '}  ${name}: ${figure}   (to reach: ${bound})`)
}
const atMost = (name, value, bound, unit = '') =>
  report(name, `${value.toFixed(2)}${unit}`, `<= ${bound}${unit}`, value <= bound)
const atLeast = (name, value, bound, unit = '') =>
  report(name, `${value.toFixed(2)}${unit}`, `>= ${bound}${unit}`, value >= bound)
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]
const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]

async function lanesTo(url, count, name = 'c') {
  return Promise.all(Array.from({ length: count }, (_, n) => new HttpLane(url, `${name}${n}`).open()))
}

async function warmUp(lanes) {
  const endMs = performance.now() + WARMING.mostMs
  const count = () => lanes.reduce((sum, { samples }) => sum + samples.length, 0)
  await Promise.all(lanes.map((lane) => lane.run(() => count() >= WARMING.calls || performance.now() > endMs)))
}

/** All lanes call for a while. */
async function round(lanes, subject) {
  for (const lane of lanes) lane.samples = []
  const beganMs = performance.now()
  const cpuBefore = subject.cpuSeconds()
  await Promise.all(lanes.map((lane) => lane.run(() => performance.now() - beganMs > ROUND_MS)))
  const seconds = (performance.now() - beganMs) / 1_000
  const samples = lanes.flatMap((lane) => lane.samples).sort((a, b) => a - b)
  return {
    perSecond: samples.length / seconds,
    cpuMicros: ((subject.cpuSeconds() - cpuBefore) * 1e6) / samples.length,
    p50: quantile(samples, 0.5),
    p99: quantile(samples, 0.99),
  }
}

/** Rounds of all sides in turns, the first of which is for warming up; the medians of each figure. */
async function inTurns(sides, measure) {
  const all = sides.map(() => [])
  for (let n = 0; n <= ROUNDS; n++)
    for (const [at, side] of sides.entries()) {
      const figures = await measure(side)
      if (n > 0) all[at].push(figures)
    }
  return all.map((each) =>
    Object.fromEntries(Object.keys(each[0]).map((key) => [key, median(each.map((figures) => figures[key]))])),
  )
}

/** 20 clients of the same server: the bus, its peers, and the server by itself. */
async function calls() {
  const peers = installPeers() ? ['mcp-proxy', 'supergateway'] : []
  if (peers.length === 0) console.log('         (the gateways could not be installed: without them)')
  const subjects = [await startBus(options.program, { pools: [everythingPool] })]
  for (const name of peers) subjects.push(await startPeer(name))
  subjects.push(await startDirect())
  try {
    const sides = []
    for (const subject of subjects) {
      const before = subject.familyMib()
      const lanes = await lanesTo(subject.url, CLIENTS)
      sides.push({ subject, lanes, kibPerClient: ((subject.familyMib() - before) * 1024) / CLIENTS })
    }
    for (const { lanes } of sides) await warmUp(lanes)
    const figures = await inTurns(sides, ({ lanes, subject }) => round(lanes, subject))
    console.log('                       calls/s   CPU a call   p50       p99       memory a client   wrong')
    for (const [at, { subject, lanes, kibPerClient }] of sides.entries()) {
      const { perSecond, cpuMicros, p50, p99 } = figures[at]
      const wrong = lanes.reduce((sum, lane) => sum + lane.wrong, 0)
      const cells = [
        perSecond.toFixed(0),
        `${cpuMicros.toFixed(0)} µs`,
        `${p50.toFixed(2)} ms`,
        `${p99.toFixed(2)} ms`,
        `${kibPerClient.toFixed(0)} KiB`,
      ]
      console.log(`         ${subject.name.padEnd(18)}  ${cells.map((cell) => cell.padEnd(10)).join('')}  ${wrong}`)
    }
    const [bus, proxy] = figures
    const wrong = sides[0].lanes.reduce((sum, lane) => sum + lane.wrong, 0)
    report('wrong answers of the bus', String(wrong), '0', wrong === 0)
    if (peers.length === 0) return
    atLeast('calls/s, against mcp-proxy', bus.perSecond / proxy.perSecond, 3, ' x')
    atMost('CPU a call, against mcp-proxy', bus.cpuMicros / proxy.cpuMicros, 0.25, ' x')
  } finally {
    for (const subject of subjects) await subject.end()
  }
}

/** The same lines through the Unix door and as frames. */
async function sockets() {
  const pool = { id: 'echo', protocol: 'plain', command: process.execPath, args: [WORKER] }
  const bus = await startBus(options.program, { pools: [pool] })
  try {
    const sides = [FrameLane, LineLane].map((Lane) => Array.from({ length: CLIENTS }, (_, n) => new Lane(bus, `c${n}`)))
    await Promise.all(sides.flat().map((lane) => lane.opened))
    const measure = async (lanes) => {
      const beganMs = performance.now()
      const cpuBefore = bus.cpuSeconds()
      const before = lanes.reduce((sum, { answered }) => sum + answered, 0)
      for (const lane of lanes) lane.start()
      await sleep(ROUND_MS)
      await Promise.all(lanes.map((lane) => lane.stop()))
      const answered = lanes.reduce((sum, lane) => sum + lane.answered, 0) - before
      return {
        perSecond: (answered * 1_000) / (performance.now() - beganMs),
        cpuMicros: ((bus.cpuSeconds() - cpuBefore) * 1e6) / answered,
      }
    }
    const [frames, lines] = await inTurns(sides, measure)
    const wrong = sides.flat().reduce((sum, lane) => sum + lane.wrong, 0)
    const each = ({ perSecond, cpuMicros }) => `${perSecond.toFixed(0)} calls/s at ${cpuMicros.toFixed(1)} µs`
    console.log(`         (/ws ${each(frames)}, Unix door ${each(lines)}, wrong ${wrong})`)
    atLeast('/ws, against the Unix door', frames.perSecond / lines.perSecond, 0.6, ' x')
    report('wrong answers at either', String(wrong), '0', wrong === 0)
    for (const lane of sides.flat()) lane.close()
  } finally {
    await bus.end()
  }
}

/** Sessions that do nothing but listen, beyond those that were there before. */
async function memory() {
  const bus = await startBus(options.program, { pools: [everythingPool] })
  const streams = []
  const idle = async (count) => {
    for (let left = count; left > 0; left -= CLIENTS) {
      const lanes = await lanesTo(bus.url, CLIENTS)
      streams.push(...(await Promise.all(lanes.map((lane) => lane.listen()))))
      for (const lane of lanes) lane.close()
    }
    // The collector of the runtime takes its time.
    await sleep(3_000)
    return rssMib(bus.pid)
  }
  try {
    const before = await idle(0.75 * IDLE_SESSIONS)
    const after = await idle(IDLE_SESSIONS)
    atMost('a session with an idle GET', ((after - before) * 1024) / IDLE_SESSIONS, 24, ' KiB')
  } finally {
    for (const stream of streams) stream.destroy()
    await bus.end()
  }
}

/** Others at the same server, with and without somebody who never reads the long answers that it has asked for. */
async function stuck() {
  const bus = await startBus(options.program, { pools: [everythingPool] })
  try {
    const lanes = await lanesTo(bus.url, CLIENTS - 1)
    const [culprit] = await lanesTo(bus.url, 1, 'stuck')
    let sockets = []
    const [without, beside] = await inTurns([false, true], async (isStuck) => {
      for (const socket of sockets) socket.destroy()
      sockets = isStuck ? Array.from({ length: 4 }, () => culprit.clog(10, 50_000)) : []
      await sleep(1_000)
      return round(lanes, bus)
    })
    for (const socket of sockets) socket.destroy()
    console.log(`         (p99 ${without.p99.toFixed(2)} ms without, ${beside.p99.toFixed(2)} ms beside)`)
    atMost('p99 of others beside a stuck reader', beside.p99 / without.p99, 2, ' x')
  } finally {
    await bus.end()
  }
}

/** One client, one call at a time: a bus whose pool is another bus, and that other bus. */
async function buses() {
  const far = await startBus(options.program, { pools: [everythingPool] })
  const near = await startBus(options.program, {
    pools: [{ id: 'far', url: `${far.url}/everything`, sharing: 'shared' }],
  })
  try {
    const sides = [near, far]
    const lanes = await Promise.all(sides.map(async ({ url }) => lanesTo(url, 1)))
    const [two, one] = await inTurns([0, 1], (at) => round(lanes[at], sides[at]))
    console.log(`         (p50 ${two.p50.toFixed(2)} ms through two, ${one.p50.toFixed(2)} ms through one)`)
    atMost('p50 from bus to bus, against one bus', two.p50 / one.p50, 2.5, ' x')
  } finally {
    await near.end()
    await far.end()
  }
}

const MEASURES = { calls, sockets, memory, stuck, buses }
console.log(
  `${cpus().length} cores, load ${loadavg()[0].toFixed(1)}, Node ${process.version}; ${ROUNDS} rounds of ${ROUND_MS} ms each`,
)
for (const name of options.only.split(',')) await MEASURES[name]()
const missed = rows.filter(({ isReached }) => !isReached)
console.log(missed.length === 0 ? 'all reached' : `${missed.length} missed`)
