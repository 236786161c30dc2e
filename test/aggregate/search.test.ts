/** Search mode (contract 13.13): the two tools, what they find and how they call it. */
import { describe, expect, test } from 'vitest'
import { nearestNames, SearchIndex, wordsOf } from '../../src/aggregate/search.ts'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { aggregateOf, ask, callTool, guest, heardBy, META, member, tool, toolNames } from './members.ts'

test.each([
  ['readTextFile', ['read', 'text', 'file', 'readtextfile']],
  ['HTTPServer_v2.list-queries', ['http', 'server', 'httpserver', 'v2', 'list', 'query']],
  ['branches boxes classes status bus', ['branch', 'box', 'class', 'status', 'bus']],
  ['Größe', ['größe']],
])('the words of %s', (text, words) => {
  expect(wordsOf(text)).toEqual(words)
})

const document = (name: string, description = '', parameters: string[] = []) => ({
  name,
  title: '',
  description,
  parameters,
})

describe('the order of what is found', () => {
  const index = new SearchIndex([
    document('b_same', 'equal words'),
    document('a_same', 'equal words'),
    document('send_mail', 'Sends a message', ['recipient']),
    document('note', 'mentions mail once'),
    document('x', 'sends mail'),
  ])

  test('names count more than what is said, ties go by name, an exact name is first', () => {
    verifies('13.13-find')
    expect(index.find('mail').names.slice(0, 1)).toEqual(['send_mail'])
    expect(index.find('equal').names).toEqual(['a_same', 'b_same'])
    expect(index.find('X').names[0]).toBe('x')
    expect(index.find('recipients').names).toEqual(['send_mail'])
    expect(index.find('zebra').names).toEqual([])
    expect(index.find('  ').names).toEqual(['a_same', 'b_same', 'note', 'send_mail', 'x'])
  })

  test('a word with a capital in it is found however it is spelled', () => {
    verifies('13.13-find')
    const stores = new SearchIndex([document('localstorage_get'), document('storage_state'), document('b', 'GitHub')])
    expect(stores.find('localStorage').names[0]).toBe('localstorage_get')
    expect(stores.find('github').names).toEqual(['b'])
  })

  test('how a question is asked counts for little, but is not nothing', () => {
    verifies('13.13-find')
    const words = new SearchIndex([document('drop_database', 'x'), document('c', 'which are there'), document('where')])
    expect(words.find('which databases are there').names).toEqual(['drop_database', 'c'])
    expect(words.find('where am I').names).toEqual(['where'])
  })

  test('very much that is said of very many is not all looked at, but each has its share', () => {
    const many = Array.from({ length: 5_000 }, (_, n) =>
      document(`tool_${n}`, `word${n} ${'filler '.repeat(500)} last${n}`, ['parameter']),
    )
    const large = new SearchIndex(many)
    expect(large.find('word4999').names).toEqual(['tool_4999'])
    expect(large.find('last4999').names).toEqual([])
  })

  test('the nearest names look alike', () => {
    expect(nearestNames('sned_mail', ['x', 'send_mail', 'send_male', 'note'], 2)).toEqual(['send_mail', 'send_male'])
  })
})

describe('an aggregate in search mode', () => {
  const named = Array.from({ length: 40 }, (_, n) => tool(`filler_${n}`, { description: 'does nothing much' }))
  const files = member({
    name: 'files',
    tools: [tool('read', { description: 'Read the contents of a file' }), tool('progress'), tool('raw'), ...named],
  })
  const big = member({
    name: 'big',
    tools: [tool('huge', { description: 'enormous', inputSchema: { type: 'object', note: 'x'.repeat(70_000) } })],
  })
  const bus = sharedBus({
    config: aggregateOf([files, big], { mode: 'search', pin: ['files_read', 'files_read', 'nobody'] }),
  })
  const find = async (client: LineClient, args: object, more: object = {}): Promise<Message> =>
    (await callTool(client, 'find_tools', args, more)).result

  test('lists two tools and what is pinned', async () => {
    verifies('13.13-list')
    expect(await toolNames(await guest(bus()))).toEqual(['find_tools', 'call_tool', 'files_read'])
  })

  test('finds tools, with their schemas, as structure and as text', async () => {
    verifies('13.13-find')
    const client = await guest(bus())
    const { structuredContent, content } = await find(client, { query: 'the contents of files' })
    expect(structuredContent.tools[0]).toEqual({
      name: 'files_read',
      title: 'read',
      description: 'Read the contents of a file',
      inputSchema: { type: 'object' },
    })
    expect(JSON.parse(content[0].text)).toEqual(structuredContent)
    expect((await find(client, { query: 'zebra' })).structuredContent).toEqual({ tools: [], total: 0 })
    expect((await find(client, { query: 'enormous' })).structuredContent.tools[0]).toEqual({
      name: 'big_huge',
      title: 'huge',
      description: 'enormous',
    })
    expect((await find(client, { query: 'read' }, META)).resultType).toBe('complete')
  })

  test('an empty query lists everything by name, page by page, within its bounds', async () => {
    verifies('13.13-find')
    const client = await guest(bus())
    const names: string[] = []
    let cursor: string | undefined
    do {
      const page = (await find(client, { query: '', limit: 100, ...(cursor && { cursor }) })).structuredContent
      expect(page.tools.length).toBeLessThanOrEqual(25)
      expect(page.total).toBe(44)
      names.push(...page.tools.map(({ name }: { name: string }) => name))
      cursor = page.next_cursor
    } while (cursor !== undefined)
    expect(names).toEqual([...names].sort())
    expect(names).toHaveLength(44)
    for (const bad of ['x', 5, 'MjUgMQ'])
      expect(await callTool(client, 'find_tools', { query: '', cursor: bad })).toMatchObject({
        error: { data: { reason: 'bad_cursor' } },
      })
    for (const args of [{ query: 5 }, { query: '', limit: 0 }, { query: '', limit: 'x' }])
      expect((await find(client, args)).isError).toBe(true)
  })

  test('calls what was found, with its bytes and its progress; listed names can be called too', async () => {
    verifies('13.13-call')
    const client = await guest(bus())
    expect((await callTool(client, 'files_read')).result.content[0].text).toBe('files:read')
    const inner = '{"result":"{\\"content\\":[], \\"n\\":1.0}","é":[ 1.50 ]}'
    client.send(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool","arguments":{"arguments":${inner},"name":"files_raw"}}}`,
    )
    expect((await client.nextLine()).toString()).toBe('{"jsonrpc":"2.0","result":{"content":[], "n":1.0},"id":1}')
    expect(bus().workspace.lines('heard-files').at(-1)).toContain(`"name":"raw","arguments":${inner}`)
    const args = { name: 'files_progress', arguments: {} }
    const params = { name: 'call_tool', arguments: args, _meta: { progressToken: 7 } }
    client.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params })
    expect(await client.next()).toMatchObject({ method: 'notifications/progress', params: { progressToken: 7 } })
    await client.answerTo(2)
  })

  test('an unknown name is told the nearest, as a result', async () => {
    verifies('13.13-call')
    const client = await guest(bus())
    const { result } = await callTool(client, 'call_tool', { name: 'files_raed' })
    expect(result.isError).toBe(true)
    expect(result.content[0].text).toContain('files_read')
    for (const args of [{}, { name: 5 }, { name: 'call_tool' }])
      expect((await callTool(client, 'call_tool', args)).result.isError).toBe(true)
    expect(heardBy(bus(), 'files').some(({ params }) => params?.name === 'raed')).toBe(false)
  })
})

test('nothing hidden is found, by its name, its rank or its count', async () => {
  verifies('13.6-rights')
  const files = member({
    name: 'files',
    tools: [tool('read', { description: 'common' }), tool('secret', { description: 'common secret' })],
  })
  const access = { anonymous: { pools: ['*'], tools: { deny: ['secret'] } } }
  const bus = await startBus({ config: aggregateOf([files], { mode: 'search' }, { access }), doors: ['tcp'] })
  const client = await guest(bus)
  for (const query of ['secret', 'files_secret', 'common', '']) {
    const { structuredContent } = (await callTool(client, 'find_tools', { query })).result
    expect(JSON.stringify(structuredContent)).not.toContain('secret')
  }
  const { result } = await callTool(client, 'call_tool', { name: 'files_secret', arguments: {} })
  expect(result.content[0].text).not.toContain('nearest names are: files_secret')
  expect(await ask(client, 'tools/call', { name: 'files_secret' })).toMatchObject({ error: { code: -32602 } })
})

test('who is denied a tool of the bus has it neither listed nor called; who is allowed few tools finds those', async () => {
  verifies('13.6-rights')
  const config = (tools: object) =>
    aggregateOf(
      [member({ name: 'files', tools: [tool('read')] })],
      { mode: 'search' },
      { access: { anonymous: { pools: ['*'], tools } } },
    )
  const denied = await guest(await startBus({ config: config({ deny: ['all::call_*'] }), doors: ['tcp'] }))
  expect(await toolNames(denied)).toEqual(['find_tools'])
  expect(await callTool(denied, 'call_tool', { name: 'files_read' })).toMatchObject({
    error: { code: -32602, data: { reason: 'unknown_tool' } },
  })
  const few = await guest(await startBus({ config: config({ allow: ['read'] }), doors: ['tcp'] }))
  expect(await toolNames(few)).toEqual(['find_tools', 'call_tool'])
  expect((await callTool(few, 'call_tool', { name: 'files_read' })).result.content[0].text).toBe('files:read')
})
