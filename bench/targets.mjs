/**
 * Starts and ends what is measured: the bus, and the blind pipe beside it, each with its own echo workers and both doors open.
 *
 * Everything lives in a temporary folder and on loopback; every process started here is ended here.
 */
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { hasNative, nativeWorker } from './native.mjs'
import { pidsRunning } from './process-figures.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
/** The bus that is measured unless another build is named. */
export const PROGRAM = here('../dist/cli/main.js')
const WORKER = here('echo-worker.mjs')
const START_LIMIT_MS = 15_000
const STOP_LIMIT_MS = 15_000

/** How a kind of target is put on the command line. */
const commands = {
  floor: ({ unix, port }) => [here('floor.mjs'), unix, String(port)],
  pipe: ({ unix, port, worker }) => [here('blind-pipe.mjs'), unix, String(port), ...worker],
  tlsPipe: ({ port, tls, worker }) => [here('blind-pipe.mjs'), '--tls', tls.cert, tls.key, String(port), ...worker],
  bus: ({ program, folder, unix, port, worker, workers, limits, access, principals, tls, url }) => {
    const config = join(folder, 'stdio-bus.json')
    const [command, ...args] = worker
    const pools = [{ id: 'echo', ...(url ? { url } : { command, args }), instances: workers }]
    writeFileSync(config, JSON.stringify({ pools, limits, access }))
    if (principals) writeFileSync(join(folder, access.file), JSON.stringify({ principals }), { mode: 0o600 })
    const remote = tls
      ? ['--tls', `127.0.0.1:${port}`, '--cert', tls.cert, '--key', tls.key]
      : ['--tcp', `127.0.0.1:${port}`]
    const doors = ['--unix', unix, ...remote, '--control', join(folder, 'control.sock')]
    return [program, 'serve', '--config', config, ...doors]
  },
}

/** A running target: its addresses, its own pid and those of its workers; `lines` is what it carries for a request. */
export async function startTarget(kind, { workers = 1, limits = {}, program = PROGRAM, profileFolder, ...wanted }) {
  if (kind === 'bus' && !existsSync(program)) throw new Error(`${program} is missing: run \`npm run build\` first`)
  const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-bench-'))
  const unix = join(folder, 'bench.sock')
  const port = await freePort()
  const { lineBytes, asks = 'echo', tls, url } = wanted
  const worker = hasNative()
    ? nativeWorker(wanted, folder)
    : [process.execPath, WORKER, String(lineBytes), asks, folder]
  const profile = profileFolder && kind === 'bus' ? ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`] : []
  const command = commands[kind]({ ...wanted, program, folder, unix, port, worker, workers, limits })
  const child = spawn(process.execPath, [...profile, ...command], { stdio: ['ignore', 'ignore', 'pipe'] })
  const log = keepLast(child.stderr)
  const target = {
    kind,
    pid: child.pid,
    unix: { path: unix },
    tcp: { host: '127.0.0.1', port },
    tls: tls && { host: '127.0.0.1', port, ca: tls.cert },
    log,
    lines: kind === 'floor' ? 1 : 2,
  }
  target.stop = () => stop(child, folder)
  try {
    await reachable(target, child)
    // The workers of one that leads on are somebody else's.
    target.workerPids = url ? [] : await workerPids(worker[hasNative() ? 0 : 1], folder, workers)
  } catch (error) {
    await target.stop()
    throw new Error(`the ${kind} did not start: ${error.message}\n${log.text}`)
  }
  return target
}

/** The load generator, as a function from a command to its figures. */
export function startLoad() {
  const child = fork(here('load.mjs'))
  const ask = async (command, rest = {}) => {
    child.send({ command, ...rest })
    const [reply] = await once(child, 'message')
    if (reply.error) throw new Error(reply.error)
    return reply.figures
  }
  return { ask, pid: child.pid, stop: () => child.kill('SIGKILL') }
}

function keepLast(stream) {
  const log = { text: '' }
  stream.setEncoding('utf8').on('data', (text) => {
    log.text = (log.text + text).slice(-2000)
  })
  return log
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

async function reachable(target, child) {
  for (const address of target.kind === 'tlsPipe' ? [target.tcp] : [target.unix, target.tcp]) {
    for (const deadline = performance.now() + START_LIMIT_MS; !(await answers(address)); await sleep(20)) {
      if (child.exitCode !== null) throw new Error(`exit ${child.exitCode}`)
      if (performance.now() > deadline) throw new Error(`nothing listens after ${START_LIMIT_MS} ms`)
    }
  }
}

function answers(address) {
  return new Promise((resolve) => {
    const socket = connect(address, () => socket.destroy() && resolve(true))
    socket.on('error', () => resolve(false))
  })
}

/** Found by their command line, not as children: the bus may put a process of its own between itself and a worker. */
async function workerPids(program, folder, workers) {
  for (const deadline = performance.now() + START_LIMIT_MS; ; await sleep(20)) {
    const pids = pidsRunning(program, folder)
    if (pids.length >= workers) return pids
    if (performance.now() > deadline)
      throw new Error(`${pids.length} of ${workers} workers run after ${START_LIMIT_MS} ms`)
  }
}

async function stop(child, folder) {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
    await ended
    clearTimeout(timer)
  }
  rmSync(folder, { recursive: true, force: true })
}
