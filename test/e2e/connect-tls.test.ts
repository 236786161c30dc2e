/** `connect` and the client library over TLS, with a real bus: who proves what to whom, and what each side does about it. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { client as acpClient, type ContentBlock, methods, PROTOCOL_VERSION } from '@agentclientprotocol/sdk'
import { Client } from '@modelcontextprotocol/client'
import { describe, expect, test } from 'vitest'
import { BusRefused, BusUntrusted, type ConnectOptions, connect } from '../../src/client/index.ts'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, runBus, startBus, testWorkspace } from '../support/bus.ts'
import type { Pair } from '../support/certificates.ts'
import { config, pool } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { busPair, testAuthority, tlsFlags } from '../support/tls.ts'
import { within } from '../support/waiting.ts'
import { startShim, startShimWith } from './connect-harness.ts'

const MIB = 1024 * 1024
const everything = {
  id: 'everything',
  command: process.execPath,
  args: [new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url).pathname],
  instances: 1,
}
const ca = () => testAuthority().ca

function at(bus: Bus): string {
  return bus.addresses.find((each) => each.startsWith('tls:'))!.slice('tls:'.length)
}

async function firstLine(connection: Awaited<ReturnType<typeof connect>>): Promise<Buffer> {
  const { value } = await within(15_000, 'a line', connection.lines().next())
  return value as Buffer
}

describe('9.16 the library over TLS', () => {
  const pools = [everything, { id: 'agent', agent: 'echo', instances: 1 }, pool('big-answers')]
  const bus = sharedBus({ config: config(pools, { max_input_buffer: 6 * MIB }), doors: ['tls'] })
  const to = (options: ConnectOptions = {}) => connect({ tls: at(bus()), ca: ca(), ...options })

  test('9.16 ACP: a prompt and its updates', async () => {
    verifies('9.16-connect')
    const connection = await to({ pool: 'agent' })
    const said: string[] = []
    const app = acpClient().onNotification(methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text')
        said.push(update.content.text)
    })
    await app.connectWith(connection.acp(), async (agent) => {
      await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION })
      const { sessionId } = await agent.request(methods.agent.session.new, { cwd: '/', mcpServers: [] })
      const prompt: ContentBlock[] = [{ type: 'text', text: 'hello' }]
      return agent.request(methods.agent.session.prompt, { sessionId, prompt })
    })
    expect(said.join('')).toContain('hello')
    await connection.close()
  })

  test('9.16 MCP: a tool is called', async () => {
    const client = new Client({ name: 'test', version: '1' })
    await client.connect((await to({ pool: 'everything' })).mcp())
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'through TLS' } })
    expect(JSON.stringify(content)).toContain('through TLS')
    await client.close()
  })

  test('9.16 lines: 5 MiB in both directions, and every answer after the end of the input', async () => {
    const connection = await to({ pool: 'big-answers' })
    await connection.send(JSON.stringify({ id: 1, method: 'x', params: { bytes: 5 * MIB, pad: 'y'.repeat(5 * MIB) } }))
    const line = firstLine(connection)
    await connection.finish()
    expect((await line).length).toBe(5 * MIB)
  })

  test('9.16 who cannot prove to be the bus is told nothing: BusUntrusted', async () => {
    verifies('9.16-untrusted')
    await expect(to({ ca: testAuthority('strangers').ca })).rejects.toBeInstanceOf(BusUntrusted)
    await expect(connect({ tls: at(bus()) })).rejects.toMatchObject({ code: 'bus_untrusted' })
    await expect(connect({ unix: 'x', ca: ca() })).rejects.toThrow(/go with tls/)
  })
})

async function busWith(pair: Pair, ...more: string[]): Promise<Bus> {
  return startBus({ config: config(pool('echo')), doors: [], args: [...tlsFlags(pair), ...more] })
}

describe('9.16 connect --tls', () => {
  test('9.16 joins a host to the bus, and ends with its input', async () => {
    verifies('9.16-connect')
    const bus = await busWith(busPair())
    const shim = startShim(bus.workspace, '--tls', at(bus), '--ca', ca())
    expect(await shim.host.ask({ id: 1, method: 'm' })).toMatchObject({ id: 1, result: {} })
    shim.host.send({ id: 2, method: 'm' })
    shim.host.endWriting()
    expect((await shim.host.next()).id).toBe(2)
    expect((await shim.ended()).code).toBe(0)
  })

  test('9.16 a host name is checked as well as an address', async () => {
    const bus = await busWith(busPair())
    const shim = startShim(bus.workspace, '--tls', at(bus).replace('127.0.0.1', 'localhost'), '--ca', ca())
    expect(await shim.host.ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })

  test.each<[string, () => Pair, () => string, RegExp]>([
    [
      'of another authority',
      busPair,
      () => testAuthority('strangers').ca,
      /not signed by an authority that is trusted/,
    ],
    ['of another host', () => testAuthority().server({ altNames: 'DNS:elsewhere.example' }), ca, /is of another host/],
    ['that has expired', () => testAuthority().server({ days: [-2, -1] }), ca, /has expired/],
    ['that is not valid yet', () => testAuthority().server({ days: [1, 2] }), ca, /is not valid yet/],
    ['of a client', () => testAuthority().server({ use: 'clientAuth' }), ca, /is not one of a server/],
  ])('9.16 a certificate %s: exit 1 with the reason, and the host is told', async (_what, pair, authority, why) => {
    verifies('9.16-untrusted')
    const bus = await busWith(pair())
    // What the environment says must not matter.
    const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0' }
    const shim = startShimWith(bus.workspace, env, '--tls', at(bus), '--ca', authority())
    shim.host.send({ id: 1, method: 'm' })
    const { error } = await shim.host.next()
    expect(error.message).toMatch(why)
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).toMatch(why)
    expect(await shim.said).not.toMatch(/stdio-bus serve/)
  })

  test('9.16 a bus without TLS, and no bus at all: exit 1', async () => {
    const bus = await startBus({ config: config(pool('echo')), doors: ['tcp'] })
    const plain = bus.addresses[0]!.slice('tcp:'.length)
    const done = await runBus(['connect', '--tls', plain, '--ca', ca()], { workspace: bus.workspace })
    expect(done.code).toBe(1)
    expect(done.stderr).toMatch(/no bus answers at .*(does not speak TLS|closed|disconnected)/)
    const gone = await runBus(['connect', '--tls', '127.0.0.1:1', '--ca', ca()], { workspace: bus.workspace })
    expect(gone).toMatchObject({ code: 1, stderr: expect.stringMatching(/nobody listens there/) })
  })

  test.each<[string, () => string[], RegExp]>([
    ['an authority that is not there', () => ['--ca', 'none.pem'], /none\.pem does not exist/],
    ['a certificate without its key', () => ['--cert', busPair().cert], /without a key/],
    [
      'a key of another certificate',
      () => ['--cert', busPair().cert, '--key', testAuthority().client().key],
      /is not the key/,
    ],
  ])('9.16 %s: exit 2', async (_what, args, why) => {
    const workspace = testWorkspace()
    const done = await runBus(['connect', '--tls', '127.0.0.1:1', ...args()], { workspace })
    expect(done).toMatchObject({ code: 2, stderr: expect.stringMatching(why) })
  })
})

describe('9.16 connect --cert --key', () => {
  const demanding = () => busWith(busPair(), '--client-ca', ca())
  const shown = ({ cert, key }: Pair) => ['--cert', cert, '--key', key]

  test('9.16 a certificate that the bus knows', async () => {
    verifies('9.16-connect')
    const bus = await demanding()
    const shim = startShim(bus.workspace, '--tls', at(bus), '--ca', ca(), ...shown(testAuthority().client()))
    expect(await shim.host.ask({ id: 1, method: 'm' })).toMatchObject({ id: 1, result: {} })
  })

  test.each<[string, () => string[], RegExp]>([
    ['none', () => [], /wants a certificate/],
    ['one of others', () => shown(testAuthority('strangers').client()), /may not know the certificate/],
    ['one that has expired', () => shown(testAuthority().client({ days: [-2, -1] })), /may not know the certificate/],
  ])('9.16 %s: exit 1 at once with the reason', async (_what, args, why) => {
    verifies('9.16-refused')
    const bus = await demanding()
    const shim = startShim(bus.workspace, '--tls', at(bus), '--ca', ca(), ...args())
    shim.host.send({ id: 1, method: 'm' })
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).toMatch(why)
    expect(await shim.said).not.toMatch(/looking for it/)
  })

  test('9.16 the library: BusRefused', async () => {
    verifies('9.16-refused')
    const bus = await demanding()
    const connection = await connect({ tls: at(bus), ca: ca() }).catch((error: unknown) => error)
    const error = connection instanceof Error ? connection : await (connection as { closed: Promise<unknown> }).closed
    expect(error).toBeInstanceOf(BusRefused)
    const pooled = connect({ tls: at(bus), ca: ca(), pool: 'echo' })
    await expect(pooled).rejects.toMatchObject({ reason: 'unauthenticated' })
  })
})

test('9.17 a bus that comes back with another certificate of the same authority is found again', async () => {
  verifies('9.16-connect')
  const workspace = testWorkspace()
  const port = await freePort()
  const again = ({ cert, key }: Pair) =>
    startBus({
      config: config(pool('echo')),
      doors: [],
      args: ['--tls', `127.0.0.1:${port}`, '--cert', cert, '--key', key],
      workspace,
    })
  const bus = await again(busPair())
  const shim = startShim(workspace, '--tls', at(bus), '--ca', ca())
  await shim.host.ask({ id: 1, method: 'm' })
  bus.kill()
  await bus.exit
  await shim.hasLostBus()
  shim.host.send({ id: 2, method: 'm' })
  const pair = testAuthority().server()
  expect(readFileSync(pair.cert)).not.toEqual(readFileSync(busPair().cert))
  await again(pair)
  expect((await shim.host.next(15_000)).id).toBe(2)
})

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
