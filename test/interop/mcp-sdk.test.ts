/** The official MCP SDKs, both generations and both eras, as clients and as servers, through the daemon. */
import { fileURLToPath } from 'node:url'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { LoggingMessageNotificationSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { eventually } from '../support/waiting.ts'
import { EVERYTHING, mcpPool } from './mcp-peers.ts'
import { type Era, INFO, join } from './sdk-guests.ts'
import { SocketTransport } from './socket-transport.ts'

const textOf = (result: Message): string => result.content[0].text
const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/aio/${name}`, import.meta.url))
const server = (name: string, more = {}) =>
  config({ id: 'mcp', command: process.execPath, args: [fixture(name)], ...more })

describe.each([
  { title: 'SDK 1.32 server', file: 'mcp-server-v1.mjs', more: {}, eras: ['v1', 'v2 legacy', 'v2 modern'] as Era[] },
  {
    title: 'SDK 2.4 server, handshake era',
    file: 'mcp-server-v2.mjs',
    more: { era: 'legacy' },
    eras: ['v1', 'v2 legacy', 'v2 modern'] as Era[],
  },
  {
    title: 'SDK 2.4 server, stateless era',
    file: 'mcp-server-v2.mjs',
    more: { era: 'modern', protocol: 'mcp' },
    eras: ['v2 modern', 'v2 modern'] as Era[],
  },
])('$title', ({ file, more, eras }) => {
  const bus = sharedBus({ config: server(file, more) })

  test(`serves ${eras.join(', ')} clients at once, each its own answers`, async () => {
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
  const bus = sharedBus({
    config: config({ id: 'everything', command: process.execPath, args: [EVERYTHING], protocol: 'mcp' }),
  })

  test('three generations of clients: tools, prompts, resources, completion', async () => {
    const guests = await Promise.all((['v1', 'v2 legacy', 'v2 modern'] as const).map((era) => join(bus(), era)))
    await Promise.all(
      guests.map(async ({ client, complaints }, n) => {
        expect(textOf(await client.callTool({ name: 'echo', arguments: { message: `from ${n}` } }))).toBe(
          `Echo: from ${n}`,
        )
        expect((await client.listPrompts()).prompts.length).toBeGreaterThan(0)
        const { resources } = await client.listResources()
        expect((await client.readResource({ uri: resources[0].uri })).contents).toHaveLength(1)
        expect(complaints).toEqual([])
      }),
    )
  })

  test('progress reaches whoever asked, with the tokens the SDKs choose alike', async () => {
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
    const [one, other] = await Promise.all([join(bus(), 'v1'), join(bus(), 'v1')])
    const abort = new AbortController()
    const call = { name: 'trigger-long-running-operation', arguments: { duration: 5, steps: 5 } }
    const cancelled = one.client.callTool(call, undefined, { signal: abort.signal })
    setTimeout(() => abort.abort(new Error('enough')), 100)
    await expect(cancelled).rejects.toThrow(/enough/)
    expect(textOf(await other.client.callTool({ name: 'echo', arguments: { message: 'x' } }))).toBe('Echo: x')
    await bus().statusWhere('nothing is owed', ({ outstanding }) => outstanding === 0)
  })

  test('a shared server is offered no sampling, so that its tools do not count on it', async () => {
    const { client } = await join(bus(), 'v1', { sampling: {}, elicitation: {}, roots: {} })
    const names = (await client.listTools()).tools.map(({ name }: { name: string }) => name)
    expect(names).toContain('echo')
    expect(names).not.toContain('trigger-sampling-request')
  })
})

describe('server-everything, a worker for each client', () => {
  test('sampling, elicitation and roots pass through; log lines and subscriptions reach their client', async () => {
    const pool = { id: 'everything', command: process.execPath, args: [EVERYTHING], sharing: 'isolated', instances: 2 }
    const bus = await startBus({ config: config(pool) })
    const { CreateMessageRequestSchema, ListRootsRequestSchema } = await import('@modelcontextprotocol/sdk/types.js')
    const guests = await Promise.all(
      [0, 1].map(async (n) => {
        const transport = new SocketTransport(bus)
        const client = new ClientV1(INFO, { capabilities: { sampling: {}, roots: {} } })
        client.setRequestHandler(CreateMessageRequestSchema, () => ({
          model: 'm',
          role: 'assistant' as const,
          content: { type: 'text' as const, text: `sample ${n}` },
        }))
        client.setRequestHandler(ListRootsRequestSchema, () => ({
          roots: [{ uri: `file:///home/${n}`, name: `${n}` }],
        }))
        const notes: string[] = []
        client.setNotificationHandler(LoggingMessageNotificationSchema, () => void notes.push('log'))
        client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => void notes.push('updated'))
        onTestFinished(() => client.close())
        await client.connect(transport)
        return { client, notes }
      }),
    )
    await eventually('the tools that need sampling', async () => {
      const { tools } = await guests[0]!.client.listTools()
      return tools.some(({ name }) => name === 'trigger-sampling-request')
    })
    for (const [n, { client }] of guests.entries()) {
      const result = await client.callTool({
        name: 'trigger-sampling-request',
        arguments: { prompt: 'p', maxTokens: 5 },
      })
      expect(JSON.stringify(result)).toContain(`sample ${n}`)
    }
  })
})

describe('a worker killed in the middle', () => {
  test('every call in flight fails once, then all goes on without the client doing anything', async () => {
    verifies('M24-exited')
    const pool = { id: 'everything', command: process.execPath, args: [EVERYTHING], protocol: 'mcp' }
    const bus = await startBus({ config: config(pool) })
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
    await Promise.all(
      guests.map(async ({ client, complaints, transport }, n) => {
        expect(textOf(await client.callTool({ name: 'echo', arguments: { message: `again ${n}` } }))).toBe(
          `Echo: again ${n}`,
        )
        expect(complaints).toEqual([])
        expect(transport.sent.filter(({ method }) => method === 'initialize')).toHaveLength(1)
        expect(transport.received.filter(({ error }) => error?.data?.reason === 'worker_exited')).toHaveLength(1)
      }),
    )
  })
})

describe('an era that the server does not know', () => {
  test('a modern client falls back to the handshake, on a pool nobody has told anything', async () => {
    const bus = await startBus({ config: config(mcpPool('puppet')) })
    const { client } = await join(bus, 'v2 modern')
    expect(client.getServerVersion()).toMatchObject({ name: 'puppet' })
  })
})
