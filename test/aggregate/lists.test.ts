/** How lists of an aggregate come about (contract 13.1, 13.2, 13.8 to 13.10): members that are slow, silent, dead, or lie. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { initializeLine } from '../interop/mcp-peers.ts'
import { type Bus, runBus, startBus, testWorkspace } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'
import { eventually, sleep } from '../support/waiting.ts'
import { aggregateOf, allListed, ask, callTool, guest, heardBy, META, member, toolNames, tools } from './members.ts'

const CHANGED = 'notifications/tools/list_changed'

test('a client is answered at once, whoever is up, in the revision that it asked for', async () => {
  verifies('13.2-at-once')
  const bus = await startBus({ config: aggregateOf([member({ name: 'mute', silent: true, delayMs: 60_000 })]) })
  const client = await bus.connect()
  for (const version of ['2024-11-05', '2025-06-18', '2025-11-25'])
    expect(await client.ask(initializeLine(version, version))).toMatchObject({
      result: { protocolVersion: version, serverInfo: { name: 'all' }, capabilities: { tools: { listChanged: true } } },
    })
  expect((await client.ask(initializeLine('new', '2099-01-01'))).result.protocolVersion).toBe('2025-11-25')
  const { result } = await ask(client, 'server/discover', META)
  expect(result).toMatchObject({ resultType: 'complete', serverInfo: { name: 'all' } })
  expect(result.supportedVersions).toContain('2026-07-28')
  expect((await ask(client, 'ping')).result).toEqual({})
  const foreign = { _meta: { ...META._meta, 'io.modelcontextprotocol/protocolVersion': '2030-01-01' } }
  expect(await ask(client, 'tools/list', foreign)).toMatchObject({ error: { code: -32022 } })
})

test('instructions are those of the members that are known, each headed by its pool, and cut', async () => {
  verifies('13.2-instructions')
  const one = member({ name: 'one', instructions: 'Be brief.' })
  const two = member({ name: 'two', instructions: 'ü'.repeat(5_000) })
  const bus = await startBus({ config: aggregateOf([one, two, member({ name: 'three' })]) })
  await allListed(bus)
  const client = await bus.connect()
  const { instructions } = (await client.ask(initializeLine(0))).result
  expect(instructions).toBe(`# one\nBe brief.\n\n# two\n${'ü'.repeat(1_024)}`)
})

test('a list waits for those that were never listed, and no longer; they are named, and follow', async () => {
  verifies('13.8-missing')
  const pools = [
    member({ name: 'fast', tools: tools('a') }),
    member({ name: 'slow', tools: tools('b'), delayMs: 2_500 }),
    member({ name: 'silent', tools: tools('c'), silent: true }),
    { id: 'dead', command: '/nowhere/at/all' },
  ]
  const bus = await startBus({ config: aggregateOf(pools, { list_wait_ms: 700 }) })
  const client = await guest(bus)
  const { result } = await ask(client, 'tools/list')
  expect(result.tools.map(({ name }: { name: string }) => name)).toEqual(['fast_a'])
  expect(result._meta).toEqual({ 'stdio-bus/missing': ['slow', 'silent', 'dead'] })
  const begun = performance.now()
  await toolNames(client)
  expect(performance.now() - begun).toBeLessThan(500)
  expect((await client.next()).method).toBe(CHANGED)
  expect(await toolNames(client)).toEqual(['fast_a', 'slow_b'])
})

test('a call before any list waits for it', async () => {
  const bus = await startBus({ config: aggregateOf([member({ name: 'slow', tools: tools('b'), delayMs: 800 })]) })
  const client = await guest(bus)
  expect((await callTool(client, 'slow_b')).result.content[0].text).toBe('slow:b')
})

test('no member at all is no_member, never an empty list; a member without tools is an empty one', async () => {
  verifies('13.8-none')
  const dead = [{ id: 'dead', command: '/nowhere/at/all' }]
  const bus = await startBus({ config: aggregateOf(dead, { list_wait_ms: 300 }) })
  const client = await guest(bus)
  expect(await ask(client, 'tools/list')).toMatchObject({
    error: { code: -32603, data: { reason: 'no_member', retryable: true } },
  })
  const bare = await startBus({ config: aggregateOf([member({ name: 'bare', capabilities: {} })]) })
  expect((await ask(await guest(bare), 'tools/list')).result.tools).toEqual([])
})

describe('members that lie', () => {
  test('lists without end, entries that are none and odd cursors are cut, and the rest is listed', async () => {
    verifies('13.8-bounds')
    const odd = ['{"name":""}', '{"title":"nameless"}', '"text"', '5', '{"name":7}', '{"name":"good","name":"evil"}']
    const pools = [
      member({ name: 'endless', tools: tools('a'), endless: true }),
      member({ name: 'circle', tools: tools('b'), endless: 'same' }),
      member({ name: 'odd', tools: [...odd, '{"name":"x","_meta":{"stdio-bus/pool":"bank"},"n":1.0}'] }),
      member({ name: 'none', tools: [] }),
    ]
    const bus = await startBus({ config: aggregateOf(pools, { list_wait_ms: 8_000 }) })
    const client = await guest(bus)
    const { result } = await ask(client, 'tools/list')
    const names = result.tools.map(({ name }: { name: string }) => name)
    expect(names).toEqual(['endless_a', 'circle_b', 'odd_evil', 'odd_x'])
    expect(result.tools.at(-1)._meta).toEqual({ 'stdio-bus/pool': 'odd', 'stdio-bus/name': 'x' })
    expect(heardBy(bus, 'endless').filter(({ method }) => method === 'tools/list')).toHaveLength(100)
    expect(bus.log.text).toContain('the list of a member was cut')
  })

  test('hostile names are called by what they are', async () => {
    const names = ['../../etc', 'a\u0000b', '\u202eevil', 'x'.repeat(500), '__proto__', 'constructor']
    const bus = await startBus({ config: aggregateOf([member({ name: 'odd', tools: tools(...names) })]) })
    const client = await guest(bus)
    const listed = await toolNames(client)
    expect(listed).toHaveLength(names.length)
    for (const [index, name] of listed.entries()) {
      expect(name).toMatch(/^[A-Za-z0-9_-]{1,48}$/)
      expect((await callTool(client, name)).result.content[0].text).toBe(`odd:${names[index]}`)
    }
  })
})

test('beyond 1,000 items there are pages, and a cursor holds for that list only', async () => {
  verifies('13.9-pages')
  const many = Array.from({ length: 1_500 }, (_, n) => `t${n}`)
  const bus = await startBus({ config: aggregateOf([member({ name: 'm', tools: tools(...many, 'change') })]) })
  const client = await guest(bus)
  const first = (await ask(client, 'tools/list')).result
  expect(first.tools).toHaveLength(1_000)
  const second = (await ask(client, 'tools/list', { cursor: first.nextCursor })).result
  expect(second.tools).toHaveLength(501)
  expect(second.nextCursor).toBeUndefined()
  for (const cursor of ['nonsense', '', `${first.nextCursor}x`, 'MTAwMA'])
    expect(await ask(client, 'tools/list', { cursor })).toMatchObject({ error: { data: { reason: 'bad_cursor' } } })
  expect(await ask(client, 'prompts/list', { cursor: first.nextCursor })).toMatchObject({ error: { code: -32602 } })
  await callTool(client, 'm_change', { lists: { tools: tools(...many, 'change', 'new') } })
  await eventually('the change', async () => (await toolNames(client)).length === 1_000)
  await eventually('the old cursor to be refused', async () => {
    const { error } = await ask(client, 'tools/list', { cursor: first.nextCursor })
    return error?.data.reason === 'bad_cursor'
  })
})

describe('changes', () => {
  test('clients hear of those that they see, and not in storms', async () => {
    verifies('13.10-changes')
    const noisy = member({ name: 'noisy', tools: tools('change', 'seen', 'hidden') })
    const members = [{ pool: 'noisy', prefix: '', deny: ['hidden*'] }]
    const bus = await startBus({ config: aggregateOf([noisy], { members }) })
    const client = await guest(bus)
    await toolNames(client)
    await callTool(client, 'change', { lists: { tools: tools('change', 'seen', 'hidden2') } })
    await client.staysQuiet(600)
    for (let n = 0; n < 20; n++)
      client.send({
        jsonrpc: '2.0',
        id: n,
        method: 'tools/call',
        params: { name: 'change', arguments: { lists: { tools: tools('change', `seen${n}`) } } },
      })
    await eventually('the last change', async () => (await toolNames(client)).includes('seen19'))
    await sleep(400)
    const told = client.lines
      .map((line) => JSON.parse(line.toString()) as Message)
      .filter(({ method }) => method === CHANGED)
    expect(told.length).toBeGreaterThan(0)
    expect(told.length).toBeLessThan(8)
  })

  test('a member that restarts stays listed, and calls wait for it', async () => {
    verifies('13.8-restart')
    const bus = await startBus({ config: aggregateOf([member({ name: 'm', tools: tools('die', 'where') })]) })
    const client = await guest(bus)
    const pid = (await callTool(client, 'm_where')).result.content[0].text
    expect(await callTool(client, 'm_die')).toMatchObject({ error: { data: { reason: 'worker_exited' } } })
    expect(await toolNames(client)).toEqual(['m_die', 'm_where'])
    expect((await callTool(client, 'm_where')).result.content[0].text).not.toBe(pid)
    await client.staysQuiet(300)
  })

  test('a reload that changes members is a list that changes', async () => {
    verifies('13.1-reload')
    const pools = ['a', 'b'].map((name) => member({ name, tools: tools('t') }))
    const bus = await startBus({ config: aggregateOf(pools, { members: ['a'] }) })
    const client = await guest(bus)
    expect(await toolNames(client)).toEqual(['a_t'])
    bus.workspace.write('bus.json', aggregateOf(pools, { members: ['b', { pool: 'a', rename: { t: 'first' } }] }))
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    expect((await client.next()).method).toBe(CHANGED)
    expect(await toolNames(client)).toEqual(['b_t', 'first'])
    expect((await callTool(client, 'first')).result.content[0].text).toBe('a:t')
  })
})

describe('a client that has used a member', () => {
  const link = '{"content":[{"type":"resource_link","uri":"a://made","name":"made"}]}'
  const reload = async (bus: Bus, config: object): Promise<void> => {
    bus.workspace.write('bus.json', config)
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
  }

  const textOf = ({ result }: Message): string => result.content[0].text

  test('reaches it no more when it is a member no more, but has its answer, and gives its worker back', async () => {
    verifies('13.1-reload', '13.3-isolated')
    const a = member({ name: 'a', tools: tools('raw', 'ask') }, { sharing: 'isolated' })
    const pools = [a, member({ name: 'b', tools: tools('t') })]
    const bus = await startBus({ config: aggregateOf(pools) })
    await allListed(bus)
    const client = await guest(bus, { roots: {} })
    await callTool(client, 'a_raw', { result: link })
    const read = () => ask(client, 'resources/read', { uri: 'a://made' })
    expect((await read()).result.contents[0].text).toBe('a')
    const asking = { name: 'a_ask', arguments: { method: 'roots/list' } }
    client.send({ jsonrpc: '2.0', id: 'in hand', method: 'tools/call', params: asking })
    const question = await client.next()
    await reload(bus, aggregateOf(pools, { members: ['b'] }))
    await eventually('the list', async () => (await toolNames(client)).join() === 'b_t')
    expect(await read()).toMatchObject({ error: { code: -32002, data: { reason: 'unknown_resource' } } })
    client.send({ jsonrpc: '2.0', id: question.id, result: { roots: [] } })
    expect(textOf(await client.answerTo('in hand'))).toBe('{"roots":[]}')
    await bus.statusWhere('its worker has gone', ({ workers }) => !workers.some(({ state }) => state === 'retiring'))
  })

  test.each([
    ['legacy', 'modern'],
    ['modern', 'legacy'],
  ])('uses it on when it is no %s but a %s server', async (first, second) => {
    verifies('13.3-eras')
    const config = (era: string) => aggregateOf([member({ name: 'm', era, tools: tools('t') })])
    const bus = await startBus({ config: config(first) })
    const client = await guest(bus)
    expect(textOf(await callTool(client, 'm_t'))).toBe('m:t')
    await reload(bus, config(second))
    await eventually(
      'the other server',
      () => heardBy(bus, 'm').filter(({ method }) => method === 'tools/list').length > 1,
    )
    await eventually('an answer', async () => (await callTool(client, 'm_t')).result !== undefined)
    expect(textOf(await callTool(client, 'm_t'))).toBe('m:t')
  })
})

test('mistakes are reported all at once, exit 2', async () => {
  verifies('13.1-mistakes')
  const workspace = testWorkspace()
  const file = workspace.write('bus.json', {
    pools: [
      { id: 'files', command: 'true' },
      { id: 'agent', agent: 'openai' },
      { id: 'other', members: ['files'] },
      { id: 'plain', command: 'true', mode: 'search' },
      {
        id: 'all',
        members: [
          'files',
          'files',
          'filse',
          'other',
          'agent',
          { pool: 'plain', prefix: 'a b', rename: { x: 'same', y: 'same' } },
        ],
        instances: 2,
        sharing: 'shared',
        mode: 'every',
        max_name: 65,
        pin: ['x'],
      },
      { id: 'none', members: [] },
    ],
  })
  const { code, stderr } = await runBus(['check', '--config', file], { workspace })
  const run = await runBus(['--config', file, '--unix', workspace.path('s')], { workspace })
  expect([code, run.code]).toEqual([2, 2])
  for (const text of [
    '"files" a second time',
    'Did you mean "files"?',
    'which is an aggregate',
    'whose agent speaks ACP',
    '"same" a second time',
    '"instances"',
    '"sharing"',
    '"every"',
    '65',
    '"a b"',
    'only beside "members"',
    'a list that is not empty',
  ])
    expect(`${stderr}${run.stderr}`).toContain(text)
})
