/**
 * Whether a line costs more when there is more of everything: sessions, connected clients, requests in flight.
 *
 * Both sides of a row are the bus, in turns; the side with little is the limit. Rings are as long on either side, so that the load
 * generator touches as much memory for ten sessions as for a hundred thousand.
 */
const LINE = { lineBytes: 150, shape: 'flat' }
const TARGETS = [{ figure: 'cpuRatio', max: 1.3 }]
const MANY_SESSIONS = 100_000
const CONNECTED = 5_000
const ACTIVE = 20
const FEW = { kind: 'bus', as: 'few', lineBytes: LINE.lineBytes }
const MANY = { kind: 'bus', as: 'many', lineBytes: LINE.lineBytes }

async function sessions(bench) {
  const [few, many] = await bench.use(FEW, MANY)
  const spec = { ...LINE, clients: 1, inFlight: 64, ring: MANY_SESSIONS, warmLaps: 1 }
  return bench.pairs(
    bench.pace.pairs,
    () => bench.round(many, 'unix', { ...spec, sessions: MANY_SESSIONS }),
    () => bench.round(few, 'unix', { ...spec, sessions: 10 }),
  )
}

async function connections(bench) {
  const [few, many] = await bench.use(FEW, MANY)
  const spec = { ...LINE, clients: ACTIVE, inFlight: 64 }
  await bench.load('holder').ask('hold', { address: many.unix, count: CONNECTED - ACTIVE })
  try {
    return await bench.pairs(
      bench.pace.pairs,
      () => bench.round(many, 'unix', spec),
      () => bench.round(few, 'unix', spec),
    )
  } finally {
    await bench.load('holder').ask('release')
  }
}

async function outstanding(bench) {
  const [bus] = await bench.use(FEW)
  return bench.pairs(
    bench.pace.pairs,
    () => bench.round(bus, 'unix', { ...LINE, clients: 1, inFlight: 4_000 }),
    () => bench.round(bus, 'unix', { ...LINE, clients: 1, inFlight: 64 }),
  )
}

export const scaleRows = [
  { name: 'sessions-100000-against-10', targets: TARGETS, measure: sessions },
  { name: 'connected-5000-against-20', targets: TARGETS, descriptors: CONNECTED + 200, measure: connections },
  { name: 'outstanding-4000-against-64', targets: TARGETS, measure: outstanding },
]
