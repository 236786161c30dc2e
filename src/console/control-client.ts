/**
 * Asks a running bus over its control socket, and finds the bus to ask.
 */
import { connect, type Socket } from 'node:net'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { findRunning, type RunRecord } from './running.ts'

export interface ControlOptions {
  /** The control socket itself. */
  readonly control?: string | undefined
  /** A Unix socket on which the bus takes clients. */
  readonly unix?: string | undefined
}

/** No bus can be asked, or it refused; the message says what to do. */
export class ControlFailure extends Error {
  readonly data: unknown

  constructor(message: string, data?: unknown) {
    super(message)
    this.data = data
  }
}

async function findControl({ control, unix }: ControlOptions): Promise<string> {
  if (control !== undefined) return resolve(control)
  const running = await findRunning()
  if (unix !== undefined) {
    const wanted = `unix:${resolve(unix)}`
    const found = running.find(({ addresses }) => addresses.includes(wanted))
    if (found !== undefined) return found.control
    throw new ControlFailure(`no running bus listens on ${unix}: start one, or name its control socket with --control`)
  }
  if (running.length === 1) return running[0]!.control
  if (running.length === 0)
    throw new ControlFailure(
      'no bus is running for this user: start one with `stdio-bus`, or name its control socket with --control',
    )
  throw new ControlFailure(`several buses are running: name one with --control\n${running.map(describe).join('\n')}`)
}

function describe({ pid, control, addresses, config }: RunRecord): string {
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
  const socket = await open(await findControl(options))
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
      else if (message.error !== undefined) throw new ControlFailure(message.error.message, message.error.data)
      else return message.result
    }
    throw new ControlFailure('the bus went away before it answered')
  } finally {
    socket.destroy()
  }
}
