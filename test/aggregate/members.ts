/** Aggregates of fixture members, for tests that look at every line on both sides. */
import { fileURLToPath } from 'node:url'
import { PROTOCOL, shakeHands } from '../interop/mcp-peers.ts'
import type { Bus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { eventually } from '../support/waiting.ts'

const MEMBER = fileURLToPath(new URL('../fixtures/aggregate/member.mjs', import.meta.url))

export interface MemberOptions {
  readonly name: string
  readonly tools?: readonly (string | object)[]
  readonly [option: string]: unknown
}

/** A pool of the fixture member; `pool` are keys of the pool, the rest tells the program what it is. */
export function member(options: MemberOptions, pool: object = {}) {
  return { id: options.name, command: process.execPath, args: [MEMBER, JSON.stringify(options)], ...pool }
}

export const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more })
export const tools = (...names: string[]) => names.map((name) => tool(name))

/** A configuration of an aggregate `all` of these pools, which is the default. */
export function aggregateOf(pools: readonly { id: string }[], aggregate: object = {}, more: object = {}) {
  const members = pools.map(({ id }) => id)
  return { pools: [...pools, { id: 'all', members, ...aggregate }], default_pool: 'all', ...more }
}

/** A client of the aggregate that has shaken hands. */
export async function guest(bus: Bus, capabilities?: object): Promise<LineClient> {
  const client = await bus.connect()
  if (capabilities === undefined) await shakeHands(client)
  else {
    const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'raw', version: '1' } }
    await client.ask({ jsonrpc: '2.0', id: 0, method: 'initialize', params })
    client.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }
  return client
}

let lastId = 100

export function ask(client: LineClient, method: string, params: object = {}): Promise<Message> {
  return client.ask({ jsonrpc: '2.0', id: ++lastId, method, params })
}

export function callTool(client: LineClient, name: string, args: object = {}, more: object = {}): Promise<Message> {
  return ask(client, 'tools/call', { name, arguments: args, ...more })
}

/** What every request of the stateless era carries. */
export const META = { _meta: { [PROTOCOL]: '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} } }

export async function toolNames(client: LineClient, more: object = {}): Promise<string[]> {
  const { result } = await ask(client, 'tools/list', more)
  return result.tools.map(({ name }: { name: string }) => name)
}

/** What a member has read so far. */
export function heardBy(bus: Bus, name: string): Message[] {
  return bus.workspace.lines(`heard-${name}`).map((line) => JSON.parse(line))
}

export function hearsOf(bus: Bus, name: string, what: string, test: (message: Message) => boolean): Promise<Message> {
  return eventually(`${name} to read ${what}`, () => heardBy(bus, name).find(test))
}

/** Every member of the aggregate has been listed. */
export function allListed(bus: Bus): Promise<unknown> {
  return bus.statusWhere('all members are listed', (status) => {
    const { aggregates } = status as unknown as { aggregates: { missing: string[] }[] }
    return aggregates.every(({ missing }) => missing.length === 0)
  })
}
