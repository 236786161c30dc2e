/** Exhausted file descriptors: who is in is served, who is too many is closed at once, and a worker can still be restarted. */
import { openSocket } from '../stage/player.mjs'
import { signal } from '../stage/processes.mjs'
import { pool } from '../stage/stage.mjs'
import { eventually, sleep } from '../stage/waiting.mjs'

const DESCRIPTORS = 96
const KNOCKS = 200

export const descriptors = {
  name: 'descriptors',
  title: `exhausted file descriptors (ulimit -n ${DESCRIPTORS}, ${KNOCKS} connections)`,
  async run(stage) {
    const bus = await stage.start({ pools: [pool('work', { instances: 2 })] }, { descriptors: DESCRIPTORS })
    const before = await bus.descriptorsAtRest()
    const players = await stage.steady(bus, 10, 'work')
    const visitors = await Promise.all(Array.from({ length: KNOCKS }, () => knock(bus.address('unix'))))
    const turnedAway = await eventually(() => countClosed(visitors, 100), 5_000)
    stage.check(turnedAway !== undefined, `only ${countClosed(visitors)} of ${KNOCKS} were turned away`)
    stage.fact(`${turnedAway} turned away`)
    await restartUnderPressure(stage, bus)
    for (const visitor of visitors) visitor?.destroy()
    stage.check(bus.logged('out of file descriptors') > 0, 'the log does not say why')
    const late = await playAgain(stage, bus)
    await stage.settle([...players, ...late])
    const { worker_exited: exited = 0, session_lost: lost = 0 } = stage.ledger.errors
    stage.check(stage.ledger.errorCount === exited + lost, `errors: ${JSON.stringify(stage.ledger.errors)}`)
    await stage.checkDescriptors(bus, before)
    await stage.finish(bus)
  },
}

async function knock(address) {
  const socket = await openSocket(address).catch(() => undefined)
  socket?.resume()
  return socket
}

function countClosed(visitors, atLeast = 0) {
  const count = visitors.filter((visitor) => visitor === undefined || visitor.closed).length
  return count >= atLeast ? count : 0
}

/** A worker is killed while no descriptor is free for clients; the reserve is there to bring it back. */
async function restartUnderPressure(stage, bus) {
  // A control connection would be turned away as well: the process table tells instead.
  const workers = () => bus.processes().filter(({ parent, command }) => parent === bus.pid && command === 'node')
  const [first] = workers()
  signal(first.pid, 'SIGKILL')
  const back = await eventually(
    () => workers().length === 2 && workers().every(({ name }) => name !== first.name),
    10_000,
  )
  stage.check(back, 'the killed worker did not come back')
}

/** Once there is room again, newcomers are served. */
async function playAgain(stage, bus) {
  const players = await eventually(() => stage.steady(bus, 5, 'work').catch(() => undefined), 5_000)
  await sleep(500)
  stage.check(
    players?.every((player) => !player.isClosed),
    'newcomers are turned away though there is room',
  )
  return players ?? []
}
