/** The bus itself ends in the middle: SIGTERM answers everybody, SIGKILL leaves closed sockets, `bus_gone`, and no process. */
import { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { Ledger } from '../stage/ledger.mjs'
import { Player } from '../stage/player.mjs'
import { pool } from '../stage/stage.mjs'
import { eventually, sleep } from '../stage/waiting.mjs'

const STUBBORN = fileURLToPath(new URL('../../fixtures/workers/forks-a-grandchild.mjs', import.meta.url))
const CONFIG = {
  pools: [
    pool('work', { instances: 4 }),
    { id: 'stubborn', command: process.execPath, args: [STUBBORN], instances: 2 },
  ],
  default_pool: 'work',
  limits: { drain_timeout_sec: 2 },
}
const PLAYERS = 12
const SHIMS = 4

const soon = (random) => () => ({ pool: 'work', params: { waitMs: random.between(0, 300) } })
/** Some answers come only after the end of the drain. */
const someLate = (random) => (n) => (n % 20 === 0 ? { pool: 'work', params: { waitMs: 10_000 } } : soon(random)())

export const sigterm = {
  name: 'sigterm',
  title: 'SIGTERM of the bus in the middle',
  async run(stage) {
    const rounds = stage.isQuick ? 1 : 3
    for (let round = 0; round < rounds; round++) {
      const bus = await stage.start(CONFIG)
      const players = await stage.players(bus, PLAYERS, () => someLate(stage.random), { window: 8 })
      await sleep(stage.random.between(500, 2_000))
      await stage.finish(bus)
      await stage.settle(players, 1_000)
    }
    stage.check(stage.ledger.errors.shutting_down > 0, 'nobody was told of the shutdown')
    stage.fact(`${rounds} times, with workers that ignore SIGTERM and have grandchildren`)
  },
}

export const sigkill = {
  name: 'sigkill',
  title: 'SIGKILL of the bus in the middle, raw clients and `stdio-bus connect`',
  async run(stage) {
    const bus = await stage.start(CONFIG)
    const shims = Array.from({ length: SHIMS }, () => bus.spawnCommand(['connect', '--unix', bus.socket]))
    stage.onEnd(() => {
      for (const shim of shims) shim.kill('SIGKILL')
    })
    const shimBooks = new Ledger()
    const behind = shims.map((shim, index) => playThrough(shim, `shim-${index}`, shimBooks, stage.random))
    const players = await stage.players(bus, PLAYERS, () => someLate(stage.random))
    await eventually(() => shimBooks.answered > 50, 10_000)
    for (const player of players) player.acceptClosing()
    stage.notePeak(bus)
    const { orphans } = await bus.end('SIGKILL')
    stage.orphans += orphans
    await stage.settle(players, 3_000)
    await Promise.all(behind.map((player) => player.rest(5_000)))
    stage.check(stage.ledger.closed > 0, 'no raw client had anything open')
    stage.check(shimBooks.errors.bus_gone > 0, `through connect: ${JSON.stringify(shimBooks.errors)}`)
    stage.fact(`through connect ${shimBooks.answered} answered, ${shimBooks.errors.bus_gone} bus_gone`)
    await findAgain(stage, await stage.startAgain(bus, CONFIG), { behind, shims, shimBooks })
    stage.ledger.add(shimBooks)
  },
}

function playThrough(shim, mark, ledger, random) {
  const stream = Duplex.from({ readable: shim.stdout, writable: shim.stdin })
  const player = new Player(stream, { mark, ledger, plan: soon(random), window: 8 })
  player.play()
  return player
}

/** Contract 6.10: a bus that comes back on the same path, over the stale socket, is found, and the end of stdin is exit 0. */
async function findAgain(stage, bus, { behind, shims, shimBooks }) {
  const before = shimBooks.answered
  for (const player of behind) player.play()
  const isBack = await eventually(() => shimBooks.answered >= before + 50, 10_000)
  stage.check(isBack, 'connect did not find the bus that came back')
  await Promise.all(behind.map((player) => player.rest(5_000)))
  const codes = await Promise.all(shims.map(endOfInput))
  stage.check(
    codes.every((code) => code === 0),
    `connect ended with ${codes}`,
  )
  await stage.finish(bus)
}

function endOfInput(shim) {
  const exit = new Promise((resolve) => shim.once('exit', resolve))
  shim.stdin.end()
  return Promise.race([exit, sleep(5_000).then(() => 'nothing within 5 s')])
}
