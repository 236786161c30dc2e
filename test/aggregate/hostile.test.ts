/** Members and clients of an aggregate that mean no good (contract 13.6 to 13.13): whatever they say, everybody else is served. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { join } from '../interop/sdk-guests.ts'
import { startBus } from '../support/bus.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { eventually, sleep } from '../support/waiting.ts'
import { aggregateOf, ask, callTool, guest, heardBy, hearsOf, META, member, toolNames, tools } from './members.ts'

const good = member({ name: 'good', tools: tools('where') })
const LONG = { limits: { max_input_buffer: 33_554_432, max_output_queue: 33_554_432 } }

describe('a member', () => {
  test('whose items are nested beyond reason has the others listed and found', async () => {
    verifies('13.8-bounds')
    const bus = await startBus({
      config: aggregateOf([member({ name: 'deep', generate: 'deep' }), good], { mode: 'search' }, LONG),
    })
    const client = await guest(bus)
    const { structuredContent } = (await callTool(client, 'find_tools', { query: '' })).result
    expect(structuredContent.tools.map(({ name }: { name: string }) => name)).toEqual(['deep_flat', 'good_where'])
    expect(bus.log.text).toContain('3 entries have no name, or are nested too deep')
  })

  test('whose page has more items than a list may have is cut at 10,000', async () => {
    verifies('13.8-bounds')
    const bus = await startBus({
      config: aggregateOf([member({ name: 'big', generate: 'many' }), good], { list_wait_ms: 20_000 }, LONG),
    })
    const client = await guest(bus)
    let count = 0
    let cursor: string | undefined
    do {
      const { result } = await ask(client, 'tools/list', cursor === undefined ? {} : { cursor })
      count += result.tools.length
      cursor = result.nextCursor
    } while (cursor !== undefined)
    expect(count).toBe(10_001)
    expect((await callTool(client, 'good_where')).result).toBeDefined()
  })

  test('that says with every list that it has changed is listed, and not without a rest', async () => {
    verifies('13.10-changes')
    const storm = member({ name: 'storm', tools: tools('a'), storm: true })
    const begun = performance.now()
    const bus = await startBus({ config: aggregateOf([good, storm], { list_wait_ms: 10_000 }) })
    const client = await guest(bus)
    expect(await toolNames(client)).toEqual(['good_where', 'storm_a'])
    await sleep(1_000)
    const lists = heardBy(bus, 'storm').filter(({ method }) => method === 'tools/list').length
    expect(lists).toBeGreaterThan(1)
    expect(lists).toBeLessThan((performance.now() - begun) / 250 + 3)
    await client.staysQuiet(300)
  })

  test('whose answer to a new list fails is asked again', async () => {
    verifies('13.10-changes')
    const bus = await startBus({ config: aggregateOf([member({ name: 'm', tools: tools('change') })]) })
    const client = await guest(bus)
    await callTool(client, 'm_change', { lists: { tools: tools('change', 'new') }, failing: 1 })
    await eventually('the new tool', async () => (await toolNames(client)).includes('m_new'))
  })

  test('that comes back as another program is known as what it is now', async () => {
    verifies('13.8-restart')
    const second = { capabilities: { tools: {}, prompts: {} }, prompts: [{ name: 'p' }] }
    const first = { capabilities: { tools: {} }, tools: tools('die', 'where') }
    const bus = await startBus({ config: aggregateOf([member({ name: 'm', ...first, second })]) })
    const client = await guest(bus)
    expect((await ask(client, 'prompts/list')).result.prompts).toEqual([])
    expect((await callTool(client, 'm_die')).error).toBeDefined()
    await eventually('the prompt', async () => (await ask(client, 'prompts/list')).result.prompts.length === 1)
    expect((await ask(client, 'prompts/get', { name: 'm_p' })).result.description).toBe('m:p')
  })

  test.each(['v1', 'v2 modern'] as const)(
    'whose items no host can read costs a host, %s, nothing of the others',
    async (era) => {
      verifies('13.8-bounds')
      const inputSchema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }
      const odd = member({
        name: 'odd',
        tools: [
          { name: 'bare' },
          {
            name: 'null',
            title: null,
            description: 5,
            inputSchema: null,
            outputSchema: [],
            annotations: 'x',
            icons: {},
          },
          { name: 'half', inputSchema: { ...inputSchema, type: 'array' }, annotations: { readOnlyHint: 'yes' } },
          { name: 'part', inputSchema: { properties: { path: 5 } }, execution: { taskSupport: 'perhaps' }, _meta: 5 },
          { name: 'whole', title: 'Whole', inputSchema, annotations: { readOnlyHint: true }, own: null },
        ],
        prompts: [{ name: 'p', arguments: [{ name: 5 }], description: {} }],
        resources: [{ uri: 'odd://r', name: 'r', mimeType: 5, size: 'big', annotations: { priority: 7 } }],
        templates: [{ uriTemplate: 'odd://{x}', name: 't', description: [] }],
      })
      const bus = await startBus({ config: aggregateOf([odd, good]) })
      const { client } = await join(bus, era, {}, 'all')
      const { tools: listed } = await client.listTools()
      expect(listed.map(({ name }: { name: string }) => name)).toEqual([
        'odd_bare',
        'odd_null',
        'odd_half',
        'odd_part',
        'odd_whole',
        'good_where',
      ])
      expect(listed[2]).toMatchObject({ inputSchema, title: 'half' })
      expect(listed[4]).toMatchObject({ inputSchema, title: 'Whole', annotations: { readOnlyHint: true } })
      expect((await client.listPrompts()).prompts).toHaveLength(1)
      expect((await client.listResources()).resources).toMatchObject([{ uri: 'odd://r', name: 'r' }])
      expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(1)
      expect((await client.callTool({ name: 'odd_null', arguments: {} })).content[0].text).toBe('odd:null')
      expect(bus.log.text).toContain('4 entries have fields that hosts cannot read')
    },
  )

  test('that has very long words is told of within 64 KiB', async () => {
    verifies('13.13-find')
    const bus = await startBus({
      config: aggregateOf([member({ name: 'big', generate: 'long' })], { mode: 'search', list_wait_ms: 20_000 }, LONG),
    })
    const client = await guest(bus)
    const { structuredContent, content } = (await callTool(client, 'find_tools', { query: '', limit: 25 })).result
    expect(structuredContent.tools).toHaveLength(25)
    expect(Buffer.byteLength(content[0].text)).toBeLessThanOrEqual(65_536)
    expect(JSON.parse(content[0].text)).toEqual(structuredContent)
  })

  test('that has the names of others without end fills neither log nor status with them', async () => {
    verifies('13.5-conflict')
    const bad = member({ name: 'bad', generate: 'endless-name' })
    const members = ['good', 'bad'].map((pool) => ({ pool, prefix: '' }))
    const bus = await startBus({ config: aggregateOf([good, bad], { members }, LONG) })
    const client = await guest(bus)
    expect(await toolNames(client)).toHaveLength(3)
    expect(JSON.stringify(await bus.status()).length).toBeLessThan(50_000)
    expect(bus.log.text.length).toBeLessThan(50_000)
  })

  test('that never answers holds up no word of what has changed elsewhere', async () => {
    verifies('13.1-reload')
    const silent = member({ name: 'silent', silent: true })
    const pools = [good, member({ name: 'old', tools: tools('t') }), silent]
    const bus = await startBus({ config: aggregateOf(pools, { members: ['good', 'old'], list_wait_ms: 500 }) })
    const client = await guest(bus)
    expect(await toolNames(client)).toEqual(['good_where', 'old_t'])
    bus.workspace.write('bus.json', aggregateOf(pools, { members: ['good', 'silent'], list_wait_ms: 500 }))
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    expect((await client.next()).method).toBe('notifications/tools/list_changed')
    expect(await toolNames(client)).toEqual(['good_where'])
  })

  test('that goes in the middle of its list is missing, and follows', async () => {
    verifies('13.8-missing')
    const pools = [good, member({ name: 'torn', tools: tools('t'), dieInList: true })]
    const bus = await startBus({ config: aggregateOf(pools, { list_wait_ms: 10_000 }) })
    const client = await guest(bus)
    const { result } = await ask(client, 'tools/list')
    if (result._meta === undefined) return expect(await toolNames(client)).toEqual(['good_where', 'torn_t'])
    expect(result._meta['stdio-bus/missing']).toEqual(['torn'])
    await eventually('it to follow', async () => (await toolNames(client)).includes('torn_t'))
  })

  test('that answers what nobody asked, and twice, is not heard', async () => {
    verifies('13.3-gone')
    const bus = await startBus({ config: aggregateOf([member({ name: 'liar', tools: tools('lie') }), good]) })
    const [client, other] = [await guest(bus), await guest(bus)]
    expect((await callTool(other, 'good_where')).result).toBeDefined()
    expect((await callTool(client, 'liar_lie')).result.content[0].text).toBe('true')
    expect((await ask(other, 'ping')).result).toEqual({})
    await client.staysQuiet(200)
    await other.staysQuiet(200)
  })
})

test('a prompt whose name has passed to another member is told like a tool', async () => {
  verifies('13.5-moved')
  const one = member({ name: 'one', tools: tools('change'), prompts: [{ name: 'p' }] })
  const two = member({ name: 'two', prompts: [{ name: 'p' }] })
  const members = ['one', 'two'].map((pool) => ({ pool, prefix: '' }))
  const bus = await startBus({ config: aggregateOf([one, two], { members }) })
  const [client, other] = [await guest(bus), await guest(bus)]
  const names = async () => (await ask(client, 'prompts/list')).result.prompts.map(({ name }: { name: string }) => name)
  expect(await names()).toEqual(['p', 'two_p'])
  expect((await ask(other, 'prompts/get', { name: 'p' })).result.description).toBe('one:p')
  await callTool(client, 'change', { lists: { prompts: [] }, kinds: ['prompts'] })
  await eventually('the change', async () => (await names()).join() === 'p')
  expect((await ask(client, 'prompts/get', { name: 'p' })).result.description).toBe('two:p')
  expect(await ask(other, 'prompts/get', { name: 'p' })).toMatchObject({ error: { data: { reason: 'tool_moved' } } })
})

test('a level that a stateless client wants is told to members that it comes to later', async () => {
  verifies('13.11-logging')
  const bus = await startBus({ config: aggregateOf([good]) })
  const client = await bus.connect()
  const _meta = { ...META._meta, 'io.modelcontextprotocol/logLevel': 'debug' }
  expect((await callTool(client, 'good_where', {}, { _meta })).result).toBeDefined()
  await hearsOf(bus, 'good', 'the level', ({ params }) => params?.level === 'debug')
})

test('in search mode no member at all is no_member, never an empty list', async () => {
  verifies('13.8-none')
  const dead = [{ id: 'dead', command: '/nowhere/at/all' }]
  const bus = await startBus({ config: aggregateOf(dead, { list_wait_ms: 300, mode: 'search' }) })
  const client = await guest(bus)
  for (const asked of [
    ask(client, 'tools/list'),
    callTool(client, 'find_tools', { query: 'x' }),
    callTool(client, 'call_tool', { name: 'dead_x' }),
    callTool(client, 'dead_x'),
    ask(client, 'prompts/get', { name: 'dead_x' }),
    ask(client, 'resources/read', { uri: 'dead://x' }),
  ])
    expect(await asked).toMatchObject({ error: { code: -32603, data: { reason: 'no_member', retryable: true } } })
})

test('who asks for what is not there is told which members are missing', async () => {
  verifies('13.8-missing')
  const silent = member({ name: 'late', silent: true })
  const bus = await startBus({ config: aggregateOf([good, silent], { list_wait_ms: 300, mode: 'search' }) })
  const client = await guest(bus)
  const _meta = { 'stdio-bus/missing': ['late'] }
  expect(await callTool(client, 'find_tools', { query: 'x' })).toMatchObject({ result: { _meta } })
  expect(await callTool(client, 'call_tool', { name: 'late_x' })).toMatchObject({ result: { isError: true, _meta } })
  expect(await callTool(client, 'late_x')).toMatchObject({
    error: { code: -32602, data: { reason: 'unknown_tool', missing: ['late'] } },
  })
})

describe('a client', () => {
  const hiding = member({ name: 'm', tools: tools('a'), prompts: [{ name: 'p' }, { name: 'hidden' }] })
  const bus = sharedBus({ config: aggregateOf([hiding], { members: [{ pool: 'm', deny: ['hidden'] }] }) })
  const METHODS = [
    ...['initialize', 'server/discover', 'ping', 'tools/list', 'prompts/list', 'resources/list', 'tools/call'],
    ...['resources/templates/list', 'prompts/get', 'resources/read', 'resources/subscribe', 'resources/unsubscribe'],
    ...['completion/complete', 'logging/setLevel', 'tasks/get', 'nonsense', '__proto__', 'constructor'],
  ]

  test.each([
    '5',
    'null',
    '[]',
    '{"ref":null}',
    '{"ref":5}',
    '{"ref":{"type":"ref/prompt","name":{"toString":1}}}',
    '{"ref":{"type":"ref/prompt","name":"m_p","name":"hidden"}}',
    '{"ref":{"type":"ref/resource","uri":{"toString":1,"valueOf":2}}}',
    '{"name":"m_p","name":"hidden"}',
    '{"name":"hidden","name":"m_p"}',
    '{"name":null,"arguments":null}',
    '{"uri":null}',
    '{"uri":{"a":1}}',
    '{"notifications":5}',
    '{"notifications":null,"_meta":null}',
    '{"cursor":5}',
    '{"level":{}}',
    '{"taskId":{}}',
    '{"_meta":{"io.modelcontextprotocol/protocolVersion":5}}',
    '{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/logLevel":5}}',
    '{"protocolVersion":5,"capabilities":null}',
    '{"capabilities":[],"clientInfo":7}',
  ])('that sends %s to any method has one answer', async (params) => {
    verifies('13.6-unknown')
    for (const method of METHODS) {
      const client = await bus().connect()
      client.send(`{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${params}}`)
      await client.answerTo(1)
      client.send('{"jsonrpc":"2.0","id":2,"method":"ping"}')
      expect((await client.answerTo(2)).result, method).toEqual({})
      client.close()
    }
  })

  test('gets no hidden prompt by naming two', () => {
    verifies('13.6-unknown')
    expect(heardBy(bus(), 'm').filter(({ method }) => /^(prompts.get|completion)/.test(method))).toEqual([])
  })

  test('that listens to more resources than it may is told, however it asks', async () => {
    const client = await bus().connect()
    const uris = (from: number) => Array.from({ length: 4_000 }, (_, n) => `r://${from + n}`)
    const listen = (id: number) =>
      client.send({
        jsonrpc: '2.0',
        id,
        method: 'subscriptions/listen',
        params: {
          notifications: { resourceSubscriptions: [...uris(id * 5_000), ...uris(id * 5_000 + 4_000)] },
          ...META,
        },
      })
    listen(1)
    expect(await client.answerTo(1)).toMatchObject({ error: { data: { reason: 'too_many_subscriptions' } } })
  })
})
