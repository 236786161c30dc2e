/** The official MCP SDKs of both generations over HTTP, in both eras, as they are. */
import { fileURLToPath } from 'node:url'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { eventually } from '../support/waiting.ts'
import { EVERYTHING } from './mcp-peers.ts'

const INFO = { name: 'interop', version: '1.0.0' }
type Era = 'v1' | 'v2 legacy' | 'v2 modern'
interface Guest {
  readonly client: Message
  readonly transport: Message
  readonly complaints: string[]
}

async function join(
  bus: Bus,
  era: Era,
  more: { path?: string; capabilities?: object; prepare?: (client: Message) => void } = {},
): Promise<Guest> {
  const { path = '/mcp', capabilities = {}, prepare } = more
  const url = new URL(bus.url(path))
  const transport: Message = era === 'v1' ? new TransportV1(url) : new TransportV2(url)
  const negotiation = era === 'v2 modern' ? { versionNegotiation: { mode: 'auto' as const } } : {}
  const client: Message =
    era === 'v1' ? new ClientV1(INFO, { capabilities }) : new ClientV2(INFO, { capabilities, ...negotiation })
  const complaints: string[] = []
  client.onerror = (error: Error) => complaints.push(error.message)
  prepare?.(client)
  onTestFinished(() => client.close())
  await client.connect(transport)
  return { client, transport, complaints }
}

const textOf = (result: Message): string => result.content[0].text
const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/aio/${name}`, import.meta.url))
const server = (name: string, more = {}) =>
  config({ id: 'mcp', command: process.execPath, args: [fixture(name)], ...more })
const everything = (more = {}) =>
  config({ id: 'everything', command: process.execPath, args: [EVERYTHING], protocol: 'mcp', ...more })

describe.each([
  { title: 'SDK 1.32 server', file: 'mcp-server-v1.mjs', more: {}, eras: ['v1', 'v2 legacy', 'v2 modern'] as Era[] },
  {
    title: 'SDK 2.4 server, stateless era, two instances',
    file: 'mcp-server-v2.mjs',
    more: { era: 'modern', protocol: 'mcp', instances: 2 },
    eras: ['v2 modern', 'v2 modern'] as Era[],
  },
  {
    title: 'SDK 2.4 server, stateless era, isolated',
    file: 'mcp-server-v2.mjs',
    more: { protocol: 'mcp', sharing: 'isolated', instances: 0 },
    eras: ['v2 modern', 'v2 modern'] as Era[],
  },
])('$title', ({ file, more, eras }) => {
  const bus = sharedBus({ config: server(file, more), doors: ['http'] })

  test(`serves ${eras.join(', ')} clients at once, each its own answers`, async () => {
    verifies('10.6-era', '10.8-json')
    const guests = await Promise.all([...eras, ...eras].map((era) => join(bus(), era)))
    await Promise.all(
      guests.flatMap(({ client }, n) =>
        Array.from({ length: 10 }, async (_, k) => {
          const result = await client.callTool({ name: 'calculate_area', arguments: { x: n + 1, y: k + 1 } })
          expect(result.structuredContent).toEqual({ area: (n + 1) * (k + 1) })
        }),
      ),
    )
    for (const { client, complaints } of guests) {
      expect((await client.listTools()).tools.length).toBeGreaterThan(2)
      expect(complaints).toEqual([])
    }
  })
})

describe('server-everything on one shared worker', () => {
  const bus = sharedBus({ config: everything(), doors: ['http'] })

  test('three generations of clients: tools, prompts, resources', async () => {
    const guests = await Promise.all((['v1', 'v2 legacy', 'v2 modern'] as const).map((era) => join(bus(), era)))
    await Promise.all(
      guests.map(async ({ client, complaints }, n) => {
        const result = await client.callTool({ name: 'echo', arguments: { message: `from ${n}` } })
        expect(textOf(result)).toBe(`Echo: from ${n}`)
        expect((await client.listPrompts()).prompts.length).toBeGreaterThan(0)
        const { resources } = await client.listResources()
        expect((await client.readResource({ uri: resources[0].uri })).contents).toHaveLength(1)
        expect(complaints).toEqual([])
      }),
    )
  })

  test('progress reaches whoever asked, on the stream of its request', async () => {
    verifies('10.9-progress')
    const guests = await Promise.all((['v1', 'v1', 'v2 legacy'] as const).map((era) => join(bus(), era)))
    const seen = guests.map(() => [] as number[])
    await Promise.all(
      guests.map(({ client }, n) => {
        const call = { name: 'trigger-long-running-operation', arguments: { duration: 0.4, steps: n + 2 } }
        const options = { onprogress: ({ progress }: { progress: number }) => seen[n]!.push(progress) }
        return n === 2 ? client.callTool(call, options) : client.callTool(call, undefined, options)
      }),
    )
    expect(seen).toEqual([
      [1, 2],
      [1, 2, 3],
      [1, 2, 3, 4],
    ])
    expect(guests.flatMap(({ complaints }) => complaints)).toEqual([])
  })

  test('a cancelled call ends at the client, and the next one works', async () => {
    const { client } = await join(bus(), 'v1')
    const abort = new AbortController()
    const call = { name: 'trigger-long-running-operation', arguments: { duration: 5, steps: 5 } }
    const cancelled = client.callTool(call, undefined, { signal: abort.signal })
    setTimeout(() => abort.abort(new Error('enough')), 100)
    await expect(cancelled).rejects.toThrow(/enough/)
    expect(textOf(await client.callTool({ name: 'echo', arguments: { message: 'x' } }))).toBe('Echo: x')
    await bus().statusWhere('nothing is owed', ({ outstanding }) => outstanding === 0)
  })

  test('a session ends by the word of its client', async () => {
    verifies('10.7-delete')
    const { client, transport } = await join(bus(), 'v1')
    const before = await bus().status()
    await transport.terminateSession()
    await bus().statusWhere('one client less', ({ clients }) => clients === before.clients - 1)
    await client.close()
  })
})

test.each(['v1', 'v2 legacy'] as const)('%s: questions of an isolated server reach their client', async (era) => {
  verifies('10.9-question')
  const bus = await startBus({ config: everything({ sharing: 'isolated', instances: 0 }), doors: ['http'] })
  const prepare = (client: Message): void => {
    const sample = () => ({ model: 'm', role: 'assistant', content: { type: 'text', text: 'sampled' } })
    const elicit = () => ({ action: 'accept', content: {} })
    client.setRequestHandler(era === 'v1' ? CreateMessageRequestSchema : 'sampling/createMessage', sample)
    client.setRequestHandler(era === 'v1' ? ElicitRequestSchema : 'elicitation/create', elicit)
  }
  const { client, complaints } = await join(bus, era, { capabilities: { sampling: {}, elicitation: {} }, prepare })
  await eventually('the tools that need sampling', async () => {
    const { tools } = await client.listTools()
    return tools.some(({ name }: { name: string }) => name === 'trigger-sampling-request')
  })
  const sampled = await client.callTool({
    name: 'trigger-sampling-request',
    arguments: { prompt: 'p', maxTokens: 5 },
  })
  expect(JSON.stringify(sampled)).toContain('sampled')
  expect(complaints).toEqual([])
})

test('list changes come on the GET stream that the SDK opens', async () => {
  verifies('10.9-changes')
  const bus = await startBus({ config: everything({ sharing: 'isolated', instances: 0 }), doors: ['http'] })
  let changes = 0
  const prepare = (client: Message): void =>
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++)
  await join(bus, 'v1', { capabilities: { sampling: {} }, prepare })
  await eventually('a list change', () => changes > 0)
})

test('a worker killed in the middle: every call fails once on its own stream, sessions live on', async () => {
  verifies('10.17-worker')
  const bus = await startBus({ config: everything(), doors: ['http'] })
  const guests = await Promise.all((['v1', 'v2 legacy', 'v2 modern'] as const).map((era) => join(bus, era)))
  const call = { name: 'trigger-long-running-operation', arguments: { duration: 30, steps: 1 } }
  const calls = guests.map(({ client }) =>
    client.callTool(call).then(
      () => 'answered',
      (error: Message) => error,
    ),
  )
  await bus.statusWhere('three are in flight', ({ outstanding }) => outstanding === 3)
  process.kill((await bus.status()).workers[0]!.pid, 'SIGKILL')
  for (const error of await Promise.all(calls))
    expect(error).toMatchObject({ code: -32603, data: { reason: 'worker_exited' } })
  for (const [n, { client, complaints }] of guests.entries()) {
    const result = await client.callTool({ name: 'echo', arguments: { message: `again ${n}` } })
    expect(textOf(result)).toBe(`Echo: again ${n}`)
    expect(complaints).toEqual([])
  }
})
