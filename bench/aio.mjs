/**
 * Measures what a call costs the bus when it is traced: an agent called by name, and MCP traffic of a pool with `trace`.
 *
 * `npm run build && node bench/aio.mjs [--rate 5000] [--seconds 8]`. Each row is a bus of its own at a steady rate; the CPU
 * time of its routing thread and of all its threads comes from /proc (Linux). The untraced row of an agent is the same bus
 * with a store that is told nothing. Not a test: a missed target is printed as such
 * and fails nothing, a call that is not answered ends it.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { readOptions } from '../test/support/options.mjs'
import { cpuSeconds, peakRssMib, rssMib } from './process-figures.mjs'

const USAGE = `usage: node bench/aio.mjs [options]: what a traced call costs the bus

  --rate N     calls a second (5000)
  --seconds N  for each row (8)`

const options = readOptions(USAGE, {
  rate: { type: 'string', default: '5000' },
  seconds: { type: 'string', default: '8' },
  untraced: { type: 'string', default: fileURLToPath(new URL('aio-untraced.mjs', import.meta.url)) },
  bus: { type: 'string', default: fileURLToPath(new URL('../dist/cli/main.js', import.meta.url)) },
})
const TICK_MS = 10
const PER_TICK = Math.round((Number(options.rate) * TICK_MS) / 1000)
const TICKS = Math.round((Number(options.seconds) * 1000) / TICK_MS)
const PATIENCE_MS = 30_000
const TEXT = 'lorem ipsum '.repeat(30)

const worker = fileURLToPath(new URL('aio-worker.mjs', import.meta.url))
const pool = (more) => ({ id: 'agent', command: process.execPath, args: [worker], ...more })
const aio = { store: { path: 'traces.db' } }
const inputs = [{ type: 'text', value: TEXT }]
const toolCall = { method: 'tools/call', params: { name: 'tool', arguments: { note: TEXT } } }

const ROWS = {
  'plain request': { config: { pools: [pool({})] }, message: { method: 'input', params: { inputs } } },
  'agent::input': {
    config: { pools: [pool({ aio: { type: 'stdio' } })], aio },
    message: { method: 'agent::input', params: { inputs } },
    flags: ['--import', options.untraced],
  },
  'agent::input, traced': {
    config: { pools: [pool({ aio: { type: 'stdio' } })], aio },
    message: { method: 'agent::input', params: { inputs } },
  },
  'MCP tools/call': { config: { pools: [pool({ protocol: 'mcp', era: 'legacy' })] }, message: toolCall },
  'MCP tools/call, traced': {
    config: { pools: [pool({ protocol: 'mcp', era: 'legacy', trace: true })], aio },
    message: toolCall,
  },
}

async function startBus(config, flags) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-aio-'))
  writeFileSync(join(folder, 'bus.json'), JSON.stringify(config))
  const args = ['--config', 'bus.json', '--unix', 'bus.sock', '--control', 'control.sock']
  const env = { ...process.env, HOME: folder, STDIO_BUS_DIST: dirname(dirname(options.bus)) }
  const child = spawn(process.execPath, [...flags, options.bus, ...args], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  await new Promise((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => line.includes('"ready"') && resolve())
    child.once('exit', () => reject(new Error('the bus did not start')))
  })
  return { child, folder, socket: join(folder, 'bus.sock') }
}

class Caller {
  answered = 0
  #socket
  #line
  #wake = () => {}
  #last = 0

  constructor(path, message) {
    const tail = JSON.stringify({ jsonrpc: '2.0', ...message }).slice(1)
    this.#line = (id) => `{"id":${id},${tail}\n`
    this.#socket = connect(path)
    this.#socket.on('data', (chunk) => this.#count(chunk))
  }

  send(count) {
    let text = ''
    for (let n = 0; n < count; n++) text += this.#line(++this.#last)
    this.#socket.write(text)
  }

  async untilAnswered() {
    const timer = setTimeout(() => {
      throw new Error(`${this.#last - this.answered} of ${this.#last} calls were not answered`)
    }, PATIENCE_MS)
    while (this.answered < this.#last) await new Promise((resolve) => (this.#wake = resolve))
    clearTimeout(timer)
  }

  end() {
    this.#socket.destroy()
  }

  #count(chunk) {
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) this.answered++
    this.#wake()
  }
}

const routingSeconds = (pid) =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ', 1)[0]) / 1e9

async function tick(caller, count) {
  const startMs = performance.now()
  for (let n = 1; n <= count; n++) {
    caller.send(PER_TICK)
    const waitMs = startMs + n * TICK_MS - performance.now()
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, waitMs)))
  }
  await caller.untilAnswered()
  return performance.now() - startMs
}

async function measure({ config, message, flags = [] }) {
  const { child, folder, socket } = await startBus(config, flags)
  try {
    const caller = new Caller(socket, message)
    await tick(caller, TICKS / 4)
    const rssBefore = rssMib(child.pid)
    const before = { routing: routingSeconds(child.pid), all: cpuSeconds(child.pid), answered: caller.answered }
    const ms = await tick(caller, TICKS)
    const calls = caller.answered - before.answered
    const perCall = (seconds) => (seconds * 1e6) / calls
    const figures = {
      routingUs: perCall(routingSeconds(child.pid) - before.routing),
      allUs: perCall(cpuSeconds(child.pid) - before.all),
      rate: (calls * 1000) / ms,
      rssMib: rssMib(child.pid),
      peakMib: peakRssMib(child.pid),
      grownMib: rssMib(child.pid) - rssBefore,
    }
    caller.end()
    return figures
  } finally {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill()
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
}

function report(name, value, unit, target) {
  const verdict = value <= target ? 'reached' : 'MISSED'
  console.log(`${name.padEnd(52)} ${value.toFixed(1).padStart(8)} ${unit}  (target ${target}: ${verdict})`)
}

const figures = {}
for (const [name, row] of Object.entries(ROWS)) {
  const at = await measure(row)
  figures[name] = at
  console.log(
    `${name.padEnd(26)} ${at.rate.toFixed(0).padStart(6)} calls/s ${at.routingUs.toFixed(1).padStart(7)} µs routing ${at.allUs.toFixed(1).padStart(7)} µs in all ${at.rssMib.toFixed(0).padStart(5)} MiB (${at.grownMib >= 0 ? '+' : ''}${at.grownMib.toFixed(1)})`,
  )
}
for (const [traced, untraced] of [
  ['MCP tools/call, traced', 'MCP tools/call'],
  ['agent::input, traced', 'agent::input'],
]) {
  report(`${traced}: more on the routing thread`, figures[traced].routingUs - figures[untraced].routingUs, 'µs', 25)
  report(`${traced}: more in all`, figures[traced].allUs - figures[untraced].allUs, 'µs', 60)
}
