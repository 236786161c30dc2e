/** `stdio-bus/client` with the real daemon and the real SDKs: `@agentclientprotocol/sdk`, both generations of MCP. */
import {
  type AnyMessage,
  client as acpClient,
  type ContentBlock,
  methods,
  PROTOCOL_VERSION,
} from '@agentclientprotocol/sdk'
import { Client as ClientV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { describe, expect, test } from 'vitest'
import {
  BusGone,
  BusRefused,
  BusUnavailable,
  ConnectionClosed,
  type ConnectOptions,
  connect,
  isRetryable,
  reasonOf,
} from '../../src/client/index.ts'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { PATIENCE_MS, within } from '../support/waiting.ts'

const everything = {
  id: 'everything',
  command: process.execPath,
  args: [new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url).pathname],
  instances: 1,
}
const echoAgent = { id: 'agent', agent: 'echo', instances: 1 }
const info = { name: 'test', version: '1' }
const MIB = 1024 * 1024

function at(bus: Bus, options: Omit<ConnectOptions, 'unix'> = {}) {
  return connect({ unix: bus.workspace.path('bus.sock'), ...options })
}

async function nextOf(lines: AsyncGenerator<Buffer>): Promise<{ id: unknown; result?: unknown; error?: unknown }> {
  const { value, done } = await within(10_000, 'a line', lines.next())
  if (done || value === undefined) throw new Error('closed before the awaited line')
  return JSON.parse(value.toString())
}

describe('the faces', () => {
  const bus = sharedBus({
    config: config([everything, echoAgent, pool('echo'), pool('slow'), pool('big-answers')], {
      max_input_buffer: 6 * MIB,
    }),
    doors: ['unix', 'tcp'],
  })

  test('ACP: a prompt and its updates', async () => {
    const connection = await at(bus(), { pool: 'agent' })
    const said: string[] = []
    const app = acpClient().onNotification(methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text')
        said.push(update.content.text)
    })
    const stopReason = await app.connectWith(connection.acp(), async (agent) => {
      await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION })
      const { sessionId } = await agent.request(methods.agent.session.new, { cwd: '/', mcpServers: [] })
      const prompt: ContentBlock[] = [{ type: 'text', text: 'hello' }]
      return (await agent.request(methods.agent.session.prompt, { sessionId, prompt })).stopReason
    })
    expect(stopReason).toBe('end_turn')
    expect(said.join('')).toContain('hello')
    await connection.close()
    expect(await connection.closed).toBeUndefined()
  })

  test('MCP SDK 1 and 2: two clients, one worker, the same ids', async () => {
    const first = new ClientV1(info)
    const second = new ClientV2(info)
    await first.connect((await at(bus(), { pool: 'everything' })).mcp())
    await second.connect((await at(bus(), { pool: 'everything' })).mcp())
    const call = { name: 'echo', arguments: { message: 'one' } }
    const [one, two] = await Promise.all([
      first.callTool(call),
      second.callTool({ ...call, arguments: { message: 'two' } }),
    ])
    expect(JSON.stringify(one.content)).toContain('one')
    expect(JSON.stringify(two.content)).toContain('two')
    const closed = new Promise<void>((resolve) => (first.onclose = resolve))
    await first.close()
    await within(2_000, 'onclose', closed)
    await second.close()
  })

  test('lines: bytes as they are, over TCP, with 5 MiB in both directions', async () => {
    const tcp = bus()
      .addresses.find((each) => each.startsWith('tcp:'))!
      .slice('tcp:'.length)
    const connection = await connect({ tcp, pool: 'big-answers' })
    const lines = connection.lines()
    await connection.send(JSON.stringify({ id: 1, method: 'x', params: { bytes: 5 * MIB, pad: 'y'.repeat(5 * MIB) } }))
    const { value } = await within(15_000, 'the big line', lines.next())
    expect(value?.length).toBe(5 * MIB)
    await connection.close()
  })

  test('finish waits for what is owed, close does not', async () => {
    const patient = await at(bus(), { pool: 'slow' })
    const lines = patient.lines()
    await patient.send('{"id":1,"method":"x","params":{"ms":200}}')
    await patient.finish()
    expect((await nextOf(lines)).result).toBeDefined()
    expect((await lines.next()).done).toBe(true)

    const hasty = await at(bus(), { pool: 'slow' })
    const rest = hasty.lines()
    await hasty.send('{"id":1,"method":"x","params":{"ms":60000}}')
    await hasty.close()
    expect(reasonOf((await nextOf(rest)).error)).toBe('bus_gone')
    await expect(hasty.send('{"id":2,"method":"x"}')).rejects.toBeInstanceOf(ConnectionClosed)
  })

  test('a connection has one face, and a message one line', async () => {
    const connection = await at(bus(), { pool: 'echo' })
    connection.mcp()
    expect(() => connection.acp()).toThrow(/mcp\(\) already/)
    expect(() => connection.send('{}')).toThrow(/through mcp/)
    const plain = await at(bus(), { pool: 'echo' })
    await expect(plain.send('{"id":1,\n"method":"x"}')).rejects.toThrow(/newline/)
    await Promise.all([connection.close(), plain.close()])
  })

  test('a reader that is slow slows the bus and loses nothing', async () => {
    const connection = await at(bus(), { pool: 'big-answers' })
    const count = 30
    for (let id = 0; id < count; id++)
      await connection.send(JSON.stringify({ id, method: 'x', params: { bytes: MIB } }))
    const lines = connection.lines()
    for (let id = 0; id < count; id++) expect((await nextOf(lines)).id).toBe(id)
    await connection.close()
  })

  test('a pool that is not there: BusRefused with the reason of the bus', async () => {
    const refused = await at(bus(), { pool: 'nobody' }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(BusRefused)
    expect(refused).toMatchObject({ code: 'bus_refused', reason: 'unknown_pool' })
  })

  test('garbage: the error of the bus as a line, then BusRefused', async () => {
    const connection = await at(bus(), { pool: 'echo' })
    const lines = connection.lines()
    await connection.send('garbage')
    expect(reasonOf((await nextOf(lines)).error)).toBe('not_json')
    await expect(lines.next()).rejects.toMatchObject({ name: 'BusRefused', reason: 'not_json' })
    expect(await connection.closed).toBeInstanceOf(BusRefused)
  })

  test('a line that is longer than the program allows: BusRefused', async () => {
    verifies('6.10.6-line')
    const connection = await at(bus(), { pool: 'echo', maxLineBytes: 1_000 })
    void connection.send(`{"id":1,"method":"x","params":"${'y'.repeat(1_000)}"}`)
    expect(await connection.closed).toMatchObject({ reason: 'message_too_large' })
  })
})

describe('the bus goes', () => {
  const pools = [everything, pool('slow')]

  async function restartable() {
    const workspace = testWorkspace()
    const again = () => startBus({ config: config(pools), workspace })
    return { bus: await again(), again }
  }

  async function kill(bus: Bus): Promise<void> {
    bus.kill()
    await bus.exit
  }

  test.each([
    ['SDK 1', () => new ClientV1(info)],
    ['SDK 2', () => new ClientV2(info)],
  ])('MCP %s goes on after a restart, without a new handshake of its own', async (_name, make) => {
    const { bus, again } = await restartable()
    const news: string[] = []
    const connection = await at(bus, {
      pool: 'everything',
      onLost: (failed) => news.push(`lost ${failed}`),
      onRestored: () => news.push('restored'),
    })
    const client = make()
    await client.connect(connection.mcp())
    const long = { name: 'trigger-long-running-operation', arguments: { duration: 60, steps: 2 } }
    const failing = client.callTool(long).catch((error: unknown) => error)
    await client.ping()
    await kill(bus)
    const failure = await failing
    expect([reasonOf(failure), isRetryable(failure)]).toEqual(['bus_gone', true])
    const waiting = client.callTool({ name: 'echo', arguments: { message: 'again' } })
    await again()
    expect(JSON.stringify((await waiting).content)).toContain('again')
    expect(news).toEqual(['lost 1', 'restored'])
    await client.close()
  })

  test('ACP: what is in flight is rejected with the reason, and the connection closes when it stays away', async () => {
    const { bus } = await restartable()
    const connection = await at(bus, { pool: 'slow', reconnect: { timeoutMs: 300 } })
    const { readable, writable } = connection.acp()
    const writer = writable.getWriter()
    await writer.write({ jsonrpc: '2.0', id: 1, method: 'x', params: { ms: 60_000 } } as AnyMessage)
    const reader = readable.getReader()
    const first = reader.read()
    await kill(bus)
    expect((await first).value).toMatchObject({ id: 1, error: { data: { reason: 'bus_gone' } } })
    await expect(within(PATIENCE_MS, 'the end', reader.read())).rejects.toBeInstanceOf(BusGone)
    expect(await connection.closed).toBeInstanceOf(BusGone)
  })

  test('reconnect: false ends at once with BusGone', async () => {
    const { bus } = await restartable()
    const connection = await at(bus, { pool: 'slow', reconnect: false })
    const lines = connection.lines()
    await connection.send('{"id":"a","method":"x","params":{"ms":60000}}')
    const answer = nextOf(lines)
    await kill(bus)
    expect(reasonOf((await answer).error)).toBe('bus_gone')
    await expect(lines.next()).rejects.toBeInstanceOf(BusGone)
    await expect(connection.send('{"id":2,"method":"x"}')).rejects.toBeInstanceOf(BusGone)
  })
})

test('no bus: BusUnavailable with the address', async () => {
  const nowhere = testWorkspace().path('none.sock')
  await expect(connect({ unix: nowhere })).rejects.toBeInstanceOf(BusUnavailable)
  await expect(connect({ unix: nowhere })).rejects.toThrow(nowhere)
  await expect(connect({ tcp: { host: '127.0.0.1', port: 1 } })).rejects.toBeInstanceOf(BusUnavailable)
})

test('an address that may change is asked for before every attempt', async () => {
  const bus = await startBus({ config: config(pool('echo')) })
  const connection = await connect({ locate: async () => ({ unix: bus.workspace.path('bus.sock') }) })
  const lines = connection.lines()
  await connection.send('{"id":1,"method":"x"}')
  expect((await nextOf(lines)).id).toBe(1)
  await connection.close()
  await expect(connect({})).rejects.toThrow(/exactly one of/)
  await expect(connect({ unix: 'a', tcp: 'b:1' })).rejects.toThrow(/exactly one of/)
})
