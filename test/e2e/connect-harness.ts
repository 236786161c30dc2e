/** `stdio-bus connect` as a host runs it: a child on its pipes, with an environment of HOME and PATH and nothing else. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { busCommand } from '../support/bus.ts'
import { LineClient } from '../support/line-client.ts'
import { eventually, PATIENCE_MS, within } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface Shim {
  readonly child: ChildProcess
  readonly host: LineClient
  /** All it said to people, once it has ended. */
  readonly said: Promise<string>
  /** It has seen that its bus is gone: what it is asked from now on waits for the next one. */
  hasLostBus(): Promise<unknown>
  /** How it ended. */
  ended(timeoutMs?: number): Promise<Ended>
}

/** The command line a host would be given. */
export function connectCommand(...args: string[]): { command: string; args: string[] } {
  const [command, first] = busCommand()
  return { command, args: [...first, 'connect', ...args] }
}

export function strippedEnv(workspace: Workspace): Record<string, string> {
  return { HOME: workspace.home, PATH: process.env['PATH'] ?? '' }
}

export function startShim(workspace: Workspace, ...args: string[]): Shim {
  return startShimWith(workspace, {}, ...args)
}

/** The same, with more in its environment. */
export function startShimWith(workspace: Workspace, extra: Record<string, string>, ...args: string[]): Shim {
  const { command, args: words } = connectCommand(...args)
  const env = { ...strippedEnv(workspace), ...extra }
  const child = spawn(command, words, { cwd: workspace.folder, env, stdio: 'pipe' })
  workspace.owns(child.pid)
  const exit = new Promise<Ended>((resolve) => child.once('close', (code, signal) => resolve({ code, signal })))
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    said += part
  })
  return {
    child,
    host: new LineClient(child.stdout, child.stdin),
    said: once(child.stderr, 'close').then(() => said),
    hasLostBus: () => eventually('connect to miss its bus', () => said.includes('the bus has gone')),
    ended: (timeoutMs = PATIENCE_MS) => within(timeoutMs, 'connect to end', exit),
  }
}
