/**
 * One running bus in a folder of its own, seen from outside: its status, descriptors, memory and processes.
 *
 * Its log goes to a file, so that nobody here can hold it up. However a scenario ends, `clear` leaves no process behind.
 */
import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { descendantsOf, descriptorsOf, peakRssMib, processesWorkingIn, signal, stillAlive } from './processes.mjs'
import { eventually, sleep } from './waiting.mjs'

const READY_MS = 20_000
const CONTROL_MS = 10_000
/** Contract 5.4: after the end of the bus its processes are gone within this time. */
const ORPHAN_MS = 3_000

export class Bus {
  folder
  socket
  control
  exit
  #child
  #hasExited = false
  #main
  #file
  #doorCount

  /** `runtime` are words for the runtime itself, before the program; `doors` for further ones. */
  constructor(main, folder, config, { descriptors, diskKib, runtime = [], doors: more = [] } = {}) {
    mkdirSync(join(folder, 'home'), { recursive: true })
    this.#main = main
    this.folder = folder
    this.socket = join(folder, 'bus.sock')
    this.control = join(folder, 'control.sock')
    this.#file = join(folder, 'bus.json')
    this.configure(config)
    const doors = ['--unix', this.socket, '--tcp', '127.0.0.1:0', '--control', this.control, ...more]
    this.#doorCount = 2 + more.length / 2
    const words = [process.execPath, ...runtime, main, 'serve', '--config', this.#file, ...doors]
    this.#spawn(words, { descriptors, diskKib })
  }

  static async start(...given) {
    const bus = new Bus(...given)
    const status = await eventually(async () => bus.#hasExited || (await bus.#opened()), READY_MS, 50)
    if (status === undefined || bus.#hasExited) throw new Error(`the bus did not start:\n${bus.log()}`)
    bus.addresses = status.addresses
    return bus
  }

  /** Its status, once all its doors are open. */
  async #opened() {
    const status = await this.status()
    return status?.addresses.length >= this.#doorCount ? status : undefined
  }

  #spawn(words, limits) {
    const log = openSync(join(this.folder, 'bus.log'), 'a')
    const [command, ...args] = [...limiter(limits), ...words]
    const env = { PATH: process.env.PATH, HOME: join(this.folder, 'home'), LANG: 'C.UTF-8' }
    this.#child = spawn(command, args, { cwd: this.folder, env, stdio: ['ignore', 'ignore', log] })
    closeSync(log)
    this.exit = new Promise((resolve) =>
      this.#child.once('exit', (code, name) => {
        this.#hasExited = true
        resolve({ code, signal: name })
      }),
    )
  }

  get pid() {
    return this.#child.pid
  }

  get hasExited() {
    return this.#hasExited
  }

  get peakRssMib() {
    return peakRssMib(this.pid)
  }

  address(door) {
    return this.addresses.find((address) => address.startsWith(`${door}:`))
  }

  log() {
    return readFileSync(join(this.folder, 'bus.log'), 'utf8')
  }

  /** How often a line of the log has `text`. */
  logged(text) {
    return this.log().split(text).length - 1
  }

  /** What the bus says of itself, or undefined while it does not answer. */
  async status() {
    return (await this.ask('status'))?.result
  }

  /** Only the file: the bus reads it when it is told to. */
  configure(config) {
    writeFileSync(this.#file, JSON.stringify(config, null, 2))
  }

  async reload(config) {
    this.configure(config)
    return this.ask('reload')
  }

  /** Asks at the control socket and gives the answer, or undefined where none comes. */
  ask(method, params = {}) {
    return new Promise((resolve) => {
      const socket = connect(this.control)
      const give = (answer) => {
        clearTimeout(timer)
        socket.destroy()
        resolve(answer)
      }
      const timer = setTimeout(give, CONTROL_MS)
      socket.once('error', () => give())
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk
        if (text.endsWith('\n')) give(JSON.parse(text))
      })
      socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`)
    })
  }

  async worker(pool, where = () => true) {
    const { workers } = await this.status()
    return workers.find((worker) => worker.pool === pool && worker.pid !== null && where(worker))
  }

  allReady(timeoutMs = READY_MS) {
    return eventually(
      async () => (await this.status())?.workers.every(({ state }) => state === 'ready'),
      timeoutMs,
      100,
    )
  }

  /** Descriptors once everything is quiet: no client but the asker, all workers ready, twice the same. */
  async descriptorsAtRest() {
    await this.allReady()
    let before = []
    for (let now; (now = descriptorsOf(this.pid)).join() !== before.join(); await sleep(300)) before = now
    return before
  }

  /** What is open beyond the number that was open `before`, after giving it time to close. */
  async leakedSince(before, timeoutMs = 35_000) {
    await this.allReady(timeoutMs)
    await eventually(() => descriptorsOf(this.pid).length <= before.length, 5_000, 100)
    const now = descriptorsOf(this.pid)
    const fresh = now.filter((each) => !before.includes(each))
    return now.length > before.length ? fresh.slice(before.length - now.length) : []
  }

  processes() {
    return descendantsOf(this.pid)
  }

  signal(name) {
    return signal(this.pid, name)
  }

  /** Ends it with `name` and gives how it ended and how many processes it left behind. */
  async end(name = 'SIGTERM', timeoutMs = 40_000) {
    const family = this.processes()
    this.signal(name)
    const ended = await Promise.race([this.exit, sleep(timeoutMs)])
    return { exit: ended, orphans: await this.countOrphans(family), socketLeft: existsSync(this.socket) }
  }

  /** Those of `family`, or working in the folder, that are there after the time the contract allows. */
  async countOrphans(family) {
    const left = () => {
      const all = [...stillAlive(family), ...processesWorkingIn(this.folder)].filter(({ pid }) => pid !== this.pid)
      return new Set(all.map((each) => each.name)).size
    }
    await eventually(() => left() === 0, ORPHAN_MS, 50)
    return left()
  }

  /** A further command of the program. */
  spawnCommand(args) {
    const env = { PATH: process.env.PATH, HOME: join(this.folder, 'home'), LANG: 'C.UTF-8' }
    return spawn(process.execPath, [this.#main, ...args], { env, stdio: ['pipe', 'pipe', 'ignore'] })
  }

  async clear() {
    if (!this.#hasExited) this.signal('SIGKILL')
    await this.exit
    await eventually(() => {
      const left = processesWorkingIn(this.folder)
      for (const { pid } of left) signal(pid, 'SIGKILL')
      return left.length === 0
    }, 5_000)
  }
}

/** The words before the command that give it few descriptors, or a small disk of its own in the folder `disk`. */
function limiter({ descriptors, diskKib }) {
  if (descriptors !== undefined) return ['/bin/sh', '-c', `ulimit -n ${descriptors}; exec "$@"`, 'sh']
  if (diskKib === undefined) return []
  const mount = `mkdir disk; mount -t tmpfs -o size=${diskKib}k none disk; exec "$@"`
  return ['unshare', '--map-root-user', '--mount', '/bin/sh', '-ec', mount, 'sh']
}
