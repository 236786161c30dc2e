/** Bad input of ACP and MCP clients and workers: one defined outcome each, as docs/protocols.md tells users. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import type { Bus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { acpPool, heardByAgents } from './acp-peers.ts'
import {
  call,
  DONE,
  dropped,
  expectRefusal,
  greeted,
  heard,
  mcpPool,
  settled,
  shakeHands,
  unasked,
} from './mcp-peers.ts'

interface Side {
  readonly name: string
  readonly config: object
  /** A client that has shaken hands. */
  join(bus: Bus): Promise<LineClient>
  /** A request that is answered, to prove that all is well. */
  readonly ask: (id: unknown) => Message
  readonly cancel: (requestId: unknown) => Message
  readonly seen: (bus: Bus) => Message[]
}

const ACP: Side = {
  name: 'ACP',
  config: config(acpPool()),
  join: async (bus) => {
    const client = await bus.connect()
    await client.ask({ jsonrpc: '2.0', id: 'hello', method: 'initialize', params: { protocolVersion: 1 } })
    return client
  },
  ask: (id) => ({ jsonrpc: '2.0', id, method: 'session/list', params: {} }),
  cancel: (requestId) => ({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId } }),
  seen: heardByAgents,
}

const MCP: Side = {
  name: 'MCP',
  config: config(mcpPool('puppet', { protocol: 'mcp' })),
  join: async (bus) => (await greeted(bus, 1))[0]!,
  ask: (id) => call(id, undefined),
  cancel: (requestId) => ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }),
  seen: heard,
}

describe.each([ACP, MCP])('$name', ({ config: configuration, join, ask, cancel, seen }) => {
  const bus = sharedBus({ config: configuration })

  test.each([
    ['a batch', (): string => JSON.stringify([ask(1), ask(2)]), null],
    ['an empty batch', (): string => '[]', null],
    ['a null id', (): string => JSON.stringify(ask(null)), null],
    ['an id that is an object', (): string => JSON.stringify(ask({})), null],
    ['a response without id', (): string => '{"jsonrpc":"2.0","result":{}}', null],
    ['a method together with a result', (): string => '{"jsonrpc":"2.0","id":4,"method":"m","result":{}}', 4],
  ])(
    '%s closes the client with bad_envelope; nothing of it reaches a worker, nobody else notices',
    async (_, line, id) => {
      verifies('A16-batch')
      const [bad, good] = [await join(bus()), await join(bus())]
      await good.ask(ask('all that was said in greeting has been read'))
      const before = seen(bus()).length
      bad.send(line())
      expect((await bad.untilClosed()).at(-1)).toMatchObject({
        id,
        error: { code: -32600, data: { reason: 'bad_envelope' } },
      })
      expect(await good.ask(ask('fine'))).toMatchObject({ id: 'fine', result: {} })
      expect(seen(bus()).length).toBe(before + 1)
      good.close()
    },
  )

  test('fractional, unsafe and oddly spelled ids are answered in their own spelling', async () => {
    const client = await join(bus())
    for (const id of ['1.5', '9007199254740993', '1e3', '-0', '123456789012345678901234567890']) {
      client.send(JSON.stringify(ask('ID')).replace('"ID"', id))
      expect((await client.nextLine()).toString()).toContain(`"id":${id},"result"`)
    }
  })

  test('the same id twice in flight: both are answered', async () => {
    const client = await join(bus())
    client.send(ask(7))
    client.send(ask(7))
    expect((await client.take(2)).map(({ id, result }) => [id, result !== undefined])).toEqual([
      [7, true],
      [7, true],
    ])
  })

  test('a cancel for nothing is dropped and counted; sent with an id it is refused', async () => {
    verifies('A11-nothing')
    const client = await join(bus())
    const [before, told] = [await dropped(bus(), 'cancel_for_nothing'), seen(bus()).length]
    client.send(cancel(99))
    client.send(cancel('hello'))
    expectRefusal(await client.ask({ ...cancel(99), id: 'c' }), 'unknown_method')
    expect(await dropped(bus(), 'cancel_for_nothing')).toBe(before + 2)
    expect(seen(bus()).length).toBe(told)
  })

  test('a response nobody asked for is dropped and counted, an error with id null too', async () => {
    verifies('6.5-unasked')
    const client = await join(bus())
    const [before, nulls] = [await dropped(bus(), 'unasked_answer'), await dropped(bus(), 'null_id_error')]
    client.send({ jsonrpc: '2.0', id: 5, result: {} })
    client.send({ jsonrpc: '2.0', id: 'x', error: { code: 1, message: 'm' } })
    client.send({ jsonrpc: '2.0', id: null, error: { code: 1, message: 'm' } })
    await client.ask(ask(1))
    expect(await dropped(bus(), 'unasked_answer')).toBe(before + 2)
    expect(await dropped(bus(), 'null_id_error')).toBe(nulls + 1)
  })
})

describe('sessions', () => {
  const bus = sharedBus({ config: ACP.config })
  const prompt = (id: number, sessionId: unknown, text = 'echo x') => ({
    jsonrpc: '2.0',
    id,
    method: 'session/prompt',
    params: { sessionId, prompt: [{ type: 'text', text }] },
  })

  test('an unknown session reaches the agent, whose own answer comes back', async () => {
    verifies('A4-unknown-session')
    const client = await ACP.join(bus())
    const { error } = await client.ask(prompt(1, 'nobody-knows'))
    expect(error.code).toBe(-32002)
    expect(error.data?.reason).toBeUndefined()
  })

  test('a foreign session is refused, a notification for it dropped and counted', async () => {
    verifies('A16-foreign')
    const [owner, thief] = [await ACP.join(bus()), await ACP.join(bus())]
    const { sessionId } = (
      await owner.ask({ jsonrpc: '2.0', id: 1, method: 'session/new', params: { cwd: '/', mcpServers: [] } })
    ).result
    expectRefusal(await thief.ask(prompt(1, sessionId)), 'session_not_owned')
    const before = await dropped(bus(), 'session_not_owned')
    thief.send({ jsonrpc: '2.0', method: 'session/cancel', params: { sessionId } })
    await thief.ask(ACP.ask(2))
    expect(await dropped(bus(), 'session_not_owned')).toBe(before + 1)
    expect(heardByAgents(bus()).filter(({ method }) => method === 'session/cancel')).toEqual([])
  })

  test('a session id that is no string closes the client', async () => {
    verifies('A16-session-type')
    const client = await ACP.join(bus())
    client.send(prompt(3, 5))
    expect((await client.untilClosed()).at(-1)).toMatchObject({ id: 3, error: { data: { reason: 'bad_envelope' } } })
  })
})

describe('an MCP client that does not begin with initialize', () => {
  const bus = sharedBus({ config: MCP.config })

  test('is served: the worker has been greeted by the bus; its initialize may come later', async () => {
    verifies('M4-without')
    const client = await bus().connect()
    expect((await client.ask(call(1, undefined))).result.echo.name).toBe('tool')
    expect((await shakeHands(client, 2)).serverInfo.name).toBe('puppet')
  })

  test('a notification before it does no harm', async () => {
    const client = await bus().connect()
    client.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    client.send({ jsonrpc: '2.0', method: 'notifications/unheard-of', params: {} })
    await settled(client)
  })

  test('a notification that is sent with an id is refused instead of being swallowed', async () => {
    verifies('M9-with-id')
    const client = await bus().connect()
    expectRefusal(await client.ask({ jsonrpc: '2.0', id: 1, method: 'notifications/initialized' }), 'unknown_method')
    const progress = { jsonrpc: '2.0', id: 2, method: 'notifications/progress', params: { progressToken: 1 } }
    expectRefusal(await client.ask(progress), 'unknown_method')
  })

  test('a level that is none is the worker’s to refuse', async () => {
    verifies('M15-none')
    const client = (await greeted(bus(), 1))[0]!
    await client.ask({ jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level: 'shouting' } })
    expect(heard(bus()).findLast(({ method }) => method === 'logging/setLevel').params.level).toBe('shouting')
  })
})

describe('a worker that misbehaves', () => {
  const bus = sharedBus({ config: MCP.config })

  test('junk, batches, unknown tokens and questions with odd ids: each is dropped or refused, its clients go on', async () => {
    verifies('M26-misbehaves')
    const [one, other] = await greeted(bus(), 2)
    const lines = ['junk', '[]', '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{}}}']
    one!.send(call(1, [...lines, { id: 1.5, method: 'roots/list' }, DONE]))
    const question = await one!.next()
    expect(question.method).toBe('roots/list')
    one!.send({ jsonrpc: '2.0', id: question.id, result: { roots: [] } })
    await one!.answerTo(1)
    await settled(one!, other!)
    expect(bus().workspace.read('heard')).toContain('"id":1.5,"result":{"roots":[]}')
    expect(unasked(other!)).toEqual([])
    expect(await dropped(bus(), 'junk_line')).toBe(1)
    expect(await dropped(bus(), 'worker_bad_envelope')).toBe(1)
    expect(await dropped(bus(), 'late_progress')).toBe(1)
  })
})
