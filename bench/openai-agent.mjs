/**
 * Measures the OpenAI agent: what it adds to the first token, 200 sessions streaming at once, and its memory when idle.
 *
 *   node bench/openai-agent.mjs [--rate 5000] [--seconds 8] [--bus]
 *
 * The endpoint runs in a process of its own and stamps every chunk with the time it was sent; lag is the time until the
 * client has read it. `--bus` puts the daemon between client and agent. Nothing is measured against the network.
 */
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readOptions } from '../test/support/options.mjs'

const dist = fileURLToPath(new URL('../dist/', import.meta.url))
const nowMs = () => performance.timeOrigin + performance.now()
const chunkOf = (content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
const keepAlive = new Agent({ keepAlive: true })
const sessionsAtOnce = 200
const tickMs = 5

const USAGE = `usage: node bench/openai-agent.mjs [options]: what the OpenAI agent adds to the first token, and 200 sessions at once

  --rate N     chunks a second (5000, then 20000)
  --seconds N  for each rate (8)
  --bus        with the daemon between client and agent`

if (process.send && process.argv[2] === 'endpoint') serveEndpoint()
else await measure()

/** Streams a chunk to every open stream so that all together get `rate` chunks a second, or one token and the end. */
function serveEndpoint() {
  const streams = new Map()
  let rate = 0
  let sent = 0
  const server = createServer((incoming, outgoing) => {
    if (incoming.method !== 'POST') return outgoing.writeHead(404).end()
    let body = ''
    incoming.on('data', (chunk) => (body += chunk))
    incoming.on('end', () => {
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' })
      if (body.includes('"one token"')) return outgoing.end(`${chunkOf('token')}data: [DONE]\n\n`)
      streams.set(outgoing, true)
      outgoing.once('close', () => streams.delete(outgoing))
    })
  })
  let began = nowMs()
  let next = 0
  setInterval(() => {
    if (rate === 0 || streams.size === 0) return void ([began, sent] = [nowMs(), 0])
    const open = [...streams.keys()]
    for (const due = ((nowMs() - began) / 1000) * rate; sent < due; sent++) {
      open[next++ % open.length].write(chunkOf(`${nowMs().toFixed(2)} `))
    }
  }, tickMs)
  process.on('message', (message) => {
    rate = message.rate
    if (rate === 0) for (const stream of streams.keys()) stream.end('data: [DONE]\n\n')
  })
  process.on('disconnect', () => process.exit(0))
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))
}

async function measure() {
  const values = readOptions(USAGE, {
    rate: { type: 'string' },
    seconds: { type: 'string' },
    bus: { type: 'boolean' },
  })
  const endpoint = fork(fileURLToPath(import.meta.url), ['endpoint'])
  const [{ port }] = await once(endpoint, 'message')
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` }
  const peer = values.bus ? await startBus(env) : startAgent(env)
  try {
    await peer.call('initialize', { protocolVersion: 1 })
    await new Promise((resolve) => setTimeout(resolve, 1500))
    if (peer.pid) row('idle RSS', `${rssMiB(peer.pid).toFixed(1)} MiB`, '< 90 MiB')
    await measureFirstToken(peer, port)
    for (const rate of values.rate ? [Number(values.rate)] : [5_000, 20_000]) {
      await measureStreams(peer, endpoint, rate, Number(values.seconds ?? 8))
    }
    if (peer.pid) row('RSS after the load', `${rssMiB(peer.pid).toFixed(1)} MiB`, '')
  } finally {
    await peer.stop()
    endpoint.disconnect()
  }
}

async function measureFirstToken(peer, port) {
  const { sessionId } = await peer.call('session/new', { cwd: '/', mcpServers: [] })
  const prompt = [{ type: 'text', text: 'one token' }]
  const added = []
  for (let round = 0; round < 120; round++) {
    const direct = await firstTokenDirect(port)
    const before = nowMs()
    const token = new Promise((resolve) => (peer.onUpdate = () => resolve(nowMs() - before)))
    const turn = peer.call('session/prompt', { sessionId, prompt })
    const through = await token
    await turn
    if (round >= 20) added.push(through - direct)
  }
  added.sort((a, b) => a - b)
  row('first token, added (p50)', `${quantile(added, 0.5).toFixed(2)} ms`, '< 5 ms')
  row('first token, added (p95)', `${quantile(added, 0.95).toFixed(2)} ms`, '')
}

function firstTokenDirect(port) {
  const before = nowMs()
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', method: 'POST', path: '/v1/chat/completions', agent: keepAlive }
    const outgoing = request(options, (incoming) => {
      let first
      incoming.on('data', () => (first ??= nowMs() - before))
      incoming.on('end', () => resolve(first))
    })
    outgoing.on('error', reject).end(JSON.stringify({ messages: [{ role: 'user', content: 'one token' }] }))
  })
}

async function measureStreams(peer, endpoint, rate, seconds) {
  const prompt = [{ type: 'text', text: 'many tokens' }]
  const created = await Promise.all(
    Array.from({ length: sessionsAtOnce }, () => peer.call('session/new', { cwd: '/', mcpServers: [] })),
  )
  const lags = []
  let chunks = 0
  peer.onUpdate = (update) => {
    const stamps = update.content?.text?.trim().split(' ') ?? []
    chunks += stamps.length
    lags.push({ at: nowMs(), lag: nowMs() - Number(stamps[0]) })
  }
  const turns = created.map(({ sessionId }) => peer.call('session/prompt', { sessionId, prompt }))
  await new Promise((resolve) => setTimeout(resolve, 500))
  endpoint.send({ rate })
  const began = nowMs()
  const cpu = peer.pid ? cpuSeconds(peer.pid) : 0
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const took = (nowMs() - began) / 1000
  const busy = peer.pid ? ((cpuSeconds(peer.pid) - cpu) / took) * 100 : 0
  const seen = chunks
  endpoint.send({ rate: 0 })
  await Promise.all(turns)
  const half = (from, to) => {
    const part = lags.filter(({ at }) => at >= began + from * took * 1000 && at < began + to * took * 1000)
    return part.map(({ lag }) => lag).sort((a, b) => a - b)
  }
  const [first, second] = [half(0.1, 0.5), half(0.5, 1)]
  row(`${sessionsAtOnce} sessions at ${rate}/s`, `${(seen / took).toFixed(0)} chunks/s`, `${rate}/s`)
  row('  updates', `${(lags.length / took).toFixed(0)}/s${peer.pid ? `, agent ${busy.toFixed(0)} % busy` : ''}`, '')
  row('  lag p50 / p99, first half', `${quantile(first, 0.5).toFixed(1)} / ${quantile(first, 0.99).toFixed(1)} ms`, '')
  row(
    '  lag p50 / p99, second half',
    `${quantile(second, 0.5).toFixed(1)} / ${quantile(second, 0.99).toFixed(1)} ms`,
    '< 250 ms',
  )
}

function startAgent(env) {
  const child = spawn(process.execPath, [join(dist, 'agents/openai/main.js')], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const stop = async () => {
    child.stdin.end()
    await exited
  }
  return Object.assign(lineClient(child.stdin, child.stdout), { pid: child.pid, stop })
}

/** One agent behind the daemon, reached over a Unix socket. */
async function startBus(env) {
  const dir = mkdtempSync(join(tmpdir(), 'bench-openai-'))
  const config = join(dir, 'stdio-bus.json')
  const pool = { id: 'chat', agent: 'openai', instances: 1, env: { OPENAI_BASE_URL: env.OPENAI_BASE_URL } }
  writeFileSync(config, JSON.stringify({ pools: [pool] }))
  const socketPath = join(dir, 'bus.sock')
  const args = [
    join(dist, 'cli/main.js'),
    'serve',
    '--config',
    config,
    '--unix',
    socketPath,
    '--control',
    join(dir, 'c.sock'),
  ]
  const bus = spawn(process.execPath, args, { env: { ...env, HOME: dir }, stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = once(bus, 'exit')
  await new Promise((resolve, reject) => {
    let log = ''
    bus.stderr.on('data', (chunk) => (log += chunk).includes('"msg":"ready"') && resolve())
    bus.once('exit', () => reject(new Error(`the bus did not start: ${log}`)))
  })
  const socket = connect(socketPath)
  await once(socket, 'connect')
  const stop = async () => {
    socket.destroy()
    bus.kill('SIGTERM')
    await exited
    rmSync(dir, { recursive: true })
  }
  return Object.assign(lineClient(socket, socket), { stop })
}

/** The least a client needs: calls by id, and what to do with an update. */
function lineClient(output, input) {
  const waiting = new Map()
  const client = { onUpdate: () => {}, call }
  let nextId = 1
  let rest = ''
  input.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop()
    for (const line of lines) take(JSON.parse(line))
  })
  function take(message) {
    if (message.method === 'session/update') return client.onUpdate(message.params.update)
    const answer = waiting.get(message.id)
    waiting.delete(message.id)
    if (message.error) answer?.reject(new Error(message.error.message))
    else answer?.resolve(message.result)
  }
  function call(method, params) {
    const id = nextId++
    output.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))
  }
  return client
}

function rssMiB(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024
}

function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

function quantile(sorted, part) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

function row(name, value, target) {
  console.log(`${name.padEnd(32)} ${value.padStart(28)}   ${target}`)
}
