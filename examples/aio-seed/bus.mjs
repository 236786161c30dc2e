/**
 * Starts a bus on stdin and stdout for an example and lets it ask. Everything the bus keeps is in a folder of its own,
 * which is removed at the end.
 */
import { execFile, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const PATIENCE_MS = 20_000

export async function startBus(config) {
  const home = await mkdtemp(join(tmpdir(), 'bus-'))
  const file = join(home, 'stdio-bus.json')
  await writeFile(file, JSON.stringify({ ...config, aio: { store: { path: 'traces.db' } } }))
  const env = { ...process.env, HOME: home }
  const child = spawn(process.execPath, [MAIN, '--config', file, '--log-level', 'warn'], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const bus = new Bus(child, home, env)
  createInterface({ input: child.stdout }).on('line', (line) => bus.take(JSON.parse(line)))
  return bus
}

class Bus {
  /** Partial results, in the order they came. */
  partials = []
  #child
  #home
  #env
  #waiting = new Map()

  constructor(child, home, env) {
    this.#child = child
    this.#home = home
    this.#env = env
  }

  take(message) {
    if (message.method?.endsWith('::partial')) this.partials.push(message.params)
    else this.#waiting.get(message.id)?.(message)
  }

  /** Sends a line and waits for the answer to its id. */
  ask(message) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer to ${JSON.stringify(message)}`)), PATIENCE_MS)
      this.#waiting.set(message.id, (answer) => {
        clearTimeout(timer)
        resolve(answer)
      })
      this.tell(message)
    })
  }

  /** Sends a line that nobody answers. */
  tell(message) {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`)
  }

  /** Runs `stdio-bus ...` against this bus and gives its output. */
  async command(...args) {
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args], { env: this.#env })
    return stdout
  }

  async stop() {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.stdin.end()
    const code = await ended
    await rm(this.#home, { recursive: true, force: true })
    if (code !== 0) throw new Error(`the bus ended with exit code ${code}`)
  }
}
