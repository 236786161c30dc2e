/**
 * What the bus costs real MCP traffic (issue: to reach): 20 clients calling `echo` of server-everything through one shared worker,
 * against one generator that drives the same server over pipes with 20 in flight; and the CPU per line of MCP, ACP and aliased lines
 * against plain ones of the same length. Both sides of a comparison take turns, and only their ratios mean anything.
 *
 * node bench/mcp.mjs [--quick] [--program FILE]
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readOptions } from '../test/support/options.mjs'
import { cpuSeconds } from './process-figures.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const IN_FLIGHT = 20
const LINE_BYTES = 200
const USAGE = `usage: node bench/mcp.mjs [--quick] [--program FILE]: what the bus costs MCP traffic

  --quick         short rounds
  --program FILE  another build than dist/cli/main.js`

const options = readOptions(USAGE, {
  quick: { type: 'boolean', default: false },
  program: { type: 'string', default: join(ROOT, 'dist/cli/main.js') },
})
const ROUNDS = options.quick ? 3 : 7
const ROUND_MS = options.quick ? 1_000 : 3_000

const json = (message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`
const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } }

/** Keeps requests in flight on one stream and checks every answer off by its id; ids begin at 1 on every lane, as clients' do. */
class Lane {
  answered = 0
  wrong = 0
  samples = []
  #sentAt = new Map()
  #held = ''
  #next = 1
  #isOn = false

  constructor(name, write, { lineOf, isRight, cycle = Number.MAX_SAFE_INTEGER }) {
    this.name = name
    this.write = write
    this.cycle = cycle
    this.lineOf = lineOf
    this.isRight = isRight
  }

  start(count) {
    this.#isOn = true
    for (let n = 0; n < count; n++) this.#send()
  }

  stop() {
    this.#isOn = false
  }

  get outstanding() {
    return this.#sentAt.size
  }

  #send() {
    const id = ((this.#next++ - 1) % this.cycle) + 1
    this.#sentAt.set(id, performance.now())
    this.write(this.lineOf(id, this.name))
  }

  read(text) {
    const all = this.#held === '' ? text : this.#held + text
    let from = 0
    for (let to = all.indexOf('\n'); to !== -1; to = all.indexOf('\n', from)) {
      this.#take(all.slice(from, to))
      from = to + 1
    }
    this.#held = all.slice(from)
  }

  #take(line) {
    const id = idOf(line)
    // The server tells everybody once that its tools are ready; anything else must be an answer.
    if (id === undefined && line.includes('"notifications/tools/list_changed"')) return
    const sentAt = this.#sentAt.get(id)
    if (sentAt === undefined || !this.isRight(line, id, this.name)) return void this.wrong++
    this.#sentAt.delete(id)
    this.samples.push(performance.now() - sentAt)
    this.answered++
    if (this.#isOn) this.#send()
  }
}

/** The number behind `"id":`, wherever it stands. */
function idOf(line) {
  const at = line.indexOf('"id":')
  return at === -1 ? undefined : Number.parseInt(line.slice(at + 5, at + 20), 10)
}

const ECHO = {
  lineOf: (id, name) =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"message":"${name}-${id}"}}}\n`,
  isRight: (line, id, name) => line.includes(`"Echo: ${name}-${id}"`),
}

/** One round: everything the lanes do within the time; the rest of what is in flight is waited for. */
async function round(lanes, inFlightEach) {
  for (const lane of lanes) Object.assign(lane, { answered: 0, samples: [] })
  const beganMs = performance.now()
  for (const lane of lanes) lane.start(inFlightEach)
  await sleep(ROUND_MS)
  for (const lane of lanes) lane.stop()
  while (lanes.some(({ outstanding }) => outstanding > 0)) await sleep(1)
  const samples = lanes.flatMap((lane) => lane.samples).sort((a, b) => a - b)
  const answered = lanes.reduce((sum, lane) => sum + lane.answered, 0)
  return {
    perSecond: answered / ((performance.now() - beganMs) / 1_000),
    p50: samples[Math.floor(samples.length * 0.5)],
    p99: samples[Math.floor(samples.length * 0.99)],
    wrong: lanes.reduce((sum, { wrong }) => sum + wrong, 0),
    answered,
  }
}

/** The first line that answers; what comes before is thrown away. */
function answerOf(listen, write, message) {
  return new Promise((resolve) => {
    let text = ''
    listen((chunk) => {
      text += chunk
      const line = text.split('\n').find((each) => each.includes(`"id":${message.id}`) && !each.includes('"method"'))
      if (line !== undefined) resolve(JSON.parse(line))
    })
    write(json(message))
  })
}

async function directLane() {
  const child = spawn(process.execPath, [EVERYTHING], { stdio: ['pipe', 'pipe', 'ignore'] })
  let read
  child.stdout.on('data', (bytes) => read(bytes.latin1Slice(0, bytes.length)))
  const listen = (listener) => {
    read = listener
  }
  const write = (text) => child.stdin.write(text)
  await answerOf(listen, write, { id: 0, method: 'initialize', params: INITIALIZE })
  write(json({ method: 'notifications/initialized' }))
  const lane = new Lane('direct', write, ECHO)
  listen((text) => lane.read(text))
  return { lane, close: () => child.stdin.end() }
}

async function startBus(pool) {
  const folder = mkdtempSync(join(tmpdir(), 'sb-bench-'))
  writeFileSync(
    join(folder, 'bus.json'),
    JSON.stringify({ pools: [{ id: 'p', command: process.execPath, instances: 1, ...pool }] }),
  )
  const path = join(folder, 's')
  const args = [options.program, '--config', join(folder, 'bus.json'), '--unix', path, '--control', join(folder, 'c')]
  const child = spawn(process.execPath, args, {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH, HOME: folder },
  })
  await new Promise((resolve, reject) => {
    let log = ''
    child.stderr.on('data', (text) => String((log += text)).includes('"msg":"ready"') && resolve())
    child.once('exit', (code) => reject(new Error(`the bus ended with ${code}:\n${log}`)))
  })
  const close = async () => {
    child.kill()
    await new Promise((resolve) => child.once('exit', resolve))
    rmSync(folder, { recursive: true, force: true })
  }
  return { pid: child.pid, path, close }
}

async function enter(bus, hello) {
  let read
  // Into one buffer, past the stream: the generator must cost as little on a socket as it does on a pipe.
  const onread = {
    buffer: Buffer.allocUnsafe(64 * 1024),
    callback: (length, bytes) => {
      read(bytes.latin1Slice(0, length))
      return true
    },
  }
  const socket = connect({ path: bus.path, onread })
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  const write = (text) => socket.write(text)
  const listen = (listener) => {
    read = listener
  }
  if (hello !== undefined) await answerOf(listen, write, { id: 0, ...hello })
  else listen(() => {})
  return { socket, write, listen }
}

async function busLane(bus, name, kind, hello) {
  const { socket, write, listen } = await enter(bus, hello)
  const lane = new Lane(name, write, kind)
  listen((text) => lane.read(text))
  return { lane, close: () => socket.destroy() }
}

const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)]

async function measureEcho() {
  const direct = await directLane()
  const bus = await startBus({ args: [EVERYTHING], protocol: 'mcp' })
  const hello = { method: 'initialize', params: INITIALIZE }
  const clients = await Promise.all(Array.from({ length: IN_FLIGHT }, (_, n) => busLane(bus, `c${n}`, ECHO, hello)))
  const lanes = clients.map(({ lane }) => lane)
  await round([direct.lane], IN_FLIGHT)
  await round(lanes, 1)
  const pairs = []
  for (let n = 0; n < ROUNDS; n++)
    pairs.push({ direct: await round([direct.lane], IN_FLIGHT), bus: await round(lanes, 1) })
  direct.close()
  for (const { close } of clients) close()
  await bus.close()
  return pairs
}

// ---- CPU per line ----

const WORKER = `
import { createInterface } from 'node:readline'
createInterface({ input: process.stdin }).on('line', (line) => {
  const id = /"id":([^,]+),/.exec(line)?.[1]
  if (id === undefined || line.includes('"hold"')) return
  const result = line.includes('"initialize"') ? '{"protocolVersion":' + (line.includes('"protocolVersion":1') ? '1' : '"2025-11-25"') + ',"capabilities":{},"serverInfo":{"name":"w","version":"1"}}'
    : line.includes('"session/new"') ? '{"sessionId":"s1"}' : '{"p":"' + 'x'.repeat(${LINE_BYTES} - 50) + '"}'
  process.stdout.write('{"jsonrpc":"2.0","id":' + id + ',"result":' + result + '}\\n')
})`

const padded = (head, tail) => (id) => {
  const start = `{"jsonrpc":"2.0","id":${id},${head}`
  return `${start}${'x'.repeat(LINE_BYTES - start.length - tail.length - 1)}${tail}\n`
}
const answersRight = (line) => line.includes('"result"')
const CALL = {
  lineOf: padded('"method":"tools/call","params":{"name":"echo","arguments":{"message":"', '"}}}'),
  isRight: answersRight,
}
const PROMPT = {
  lineOf: padded('"method":"session/prompt","params":{"sessionId":"s1","prompt":"', '"}}'),
  isRight: answersRight,
}

const KINDS = {
  plain: { pool: { protocol: 'plain' }, kind: CALL },
  mcp: { pool: { protocol: 'mcp' }, kind: CALL, hello: { method: 'initialize', params: INITIALIZE } },
  acp: {
    pool: { protocol: 'acp' },
    kind: PROMPT,
    hello: { method: 'initialize', params: { protocolVersion: 1 } },
    opens: true,
  },
  aliased: {
    pool: { protocol: 'mcp' },
    kind: CALL,
    hello: { method: 'initialize', params: INITIALIZE },
    isAliased: true,
  },
}

/** Fewer than max_pending_per_client. */
const TAKEN_IDS = 4_000

/** Somebody else has every id in flight already, so that none of the measured client's can be kept. */
async function takeIds(bus, hello) {
  const { write } = await enter(bus, hello)
  for (let id = 1; id <= TAKEN_IDS; id++) write(json({ id, method: 'tools/call', params: { hold: 'hold' } }))
}

async function prepare({ pool, kind, hello, opens, isAliased }) {
  const bus = await startBus({ args: ['--input-type=module', '-e', WORKER], ...pool })
  if (isAliased) await takeIds(bus, hello)
  const { lane, close } = await busLane(bus, 'c', isAliased ? { ...kind, cycle: TAKEN_IDS } : kind, hello)
  if (opens) lane.write(json({ id: 0, method: 'session/new', params: { cwd: '/', mcpServers: [] } }))
  await sleep(300)
  lane.wrong = 0
  return { bus, lane, close }
}

async function cpuPerLine({ bus, lane }) {
  const before = cpuSeconds(bus.pid)
  const { answered, wrong } = await round([lane], IN_FLIGHT)
  return { us: ((cpuSeconds(bus.pid) - before) * 1e6) / (answered * 2), wrong }
}

async function measureCpu() {
  const parts = {}
  for (const [name, kind] of Object.entries(KINDS)) parts[name] = await prepare(kind)
  const rows = Object.fromEntries(Object.keys(KINDS).map((name) => [name, []]))
  for (let n = 0; n <= ROUNDS; n++) {
    for (const name of Object.keys(KINDS)) {
      const row = await cpuPerLine(parts[name])
      if (n > 0) rows[name].push(row)
    }
  }
  for (const { bus, close } of Object.values(parts)) {
    close()
    await bus.close()
  }
  return rows
}

const verdict = (isReached) => (isReached ? 'reached' : 'missed')

function reportEcho(pairs) {
  const rate = median(pairs.map(({ direct, bus }) => bus.perSecond / direct.perSecond))
  const tail = median(pairs.map(({ direct, bus }) => bus.p99 / direct.p99))
  const wrong = pairs.reduce((sum, { direct, bus }) => Math.max(sum, direct.wrong, bus.wrong), 0)
  for (const side of ['direct', 'bus']) {
    const of = (key) => median(pairs.map((pair) => pair[side][key])).toFixed(key === 'perSecond' ? 0 : 2)
    console.log(`${side.padEnd(8)} ${of('perSecond')} calls/s   p50 ${of('p50')} ms   p99 ${of('p99')} ms`)
  }
  console.log(`calls/s ratio ${rate.toFixed(2)} (at least 0.80: ${verdict(rate >= 0.8)})`)
  console.log(`p99 ratio ${tail.toFixed(2)} (at most 2.00: ${verdict(tail <= 2)})`)
  console.log(`wrong answers ${wrong} (${verdict(wrong === 0)})`)
}

function reportCpu(rows) {
  const targets = { mcp: 1.15, acp: 1.15, aliased: 1.5 }
  console.log(`plain    ${median(rows.plain.map(({ us }) => us)).toFixed(2)} µs/line`)
  for (const [name, target] of Object.entries(targets)) {
    const ratio = median(rows[name].map(({ us }, n) => us / rows.plain[n].us))
    const us = median(rows[name].map((row) => row.us)).toFixed(2)
    console.log(
      `${name.padEnd(8)} ${us} µs/line   ratio ${ratio.toFixed(2)} (at most ${target.toFixed(2)}: ${verdict(ratio <= target)})`,
    )
  }
  console.log(
    `wrong answers ${Object.values(rows)
      .flat()
      .reduce((most, { wrong }) => Math.max(most, wrong), 0)}`,
  )
}

console.log(`${cpus().length} cores, load ${loadavg()[0].toFixed(1)}, ${ROUNDS} rounds of ${ROUND_MS} ms\n`)
console.log(
  `echo of server-everything: ${IN_FLIGHT} clients through one shared worker, against one generator on its pipes`,
)
reportEcho(await measureEcho())
console.log(`\nCPU of the bus per line of ${LINE_BYTES} bytes`)
reportCpu(await measureCpu())
