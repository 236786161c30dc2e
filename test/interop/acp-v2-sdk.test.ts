/** The official SDK as client and agent of ACP versions 1 and 2, through one pool (spec A2, A3, A14). */
import { connect } from 'node:net'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import * as acp from '@agentclientprotocol/sdk/experimental/v2'
import { expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'
import { config } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { acpClient, agentHears, errorOf, heardByAgents } from './acp-peers.ts'

const AGENT = fileURLToPath(new URL('../fixtures/acp/two-versions.mjs', import.meta.url))
const pool = (instances: number) => config({ id: 'agent', command: process.execPath, args: [AGENT], instances })
const { agent: A, client: C } = acp.methods

interface NewClient {
  readonly ctx: acp.ClientContext
  /** The states of its sessions, in order: `s1 idle`. */
  readonly states: string[]
  leave(): void
}

async function newClient(bus: Bus): Promise<NewClient> {
  const socket = connect({ path: bus.addresses[0]!.slice('unix:'.length) })
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  socket.on('error', () => {})
  const states: string[] = []
  const app = acp.client({ name: 'interop' }).onNotification(C.session.update, ({ params }) => {
    const { sessionId, update } = params as Message
    states.push(`${sessionId} ${update.state}`)
  })
  const connection = app.connect(
    acp.ndJsonStream(Writable.toWeb(socket) as never, Readable.toWeb(socket) as never) as never,
  )
  const leave = () => {
    socket.destroy()
    connection.close()
  }
  onTestFinished(leave)
  return { ctx: connection.agent, states, leave }
}

async function begin(client: NewClient): Promise<string> {
  const info = { name: 'interop', version: '1' }
  const { protocolVersion } = await client.ctx.request(A.initialize, { protocolVersion: 2, info })
  expect(protocolVersion).toBe(2)
  return (await client.ctx.request(A.session.new, { cwd: '/', mcpServers: [] })).sessionId
}

const prompt = ({ ctx }: NewClient, sessionId: string, text: string) =>
  ctx.request(A.session.prompt, { sessionId, prompt: [{ type: 'text', text }] })

test('three clients of version 2 share one agent, each with its own turns', async () => {
  verifies('A2-once')
  const bus = await startBus({ config: pool(1) })
  const clients = [await newClient(bus), await newClient(bus), await newClient(bus)]
  const sessions = await Promise.all(clients.map(begin))
  expect(new Set(sessions).size).toBe(3)
  await Promise.all(clients.map((client, n) => prompt(client, sessions[n]!, 'go')))
  for (const [n, { states }] of clients.entries()) {
    await eventually('its turn to end', () => states.includes(`${sessions[n]} idle`))
    expect(states).toEqual([`${sessions[n]} running`, `${sessions[n]} idle`])
  }
  expect(heardByAgents(bus).filter(({ method }) => method === 'initialize')).toHaveLength(1)
})

test('clients of versions 1 and 2 work side by side on two workers', async () => {
  verifies('A3-apart')
  const bus = await startBus({ config: pool(2) })
  await bus.allReady()
  const [old, young] = [await acpClient(bus), await newClient(bus)]
  expect((await old.initialize()).protocolVersion).toBe(1)
  const sessions = [await old.newSession(), await begin(young)]
  expect(await old.prompt(sessions[0]!, 'go')).toBe('end_turn')
  await prompt(young, sessions[1]!, 'go')
  await eventually('its turn to end', () => young.states.includes(`${sessions[1]} idle`))
  expect(old.shown(sessions[0]!)).toBe('one')
})

test('with one worker the later version is told protocol_mismatch', async () => {
  verifies('A3-mismatch')
  const bus = await startBus({ config: pool(1) })
  const young = await newClient(bus)
  await begin(young)
  const old = await acpClient(bus)
  expect((await errorOf(old.initialize())).data).toMatchObject({ reason: 'protocol_mismatch' })
  const session = await begin(await newClient(bus))
  expect(session).toMatch(/^s2-/)
})

test('a client that leaves in the middle of a turn: session/cancel, then session/close', async () => {
  verifies('A14-v2')
  const bus = await startBus({ config: pool(1) })
  const [stays, goes] = [await newClient(bus), await newClient(bus)]
  const [kept, left] = [await begin(stays), await begin(goes)]
  for (const [client, session] of [
    [stays, kept],
    [goes, left],
  ] as const)
    await prompt(client, session, 'wait')
  goes.leave()
  await agentHears(bus, 'the close', ({ method }) => method === 'session/close')
  const told = heardByAgents(bus).filter(({ method }) => /close|cancel/.test(method ?? ''))
  expect(told.map(({ method, params }) => [method, params.sessionId])).toEqual([
    ['session/cancel', left],
    ['session/close', left],
  ])
  await stays.ctx.notify(A.session.cancel, { sessionId: kept })
  await eventually('its own turn to end', () => stays.states.includes(`${kept} idle`))
})
