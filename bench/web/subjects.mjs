/**
 * Who is measured side by side: the bus, the gateways that people use today, and the server itself over HTTP. All serve the same
 * server. Gateways come from the registry into a cache, in the versions that the figures are compared with.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cpuSeconds, rssMib } from '../process-figures.mjs'
import { HttpLane } from './http-lane.mjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/web-peers')
export const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const VERSIONS = { 'mcp-proxy': '6.7.19', supergateway: '4.0.0' }
const START_MS = 60_000

/** Installs the gateways once; without a registry only the bus and the server are measured. */
export function installPeers() {
  const wanted = JSON.stringify({ private: true, dependencies: VERSIONS })
  const manifest = join(CACHE, 'package.json')
  const isThere = () =>
    existsSync(manifest) && readFileSync(manifest, 'utf8') === wanted && existsSync(join(CACHE, 'node_modules'))
  if (isThere()) return true
  rmSync(CACHE, { recursive: true, force: true })
  mkdirSync(CACHE, { recursive: true })
  writeFileSync(manifest, wanted)
  const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: CACHE })
  if (status !== 0) rmSync(manifest)
  return status === 0
}

function programOf(name) {
  const folder = join(CACHE, 'node_modules', name)
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return join(folder, typeof bin === 'string' ? bin : bin[name])
}

async function freePort() {
  const server = createServer()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** A running program and all that it has started. */
export class Subject {
  name
  url
  #child
  #folder

  constructor(name, url, child, folder) {
    this.name = name
    this.url = url
    this.#child = child
    this.#folder = folder
  }

  get pid() {
    return this.#child.pid
  }

  /** What the program itself has used, without the servers behind it. */
  cpuSeconds() {
    return cpuSeconds(this.pid)
  }

  /** Of it and of everything below it. */
  familyMib() {
    return familyOf(this.pid).reduce((sum, pid) => sum + rssMib(pid), 0)
  }

  async end() {
    const family = familyOf(this.pid)
    this.#child.kill('SIGTERM')
    await Promise.race([new Promise((resolve) => this.#child.once('exit', resolve)), sleep(5_000)])
    for (const pid of family) kill(pid)
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

function familyOf(root) {
  const parents = new Map()
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1')
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
    } catch {
      // It ended while we looked.
    }
  }
  const family = [root]
  for (const pid of family) for (const [child, parent] of parents) if (parent === pid) family.push(child)
  return family
}

function start(name, args, { url, env = {}, folder = mkdtempSync(join(tmpdir(), 'stdio-bus-web-')) }) {
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: folder, ...env },
    cwd: folder,
  })
  child.stderr.resume()
  return new Subject(name, url, child, folder)
}

/** Settles when a client is served. */
async function served(subject) {
  for (const endMs = performance.now() + START_MS; ; await sleep(200)) {
    const lane = new HttpLane(subject.url, 'first')
    try {
      await (await lane.open()).call()
      if (lane.wrong === 0) return subject
    } catch (error) {
      if (performance.now() > endMs) throw new Error(`${subject.name} does not serve: ${error.message}`)
    } finally {
      lane.close()
    }
  }
}

/** A bus with this configuration and an HTTP door. */
export async function startBus(program, config, name = 'stdio Bus') {
  const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-web-'))
  const port = await freePort()
  const file = join(folder, 'bus.json')
  writeFileSync(file, JSON.stringify(config))
  const args = [program, '--config', file, '--http', `127.0.0.1:${port}`, '--unix', join(folder, 'bus.sock')]
  const subject = start(name, [...args, '--control', join(folder, 'control.sock')], {
    url: `http://127.0.0.1:${port}/mcp`,
    folder,
  })
  for (const endMs = performance.now() + START_MS; ; await sleep(50)) {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined)
    if (answer?.status === 200) return Object.assign(subject, { unix: join(folder, 'bus.sock') })
    if (performance.now() > endMs) throw new Error('the bus does not start')
  }
}

export const everythingPool = {
  id: 'everything',
  command: process.execPath,
  args: [EVERYTHING, 'stdio'],
  sharing: 'shared',
}

const PEERS = {
  'mcp-proxy': (port) => [
    programOf('mcp-proxy'),
    ...[
      '--host',
      '127.0.0.1',
      '--port',
      String(port),
      '--server',
      'stream',
      '--',
      process.execPath,
      EVERYTHING,
      'stdio',
    ],
  ],
  supergateway: (port) => [
    programOf('supergateway'),
    ...['--stdio', `${process.execPath} ${EVERYTHING} stdio`, '--outputTransport', 'streamableHttp', '--stateful'],
    ...['--port', String(port), '--logLevel', 'none'],
  ],
}

export async function startPeer(name) {
  const port = await freePort()
  return served(start(name, PEERS[name](port), { url: `http://127.0.0.1:${port}/mcp` }))
}

export async function startDirect() {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/mcp`
  return served(start('the server itself', [EVERYTHING, 'streamableHttp'], { url, env: { PORT: String(port) } }))
}
