/** MCP clients and servers in the rawest sense, for tests that look at every line on both sides of the bus. */
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import type { Bus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { eventually } from '../support/waiting.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures/mcp/', import.meta.url))
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export const EVERYTHING = `${ROOT}node_modules/@modelcontextprotocol/server-everything/dist/index.js`

export interface McpPool {
  readonly args?: readonly string[]
  readonly instances?: number
  readonly [key: string]: unknown
}

/** A pool of the fixture server `name`. */
export function mcpPool(name: string, { args = [], instances = 1, ...more }: McpPool = {}) {
  return { id: name, command: process.execPath, args: [`${FIXTURES}${name}.mjs`, ...args], instances, ...more }
}

export const PROTOCOL = 'io.modelcontextprotocol/protocolVersion'
export const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
export const LOG_LEVEL = 'io.modelcontextprotocol/logLevel'
export const RELATED_TASK = 'io.modelcontextprotocol/related-task'

/** What every request of the stateless era carries. */
export const MODERN = { [PROTOCOL]: '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }

/** What a client may be asked. */
export const OFFERS = { roots: {}, sampling: {}, elicitation: {} }

export function initializeLine(id: unknown, protocolVersion = '2025-11-25', capabilities: object = OFFERS): Message {
  const clientInfo = { name: 'raw', version: '1' }
  return { jsonrpc: '2.0', id, method: 'initialize', params: { protocolVersion, capabilities, clientInfo } }
}

/** Shakes hands as a client of the handshake era does; gives the result. */
export async function shakeHands(client: LineClient, id: unknown = 0, version?: string): Promise<Message> {
  const { result } = await client.ask(initializeLine(id, version))
  client.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  return result
}

/** `count` clients that have shaken hands. */
export async function greeted(bus: Bus, count: number): Promise<LineClient[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => bus.connect()))
  await Promise.all(clients.map((client) => shakeHands(client)))
  return clients
}

/** A `tools/call` that makes the puppet write `say`. */
export function call(id: unknown, say: readonly (string | object)[] | undefined, meta?: object): Message {
  const lines = say?.map((line) => (typeof line === 'string' ? line : JSON.stringify({ jsonrpc: '2.0', ...line })))
  const params = { name: 'tool', ...(lines && { say: lines }), ...(meta && { _meta: meta }) }
  return { jsonrpc: '2.0', id, method: 'tools/call', params }
}

/** The line that answers the call it stands in. */
export const DONE = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'

/** What the puppet has read so far, parsed. */
export function heard(bus: Bus): Message[] {
  return bus.workspace.lines('heard').map((line) => JSON.parse(line))
}

/** The first message, now or later, that the puppet read and that satisfies `test`. */
export function hears(bus: Bus, what: string, test: (message: Message) => boolean): Promise<Message> {
  return eventually(`the worker to read ${what}`, () => heard(bus).find(test))
}

/** The number of messages with `method` that the puppet has read. */
export function timesHeard(bus: Bus, method: string): number {
  return heard(bus).filter((message) => message.method === method).length
}

/** Everything sent so far has been through the bus and the worker: the answer to one more request is back. */
export async function settled(...clients: LineClient[]): Promise<void> {
  for (const client of clients) await client.ask(call('settled', undefined))
}

/** How often something was dropped for `reason`. */
export async function dropped(bus: Bus, reason: string): Promise<number> {
  return (await bus.status()).dropped[reason] ?? 0
}

/** The lines a client has got that are not answers. */
export function unasked(client: LineClient): Message[] {
  return client.lines.map((line) => JSON.parse(line.toString())).filter(({ method }) => method !== undefined)
}

export function expectRefusal(answer: Message, reason: string): void {
  expect(answer).toMatchObject({ error: { data: { reason } } })
}
