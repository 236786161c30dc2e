/** ACP clients on the official SDK, each on a connection of its own to the bus, and the deterministic agent behind it. */

import { connect } from 'node:net'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import * as acp from '@agentclientprotocol/sdk/unstable'
import { onTestFinished } from 'vitest'
import type { Bus } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'
import { eventually } from '../support/waiting.ts'

const AGENT = fileURLToPath(new URL('../fixtures/acp/agent.mjs', import.meta.url))

/** A pool of the deterministic agent. */
export function acpPool({ args = [], ...more }: { args?: readonly string[]; [key: string]: unknown } = {}) {
  return { id: 'agent', command: process.execPath, args: [AGENT, ...args], instances: 1, ...more }
}

const RAW = fileURLToPath(new URL('../fixtures/acp/raw.mjs', import.meta.url))

/** A pool of the agent without an SDK; see there for its arguments. */
export function rawPool({ args = [], ...more }: { args?: readonly string[]; [key: string]: unknown } = {}) {
  return { id: 'agent', command: process.execPath, args: [RAW, ...args], instances: 1, ...more }
}

const { agent: A, client: C } = acp.methods

export type Ask = (method: string, params: Message) => unknown

/** What a client answers to the agent unless a test says otherwise. */
const ANSWERS: Record<string, (params: Message) => unknown> = {
  [C.session.requestPermission]: () => ({ outcome: { outcome: 'selected', optionId: 'yes' } }),
  [C.fs.readTextFile]: ({ path }) => ({ content: `content of ${path}` }),
  [C.terminal.create]: () => ({ terminalId: 'term' }),
  [C.terminal.waitForExit]: () => ({ exitCode: 0, signal: null }),
  [C.terminal.output]: () => ({ output: 'out', truncated: false }),
  [C.terminal.release]: () => ({}),
  [C.elicitation.create]: () => ({ action: 'accept', content: { name: 'Ada' } }),
}

export class AcpClient {
  readonly ctx: acp.ClientContext
  readonly updates: { readonly sessionId: string; readonly text: string }[] = []
  /** Every question it was asked, and every notification that is no update. */
  readonly asked: { readonly method: string; readonly params: Message }[] = []
  /** The order in which answers (`new s1`) and updates (`s1: text`) arrived. */
  readonly order: string[] = []
  readonly #connection: acp.ClientConnection
  readonly #close: () => void

  constructor(connection: acp.ClientConnection, close: () => void) {
    this.#connection = connection
    this.ctx = connection.agent
    this.#close = close
  }

  initialize(): Promise<acp.InitializeResponse> {
    return this.ctx.request(A.initialize, {
      protocolVersion: 1,
      clientCapabilities: { fs: { readTextFile: true }, terminal: true },
    })
  }

  async newSession(): Promise<string> {
    const { sessionId } = await this.ctx.request(A.session.new, { cwd: '/', mcpServers: [] })
    this.order.push(`new ${sessionId}`)
    return sessionId
  }

  async prompt(sessionId: string, text: string, signal?: AbortSignal): Promise<string> {
    const params = { sessionId, prompt: [{ type: 'text' as const, text }] }
    const options = signal === undefined ? {} : { cancellationSignal: signal }
    const { stopReason } = await this.ctx.request(A.session.prompt, params, options)
    this.order.push(`${sessionId} ${stopReason}`)
    return stopReason
  }

  load(sessionId: string): Promise<unknown> {
    return this.ctx
      .request(A.session.load, { sessionId, cwd: '/', mcpServers: [] })
      .then(() => this.order.push(`loaded ${sessionId}`))
  }

  resume(sessionId: string): Promise<unknown> {
    return this.ctx.request(A.session.resume, { sessionId, cwd: '/', mcpServers: [] })
  }

  async list(): Promise<string[]> {
    return (await this.ctx.request(A.session.list, {})).sessions.map(({ sessionId }) => sessionId)
  }

  /** All text shown in a session so far. */
  shown(sessionId: string): string {
    return this.updates
      .filter((update) => update.sessionId === sessionId)
      .map(({ text }) => text)
      .join('')
  }

  /** Goes away without a word. */
  leave(): void {
    this.#close()
    this.#connection.close()
  }
}

/** A client that has not initialised yet; `answer` replaces what it says to the agent's questions. */
export async function acpClient(bus: Bus, answer?: Ask): Promise<AcpClient> {
  const socket = connect({ path: bus.addresses[0]!.slice('unix:'.length) })
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  socket.on('error', () => {})
  const stream = acp.ndJsonStream(Writable.toWeb(socket) as never, Readable.toWeb(socket) as never)
  return acpClientOn(stream, () => socket.destroy(), answer)
}

/** The same on any stream of the SDK's. */
export function acpClientOn(
  stream: acp.Stream,
  close: () => void,
  answer: Ask = (method, params) => ANSWERS[method]!(params),
): AcpClient {
  const app = acp.client({ name: 'interop' })
  let me: AcpClient | undefined
  app.onNotification(C.session.update, ({ params }) => {
    const { sessionId, update } = params as Message
    const text = update.content?.text ?? update.sessionUpdate
    me!.updates.push({ sessionId, text })
    me!.order.push(`${sessionId}: ${text}`)
  })
  app.onNotification(
    C.elicitation.complete,
    ({ params }) => void me!.asked.push({ method: C.elicitation.complete, params }),
  )
  for (const method of Object.keys(ANSWERS)) {
    app.onRequest(method as typeof C.session.requestPermission, ({ params }) => {
      me!.asked.push({ method, params })
      return answer(method, params) as never
    })
  }
  me = new AcpClient(app.connect(stream), close)
  onTestFinished(() => me!.leave())
  return me
}

/** `count` clients that have initialised. */
export async function initialised(bus: Bus, count: number, answer?: Ask): Promise<AcpClient[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => acpClient(bus, answer)))
  await Promise.all(clients.map((client) => client.initialize()))
  return clients
}

/** What the agents of this bus have read so far. */
export function heardByAgents(bus: Bus): Message[] {
  return bus.workspace.lines('heard').map((line) => JSON.parse(line))
}

export function agentHears(bus: Bus, what: string, test: (message: Message) => boolean): Promise<Message> {
  return eventually(`an agent to read ${what}`, () => heardByAgents(bus).find(test))
}

/** The error of a request that must fail. */
export async function errorOf(promise: Promise<unknown>): Promise<Message> {
  return promise.then(
    () => {
      throw new Error('it succeeded')
    },
    (error) => error,
  )
}
