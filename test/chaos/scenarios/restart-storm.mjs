/** Fifty workers that die at once, again and again: the limits hold, the processor rests, and everybody else is served. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ledger } from '../stage/ledger.mjs'
import { cpuSeconds } from '../stage/processes.mjs'
import { pool } from '../stage/stage.mjs'
import { eventually, sleep } from '../stage/waiting.mjs'

const INSTANCES = 50
const MAX_RESTARTS = 5
const CONFIG = {
  pools: [
    { id: 'dying', command: '/bin/sh', args: ['-c', 'echo >> starts; exit 1'], instances: INSTANCES },
    pool('sound', { instances: 2 }),
  ],
  limits: { max_restarts: MAX_RESTARTS, restart_window_sec: 60 },
}
const QUIET_MS = 3_000

export const restartStorm = {
  name: 'restart-storm',
  title: `a fork bomb of restarts: ${INSTANCES} workers that die at start`,
  async run(stage) {
    const bus = await stage.start(CONFIG, { unready: true })
    const sound = new Ledger()
    const players = [
      ...(await stage.steady(bus, 4, 'sound', {}, { ledger: sound })),
      ...(await stage.steady(bus, 2, 'dying', {}, { window: 1 })),
    ]
    const stormCpu = await untilParked(stage, bus)
    await Promise.all(players.map((player) => player.rest(20_000)))
    await refusedAtOnce(stage, bus)
    const quietCpu = await cpuOver(bus, QUIET_MS)
    const starts = readFileSync(join(bus.folder, 'starts'), 'utf8').length
    stage.fact(`${starts} starts of at most ${INSTANCES * (1 + MAX_RESTARTS)}`)
    stage.fact(`bus CPU: ${stormCpu} in the storm, ${percent(quietCpu)} after it`)
    stage.check(starts <= INSTANCES * (1 + MAX_RESTARTS), `${starts} starts`)
    stage.check(quietCpu < 0.05, `the bus uses ${percent(quietCpu)} of a core when all is parked`)
    stage.check(sound.errorCount === 0 && sound.answered > 500, 'clients of the sound pool were held up')
    for (const player of players) player.leave()
    stage.ledger.add(sound)
    await stage.finish(bus)
  },
}

const percent = (share) => `${(share * 100).toFixed(1)} %`

async function untilParked(stage, bus) {
  const startMs = performance.now()
  const startCpu = cpuSeconds(bus.pid)
  const isParked = ({ pool: id, state }) => id !== 'dying' || state === 'parked'
  const parked = await eventually(async () => (await bus.status()).workers.every(isParked), 25_000, 250)
  stage.check(parked, 'the dying workers are not all parked')
  const seconds = (performance.now() - startMs) / 1000
  return `${percent((cpuSeconds(bus.pid) - startCpu) / seconds)} for ${seconds.toFixed(1)} s`
}

/** Contract 7.2: when all are parked, nobody waits. */
async function refusedAtOnce(stage, bus) {
  const ledger = new Ledger()
  const [player] = await stage.steady(bus, 1, 'dying', {}, { ledger, window: 1 })
  await sleep(200)
  await stage.settle([player])
  stage.check(ledger.errors.no_worker > 10, `a parked pool answers ${JSON.stringify(ledger.errors)}`)
  stage.ledger.add(ledger)
}

async function cpuOver(bus, durationMs) {
  const before = cpuSeconds(bus.pid)
  await sleep(durationMs)
  return (cpuSeconds(bus.pid) - before) / (durationMs / 1000)
}
