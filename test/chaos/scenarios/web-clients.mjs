/** Clients of MCP over HTTP whose connections break, that come back, read slowly or vanish, while their workers are killed. */
import { fileURLToPath } from 'node:url'
import { pool } from '../stage/stage.mjs'
import { Recurring } from '../stage/visitors.mjs'
import { eventually } from '../stage/waiting.mjs'
import { WebPlayer } from '../stage/web-player.mjs'

const WORKER = fileURLToPath(new URL('../programs/mcp-worker.mjs', import.meta.url))
const CONFIG = {
  pools: [
    pool('tools', { args: [WORKER], instances: 2, sharing: 'shared', limits: { max_restarts: 1000 } }),
    pool('own', { args: [WORKER], sharing: 'isolated', max_instances: 16 }),
  ],
  default_pool: 'tools',
}
const SHARED = 12
const ISOLATED = 4
const KILL_MS = 2_500

export const webClients = {
  name: 'web-clients',
  title: 'clients over HTTP that drop, resume, read slowly and vanish, while their workers are killed',
  async run(stage) {
    const bus = await stage.start(CONFIG, { doors: ['--http', '127.0.0.1:0'] })
    const before = await bus.descriptorsAtRest()
    const url = bus.address('http')
    const { ledger, random } = stage
    const makePlayer = (poolId) => (_, index) =>
      new WebPlayer(`${url}/mcp/${poolId}`, { mark: `${poolId}${index}`, ledger, random }).open()
    const players = await Promise.all([
      ...Array.from({ length: SHARED }, makePlayer('tools')),
      ...Array.from({ length: ISOLATED }, makePlayer('own')),
    ])
    const endMs = performance.now() + (stage.isQuick ? 6_000 : 30_000)
    const kills = new Recurring(stage, KILL_MS, async () => {
      const worker = await bus.worker('tools', ({ state }) => state === 'ready')
      if (worker !== undefined) process.kill(worker.pid, 'SIGKILL')
      return worker !== undefined
    })
    await Promise.all(players.map((player) => player.play(() => performance.now() > endMs)))
    await kills.end()
    const sum = (key) => players.reduce((total, player) => total + player[key], 0)
    stage.fact(
      `${players.length} sessions, ${sum('dropped')} connections broken off, ${sum('resumed')} taken up again, ${kills.count} workers killed`,
    )
    stage.check(sum('missed') === 0, `${sum('missed')} calls missed an update`)
    stage.check(sum('resumed') > 0 && ledger.answered > 100, 'nothing was taken up again, or little was answered')
    const statuses = await Promise.all(players.map((player) => player.leave()))
    stage.check(
      statuses.every((status) => status === 204),
      `sessions ended with ${statuses}`,
    )
    stage.check(await eventually(async () => (await bus.status())?.clients === 0, 20_000, 100), 'clients are left')
    await stage.checkDescriptors(bus, before)
    await stage.finish(bus)
  },
}
