/** The launcher as a process of its own or behind a bus, with small agents that are commands of this machine. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { currentPlatform } from '../../src/registry/platform.ts'
import { busCommand, busEnv } from '../support/bus.ts'
import { LineClient, type Message } from '../support/line-client.ts'
import type { Workspace } from '../support/workspace.ts'

const AGENT = fileURLToPath(new URL('registry-worker-agent.mjs', import.meta.url))
const STUBBORN = fileURLToPath(new URL('../fixtures/registry/stubborn-agent.mjs', import.meta.url))
const HERE = currentPlatform()!

export const SECRET = 'sk-in-no-message-log-or-status'

export function entry(id: string, distribution: object) {
  return { id, name: `Agent ${id}`, version: '1.0.0', description: id, distribution }
}

function command(...args: string[]) {
  return { binary: { [HERE]: { cmd: process.execPath, args } } }
}

/** The agents of most tests; those whose names end with `+` can close sessions. */
export function writeAgents(workspace: Workspace, names: readonly string[], more: readonly object[] = []): string {
  const own = names.map((name) => entry(name.replace('+', ''), agentCommand(name)))
  const agents = [...own, entry('stubborn', command(STUBBORN)), ...more]
  return workspace.write('agents.json', { version: '1.0.0', agents })
}

function agentCommand(name: string): object {
  return name.endsWith('+') ? command(AGENT, name.slice(0, -1), 'close') : command(AGENT, name)
}

export function writeCredentials(workspace: Workspace, id: string, mode = 0o600): string {
  const keys = { version: '1.0.0', agents: { [id]: { apiKey: SECRET, apiKeyEnv: 'AGENT_KEY' } } }
  const file = workspace.write('credentials.json', keys)
  chmodSync(file, mode)
  return file
}

export interface Launcher {
  readonly child: ChildProcess
  readonly client: LineClient
  readonly exit: Promise<number | null>
  stderr(): string
}

/** `stdio-bus agent registry` with the agents file as its index too: nothing is fetched. */
export function startLauncher(workspace: Workspace, args: readonly string[] = [], env = {}): Launcher {
  const [program, first] = busCommand()
  const files = ['--index', workspace.path('agents.json'), '--agents', workspace.path('agents.json')]
  const child = spawn(program, [...first, 'agent', 'registry', ...files, ...args], {
    cwd: workspace.folder,
    env: busEnv(workspace, env),
    stdio: 'pipe',
  })
  workspace.owns(child.pid)
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const exit = once(child, 'exit').then(([code]) => code as number | null)
  return { child, client: new LineClient(child.stdout, child.stdin), exit, stderr: () => stderr }
}

let ids = 0

/** Asks and gives the answer. */
export function ask(client: LineClient, method: string, params: object, more: object = {}): Promise<Message> {
  return client.ask({ jsonrpc: '2.0', id: ++ids, method, params, ...more }, 10_000)
}

export async function newSession(client: LineClient, agentId: string): Promise<string> {
  const { result, error } = await ask(client, 'session/new', { cwd: '/', mcpServers: [] }, { agentId })
  if (error !== undefined) throw new Error(JSON.stringify(error))
  return result.sessionId
}

/** The text that the agent says in the turn; the answer must follow it. */
export async function prompt(client: LineClient, sessionId: string, text: string): Promise<string> {
  const id = ++ids
  client.send({ jsonrpc: '2.0', id, method: 'session/prompt', params: turn(sessionId, text) })
  const said = await client.next(10_000)
  const answer = await client.next(10_000)
  if (answer.id !== id || said.params?.sessionId !== sessionId) throw new Error(JSON.stringify([said, answer]))
  return said.params.update.content.text
}

export function turn(sessionId: string, text: string) {
  return { sessionId, prompt: [{ type: 'text', text }] }
}

/** What the agent says of itself; it is started if it does not run. */
export async function self(client: LineClient, agentId: string): Promise<{ pid: number; hellos: number }> {
  return (await ask(client, '_test/self', {}, { agentId })).result
}
