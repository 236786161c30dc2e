/**
 * What `stdio-bus connect` costs beside a direct connection to the same bus: time to its first answer, time it adds to a
 * request, memory. `node bench/connect.mjs [--program FILE]`; prints a table, fails nothing.
 *
 * Rounds of the two take turns, and only the medians of the same minutes mean anything on a machine that others use.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readOptions } from '../test/support/options.mjs'

const USAGE = `usage: node bench/connect.mjs [--program FILE]: what \`stdio-bus connect\` costs beside a direct connection

  --program FILE  another build than dist/cli/main.js`
const { program } = readOptions(USAGE, {
  program: { type: 'string', default: fileURLToPath(new URL('../dist/cli/main.js', import.meta.url)) },
})
const folder = mkdtempSync(join(tmpdir(), 'sb-'))
const socketPath = join(folder, 'bus.sock')
const env = { PATH: process.env.PATH, HOME: folder }
const ROUNDS = 10
const REQUESTS = 300

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
const shown = (ms) => `${ms.toFixed(2)} ms`

async function startBus() {
  const config = join(folder, 'bus.json')
  writeFileSync(config, JSON.stringify({ pools: [{ id: 'echo', agent: 'echo', instances: 1 }] }))
  const args = [program, 'serve', '--config', config, '--unix', socketPath]
  const bus = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  for await (const chunk of bus.stderr) {
    log += chunk
    if (log.includes('"ready"')) return bus
  }
  throw new Error(`the bus did not start:\n${log}`)
}

/** Asks one thing after another and gives the time of each. */
async function ask({ input, output }, count) {
  const times = []
  for (let id = 0; id < count; id++) {
    const startMs = performance.now()
    output.write(`{"jsonrpc":"2.0","id":${id},"method":"echo","params":{"text":"${'x'.repeat(100)}"}}\n`)
    await once(input, 'data')
    times.push(performance.now() - startMs)
  }
  return times
}

function startShim(...args) {
  const shim = spawn(process.execPath, [program, 'connect', ...args], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  return { shim, input: shim.stdout, output: shim.stdin }
}

const rssMiB = (pid) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024

async function measureRound(figures) {
  const bareMs = performance.now()
  await once(spawn(process.execPath, ['-e', '0'], { env, stdio: 'ignore' }), 'exit')
  figures.node.push(performance.now() - bareMs)
  for (const [name, args] of Object.entries({ start: ['--unix', socketPath], found: [] })) {
    const startMs = performance.now()
    const { shim, input, output } = startShim(...args)
    await ask({ input, output }, 1)
    figures[name].push(performance.now() - startMs)
    if (name === 'start') {
      figures.shim.push(median(await ask({ input, output }, REQUESTS)))
      figures.rss.push(rssMiB(shim.pid))
    }
    output.end()
    await once(shim, 'exit')
  }
  const socket = connect(socketPath)
  await once(socket, 'connect')
  figures.direct.push(median(await ask({ input: socket, output: socket }, REQUESTS)))
  socket.destroy()
}

const bus = await startBus()
try {
  const figures = { node: [], start: [], found: [], shim: [], direct: [], rss: [] }
  for (let round = 0; round < ROUNDS; round++) await measureRound(figures)
  const rows = {
    'node -e 0': shown(median(figures.node)),
    'start to first answer, --unix (to reach: 150 ms)': shown(median(figures.start)),
    'start to first answer, found from HOME': shown(median(figures.found)),
    'request, direct': shown(median(figures.direct)),
    'request, through connect': shown(median(figures.shim)),
    'added (to reach: 1 ms)': shown(median(figures.shim) - median(figures.direct)),
    'largest RSS (to reach: 60 MiB)': `${Math.max(...figures.rss).toFixed(1)} MiB`,
  }
  for (const [name, value] of Object.entries(rows)) console.log(`${name.padEnd(50)} ${value}`)
} finally {
  bus.kill('SIGTERM')
  await once(bus, 'exit')
  rmSync(folder, { recursive: true, force: true })
}
