/**
 * The load generator: a process of its own that runs one round when told so over its IPC channel and reports the figures.
 *
 * It reads the CPU time of the processes it is told to watch at the very begin and end of the measured window, so that warm-up, drain and
 * the making of connections count for nobody. It never retries and never drops: a round in which an answer is missing is an error.
 */
import { setMaxListeners } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { LoadClient, Samples } from './load-client.mjs'
import { cpuSeconds } from './process-figures.mjs'

const PATIENCE_MS = 30_000
/** A round in which less is answered, on a machine that is busy with something else, goes on until this is reached. */
const MIN_ANSWERS = 20
const held = []

const commands = { run, hold, besiege, release }
/** Ends what keeps connections coming. */
let siege = new AbortController()

/**
 * `clients` connections with `inFlight` requests each, for `warmMs` and then `roundMs`, which alone is measured. The warm-up begins
 * when everybody has been answered as often as it has requests in flight, and `warmLaps` times every line of its ring: only then do
 * all the ring's sessions exist.
 */
async function run({ address, clients, warmMs, warmLaps = 0, roundMs, watch, ...layout }) {
  const samples = new Samples(layout.inFlight === 1 && clients === 1 ? 1 : 16)
  const all = Array.from({ length: clients }, (_, index) => new LoadClient(index, layout, samples))
  for (const client of all) await client.connect(address)
  const failure = Promise.race(all.map((client) => client.closed))
  try {
    return await Promise.race([failure, measure(all, samples, { warmMs, warmLaps, roundMs, watch })])
  } finally {
    for (const client of all) client.close()
  }
}

async function measure(all, samples, { warmMs, warmLaps, roundMs, watch }) {
  for (const client of all) client.start()
  await until(() => all.every((client) => client.answered >= Math.max(client.inFlight, warmLaps * client.slots)))
  await sleep(warmMs)
  samples.clear()
  const before = reading(all, watch)
  await sleep(roundMs)
  await until(() => answersOf(all) >= before.answered + MIN_ANSWERS)
  const after = reading(all, watch)
  const [p50Us, p99Us] = samples.quantilesUs(0.5, 0.99)
  await drain(all)
  return { ...difference(before, after), p50Us, p99Us }
}

const answersOf = (all) => all.reduce((sum, client) => sum + client.answered, 0)

function reading(all, watch) {
  const cpu = Object.entries({ ...watch, load: [process.pid] }).map(([role, pids]) => [role, pids.map(cpuSeconds)])
  return {
    at: performance.now(),
    answered: answersOf(all),
    cpu: Object.fromEntries(cpu),
  }
}

/** Busy is the share of one core; of several workers the busiest counts. */
function difference(before, after) {
  const seconds = (after.at - before.at) / 1000
  const answered = after.answered - before.answered
  const cpu = {}
  const busy = {}
  for (const role of Object.keys(after.cpu)) {
    const each = after.cpu[role].map((value, index) => value - before.cpu[role][index])
    cpu[role] = each.reduce((sum, value) => sum + value, 0)
    busy[role] = Math.max(0, ...each) / seconds
  }
  return { seconds, answered, requestsPerSecond: answered / seconds, cpu, busy }
}

async function drain(all) {
  for (const client of all) client.stop()
  await until(() => all.every((client) => client.outstanding === 0))
}

async function until(holds) {
  for (const deadline = performance.now() + PATIENCE_MS; !holds(); await sleep(5)) {
    if (performance.now() > deadline) throw new Error(`requests are still unanswered after ${PATIENCE_MS} ms`)
  }
}

/** Opens connections that say nothing, and keeps them until released. */
async function hold({ address, count }) {
  for (let made = 0; made < count; made++) held.push(await connectPatiently(address))
  return { held: held.length }
}

/**
 * Opens connections that say nothing from so many addresses of loopback; whoever is sent away comes back after a while, so that there
 * are as many who want to be there until they are released. Answers when each has been there once.
 */
async function besiege({ address, count, addresses, againMs }) {
  siege = new AbortController()
  const { signal } = siege
  setMaxListeners(count, signal)
  const besieger = async (localAddress, arrived) => {
    for (; !signal.aborted; await sleep(againMs, undefined, { signal }).catch(() => {})) {
      const socket = connect({ ...address, localAddress })
      socket.once('connect', arrived).on('error', arrived).resume()
      held.push(socket)
      await new Promise((resolve) => socket.once('close', resolve))
      held.splice(held.indexOf(socket), 1)
    }
  }
  for (let made = 0; made < count; made++)
    await new Promise((arrived) => besieger(`127.0.0.${2 + (made % addresses)}`, arrived))
  return { held: held.length }
}

/** A Unix socket whose queue of connections is full says EAGAIN instead of letting the caller wait. */
async function connectPatiently(address) {
  for (const deadline = performance.now() + PATIENCE_MS; ; await sleep(5)) {
    try {
      return await connected(address)
    } catch (error) {
      if (error.code !== 'EAGAIN' || performance.now() > deadline) throw error
    }
  }
}

function connected(address) {
  return new Promise((resolve, reject) => {
    const socket = connect(address)
    socket.once('connect', () => resolve(socket))
    socket.on('error', reject)
  })
}

async function release() {
  siege.abort()
  for (const socket of held.splice(0)) socket.destroy()
  return {}
}

process.on('message', async ({ command, ...rest }) => {
  try {
    process.send({ figures: await commands[command](rest) })
  } catch (error) {
    process.send({ error: error.message })
  }
})
process.on('disconnect', () => process.exit(0))
