// What another node costs, side by side in one run: the same requests at home, across a cluster, and NATS's own request().
// node bench/cluster.mjs [--quick]; needs dist/ (npm run build) and a nats-server (NATS_SERVER, else PATH).
import { spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connect as connectNats } from '@nats-io/transport-node'
import { readOptions } from '../test/support/options.mjs'
import { hasNative, nativeRound, nativeWorker } from './native.mjs'

const PROGRAM = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
/** Where tests keep a server that they have fetched. */
const CACHE = fileURLToPath(new URL('../node_modules/.cache/nats-server/usr/sbin', import.meta.url))
const USAGE = `usage: node bench/cluster.mjs [--quick]: what another node costs (contract 14); NATS_SERVER names a nats-server that is not on PATH

  --quick  one round, and fewer idle streams`
const { quick: isQuick } = readOptions(USAGE, { quick: { type: 'boolean', default: false } })
const ROUNDS = isQuick ? 1 : 3
const IDLE = isQuick ? 2_000 : 10_000
const AT_ONCE = 100
const folder = mkdtempSync(join(tmpdir(), 'sb-bench-cluster-'))
const children = []

const median = (values) => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)]
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

function findServer() {
  const places = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin', CACHE]
  const candidates = [process.env.NATS_SERVER, ...places.map((place) => join(place, 'nats-server'))].filter(Boolean)
  return candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

async function freePort() {
  const server = createServer()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

function run(command, args) {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said = (said + chunk).slice(-20_000)
  })
  children.push(child)
  return { child, said: () => said }
}

async function startNode(node, port, pools) {
  const limits = { max_input_buffer: 64 * 1024 * 1024, max_output_queue: 64 * 1024 * 1024, max_clients: IDLE + 100 }
  const cluster = { nats: `nats://127.0.0.1:${port}`, name: 'bench', node }
  writeFileSync(join(folder, `${node}.json`), JSON.stringify({ pools, limits, cluster }))
  const socket = join(folder, `${node}.sock`)
  const control = join(folder, `${node}.ctl`)
  const args = [PROGRAM, '--config', join(folder, `${node}.json`), '--unix', socket, '--control', control]
  const bus = run(process.execPath, args)
  while (!bus.said().includes('"ready"')) await sleep(20)
  return { ...bus, socket }
}

/** A client that counts its answers. */
function open(socket, pool) {
  const stream = connect(socket)
  let held = []
  let onLine = () => {}
  stream.on('data', (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      held.push(chunk.subarray(start, end))
      const line = held.length === 1 ? held[0] : Buffer.concat(held)
      held = []
      start = end + 1
      onLine(line)
    }
    if (start < chunk.length) held.push(chunk.subarray(start))
  })
  if (pool !== undefined) stream.write(`{"method":"bus::open","params":{"pool":"${pool}"}}\n`)
  return { stream, onLine: (then) => (onLine = then), close: () => stream.destroy() }
}

const PAD = 'x'.repeat(90)
const lineOf = (id, pad = PAD) => `{"jsonrpc":"2.0","id":${id},"method":"echo","params":{"pad":"${pad}"}}\n`

/** `count` requests with so many in flight; requests a second and the median time of one. */
function measure(client, count, inFlight, pad) {
  return new Promise((resolve, reject) => {
    const sentAt = new Map()
    const times = []
    let sent = 0
    let got = 0
    const send = () => {
      sentAt.set(sent, performance.now())
      client.stream.write(lineOf(sent++, pad))
    }
    const startMs = performance.now()
    client.onLine((line) => {
      const id = Number(/"id":(\d+)/.exec(line.toString('latin1', 0, 200))?.[1])
      if (line.includes('"error"') && line.length < 2_000) return reject(new Error(String(line)))
      times.push(performance.now() - sentAt.get(id))
      sentAt.delete(id)
      if (++got === count) resolve({ perSec: (count / (performance.now() - startMs)) * 1000, p50Ms: median(times) })
      else if (sent < count) send()
    })
    while (sent < Math.min(inFlight, count)) send()
  })
}

const LINE_BYTES = 150
const LAYOUT = { lineBytes: LINE_BYTES, shape: 'flat' }

/** The same by the generator in C, with a worker in C: what they cost does not hide what the nodes cost. */
async function rate(node, pool, inFlight) {
  const greeting = `{"jsonrpc":"2.0","id":"open","method":"bus::open","params":{"pool":"${pool}"}}\n`
  const round = { address: { path: node.socket }, clients: 1, inFlight, warmMs: 500, roundMs: isQuick ? 1_500 : 4_000 }
  const { requestsPerSecond, p50Us } = await nativeRound({ ...round, watch: {}, greeting, ...LAYOUT }, () => {})
  return { perSec: requestsPerSecond, p50Ms: p50Us / 1000 }
}

async function bareNats(port, count, inFlight) {
  const servers = `127.0.0.1:${port}`
  const [asker, answerer] = await Promise.all([connectNats({ servers }), connectNats({ servers })])
  answerer.subscribe('bench.echo', { callback: (_error, message) => message.respond(message.data) })
  await answerer.flush()
  const payload = Buffer.from(lineOf(1))
  const times = []
  let sent = 0
  const startMs = performance.now()
  const one = async () => {
    while (sent < count) {
      sent++
      const atMs = performance.now()
      await asker.request('bench.echo', payload, { timeout: 10_000 })
      times.push(performance.now() - atMs)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, one))
  const perSec = (count / (performance.now() - startMs)) * 1000
  await Promise.all([asker.close(), answerer.close()])
  return { perSec, p50Ms: median(times) }
}

async function untilReachable(node, pool) {
  for (let n = 0; n < 200; n++) {
    const client = open(node.socket, pool)
    const isThere = await measure(client, 1, 1).then(
      () => true,
      () => false,
    )
    client.close()
    if (isThere) return
    await sleep(50)
  }
  throw new Error(`${pool} cannot be reached`)
}

async function main() {
  const server = findServer()
  if (server === undefined) throw new Error('no nats-server: set NATS_SERVER')
  const port = await freePort()
  run(server, ['-a', '127.0.0.1', '-p', String(port)])
  await sleep(300)
  if (!hasNative()) throw new Error('no gcc: the load generator and the worker are in C')
  const echo = { id: 'echo', agent: 'echo' }
  const [command, ...args] = nativeWorker(LAYOUT, folder)
  const quick = (id) => ({ id, command, args })
  const near = await startNode('n1', port, [{ ...echo, id: 'home' }, quick('quick-home')])
  const far = await startNode('n2', port, [echo, quick('quick')])
  await untilReachable(near, 'echo')
  // First: what is freed later would hide what streams hold.
  await measureIdle(near, far)
  const rows = { home: [], across: [], request: [] }
  const ones = { home: [], across: [], request: [] }
  const large = { home: [], across: [] }
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, pool] of [
      ['home', 'home'],
      ['across', 'echo'],
    ]) {
      const quickPool = name === 'home' ? 'quick-home' : 'quick'
      ones[name].push((await rate(near, quickPool, 1)).p50Ms)
      rows[name].push((await rate(near, quickPool, 256)).perSec)
      const client = open(near.socket, pool)
      large[name].push((await measure(client, 2, 1, 'y'.repeat(20 * 1024 * 1024))).p50Ms)
      client.close()
    }
    ones.request.push((await bareNats(port, isQuick ? 1_000 : 3_000, 1)).p50Ms)
    rows.request.push((await bareNats(port, isQuick ? 5_000 : 20_000, 256)).perSec)
  }
  const show = (name, value, unit) => console.log(`${name.padEnd(46)} ${value} ${unit}`)
  for (const name of ['home', 'across', 'request'])
    show(`${name}, 256 in flight`, Math.round(median(rows[name])), 'requests/s')
  for (const name of ['home', 'across', 'request'])
    show(`${name}, 1 in flight, p50`, median(ones[name]).toFixed(3), 'ms')
  for (const name of ['home', 'across']) show(`${name}, a line of 20 MiB, p50`, median(large[name]).toFixed(0), 'ms')
  show(
    'across against request(), 256 in flight',
    (median(rows.across) / median(rows.request)).toFixed(2),
    'x (to reach: 4)',
  )
  const allowed = median(ones.home) + 2 * median(ones.request)
  show(
    'across, 1 in flight, against home + 2 round trips',
    (median(ones.across) / allowed).toFixed(2),
    'x (to reach: 1)',
  )
  show('a line of 20 MiB against home', (median(large.across) / median(large.home)).toFixed(2), 'x (to reach: 3)')
  await measureLoss(near, far, port, echo)
}

/** Clients that have asked once at home, and then once across, and ask no more: what the streams alone cost, at both ends. */
async function measureIdle(near, far) {
  const clients = []
  const askAll = async (asking, pool) => {
    const ask = (client, n) =>
      new Promise((resolve) => {
        client.onLine(resolve)
        client.stream.write(`{"jsonrpc":"2.0","id":${n},"method":"x","pool":"${pool}"}\n`)
      })
    for (let from = 0; from < asking.length; from += AT_ONCE)
      await Promise.all(asking.slice(from, from + AT_ONCE).map(ask))
  }
  while (clients.length < IDLE) {
    // The queue of those who knock is short.
    const coming = Array.from({ length: AT_ONCE }, () => open(near.socket))
    await askAll(coming, 'home')
    clients.push(...coming)
  }
  await sleep(1_000)
  const before = [near, far].map(residentBytes)
  await askAll(clients, 'echo')
  await sleep(1_000)
  const after = [near, far].map(residentBytes)
  for (const [index, name] of ["the client's node", "the worker's node"].entries()) {
    const each = (after[index] - before[index]) / IDLE / 1024
    console.log(`${`${IDLE} idle streams, ${name}`.padEnd(46)} ${each.toFixed(1)} KiB each (to reach: 8)`)
  }
  for (const client of clients) client.close()
  await sleep(1_000)
}

/** What it holds in memory, garbage included. */
function residentBytes({ child }) {
  const pages = readFileSync(`/proc/${child.pid}/statm`, 'utf8').split(' ')
  return Number(pages[1]) * 4_096
}

/** From the kill to the answer of what was owed, and from the return to the first answer. */
async function measureLoss(near, far, port, echo) {
  const client = open(near.socket, 'echo')
  await measure(client, 10, 1)
  const killedMs = performance.now()
  far.child.kill('SIGKILL')
  const lost = new Promise((resolve) => client.onLine((line) => resolve(line)))
  client.stream.write(lineOf(1))
  await lost
  console.log(
    `${'node killed, its requests answered'.padEnd(46)} ${((performance.now() - killedMs) / 1000).toFixed(2)} s (to reach: 3)`,
  )
  await startNode('n2', port, [echo])
  const readyMs = performance.now()
  await untilReachable(near, 'echo')
  console.log(`${'node back, reached'.padEnd(46)} ${((performance.now() - readyMs) / 1000).toFixed(2)} s (to reach: 1)`)
  client.close()
}

try {
  await main()
} finally {
  for (const child of children) child.kill('SIGTERM')
  await sleep(300)
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}
