/**
 * The line to the agent: a child on its pipes, or a socket of a running bus.
 *
 * A child runs in its own process group, because Ctrl-C is for the turn and not for the agent.
 * Invariant: after `close` the child and its group are gone.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Duplex, Readable, Writable } from 'node:stream'
import { ndJsonStream, type Stream } from '@agentclientprotocol/sdk'
import { ChatFailure } from './failure.ts'
import type { Target } from './target.ts'

export interface Connection {
  readonly stream: Stream
  /** Why the other side has gone, once it has. */
  lostReason(): string
  close(): Promise<void>
}

export function openConnection(target: Target): Promise<Connection> {
  return target.kind === 'child' ? openChild(target) : openSocket(target)
}

/** The agent's own way out is the end of its input; then it is told, then made to. */
const stopMs = { term: 1_500, kill: 3_000 }

async function openChild(target: Extract<Target, { kind: 'child' }>): Promise<Connection> {
  const child = spawn(target.command, target.args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
  await once(child, 'spawn').catch((error: Error) => {
    throw new ChatFailure(`cannot start ${target.command}: ${error.message}; check the command`, { cause: error })
  })
  // Writing to an agent that has gone is no news: its end is reported.
  child.stdin.on('error', () => {})
  return {
    stream: toStream(child.stdin, child.stdout),
    lostReason: () => `the agent ended (${child.signalCode ?? `exit code ${child.exitCode ?? 'unknown'}`})`,
    close: () => stopChild(child),
  }
}

async function stopChild(child: ChildProcess): Promise<void> {
  child.stdin?.end()
  const timers = [
    setTimeout(() => signalGroup(child, 'SIGTERM'), stopMs.term),
    setTimeout(() => signalGroup(child, 'SIGKILL'), stopMs.kill),
  ]
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  for (const timer of timers) clearTimeout(timer)
  signalGroup(child, 'SIGKILL')
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-child.pid!, signal)
  } catch {
    // Nobody of the group is left.
  }
}

async function openSocket(target: Exclude<Target, { kind: 'child' }>): Promise<Connection> {
  const where = target.kind === 'unix' ? target.path : `${target.host}:${target.port}`
  const socket: Socket = target.kind === 'unix' ? connect(target.path) : connect(target.port, target.host)
  await once(socket, 'connect').catch((error: Error) => {
    throw new ChatFailure(`no bus answers at ${where}: ${error.message}; start one with "stdio-bus serve"`, {
      cause: error,
    })
  })
  socket.on('error', () => {})
  if (target.pool !== undefined) {
    socket.write(`${JSON.stringify({ method: 'bus::open', params: { pool: target.pool } })}\n`)
  }
  return {
    stream: toStream(socket, socket),
    lostReason: () => `the bus at ${where} closed the connection`,
    close: async () => void socket.destroy(),
  }
}

function toStream(output: Writable | Duplex, input: Readable | Duplex): Stream {
  const bytes = Readable.toWeb(input as Readable) as unknown as ReadableStream<Uint8Array>
  return ndJsonStream(Writable.toWeb(output as Writable) as unknown as WritableStream<Uint8Array>, bytes)
}
