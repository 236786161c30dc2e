/** Thousands of connections, a few of them active. */
import { openSocket } from '../stage/player.mjs'
import { rssMib } from '../stage/processes.mjs'
import { pool } from '../stage/stage.mjs'
import { eventually, sleep } from '../stage/waiting.mjs'

const CONNECTIONS = 5_000
const ACTIVE = 20
const AT_ONCE = 100

export const crowd = {
  name: 'crowd',
  title: `${CONNECTIONS.toLocaleString('en-US')} connections, ${ACTIVE} active`,
  async run(stage) {
    const bus = await stage.start({ pools: [pool('work', { instances: 2 })] })
    const before = await bus.descriptorsAtRest()
    const restMib = rssMib(bus.pid)
    const idle = await openMany(bus, CONNECTIONS - ACTIVE)
    stage.onEnd(() => {
      for (const socket of idle) socket.destroy()
    })
    const grownMib = rssMib(bus.pid) - restMib
    const players = await stage.steady(bus, ACTIVE, 'work')
    await sleep(stage.isQuick ? 3_000 : 10_000)
    const { clients } = await bus.status()
    await stage.settle(players)
    stage.check(clients === CONNECTIONS, `the bus counts ${clients} clients`)
    stage.check(stage.ledger.errorCount === 0, `errors: ${JSON.stringify(stage.ledger.errors)}`)
    stage.check(
      idle.every((socket) => !socket.closed),
      'an idle connection was closed',
    )
    stage.fact(`${((grownMib * 1024) / idle.length).toFixed(1)} KiB of memory per idle connection`)
    for (const socket of idle) socket.destroy()
    await stage.checkDescriptors(bus, before)
    await stage.finish(bus)
  },
}

/** In portions, for the queue of connections that wait to be accepted is short. */
async function openMany(bus, count) {
  const sockets = []
  while (sockets.length < count) {
    const portion = Math.min(AT_ONCE, count - sockets.length)
    const address = bus.addresses[(sockets.length / AT_ONCE) % bus.addresses.length]
    sockets.push(...(await Promise.all(Array.from({ length: portion }, () => openPatiently(address)))))
  }
  for (const socket of sockets) socket.resume()
  return sockets
}

/** A Unix socket whose queue is full says so at once (EAGAIN), where TCP would wait: knock again. */
async function openPatiently(address) {
  const open = () => openSocket(address).catch(({ code }) => (code === 'EAGAIN' ? undefined : Promise.reject(code)))
  return (await eventually(open, 10_000, 20)) ?? Promise.reject(new Error(`${address} takes nobody for 10 s`))
}
