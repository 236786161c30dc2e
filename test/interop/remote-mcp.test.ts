/** Clause 11 with official peers: servers of both SDKs over HTTP behind a bus, clients of both SDKs at its door. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Client as ClientV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startShim } from '../e2e/connect-harness.ts'
import { freePort } from '../e2e/remote-harness.ts'
import { type Bus, startBus, testWorkspace } from '../support/bus.ts'
import { eventually } from '../support/waiting.ts'
import { EVERYTHING, initializeLine } from './mcp-peers.ts'
import { SocketTransport } from './socket-transport.ts'

const MODERN_SERVER = fileURLToPath(new URL('../fixtures/mcp/http-server.mjs', import.meta.url))
const INFO = { name: 'interop', version: '1.0.0' }

function startServer(args: readonly string[], port: number): ChildProcess {
  return spawn(process.execPath, args, { env: { ...process.env, PORT: String(port) }, stdio: 'ignore' })
}

async function untilServed(port: number): Promise<void> {
  await eventually(
    'the server to listen',
    async () => {
      try {
        await fetch(`http://127.0.0.1:${port}/mcp`)
        return true
      } catch {
        return false
      }
    },
    30_000,
  )
}

interface Upstream {
  url: string
  port: number
  restart(): Promise<void>
}

/** A server as a process, for all tests of a `describe`. */
function upstream(args: readonly string[]): Upstream {
  const it: Upstream = { url: '', port: 0, restart: async () => {} }
  let child: ChildProcess | undefined
  beforeAll(async () => {
    it.port = await freePort()
    it.url = `http://127.0.0.1:${it.port}/mcp`
    child = startServer(args, it.port)
    it.restart = async () => {
      const gone = new Promise((resolve) => child!.once('exit', resolve))
      child!.kill('SIGKILL')
      await gone
      child = startServer(args, it.port)
      await untilServed(it.port)
    }
    await untilServed(it.port)
  }, 40_000)
  afterAll(() => void child?.kill('SIGKILL'))
  return it
}

async function clientAt(bus: Bus, client: ClientV1 | ClientV2): Promise<SocketTransport> {
  const transport = new SocketTransport(bus)
  await client.connect(transport as never)
  onTestFinished(() => client.close())
  return transport
}

const v1 = (capabilities = {}): ClientV1 => new ClientV1(INFO, { capabilities })
const v2 = (mode: 'auto' | 'legacy' = 'auto'): ClientV2 => new ClientV2(INFO, { versionNegotiation: { mode } } as never)

describe('server-everything over Streamable HTTP', () => {
  const server = upstream([EVERYTHING, 'streamableHttp'])
  const near = (more: object = {}) => startBus({ config: { pools: [{ id: 'far', url: server.url, ...more }] } })

  test.each([
    ['1.32', v1, [undefined]],
    ['2.4', v2, []],
  ])('a client of SDK %s calls, gets progress and lists', async (_version, make, schema) => {
    verifies('11.1-http')
    const bus = await near()
    const client = make() as ClientV1
    await clientAt(bus, client)
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo')
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'hallo ü' } })
    expect(content).toEqual([{ type: 'text', text: 'Echo: hallo ü' }])
    const progress: number[] = []
    const onprogress = ({ progress: at }: { progress: number }) => void progress.push(at)
    const long = { name: 'trigger-long-running-operation', arguments: { duration: 1, steps: 3 } }
    // Between the call and its options the older generation has the schema of the result.
    await client.callTool(...([long, ...schema, { onprogress }] as unknown as [typeof long]))
    expect(progress).toEqual([1, 2, 3])
    const { resources } = await client.listResources()
    expect((await client.readResource({ uri: resources[0]!.uri })).contents).toHaveLength(1)
  })

  test('twenty clients share one session, and every answer finds its client', async () => {
    verifies('11.1-http')
    const bus = await near()
    const clients = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const client = v1()
        await clientAt(bus, client)
        return client
      }),
    )
    const texts = await Promise.all(
      clients.flatMap((client, index) =>
        Array.from({ length: 5 }, async (_, n) => {
          const message = `client ${index}, call ${n}`
          const { content } = await client.callTool({ name: 'echo', arguments: { message } })
          return [(content as { text: string }[])[0]!.text, `Echo: ${message}`]
        }),
      ),
    )
    for (const [heard, meant] of texts) expect(heard).toBe(meant)
    expect((await bus.status()).workers).toHaveLength(1)
  })

  test('isolated: the server asks its client, over its own stream', async () => {
    verifies('11.1-isolated')
    const bus = await near({ sharing: 'isolated' })
    const client = v1({ sampling: {} })
    client.setRequestHandler(CreateMessageRequestSchema, async () => ({
      model: 'm',
      role: 'assistant',
      content: { type: 'text', text: 'sampled' },
    }))
    await clientAt(bus, client)
    const result = await client.callTool({
      name: 'trigger-sampling-request',
      arguments: { prompt: 'p', maxTokens: 10 },
    })
    expect(JSON.stringify(result.content)).toContain('sampled')
  })

  test('a server that was restarted has lost the session, and clients do not notice', async () => {
    verifies('11.3-lost-session')
    const bus = await near()
    const client = v1()
    await clientAt(bus, client)
    const echo = (message: string) => client.callTool({ name: 'echo', arguments: { message } })
    await echo('before')
    await server.restart()
    expect((await echo('after')).content).toEqual([{ type: 'text', text: 'Echo: after' }])
    expect((await bus.status()).workers[0]).toMatchObject({ generation: 1 })
  })

  test('connect --url: a host that only speaks stdio', async () => {
    verifies('11-connect-url')
    const workspace = testWorkspace()
    const { host, ended, child, said } = startShim(workspace, '--url', server.url)
    const welcome = await host.ask(initializeLine(0, '2025-06-18'))
    expect(welcome.result.protocolVersion).toBe('2025-06-18')
    host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { message: 'x' } } }
    expect((await host.ask(call)).result.content).toEqual([{ type: 'text', text: 'Echo: x' }])
    child.stdin!.end()
    expect((await ended()).code).toBe(0)
    expect(await said).toBe('')
  })
})

describe('a server of SDK 2.4, both eras', () => {
  const server = upstream([MODERN_SERVER])
  const near = (more: object = {}) => startBus({ config: { pools: [{ id: 'far', url: server.url, ...more }] } })

  test('a client of SDK 2.4 uses it without a handshake', async () => {
    verifies('11.1-http', '11.3-stateless-headers')
    const bus = await near({ era: 'modern' })
    const client = v2()
    const { sent } = await clientAt(bus, client)
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'süß', region: 'süd' } })
    expect(content).toEqual([{ type: 'text', text: 'echo süß' }])
    expect(sent.map(({ method }) => method)).not.toContain('initialize')
  })

  test('a client of SDK 1.32 uses it with one', async () => {
    verifies('11.1-http')
    const bus = await near({ era: 'legacy' })
    const client = v1()
    await clientAt(bus, client)
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'x' } })
    expect(content).toEqual([{ type: 'text', text: 'echo x' }])
  })

  test('which era it is is found out', async () => {
    const bus = await near()
    const client = v2()
    await clientAt(bus, client)
    expect((await client.callTool({ name: 'echo', arguments: { message: 'y' } })).content).toEqual([
      { type: 'text', text: 'echo y' },
    ])
  })
})
