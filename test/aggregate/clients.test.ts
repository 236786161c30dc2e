/** Clients of an aggregate and its members (contract 13.3, 13.6, 13.11, 13.12): eras, sharing, questions, subscriptions, rights. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { EVERYTHING, SUBSCRIPTION } from '../interop/mcp-peers.ts'
import { INFO, join } from '../interop/sdk-guests.ts'
import { startBus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { eventually, sleep } from '../support/waiting.ts'
import {
  aggregateOf,
  allListed,
  ask,
  callTool,
  guest,
  heardBy,
  hearsOf,
  META,
  member,
  toolNames,
  tools,
} from './members.ts'

const textOf = ({ result }: Message): string => result.content[0].text

describe('both eras on both sides', () => {
  const everything = { id: 'every', command: process.execPath, args: [EVERYTHING] }
  const old = member({ name: 'old', tools: tools('progress', 'where', 'hang') })
  const modern = member({
    name: 'new',
    era: 'modern',
    tools: tools('progress', 'where', 'hang'),
    resources: [{ uri: 'new://r', name: 'r' }],
  })
  const bus = sharedBus({ config: aggregateOf([everything, old, modern]) })

  test.each(['v1', 'v2 legacy', 'v2 modern'] as const)('an SDK client, %s, uses all of them', async (era) => {
    verifies('13.3-eras')
    const { client, complaints } = await join(bus(), era, {}, 'all')
    expect(client.getServerVersion?.()?.name ?? 'all').toBe('all')
    const names = (await client.listTools()).tools.map(({ name }: { name: string }) => name)
    expect(names).toContain('every_echo')
    expect(names).toContain('new_where')
    const echoed = await client.callTool({ name: 'every_echo', arguments: { message: era } })
    expect(echoed.content[0].text).toBe(`Echo: ${era}`)
    expect(Number((await client.callTool({ name: 'new_where', arguments: {} })).content[0].text)).toBeGreaterThan(1)
    expect((await client.readResource({ uri: 'new://r' })).contents[0].text).toBe('new')
    expect((await client.listPrompts()).prompts.length).toBeGreaterThan(0)
    const { resources } = await client.listResources()
    expect((await client.readResource({ uri: resources[0].uri })).contents).toHaveLength(1)
    expect(complaints).toEqual([])
  })

  test('each side sees its own era only', async () => {
    verifies('13.3-eras')
    const client = await guest(bus())
    expect((await callTool(client, 'new_where')).result.resultType).toBeUndefined()
    const sent = await hearsOf(bus(), 'new', 'the call', ({ method, id }) => method === 'tools/call' && id > 100)
    expect(sent.params._meta['io.modelcontextprotocol/protocolVersion']).toBe('2026-07-28')
    const stateless = await bus().connect()
    expect((await callTool(stateless, 'old_where', { mark: 1 }, META)).result.resultType).toBe('complete')
    const heard = heardBy(bus(), 'old').findLast(({ method }) => method === 'tools/call')
    expect(heard.params).toEqual({ name: 'where', arguments: { mark: 1 }, _meta: {} })
  })

  test.each(['old', 'new'])('progress and cancels find their way to the %s member', async (name) => {
    verifies('13.3-cancel')
    const client = await guest(bus())
    client.send({
      jsonrpc: '2.0',
      id: 'p',
      method: 'tools/call',
      params: { name: `${name}_progress`, arguments: {}, _meta: { progressToken: 'tok' } },
    })
    for (const progress of [1, 2])
      expect(await client.next()).toMatchObject({
        method: 'notifications/progress',
        params: { progressToken: 'tok', progress },
      })
    expect(textOf(await client.answerTo('p'))).toBe('done')
    client.send({ jsonrpc: '2.0', id: 'h', method: 'tools/call', params: { name: `${name}_hang`, arguments: {} } })
    await hearsOf(bus(), name, 'the call', ({ params }) => params?.name === 'hang')
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'h' } })
    await hearsOf(bus(), name, 'the cancel', ({ method }) => method === 'notifications/cancelled')
    await bus().statusWhere('nothing is owed', ({ outstanding }) => outstanding === 0)
    await client.staysQuiet()
  })

  test('a client that goes takes its calls with it', async () => {
    verifies('13.3-gone')
    const client = await guest(bus())
    client.send({ jsonrpc: '2.0', id: 'gone', method: 'tools/call', params: { name: 'old_hang', arguments: { g: 1 } } })
    const { id } = await hearsOf(bus(), 'old', 'the call', ({ params }) => params?.arguments?.g === 1)
    client.close()
    await hearsOf(bus(), 'old', 'the cancel', ({ params }) => params?.requestId === id)
    await bus().statusWhere('nothing is owed', ({ outstanding }) => outstanding === 0)
  })

  test('twenty clients with the same ids get their own answers', async () => {
    const clients = await Promise.all(Array.from({ length: 20 }, () => guest(bus())))
    await Promise.all(
      clients.map(async (client, n) => {
        for (let k = 0; k < 10; k++) {
          const call = { name: 'every_echo', arguments: { message: `${n}/${k}` } }
          const answer = await client.ask({ jsonrpc: '2.0', id: k, method: 'tools/call', params: call })
          expect(textOf(answer)).toBe(`Echo: ${n}/${k}`)
        }
      }),
    )
  })

  test('arrays are taken where the revision has them', async () => {
    const client = await bus().connect()
    const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: INFO }
    await client.ask({ jsonrpc: '2.0', id: 0, method: 'initialize', params })
    const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'old_where' } })
    client.send(JSON.stringify([call(1), call(2), { jsonrpc: '2.0', id: 3, method: 'ping' }]))
    const answers = await client.next()
    expect(answers.map(({ id }: Message) => id).sort()).toEqual([1, 2, 3])
  })
})

test('whoever only lists starts no worker of an isolated member; whoever calls has one of its own', async () => {
  verifies('13.3-isolated')
  const own = member({ name: 'own', tools: tools('where') }, { sharing: 'isolated', instances: 0 })
  const bus = await startBus({ config: aggregateOf([own]) })
  const clients = await Promise.all(Array.from({ length: 5 }, () => guest(bus)))
  for (const client of clients) expect(await toolNames(client)).toEqual(['own_where'])
  expect((await bus.status()).workers.filter(({ pool }) => pool === 'own')).toHaveLength(1)
  const pids = await Promise.all(clients.slice(0, 2).map(async (client) => textOf(await callTool(client, 'own_where'))))
  expect(new Set(pids).size).toBe(2)
  clients[0]!.close()
  await bus.statusWhere('its worker has gone', ({ workers }) => workers.every(({ pid }) => String(pid) !== pids[0]))
})

describe('questions of members', () => {
  const asks = (name: string, sharing: string) => member({ name, tools: tools('ask') }, { sharing })
  const modern = member({ name: 'new', era: 'modern', tools: tools('input') })
  const bus = sharedBus({
    config: aggregateOf([asks('own', 'isolated'), asks('lent', 'lease'), asks('common', 'shared'), modern]),
  })
  const OFFERS = { elicitation: {}, sampling: {} }
  const ELICIT = { method: 'elicitation/create', params: { message: '?' } }

  /** Answers whatever it is asked next. */
  async function answer(client: LineClient, result: object): Promise<Message> {
    const question = await client.next()
    client.send({ jsonrpc: '2.0', id: question.id, result })
    return question
  }

  test.each(['own', 'lent'])('%s: they reach a client that has offered to answer them', async (name) => {
    verifies('13.12-questions')
    await allListed(bus())
    const client = await guest(bus(), OFFERS)
    client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: `${name}_ask`, arguments: ELICIT } })
    expect(await answer(client, { action: 'accept' })).toMatchObject(ELICIT)
    expect(JSON.parse(textOf(await client.answerTo(1)))).toEqual({ action: 'accept' })
  })

  test('they are refused where nobody offered, where the worker is shared, and to stateless clients', async () => {
    verifies('13.12-questions')
    const client = await guest(bus(), OFFERS)
    const refused = JSON.parse(textOf(await callTool(client, 'common_ask', ELICIT)))
    expect(refused.code).toBeLessThan(0)
    const bare = await guest(bus(), {})
    expect(JSON.parse(textOf(await callTool(bare, 'own_ask', ELICIT)))).toMatchObject({ code: -32601 })
    const stateless = await bus().connect()
    expect(JSON.parse(textOf(await callTool(stateless, 'own_ask', ELICIT, META)))).toMatchObject({ code: -32601 })
  })

  test.each(['isolated', 'lease'])(
    '%s: what a server shows only to hosts that answer is listed, and asks them',
    async (sharing) => {
      verifies('13.12-questions')
      const every = { id: 'every', command: process.execPath, args: [EVERYTHING], sharing }
      const host = await guest(await startBus({ config: aggregateOf([every], { list_wait_ms: 15_000 }) }), OFFERS)
      const name = 'every_trigger-elicitation-request'
      await eventually('the tool', async () => (await toolNames(host)).includes(name))
      host.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } })
      const { id } = await eventually('the question', () =>
        host.lines.map((line) => JSON.parse(line.toString())).find(({ method }) => method === 'elicitation/create'),
      )
      host.send({ jsonrpc: '2.0', id, result: { action: 'decline' } })
      expect(textOf(await host.answerTo(1))).toContain('declined')
    },
  )

  test('how far an answer is hears the member that has asked, though another has chosen the same token', async () => {
    verifies('13.12-questions')
    const pools = ['one', 'two'].map((name) => member({ name, tools: tools('ask') }, { sharing: 'isolated' }))
    const asking = await startBus({ config: aggregateOf(pools) })
    await allListed(asking)
    const client = await guest(asking, OFFERS)
    for (const name of ['one', 'two']) {
      const params = { name, messages: [], _meta: { progressToken: 7 } }
      const args = { method: 'sampling/createMessage', params }
      client.send({ jsonrpc: '2.0', id: name, method: 'tools/call', params: { name: `${name}_ask`, arguments: args } })
    }
    const questions = [await client.next(), await client.next()]
    for (const { params } of questions) {
      const { progressToken } = params._meta
      const told = { progressToken, progress: 1, message: params.name }
      client.send({ jsonrpc: '2.0', method: 'notifications/progress', params: told })
    }
    for (const { id } of questions) {
      client.send({ jsonrpc: '2.0', id, result: {} })
      await client.next()
    }
    for (const name of ['one', 'two']) {
      const told = heardBy(asking, name).filter(({ method }) => method === 'notifications/progress')
      expect(told.map(({ params }) => params)).toEqual([{ progressToken: 7, progress: 1, message: name }])
    }
  })

  test("an answer that nobody asked for is nobody's", async () => {
    const client = await guest(bus(), OFFERS)
    client.send({ jsonrpc: '2.0', id: 'q1', result: { action: 'accept' } })
    client.send({ jsonrpc: '2.0', id: 7, error: { code: 1, message: 'x' } })
    expect((await ask(client, 'ping')).result).toEqual({})
  })

  test('input_required becomes questions and a repeated call, eight times at most', async () => {
    verifies('13.12-input')
    const client = await guest(bus(), OFFERS)
    const call = (id: number, rounds: number) =>
      client.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'new_input', arguments: { rounds } } })
    call(1, 2)
    for (const round of [1, 2])
      expect(await answer(client, { action: 'accept', content: { round } })).toMatchObject({
        method: 'elicitation/create',
        params: { message: `round ${round}` },
      })
    const done = await client.answerTo(1)
    expect(done.result.resultType).toBeUndefined()
    expect(JSON.parse(textOf(done))).toEqual({ q: { action: 'accept', content: { round: 2 } } })
    call(2, 100)
    for (let round = 1; round <= 8; round++) await answer(client, { action: 'accept' })
    expect(await client.answerTo(2)).toMatchObject({ error: { code: -32603, data: { reason: 'input_required' } } })
    const bare = await guest(bus(), {})
    expect(await callTool(bare, 'new_input')).toMatchObject({ error: { data: { reason: 'input_required' } } })
    const stateless = await bus().connect()
    expect((await callTool(stateless, 'new_input', {}, META)).result.resultType).toBe('input_required')
  })
})

describe('logging and subscriptions', () => {
  const resources = [{ uri: 'r://1', name: 'one' }]
  const old = member({ name: 'old', tools: tools('log', 'touch', 'change'), resources })
  const modern = member({
    name: 'new',
    era: 'modern',
    tools: tools('touch'),
    resources: [{ uri: 'r://2', name: 'two' }],
  })

  test('log lines name their pool, and the level goes to all members', async () => {
    verifies('13.11-logging')
    const bus = await startBus({ config: aggregateOf([old, modern]) })
    const client = await guest(bus)
    await allListed(bus)
    expect((await ask(client, 'logging/setLevel', { level: 'info' })).result).toEqual({})
    expect(await ask(client, 'logging/setLevel', { level: 'loud' })).toMatchObject({ error: { code: -32602 } })
    await hearsOf(
      bus,
      'old',
      'the level',
      ({ method, params }) => method === 'logging/setLevel' && params.level === 'info',
    )
    for (const [logger, told] of [
      ['db', 'old/db'],
      [undefined, 'old/'],
    ]) {
      client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'old_log', arguments: { logger } } })
      expect(await client.next()).toMatchObject({ method: 'notifications/message', params: { logger: told } })
      await client.answerTo(1)
    }
    await callTool(client, 'new_touch', { uri: 'x' })
    const { params } = await hearsOf(bus, 'new', 'the call', ({ method }) => method === 'tools/call')
    expect(params._meta['io.modelcontextprotocol/logLevel']).toBe('info')
  })

  test('a client with a handshake hears of resources of both eras', async () => {
    const bus = await startBus({ config: aggregateOf([old, modern]) })
    const client = await guest(bus)
    for (const [n, name] of [[1, 'old'] as const, [2, 'new'] as const]) {
      expect((await ask(client, 'resources/subscribe', { uri: `r://${n}` })).result).toEqual({})
      await hearsOf(bus, name, 'of it', ({ method }) =>
        ['resources/subscribe', 'subscriptions/listen'].includes(method),
      )
      await sleep(100)
      client.send({
        jsonrpc: '2.0',
        id: 'touch',
        method: 'tools/call',
        params: { name: `${name}_touch`, arguments: { uri: `r://${n}` } },
      })
      expect(await client.next()).toEqual({
        jsonrpc: '2.0',
        method: 'notifications/resources/updated',
        params: { uri: `r://${n}` },
      })
      await client.answerTo('touch')
      expect((await ask(client, 'resources/unsubscribe', { uri: `r://${n}` })).result).toEqual({})
    }
  })

  test('what a client wants to hear of it hears after its member has restarted', async () => {
    verifies('13.11-listen')
    const mortal = member({ name: 'm', era: 'modern', tools: tools('touch', 'die'), resources })
    const bus = await startBus({ config: aggregateOf([mortal]) })
    const client = await guest(bus)
    expect((await ask(client, 'resources/subscribe', { uri: 'r://1' })).result).toEqual({})
    const listens = () =>
      heardBy(bus, 'm').filter(({ params }) => params?.notifications?.resourceSubscriptions !== undefined).length
    await eventually('the member to be listened to', () => listens() === 1)
    expect((await callTool(client, 'm_die')).error).toBeDefined()
    await eventually('it to be listened to again', () => listens() === 2)
    client.send({
      jsonrpc: '2.0',
      id: 't',
      method: 'tools/call',
      params: { name: 'm_touch', arguments: { uri: 'r://1' } },
    })
    const told = await eventually('the word', async () => {
      const message = await client.next()
      return message.method === 'notifications/resources/updated' && message
    })
    expect(told.params).toEqual({ uri: 'r://1' })
  })

  test('a stateless client listens to all members: one acknowledgement, every message with its id, until cancelled', async () => {
    verifies('13.11-listen')
    const bus = await startBus({ config: aggregateOf([old, modern]) })
    await allListed(bus)
    const client = await bus.connect()
    const notifications = { toolsListChanged: true, resourceSubscriptions: ['r://1', 'r://2', 'r://nobody'] }
    client.send({ jsonrpc: '2.0', id: 'sub', method: 'subscriptions/listen', params: { notifications, ...META } })
    expect(await client.next()).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: {
        notifications: { toolsListChanged: true, resourceSubscriptions: ['r://1', 'r://2'] },
        _meta: { [SUBSCRIPTION]: 'sub' },
      },
    })
    const isListening = ({ params }: Message) => params?.notifications?.resourceSubscriptions !== undefined
    await hearsOf(bus, 'old', 'of it', ({ method }) => method === 'resources/subscribe')
    await hearsOf(bus, 'new', 'of it', isListening)
    for (const [name, uri] of [
      ['old_touch', 'r://1'],
      ['new_touch', 'r://2'],
    ]) {
      const params = { name, arguments: { uri }, ...META }
      client.send({ jsonrpc: '2.0', id: name, method: 'tools/call', params })
      expect(await client.next()).toEqual({
        jsonrpc: '2.0',
        method: 'notifications/resources/updated',
        params: { uri, _meta: { [SUBSCRIPTION]: 'sub' } },
      })
      await client.answerTo(name)
    }
    const params = { name: 'old_change', arguments: { lists: { tools: tools('other') } }, ...META }
    client.send({ jsonrpc: '2.0', id: 'c', method: 'tools/call', params })
    const changed = await eventually('the change', async () => {
      const message = await client.next()
      return message.method === 'notifications/tools/list_changed' && message
    })
    expect(changed.params).toEqual({ _meta: { [SUBSCRIPTION]: 'sub' } })
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'sub' } })
    await hearsOf(bus, 'old', 'that it is over', ({ method }) => method === 'resources/unsubscribe')
    await bus.statusWhere('nothing is owed', ({ outstanding }) => outstanding === 0)
    const again = { notifications, ...META }
    client.send({ jsonrpc: '2.0', id: 'sub2', method: 'subscriptions/listen', params: again })
    await client.taken()
    const begun = performance.now()
    expect(await bus.stop()).toMatchObject({ code: 0 })
    expect(performance.now() - begun).toBeLessThan(8_000)
    expect(client.lines.some((line) => line.includes('"id":"sub2","result"'))).toBe(true)
  })
})

test('rules of a principal are tried on both names, for lists and for calls', async () => {
  verifies('13.6-rights')
  const files = member({ name: 'files', tools: tools('read', 'write', 'where') })
  const git = member({ name: 'git', tools: tools('push', 'where') })
  const anonymous = {
    pools: ['all'],
    tools: { allow: ['read', 'git_*', 'files::where'], deny: ['push'] },
  }
  const bus = await startBus({ config: aggregateOf([files, git], {}, { access: { anonymous } }), doors: ['tcp'] })
  onTestFinished(() => bus.kill())
  const client = await guest(bus)
  expect(await toolNames(client)).toEqual(['files_read', 'files_where', 'git_where'])
  expect((await callTool(client, 'git_where')).result).toBeDefined()
  for (const name of ['git_push', 'files_write'])
    expect(await callTool(client, name)).toMatchObject({ error: { data: { reason: 'unknown_tool' } } })
  expect(await client.ask({ jsonrpc: '2.0', id: 9, pool: 'git', method: 'ping' })).toMatchObject({
    error: { data: { reason: 'not_allowed' } },
  })
  expect(heardBy(bus, 'git').some(({ params }) => params?.name === 'push')).toBe(false)
})

test('calls at traced members are of the client that made them, and what the bus lists for itself is no call of anybody', async () => {
  verifies('13.20-caller')
  const seen = ['old', 'new'].map((name) =>
    member({ name, era: name === 'new' ? 'modern' : 'legacy', tools: tools('where') }, { trace: true }),
  )
  const access = { anonymous: { pools: ['*'] } }
  const more = { access, aio: { store: { path: 'traces.db' } } }
  const bus = await startBus({ config: aggregateOf(seen, {}, more), doors: ['unix', 'tcp'] })
  const client = await guest({ connect: () => bus.connect('tcp') } as typeof bus)
  await toolNames(client)
  for (const name of ['old_where', 'new_where']) expect((await callTool(client, name)).result).toBeDefined()
  const local = await bus.connect('unix')
  const bySelf = await local.ask({ id: 1, method: 'bus::traces.list', params: {} })
  expect(bySelf.result.traces.map((trace: Message) => [trace.agent, trace.method])).toEqual([
    ['new', 'tools/call'],
    ['old', 'tools/call'],
  ])
  for (const { trace_id } of bySelf.result.traces) {
    const { result } = await local.ask({ id: 2, method: 'bus::traces.get', params: { trace_id } })
    expect(result.calls[0].caller).toMatchObject({ kind: 'client', principal: 'anonymous' })
  }
})

test('a client that does not read holds up its member and nobody else, and loses nothing', async () => {
  const big = member({ name: 'big', tools: tools('raw') })
  const bus = await startBus({ config: aggregateOf([big], {}, { limits: { max_output_queue: 65_536 } }) })
  const [slow, quick] = [await guest(bus), await guest(bus)]
  slow.pause()
  const result = JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(50_000) }] })
  for (let n = 0; n < 30; n++)
    slow.send({ jsonrpc: '2.0', id: n, method: 'tools/call', params: { name: 'big_raw', arguments: { result } } })
  expect((await ask(quick, 'ping')).result).toEqual({})
  await sleep(300)
  slow.resume()
  for (let n = 0; n < 30; n++) expect((await slow.answerTo(n)).result.content[0].text).toHaveLength(50_000)
})
