/**
 * Starts the program under test as a process and holds its ends. The command comes from STDIO_BUS_COMMAND, so that the
 * same tests judge any implementation of the contract; nothing here imports from `src`.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { BusLog, readyAddresses } from './bus-log.ts'
import { connectTo, LineClient, type Message } from './line-client.ts'
import { type Finished, run } from './run.ts'
import { tlsFlags } from './tls.ts'
import { eventually, within } from './waiting.ts'
import { Workspace } from './workspace.ts'

export type Door = 'stdio' | 'unix' | 'tcp' | 'tls' | 'http'

export interface BusOptions {
  /** The configuration: an object, or the text of the file. Left out: no file and no `--config`. */
  readonly config?: object | string
  /** The doors to open; the default is one Unix socket. An empty list adds no flag. */
  readonly doors?: readonly Door[]
  readonly args?: readonly string[]
  readonly env?: Record<string, string>
  readonly workspace?: Workspace
  /** Leave the control socket where the program puts it by itself. */
  readonly defaultControl?: boolean
  /** Do not wait for `ready`. */
  readonly unready?: boolean
}

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface WorkerStatus {
  readonly id: number
  readonly pool: string
  readonly state: string
  readonly generation: number
  readonly restarts: number
  readonly pid: number
  readonly queue_bytes: number
  readonly outstanding: number
  readonly sessions: number
}

export interface Status {
  readonly workers: WorkerStatus[]
  readonly clients: number
  readonly sessions: number
  readonly outstanding: number
  readonly queue_bytes: number
  readonly dropped: Record<string, number>
  readonly refused: Record<string, number>
  readonly web?: Record<string, number>
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** The program under test, as a command and its first arguments. */
export function busCommand(): [string, string[]] {
  const words = (process.env['STDIO_BUS_COMMAND'] ?? '').split(' ').filter(Boolean)
  const [command, ...args] = words.length > 0 ? words : [process.execPath, `${ROOT}dist/cli/main.js`]
  return [command as string, args]
}

/** The environment a test gives to the program: little, and a HOME of its own. */
export function busEnv(workspace: Workspace, extra: Record<string, string> = {}): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: workspace.home, LANG: 'C.UTF-8', ...extra }
}

export class Bus {
  readonly log: BusLog
  readonly exit: Promise<Exit>
  readonly workspace: Workspace
  readonly child: ChildProcess
  readonly control: string
  addresses: string[] = []
  #exited: Exit | undefined

  constructor(child: ChildProcess, workspace: Workspace, control: string) {
    this.child = child
    this.workspace = workspace
    this.control = control
    this.log = new BusLog(child.stderr!)
    this.exit = new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => resolve((this.#exited = { code, signal })))
    })
  }

  get pid(): number {
    return this.child.pid as number
  }

  get hasExited(): boolean {
    return this.#exited !== undefined
  }

  /** The client of the stdio door. Call it once. */
  stdio(): LineClient {
    return new LineClient(this.child.stdout!, this.child.stdin!)
  }

  /** A new client at the first address, or at the address that begins with `prefix`. */
  async connect(prefix = ''): Promise<LineClient> {
    const address = this.addresses.find((each) => each.startsWith(prefix))
    if (address === undefined) throw new Error(`no address ${prefix} among ${this.addresses}`)
    return connectTo(address)
  }

  /** A client at whichever door this bus has. */
  client(): Promise<LineClient> {
    return this.addresses.some((each) => /^(unix|tcp|tls):/.test(each)) ? this.connect() : Promise.resolve(this.stdio())
  }

  /** The URL of a path at the web door. */
  url(path = ''): string {
    const address = this.addresses.find((each) => each.startsWith('http'))
    if (address === undefined) throw new Error(`no web door among ${this.addresses}`)
    return `${address}${path}`
  }

  async status(): Promise<Status> {
    const done = await this.run(['status', '--json', '--control', this.control])
    if (done.code !== 0) throw new Error(`status failed (${done.code}): ${done.stderr}`)
    return JSON.parse(done.stdout)
  }

  /** The first status that satisfies `test`. */
  statusWhere(what: string, test: (status: Status) => boolean, timeoutMs = 6_000): Promise<Status> {
    const probe = async () => {
      const status = await this.status()
      return test(status) ? status : undefined
    }
    return eventually(`a status where ${what}`, probe, timeoutMs)
  }

  /** Every worker of the configuration is ready. */
  allReady(): Promise<Status> {
    return this.statusWhere('all workers are ready', ({ workers }) => workers.every((each) => each.state === 'ready'))
  }

  /** Another command of the program, in the same world. */
  run(args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
    return runBus(args, { workspace: this.workspace, env })
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name)
  }

  /** Asks it to stop and gives how it ended. */
  stop(signal: NodeJS.Signals = 'SIGTERM', timeoutMs = 10_000): Promise<Exit> {
    this.signal(signal)
    return within(timeoutMs, 'the bus to exit', this.exit)
  }

  kill(): void {
    this.child.kill('SIGKILL')
  }
}

/** Starts a bus that ends with the test that started it. */
export async function startBus(options: BusOptions): Promise<Bus> {
  const workspace = options.workspace ?? testWorkspace()
  return launch(options, workspace)
}

/** A workspace that is removed with the test that asked for it. */
export function testWorkspace(): Workspace {
  const workspace = new Workspace()
  onTestFinished(() => workspace.remove())
  return workspace
}

/** Starts a bus in a workspace whose end is the caller's business. */
export async function launch(options: BusOptions, workspace: Workspace): Promise<Bus> {
  const control = controlPath(options, workspace)
  const [command, first] = busCommand()
  const args = [...first, ...serveArguments(options, workspace, control)]
  const env = busEnv(workspace, options.env)
  const child = spawn(command, args, { cwd: workspace.folder, env, stdio: 'pipe' })
  workspace.owns(child.pid)
  const bus = new Bus(child, workspace, control)
  if (options.unready !== true) bus.addresses = await readiness(bus)
  return bus
}

function serveArguments(options: BusOptions, workspace: Workspace, control: string): string[] {
  const args: string[] = []
  if (options.config !== undefined) args.push('--config', workspace.write('bus.json', options.config))
  for (const door of options.doors ?? ['unix']) args.push(...doorFlag(door, workspace))
  const isNamed = options.defaultControl === true || options.args?.includes('--control')
  if (!isNamed) args.push('--control', control)
  return [...args, ...(options.args ?? [])]
}

function controlPath(options: BusOptions, workspace: Workspace): string {
  const at = options.args?.indexOf('--control') ?? -1
  return (at === -1 ? undefined : options.args?.[at + 1]) ?? workspace.path('control.sock')
}

function doorFlag(door: Door, workspace: Workspace): string[] {
  if (door === 'unix') return ['--unix', workspace.path('bus.sock')]
  if (door === 'tls') return tlsFlags()
  if (door === 'http') return ['--http', '127.0.0.1:0']
  return door === 'tcp' ? ['--tcp', '127.0.0.1:0'] : ['--stdio']
}

async function readiness(bus: Bus): Promise<string[]> {
  const probe = () => {
    const line = bus.log.find((each) => readyAddresses(each) !== undefined)
    if (line !== undefined) return readyAddresses(line)
    if (bus.hasExited) throw new Error(`the bus exited before it was ready:\n${bus.log.text}`)
    return undefined
  }
  try {
    return await eventually('the log line `ready`', probe, 10_000)
  } catch (cause) {
    throw new Error(`${(cause as Error).message}\n${bus.log.text}`, { cause })
  }
}

/** Runs a command of the program to its end. */
export function runBus(
  args: readonly string[],
  options: { workspace: Workspace; env?: Record<string, string>; stdin?: string; cwd?: string; timeoutMs?: number },
): Promise<Finished> {
  const [command, first] = busCommand()
  return run(command, [...first, ...args], {
    cwd: options.cwd ?? options.workspace.folder,
    env: busEnv(options.workspace, options.env),
    ...(options.stdin === undefined ? {} : { stdin: options.stdin }),
    timeoutMs: options.timeoutMs ?? 10_000,
  })
}

export type { Message }
