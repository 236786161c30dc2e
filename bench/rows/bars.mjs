/**
 * The figures that the bus is held to: beside the blind pipe, beside the floor of the runtime, on cores apart and on one together.
 * Lines are 150 bytes long, which is a payload of a hundred with its envelope.
 */
import { medians } from '../bench.mjs'

const LINE = { lineBytes: 150, shape: 'flat' }
const LONG = { lineBytes: 65_536 }

/** What a kernel in C made where these bars were set: requests per second with 20 clients and 4 workers. */
const REFERENCE = { 1: 75_000, 64: 71_000 }

async function againstPipe(bench, placement, inFlight, line = LINE) {
  const { lineBytes } = line
  const [bus, pipe] = await bench.use({ kind: 'bus', lineBytes, placement }, { kind: 'pipe', lineBytes, placement })
  const spec = { clients: 1, inFlight, ...line }
  if (inFlight === 1) spec.roundMs = bench.pace.latencyMs
  return bench.pairs(
    inFlight === 1 ? bench.pace.latencyPairs : bench.pace.pairs,
    () => bench.round(bus, 'unix', spec),
    () => bench.round(pipe, 'unix', spec),
  )
}

async function againstFloor(bench) {
  const { lineBytes } = LINE
  const placement = 'apart'
  const [bus, floor] = await bench.use(
    { kind: 'bus', lineBytes, placement, workers: 4 },
    { kind: 'floor', lineBytes, placement, workers: 0 },
  )
  const spec = { clients: 20, inFlight: 1, ...LINE }
  return bench.pairs(
    bench.pace.pairs,
    () => bench.round(bus, 'unix', spec),
    () => bench.round(floor, 'unix', spec),
  )
}

async function crowd(bench, inFlight) {
  const [bus] = await bench.use({ kind: 'bus', lineBytes: LINE.lineBytes, placement: 'apart', workers: 4 })
  const rounds = []
  for (let n = 0; n < bench.pace.pairs; n++)
    rounds.push(await bench.round(bus, 'unix', { clients: 20, inFlight, ...LINE }))
  return medians(rounds)
}

export const barRows = [
  {
    name: 'bar-1-together',
    targets: [{ figure: 'p50Ratio', max: 1.25 }],
    measure: (bench) => againstPipe(bench, 'together', 1),
  },
  {
    name: 'bar-1-apart',
    targets: [{ figure: 'p50Ratio', max: 1.05 }],
    measure: (bench) => againstPipe(bench, 'apart', 1),
  },
  {
    name: 'bar-64-apart',
    targets: [
      { figure: 'cpuRatio', max: 1.7 },
      { figure: 'rateRatio', min: 0.85 },
    ],
    measure: (bench) => againstPipe(bench, 'apart', 64),
  },
  {
    name: 'bar-256-apart',
    targets: [
      { figure: 'cpuRatio', max: 2.4 },
      { figure: 'rateRatio', min: 0.7 },
    ],
    measure: (bench) => againstPipe(bench, 'apart', 256),
  },
  {
    name: 'bar-64KiB-text',
    targets: [{ figure: 'cpuRatio', max: 1.7 }],
    measure: (bench) => againstPipe(bench, 'apart', 16, { ...LONG, shape: 'text' }),
  },
  {
    name: 'bar-64KiB-nested',
    targets: [{ figure: 'cpuRatio', max: 2.5 }],
    measure: (bench) => againstPipe(bench, 'apart', 16, { ...LONG, shape: 'nested' }),
  },
  {
    name: 'bar-20c-4w-1',
    targets: [
      { figure: 'cpuRatio', max: 1.4 },
      { figure: 'requestsPerSecond', min: 0.85 * REFERENCE[1] },
    ],
    measure: againstFloor,
  },
  {
    name: 'bar-20c-4w-64',
    targets: [{ figure: 'requestsPerSecond', min: 7 * REFERENCE[64] }],
    measure: (bench) => crowd(bench, 64),
  },
]
