/**
 * SDK clients -> the daemon over TCP -> four agent workers -> the scripted endpoint: sessions side by side, with cancels.
 */
import { connect, type Socket } from 'node:net'
import { Readable, Writable } from 'node:stream'
import { type ClientContext, type ContentBlock, client, methods, ndJsonStream } from '@agentclientprotocol/sdk'
import { afterEach, describe, expect, it } from 'vitest'
import { done, finish, type Step, says, text } from '../../src/agents/demo-endpoint/reply.ts'
import { type Endpoint, type Script, startEndpoint } from '../../src/agents/demo-endpoint/server.ts'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus } from '../support/bus.ts'
import { until } from './openai-agent-harness.ts'

const clientCount = 10
const sessionsPerClient = 5

const sockets: Socket[] = []
let endpoint: Endpoint | undefined

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await endpoint?.close()
})

interface Peer {
  readonly ctx: ClientContext
  readonly shown: Map<string, string>
}

async function connectPeer(bus: Bus): Promise<Peer> {
  const [, host, port] = /^tcp:(?:\/\/)?(.+):(\d+)$/.exec(bus.addresses[0]!)!
  const socket = connect(Number(port), host)
  sockets.push(socket)
  const output = Writable.toWeb(socket) as unknown as WritableStream<Uint8Array>
  const stream = ndJsonStream(output, Readable.toWeb(socket) as unknown as ReadableStream<Uint8Array>)
  const shown = new Map<string, string>()
  const app = client({ name: 'bus-test' }).onNotification(methods.client.session.update, ({ params }) => {
    const { sessionId, update } = params
    if (update.sessionUpdate !== 'agent_message_chunk' || update.content.type !== 'text') return
    shown.set(sessionId, (shown.get(sessionId) ?? '') + update.content.text)
  })
  const ctx = app.connect(stream).agent
  await ctx.request(methods.agent.initialize, { protocolVersion: 1 })
  return { ctx, shown }
}

async function startWith(script: Script, instances = 4): Promise<Bus> {
  endpoint = await startEndpoint({ script })
  const env = { OPENAI_BASE_URL: endpoint.url, OPENAI_MODEL: 'scripted' }
  return startBus({ doors: ['tcp'], config: { pools: [{ id: 'chat', agent: 'openai', instances, env }] } })
}

async function newSession({ ctx }: Peer): Promise<string> {
  return (await ctx.request(methods.agent.session.new, { cwd: '/', mcpServers: [] })).sessionId
}

async function prompt({ ctx }: Peer, sessionId: string, words: string): Promise<string> {
  const blocks: ContentBlock[] = [{ type: 'text', text: words }]
  return (await ctx.request(methods.agent.session.prompt, { sessionId, prompt: blocks })).stopReason
}

/** Asks for an answer that never ends and cancels it. */
async function cancelled(peer: Peer, sessionId: string): Promise<void> {
  const turn = prompt(peer, sessionId, 'wait')
  const shown = until(() => peer.shown.get(sessionId) === 'waiting', 15_000)
  await Promise.race([shown, turn])
  await peer.ctx.notify(methods.agent.session.cancel, { sessionId })
  expect(await turn).toBe('cancelled')
}

/** Questions that begin with `wait` hang after a first word; all others are answered in pieces. */
const script: Script = (request) => {
  // A question that was cancelled stands before the next one in the same message.
  const question: string = request.body.messages.at(-1).content.split('\n').at(-1)
  if (question.startsWith('wait')) return { steps: [text('waiting'), { hang: true }] }
  const pieces = Array.from({ length: 10 }, (_, index): Step[] => [text(`${question}/${index} `), { waitMs: 3 }])
  return { steps: [...pieces.flat(), finish(), done] }
}

const answerTo = (question: string) => Array.from({ length: 10 }, (_, index) => `${question}/${index} `).join('')

describe('through the daemon', () => {
  it('50 sessions stream side by side over four workers, each to its own client, with cancels', async () => {
    const bus = await startWith(script)
    await bus.allReady()
    const peers = await Promise.all(Array.from({ length: clientCount }, () => connectPeer(bus)))
    const sessions = await Promise.all(
      peers.flatMap((peer, who) =>
        Array.from({ length: sessionsPerClient }, async (_, which) => ({
          peer,
          who,
          which,
          id: await newSession(peer),
        })),
      ),
    )
    expect(new Set(sessions.map(({ id }) => id)).size).toBe(clientCount * sessionsPerClient)

    await Promise.all(
      sessions.map(async ({ peer, who, which, id }) => {
        if (which % 2 === 1) await cancelled(peer, id)
        expect(await prompt(peer, id, `q${who}-${which}`)).toBe('end_turn')
      }),
    )

    for (const { peer, who, which, id } of sessions) {
      const before = which % 2 === 1 ? 'waiting' : ''
      expect(peer.shown.get(id)).toBe(before + answerTo(`q${who}-${which}`))
      expect(peers.filter((other) => other.shown.has(id))).toEqual([peer])
    }
    const aborted = () => endpoint!.chats().filter((seen) => seen.ended === 'aborted').length
    await until(() => aborted() === sessions.filter(({ which }) => which % 2 === 1).length)
    const { workers } = await bus.status()
    expect(workers.every((worker) => worker.sessions > 0)).toBe(true)
  }, 60_000)

  it('a client that leaves in the middle ends its request at the endpoint', async () => {
    const bus = await startWith(script)
    const peer = await connectPeer(bus)
    const id = await newSession(peer)
    void prompt(peer, id, 'wait').catch(() => {})
    await until(() => peer.shown.get(id) === 'waiting')
    sockets.at(-1)!.destroy()
    await until(() => endpoint!.chats()[0]!.ended === 'aborted')
  })

  it('the end of the bus is the end of its agents', async () => {
    const bus = await startWith(() => says('x'))
    const { workers } = await bus.allReady()
    bus.child.kill('SIGTERM')
    expect((await bus.exit).code).toBe(0)
    for (const { pid } of workers) expect(() => process.kill(pid, 0)).toThrow()
  })

  it('5.4 the variables of the agent reach it from the environment of the bus, those of the pool win', async () => {
    verifies('5.4-agent-variables')
    endpoint = await startEndpoint({ script: () => says('yes') })
    const env = { OPENAI_BASE_URL: endpoint.url, OPENAI_API_KEY: 'sk-of-the-bus', OPENAI_MODEL: 'of-the-bus' }
    const pool = { id: 'chat', agent: 'openai', env: { OPENAI_MODEL: 'of-the-pool' } }
    const peer = await connectPeer(await startBus({ doors: ['tcp'], config: { pools: [pool] }, env }))
    expect(await prompt(peer, await newSession(peer), 'hello')).toBe('end_turn')
    const [chat] = endpoint.chats()
    expect(chat?.headers.authorization).toBe('Bearer sk-of-the-bus')
    expect(chat?.body.model).toBe('of-the-pool')
  })

  it("the seed's own handshake, with a version that is a string, works as at the bare agent", async () => {
    verifies('O1-through')
    const bus = await startWith(() => says('Hello', ' world'))
    const host = await bus.connect()
    const greeting = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'seed', version: '1' } }
    const ask = (id: number, method: string, params: object) => host.ask({ jsonrpc: '2.0', id, method, params })
    expect(await ask(1, 'initialize', greeting)).toMatchObject({ result: { protocolVersion: '2025-03-26' } })
    const { result } = await ask(2, 'session/new', { cwd: '/', mcpServers: [] })
    const prompt = [{ type: 'text', text: 'hi' }]
    host.send({ jsonrpc: '2.0', id: 3, method: 'session/prompt', params: { sessionId: result.sessionId, prompt } })
    expect(await host.answerTo(3)).toMatchObject({ result: { stopReason: 'end_turn' } })
  })

  it('a client of either kind of version, number or string, leaves the agent to those of the other', async () => {
    verifies('O1-through', 'A1-stranger')
    const bus = await startWith(() => says('Hello'), 1)
    const hello = (protocolVersion: unknown) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion },
    })
    for (const version of ['2025-03-26', 1, '2025-03-26', 1]) {
      const client = await bus.connect()
      expect(await client.ask(hello(version))).toMatchObject({ result: { protocolVersion: version } })
      const opened = await client.ask({
        jsonrpc: '2.0',
        id: 2,
        method: 'session/new',
        params: { cwd: '/', mcpServers: [] },
      })
      expect(opened).toMatchObject({ result: { sessionId: expect.any(String) } })
    }
  })
})
