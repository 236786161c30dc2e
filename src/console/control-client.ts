/**
 * Asks a running bus over its control socket, and finds the bus to ask.
 */
import { connect, type Socket } from 'node:net'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { findRunning, preferHere, type RunRecord, realPath } from './running.ts'

/** Which bus is meant; nothing: the only one of this user, or of several the one of this folder. */
export interface ControlOptions {
  /** The control socket itself. */
  readonly control?: string | undefined
  /** A Unix socket on which the bus takes clients. */
  readonly unix?: string | undefined
  /** The configuration it runs with. */
  readonly config?: string | undefined
}

/** No bus can be asked, or it refused; the message says what to do. */
export class ControlFailure extends Error {
  readonly data: unknown

  constructor(message: string, data?: unknown) {
    super(message)
    this.data = data
  }
}

/** It was asked for what is not there, or it is not clear which bus is meant: a mistake of the user (contract 8.4). */
export class ControlMistake extends ControlFailure {
  readonly exitCode = 2
}

/** Every bus of this user that is meant; fails when there is none. */
export async function findBuses({ control, unix, config }: ControlOptions): Promise<readonly RunRecord[]> {
  const running = await findRunning()
  const wanted = control === undefined ? undefined : resolve(control)
  const door = unix === undefined ? undefined : `unix:${resolve(unix)}`
  const file = config === undefined ? undefined : realPath(config)
  const found = running
    .filter((bus) => wanted === undefined || bus.control === wanted)
    .filter(({ addresses }) => door === undefined || addresses.includes(door))
    .filter((bus) => file === undefined || realPath(bus.config) === file)
  // One of another user, or one that could leave no record.
  if (found.length === 0 && wanted !== undefined) return [{ pid: 0, control: wanted, addresses: [], config: '' }]
  if (found.length === 0) throw new ControlFailure(noneSuch(unix, config))
  return found
}

function noneSuch(unix: string | undefined, config: string | undefined): string {
  if (unix !== undefined)
    return `no running bus listens on ${unix}: start one, or name its control socket with --control`
  if (config !== undefined) return `no bus runs with ${config}: start one with stdio-bus start --config ${config}`
  return 'no bus is running for this user: start one with stdio-bus start, or name its control socket with --control'
}

/** The one that is meant. */
export async function findBus(options: ControlOptions): Promise<RunRecord> {
  const [bus, ...others] = preferHere(await findBuses(options))
  if (others.length === 0) return bus!
  const rows = [bus!, ...others].map(describeBus).join('\n')
  throw new ControlMistake(`${others.length + 1} buses are running, so name one:\n${rows}`)
}

function describeBus({ pid, control, addresses, config }: RunRecord): string {
  return `  --control ${control}  (pid ${pid}, ${addresses.join(', ')}, ${config})`
}

function open(path: string): Promise<Socket> {
  return new Promise((resolveSocket, reject) => {
    const socket = connect(path)
    socket.once('connect', () => resolveSocket(socket))
    socket.once('error', (cause) =>
      reject(new ControlFailure(`no bus answers on ${path} (${(cause as NodeJS.ErrnoException).code})`, { cause })),
    )
  })
}

/** One question, one answer. */
export async function askControl(options: ControlOptions, method: string, params: unknown = {}): Promise<unknown> {
  return followControl(options, method, params, () => {})
}

/** Hands over every item until the bus is done or gone; resolves with its final answer. */
export async function followControl(
  options: ControlOptions,
  method: string,
  params: unknown,
  onItem: (item: unknown) => void,
): Promise<unknown> {
  const socket = await open((await findBus(options)).control)
  try {
    socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`)
    for await (const line of createInterface({ input: socket })) {
      const message = JSON.parse(line) as {
        method?: string
        params?: unknown
        result?: unknown
        error?: { message: string; data?: unknown }
      }
      if (message.method === 'item') onItem(message.params)
      else if (message.error !== undefined) throw refusalOf(message.error)
      else return message.result
    }
    throw new ControlFailure('the bus went away before it answered')
  } finally {
    socket.destroy()
  }
}

/** What a bus has no such thing for. */
const MISTAKES: ReadonlySet<unknown> = new Set(['unknown_pool'])

function refusalOf({ message, data }: { message: string; data?: unknown }): ControlFailure {
  return new (isMistake(data) ? ControlMistake : ControlFailure)(message, data)
}

/** Asked for what is not there, or over a file that is not right. */
function isMistake(data: unknown): boolean {
  if (typeof data !== 'object' || data === null) return false
  return ('reason' in data && MISTAKES.has(data.reason)) || ('mistake' in data && data.mistake === true)
}
