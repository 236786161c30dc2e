/**
 * The whole bus over its real doors. One client with one worker is measured in turns with the blind pipe; the rest shows how
 * the bus behaves with more of either.
 */
import { medians } from '../bench.mjs'

const DOORS = ['unix', 'tcp']
const IN_FLIGHT = [1, 64, 256]
const SIZES = [
  { label: '150B', lineBytes: 150, shape: 'flat' },
  { label: '64KiB', lineBytes: 65_536, shape: 'flat' },
]
const OTHER_SHAPES = [
  { label: '64KiB-text', lineBytes: 65_536, shape: 'text' },
  { label: '64KiB-nested', lineBytes: 65_536, shape: 'nested' },
]

/** What is to be reached, by length of line and requests in flight; at most `max` times the blind pipe's figure. */
function targetsOf(lineBytes, inFlight) {
  if (lineBytes > 150) return [{ figure: 'cpuRatio', max: 2 }]
  if (inFlight === 1) return [{ figure: 'p50Ratio', max: 1.25 }]
  return [inFlight === 64 ? { figure: 'cpuRatio', max: 2, aim: 1.5 } : { figure: 'cpuRatio', max: 3, aim: 2 }]
}

async function againstPipe(bench, door, { lineBytes, shape }, inFlight) {
  const [bus, pipe] = await bench.use({ kind: 'bus', lineBytes }, { kind: 'pipe', lineBytes })
  const spec = { clients: 1, inFlight, lineBytes, shape }
  if (inFlight === 1) spec.roundMs = bench.pace.latencyMs
  const pairs = inFlight === 1 ? bench.pace.latencyPairs : bench.pace.pairs
  return bench.pairs(
    pairs,
    () => bench.round(bus, door, spec),
    () => bench.round(pipe, door, spec),
  )
}

/** Two blind pipes in turns: how far a ratio may be from 1 on this machine without any reason. */
async function noise(bench, inFlight) {
  const { lineBytes, shape } = SIZES[0]
  const [one, other] = await bench.use({ kind: 'pipe', as: 'one', lineBytes }, { kind: 'pipe', as: 'other', lineBytes })
  const spec = { clients: 1, inFlight, lineBytes, shape }
  return bench.pairs(
    bench.pace.pairs,
    () => bench.round(one, 'unix', spec),
    () => bench.round(other, 'unix', spec),
  )
}

async function alone(bench, door, { lineBytes, shape }, { inFlight, clients, workers }) {
  const [bus] = await bench.use({ kind: 'bus', lineBytes, workers })
  const rounds = []
  for (let n = 0; n < bench.pace.rounds; n++)
    rounds.push(await bench.round(bus, door, { clients, inFlight, lineBytes, shape }))
  return medians(rounds)
}

function ratioRow(door, size, inFlight) {
  return {
    name: `${door}-${size.label}-1c-1w-${inFlight}`,
    targets: targetsOf(size.lineBytes, inFlight),
    measure: (bench) => againstPipe(bench, door, size, inFlight),
  }
}

function crowdRow(door, size, load) {
  return {
    name: `${door}-${size.label}-${load.clients}c-${load.workers}w-${load.inFlight}`,
    measure: (bench) => alone(bench, door, size, load),
  }
}

const cross = (...lists) =>
  lists.reduce((rows, list) => rows.flatMap((row) => list.map((item) => [...row, item])), [[]])

const CROWDS = [
  { clients: 20, workers: 1 },
  { clients: 1, workers: 4 },
  { clients: 20, workers: 4 },
]

export const noiseRows = IN_FLIGHT.map((inFlight) => ({
  name: `noise-two-pipes-${inFlight}`,
  measure: (bench) => noise(bench, inFlight),
}))

export const trafficRows = [
  ...cross(SIZES, DOORS, IN_FLIGHT).map(([size, door, inFlight]) => ratioRow(door, size, inFlight)),
  ...OTHER_SHAPES.map((size) => ratioRow('unix', size, 64)),
  ...cross(SIZES, CROWDS, DOORS, IN_FLIGHT).map(([size, crowd, door, inFlight]) =>
    crowdRow(door, size, { ...crowd, inFlight }),
  ),
]
