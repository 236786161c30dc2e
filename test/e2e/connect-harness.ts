/** `stdio-bus connect` as a host runs it: a child on its pipes, with an environment of HOME and PATH and nothing else. */
import { type ChildProcess, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { busCommand } from '../support/bus.ts'
import { LineClient } from '../support/line-client.ts'
import { PATIENCE_MS, within } from '../support/waiting.ts'
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
  const { command, args: words } = connectCommand(...args)
  const child = spawn(command, words, { cwd: workspace.folder, env: strippedEnv(workspace), stdio: 'pipe' })
  workspace.owns(child.pid)
  const exit = new Promise<Ended>((resolve) => child.once('close', (code, signal) => resolve({ code, signal })))
  return {
    child,
    host: new LineClient(child.stdout, child.stdin),
    said: text(child.stderr),
    ended: (timeoutMs = PATIENCE_MS) => within(timeoutMs, 'connect to end', exit),
  }
}
