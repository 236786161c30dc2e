/**
 * The bus whose doors are fuzzed: its configuration, and what must hold of it when the fuzzing is over.
 *
 * The pool `quiet` belongs to the client that behaves; nobody else names it.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Bus } from '../../chaos/stage/bus.mjs'

export const MAX_LINE_BYTES = 4096
const MAX_TOTAL_BYTES = 64 * 1024 * 1024
/** A quiet bus, what it may hold for its peers, and room for the garbage of the runtime. */
const MAX_RSS_MIB = 320
/** Beside those that every bus of a run has. */
const MORE_DOORS = { web: ['--http', '127.0.0.1:0'] }
const WORKER = fileURLToPath(new URL('strict-worker.mjs', import.meta.url))

function configFor(broken) {
  const worker = { command: process.execPath, args: [WORKER, broken], restart: 'never' }
  return {
    pools: [
      { id: 'plain', protocol: 'plain', ...worker },
      { id: 'auto', ...worker },
      { id: 'quiet', protocol: 'plain', ...worker },
    ],
    default_pool: 'plain',
    limits: { max_input_buffer: MAX_LINE_BYTES, max_total_buffer: MAX_TOTAL_BYTES },
  }
}

function brokenLines(file) {
  return existsSync(file) ? [`broken: a worker got ${readFileSync(file, 'latin1').slice(0, 400)}`] : []
}

/** One bus with socket doors for all connections. */
export class SocketHouse {
  #bus
  #broken
  #door

  static async open(program, door) {
    const house = new SocketHouse()
    const folder = join(program.folder, door)
    house.#broken = join(folder, 'broken')
    house.#door = door
    house.#bus = await Bus.start(program.main, folder, configFor(house.#broken), { doors: MORE_DOORS[door] })
    await house.#bus.allReady()
    return house
  }

  /** A new connection at the door, or at the Unix one for the client that behaves. */
  enter(door = this.#door) {
    const socket = connect({ allowHalfOpen: true, ...this.#whereTo(door) })
    socket.setNoDelay(true)
    return { input: socket, output: socket, leave: () => socket.destroy() }
  }

  #whereTo(door) {
    if (door === 'unix') return { path: this.#bus.socket }
    const [, host, port] = /^tcp:(?:\/\/)?(.*):(\d+)$/.exec(this.#bus.address('tcp'))
    return { host, port: Number(port) }
  }

  /** Where the web door is. */
  get web() {
    const { hostname, port } = new URL(this.#bus.address('http'))
    return { host: hostname, port: Number(port) }
  }

  async clients() {
    return (await this.#bus.status())?.clients
  }

  descriptors() {
    return this.#bus.descriptorsAtRest()
  }

  leakedSince(before) {
    return this.#bus.leakedSince(before)
  }

  /** What does not hold of the bus and its workers. */
  async complaints() {
    if (this.#bus.hasExited) return [`dead: the bus has ended\n${this.#bus.log().slice(-2000)}`]
    const status = await this.#bus.status()
    const lost = status?.workers.filter(({ state }) => state !== 'ready') ?? [{ pool: 'none answers for them' }]
    const { peakRssMib } = this.#bus
    return [
      ...brokenLines(this.#broken),
      ...lost.map((worker) => `worker: of pool ${worker.pool} is ${worker.state}`),
      ...(peakRssMib > MAX_RSS_MIB ? [`memory: the bus has held ${peakRssMib} MiB`] : []),
    ]
  }

  close() {
    return this.#bus.clear()
  }
}

/** A bus for each connection: at the stdio door there is one client, and the bus ends with it. */
export class StdioHouse {
  #main
  #file
  #broken
  #folder
  #wrong = []

  static async open(program) {
    const house = new StdioHouse()
    house.#folder = join(program.folder, 'stdio')
    mkdirSync(house.#folder, { recursive: true })
    house.#main = program.main
    house.#broken = join(house.#folder, 'broken')
    house.#file = join(house.#folder, 'bus.json')
    writeFileSync(house.#file, JSON.stringify(configFor(house.#broken)))
    return house
  }

  enter() {
    const env = { PATH: process.env.PATH, HOME: this.#folder, LANG: 'C.UTF-8' }
    const args = [this.#main, 'serve', '--config', this.#file, '--stdio', '--log-level', 'error']
    const bus = spawn(process.execPath, args, { cwd: this.#folder, env, stdio: ['pipe', 'pipe', 'ignore'] })
    bus.once('exit', (code, signal) => {
      if (code !== 0) this.#wrong.push(`exit: the bus ended with ${signal ?? code}`)
    })
    return { input: bus.stdin, output: bus.stdout, leave: () => bus.exitCode === null && bus.kill('SIGTERM') }
  }

  async complaints() {
    return [...brokenLines(this.#broken), ...this.#wrong.splice(0)]
  }

  async close() {}
}
