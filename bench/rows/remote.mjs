/**
 * What it costs to go through two buses instead of one (contract 11): a bus whose pool leads to another bus, in turns with a bus that has
 * the same worker itself.
 */
const LINE = { lineBytes: 150, shape: 'flat' }

/** A bus alone, and one that leads by this kind of door to another like it: sessions are theirs who named them first. */
async function busesBy(bench, door) {
  const alone = { kind: 'bus', lineBytes: LINE.lineBytes, as: 'alone' }
  const behind = { ...alone, as: 'behind' }
  const [, far] = await bench.use(alone, behind)
  const url = door === 'unix' ? `unix:${far.unix.path}` : `tcp://${far.tcp.host}:${far.tcp.port}`
  const [one, , near] = await bench.use(alone, behind, { ...alone, as: 'near', url })
  return { one, near }
}

/** Both are reached through the same kind of door as the one between them. */
export async function busToBus(bench, door, inFlight) {
  const { one, near } = await busesBy(bench, door)
  const spec = { clients: 1, inFlight, ...LINE }
  if (inFlight === 1) spec.roundMs = bench.pace.latencyMs
  return bench.pairs(
    inFlight === 1 ? bench.pace.latencyPairs : bench.pace.pairs,
    () => bench.round(near, door, spec),
    () => bench.round(one, door, spec),
  )
}

function row(door, inFlight, targets) {
  const name = `remote-${door}-bus-to-bus-${inFlight}`
  return { name, targets, measure: (bench) => busToBus(bench, door, inFlight) }
}

export const remoteRows = [
  row('unix', 1, [{ figure: 'p50Ratio', max: 2.5 }]),
  row('tcp', 1, [{ figure: 'p50Ratio', max: 2.5 }]),
  row('unix', 64, []),
]
