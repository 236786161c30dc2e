/** Contract 6.4, 7.1 and 7.3 where peers speak ACP: who may load what, and what is done for a host that dies. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startShim } from '../e2e/connect-harness.ts'
import { type Bus, startBus } from '../support/bus.ts'
import type { LineClient } from '../support/line-client.ts'
import { config } from '../support/pools.ts'
import { acpPool, agentHears, heardByAgents, rawPool } from './acp-peers.ts'
import { expectRefusal } from './mcp-peers.ts'

const request = (id: unknown, method: string, params: object = {}) => ({ jsonrpc: '2.0', id, method, params })
const HELLO = request(0, 'initialize', { protocolVersion: 1, clientCapabilities: {} })
const place = { cwd: '/', mcpServers: [] }

async function greeted(bus: Bus): Promise<LineClient> {
  const client = await bus.connect()
  await client.ask(HELLO)
  return client
}

describe.each(['session/load', 'session/resume'])('%s of a session that another client holds', (method) => {
  test('passes under isolated: each client has a worker of its own', async () => {
    verifies('6.4-isolated')
    const bus = await startBus({ config: config(acpPool({ sharing: 'isolated', instances: 2 })) })
    const clients = [await greeted(bus), await greeted(bus), await greeted(bus)]
    for (const [n, client] of clients.entries()) {
      const answer = await client.ask(request(1, method, { sessionId: 'saved-1', ...place }))
      expect(answer).toMatchObject({ id: 1, result: {} })
      const text = `echo mine ${n}`
      const params = { sessionId: 'saved-1', prompt: [{ type: 'text', text }] }
      expect(await client.ask(request(2, 'session/prompt', params))).toMatchObject({
        result: { stopReason: 'end_turn' },
      })
    }
    for (const [n, client] of clients.entries()) {
      const texts = client.lines.map((line) => line.toString()).filter((line) => line.includes('mine'))
      expect(texts).toHaveLength(1)
      expect(texts[0]).toContain(`mine ${n}`)
    }
    clients[0]!.close()
    const params = { sessionId: 'saved-1', prompt: [{ type: 'text', text: 'echo still' }] }
    expect(await clients[1]!.ask(request(3, 'session/prompt', params))).toMatchObject({
      result: { stopReason: 'end_turn' },
    })
  })

  test('is refused under shared, and its owner goes on', async () => {
    verifies('6.4-load-resume')
    const bus = await startBus({ config: config(acpPool()) })
    const [owner, other] = [await greeted(bus), await greeted(bus)]
    await owner.ask(request(1, method, { sessionId: 'saved-1', ...place }))
    const answer = await other.ask(request(1, method, { sessionId: 'saved-1', ...place }))
    expect(answer).toMatchObject({ error: { code: -32002, data: { reason: 'session_not_owned' } } })
    const params = { sessionId: 'saved-1', prompt: [{ type: 'text', text: 'echo mine' }] }
    expect(await owner.ask(request(2, 'session/prompt', params))).toMatchObject({ result: { stopReason: 'end_turn' } })
    owner.close()
    await agentHears(bus, 'the close', ({ method }) => method === 'session/close')
    expect(await other.ask(request(3, method, { sessionId: 'saved-1', ...place }))).toMatchObject({ result: {} })
  })
})

describe('a host that goes while a permission is pending', () => {
  /** It has been asked, and says nothing. */
  async function asked(client: LineClient): Promise<string> {
    await client.ask(HELLO)
    const { sessionId } = (await client.ask(request(1, 'session/new', place))).result
    client.send(request(2, 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'permission' }] }))
    for (;;) if ((await client.next()).method === 'session/request_permission') return sessionId
  }

  async function expectFreed(bus: Bus, sessionId: string): Promise<void> {
    const isAnswer = ({ method, id }: { method?: string; id?: unknown }) => method === undefined && id === 'q2'
    const answer = await agentHears(bus, 'the answer', isAnswer)
    expect(answer).toMatchObject({ result: { outcome: { outcome: 'cancelled' } } })
    const cancel = await agentHears(bus, 'the cancel', ({ method }) => method === 'session/cancel')
    expect(cancel.params).toEqual({ sessionId })
    expect(heardByAgents(bus).filter(isAnswer)).toHaveLength(1)
    await bus.statusWhere('nothing is owed', ({ clients, outstanding }) => clients === 0 && outstanding === 0)
  }

  test.each([
    ['closes its connection', (client: LineClient) => client.close()],
    ['ends its input', (client: LineClient) => client.endWriting()],
  ])('and %s: cancelled, and the turn gets its cancel', async (_, leave) => {
    verifies('A14-told', '7.3-questions')
    const bus = await startBus({ config: config(rawPool()) })
    const client = await bus.connect()
    const session = await asked(client)
    leave(client)
    await expectFreed(bus, session)
  })

  test('behind connect, which is killed', async () => {
    verifies('A14-told', '6.10.2-host-gone')
    const bus = await startBus({ config: config(rawPool()) })
    const shim = startShim(bus.workspace, '--unix', bus.workspace.path('bus.sock'))
    const session = await asked(shim.host)
    shim.child.kill('SIGKILL')
    await expectFreed(bus, session)
  })

  test('under isolated its worker ends', async () => {
    verifies('6.7.2-own-worker')
    const bus = await startBus({ config: config(rawPool({ sharing: 'isolated', instances: 1, max_instances: 2 })) })
    const client = await bus.connect()
    await asked(client)
    const { pid } = heardByAgents(bus)[0]!
    client.close()
    await bus.statusWhere('its worker is gone', ({ workers }) => workers.every((each) => each.pid !== pid))
  })
})

test('a session of a client that can load is lost until it does', async () => {
  verifies('7.1-brought-back', '7.1-told-once')
  const bus = await startBus({ config: config(acpPool()) })
  const client = await greeted(bus)
  await client.ask(request(1, 'session/load', { sessionId: 'saved-1', ...place }))
  process.kill((await bus.allReady()).workers[0]!.pid, 'SIGKILL')
  await bus.statusWhere('it is back', ({ workers: [w] }) => w!.generation === 2 && w!.state === 'ready')
  const params = { sessionId: 'saved-1', prompt: [{ type: 'text', text: 'echo x' }] }
  for (let n = 2; n < 5; n++) expectRefusal(await client.ask(request(n, 'session/prompt', params)), 'session_lost')
  await client.ask(request(6, 'session/load', { sessionId: 'saved-1', ...place }))
  expect(await client.ask(request(7, 'session/prompt', params))).toMatchObject({ result: { stopReason: 'end_turn' } })
})
