/**
 * The line to the agent: a child on its pipes, or a connection to a running bus.
 *
 * A child runs in its own process group, because Ctrl-C is for the turn and not for the agent.
 * Invariant: after `close` the child and its group are gone.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { ndJsonStream, type Stream } from '@agentclientprotocol/sdk'
import { dial, showAddress } from '../../client/address.ts'
import { BusConnection } from '../../client/connection.ts'
import { BusError } from '../../client/errors.ts'
import { DiagnosticLines } from '../../process/diagnostics.ts'
import { ChatFailure, poolMistake } from './failure.ts'
import type { Target } from './target.ts'

export interface Connection {
  readonly stream: Stream
  /** Why the other side has gone, once it has. */
  lostReason(): string
  close(): Promise<void>
}

/** `tell` hears the lines that a child writes for people, made printable. */
export function openConnection(target: Target, tell: (line: string) => void): Promise<Connection> {
  return target.kind === 'child' ? openChild(target, tell) : openBus(target)
}

/** The agent's own way out is the end of its input; then it is told, then made to. */
const stopMs = { term: 1_500, kill: 3_000 }

async function openChild(
  target: Extract<Target, { kind: 'child' }>,
  tell: (line: string) => void,
): Promise<Connection> {
  const child = spawn(target.command, target.args, { stdio: 'pipe', detached: true })
  const diagnostics = new DiagnosticLines(tell)
  child.stderr.on('data', (chunk: Buffer) => diagnostics.push(chunk)).on('end', () => diagnostics.end())
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

/** A bus that goes is not looked for: the session would be gone with it. */
async function openBus({ address, pool, token }: Extract<Target, { kind: 'bus' }>): Promise<Connection> {
  const bus = new BusConnection({ dial: () => dial(address), pool, token, reconnectTimeoutMs: 0 }, {})
  await bus.open().catch((error: unknown) => {
    if (!(error instanceof BusError)) throw error
    const mistake = poolMistake(error)
    if (mistake !== undefined) throw mistake
    const advice = error.code === 'bus_unavailable' ? '; start one with "stdio-bus start"' : ''
    throw new ChatFailure(`${error.message}${advice}`, { cause: error })
  })
  return {
    stream: bus.acp(),
    lostReason: () => `the bus at ${showAddress(address)} closed the connection`,
    close: () => bus.close(),
  }
}

function toStream(output: Writable, input: Readable): Stream {
  const bytes = Readable.toWeb(input) as unknown as ReadableStream<Uint8Array>
  return ndJsonStream(Writable.toWeb(output) as unknown as WritableStream<Uint8Array>, bytes)
}
