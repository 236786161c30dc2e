/**
 * What the bus holds when nothing happens, what a silent client adds, and whether full load for a long time makes it grow.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../bench.mjs'
import { rssMib } from '../process-figures.mjs'

const LINE_BYTES = 150
const IDLE_CLIENTS = 5_000
const SAMPLE_MS = 1_000
/** Garbage collection makes the resident size swing: compare medians over this many samples. */
const SAMPLES = 10

async function idle(bench) {
  const [bus] = await bench.use({ kind: 'bus', as: 'idle', lineBytes: LINE_BYTES })
  await sleep(bench.pace.settleMs)
  return { rssMib: rssMib(bus.pid) }
}

async function idleClients(bench) {
  const [bus] = await bench.use({ kind: 'bus', as: 'silent', lineBytes: LINE_BYTES })
  await sleep(bench.pace.settleMs)
  const before = rssMib(bus.pid)
  await bench.load('holder').ask('hold', { address: bus.unix, count: IDLE_CLIENTS })
  await sleep(bench.pace.settleMs)
  const after = rssMib(bus.pid)
  await bench.load('holder').ask('release')
  return { rssMib: after, kibPerClient: ((after - before) * 1024) / IDLE_CLIENTS }
}

/** The resident size at the end, as a multiple of what it was after a minute (less in a quick run). */
async function soak(bench) {
  const { soakMs, soakMarkMs } = bench.pace
  const [bus] = await bench.use({ kind: 'bus', as: 'soak', lineBytes: LINE_BYTES, workers: 4 })
  const samples = []
  const timer = setInterval(() => samples.push(rssMib(bus.pid)), SAMPLE_MS)
  const spec = { lineBytes: LINE_BYTES, shape: 'flat', clients: 20, inFlight: 64, roundMs: soakMs }
  const figures = await bench.round(bus, 'unix', spec).finally(() => clearInterval(timer))
  const early = Math.round(soakMarkMs / SAMPLE_MS)
  const earlyRssMib = median(samples.slice(Math.max(0, early - SAMPLES / 2), early + SAMPLES / 2))
  const lateRssMib = median(samples.slice(-SAMPLES))
  return { ...figures, earlyRssMib, rssMib: lateRssMib, rssRatio: lateRssMib / earlyRssMib }
}

export const memoryRows = [
  { name: 'memory-idle', targets: [{ figure: 'rssMib', max: 65 }], measure: idle },
  {
    name: 'memory-5000-idle-clients',
    targets: [{ figure: 'kibPerClient', max: 6.2 }],
    descriptors: IDLE_CLIENTS + 200,
    measure: idleClients,
  },
]

export const soakRows = [{ name: 'soak', targets: [{ figure: 'rssRatio', max: 1.1 }], measure: soak }]
