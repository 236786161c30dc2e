/** What things are called at an aggregate (contract 13.4 to 13.7): names, conflicts, hidden things, URIs. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { listedName } from '../../src/aggregate/names.ts'
import { UriTemplate } from '../../src/aggregate/uri-templates.ts'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { eventually } from '../support/waiting.ts'
import { aggregateOf, ask, callTool, guest, heardBy, META, member, tool, toolNames, tools } from './members.ts'

const PLAIN = { pool: 'git', allow: ['*'], deny: [], rename: new Map<string, string>() }
const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 8)

describe('a listed name', () => {
  test('is the own name behind the prefix, or the new one', () => {
    verifies('13.4-names')
    expect(listedName(PLAIN, 'log', 48)).toBe('git_log')
    expect(listedName({ ...PLAIN, prefix: '' }, 'log', 48)).toBe('log')
    expect(listedName({ ...PLAIN, prefix: 'g-' }, 'log', 48)).toBe('g-log')
    expect(listedName({ ...PLAIN, rename: new Map([['log', 'history']]) }, 'log', 48)).toBe('history')
  })

  test('that does not fit is cut and ends in its hash, at the bound and one beyond it', () => {
    verifies('13.4-names')
    const fits = 'x'.repeat(48 - 'git_'.length)
    expect(listedName(PLAIN, fits, 48)).toBe(`git_${fits}`)
    const long = `${fits}y`
    expect(listedName(PLAIN, long, 48)).toBe(`${`git_${long}`.slice(0, 39)}_${hash(`git/${long}`)}`)
    expect(listedName(PLAIN, 'a.b c', 48)).toBe(`git_a_b_c_${hash('git/a.b c')}`)
  })

  test('fits every model whatever the member calls it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 16, max: 64 }), (own, most) => {
        expect(listedName(PLAIN, own, most)).toMatch(new RegExp(`^[A-Za-z0-9_-]{1,${most}}$`))
      }),
    )
  })
})

test.each([
  ['file:///{path}', 'file:///a', true],
  ['file:///{path}', 'file:///a/b', false],
  ['file:///{+path}', 'file:///a/b', true],
  ['demo://{a}/x/{b}', 'demo://1/x/2', true],
  ['demo://{a}/x/{b}', 'demo://1/y/2', false],
  ['demo://fixed', 'demo://fixed', true],
  ['q://s{?a,b}', 'q://s?a=1', true],
  ['', '', false],
])('the template %s and %s', (template, uri, fits) => {
  expect(new UriTemplate(template).matches(uri)).toBe(fits)
})

test('a template made to be slow is given up', () => {
  const template = new UriTemplate(`${'{+a}a'.repeat(30)}b`)
  const begun = performance.now()
  expect(template.matches(`${'a'.repeat(5_000)}c`)).toBe(false)
  expect(performance.now() - begun).toBeLessThan(500)
})

describe('two members', () => {
  const files = member({
    name: 'files',
    tools: [tool('read', { title: 'Read it', 'x-own': [1.0, { deep: true }] }), tool('push_now'), tool('where')],
    prompts: [{ name: 'greet' }],
    resources: [{ uri: 'demo://same', name: 'a' }],
    templates: [{ uriTemplate: 'files://{id}', name: 't' }],
  })
  const git = member({
    name: 'git',
    tools: tools('list', 'push_now', 'raw', 'fail'),
    prompts: [{ name: 'greet' }],
    resources: [
      { uri: 'demo://same', name: 'b' },
      { uri: 'demo://git', name: 'g' },
    ],
  })
  const bus = sharedBus({
    config: aggregateOf([files, git], {
      members: ['files', { pool: 'git', prefix: 'g_', deny: ['push*'], rename: { list: 'history' } }],
    }),
  })

  test('are listed together, in the order of the file, and keep all their fields', async () => {
    verifies('13.4-hidden', '13.6-items')
    const client = await guest(bus())
    const { result } = await ask(client, 'tools/list')
    expect(result.tools.map(({ name }: { name: string }) => name)).toEqual([
      'files_read',
      'files_push_now',
      'files_where',
      'history',
      'g_raw',
      'g_fail',
    ])
    expect(result.tools[0]).toEqual({
      ...tool('files_read', { title: 'Read it', 'x-own': [1, { deep: true }] }),
      _meta: { 'stdio-bus/pool': 'files', 'stdio-bus/name': 'read' },
    })
    expect(result.tools[3]).toMatchObject({ title: 'list', _meta: { 'stdio-bus/name': 'list' } })
  })

  test('are called by their own names, and what is hidden or unknown reaches nobody', async () => {
    verifies('13.6-unknown')
    const client = await guest(bus())
    expect((await callTool(client, 'history')).result.content[0].text).toBe('git:list')
    for (const name of ['g_push_now', 'push_now', 'nobody', 'files_list'])
      expect(await callTool(client, name)).toMatchObject({
        error: { code: -32602, data: { reason: 'unknown_tool', name } },
      })
    expect(await ask(client, 'tools/call', {})).toMatchObject({ error: { data: { reason: 'unknown_tool' } } })
    expect(heardBy(bus(), 'git').some(({ params }) => params?.name === 'push_now')).toBe(false)
  })

  test('get their arguments and give their results and errors byte for byte', async () => {
    verifies('13.6-bytes')
    const client = await guest(bus())
    const result = '{"content":[], "n":1.0, "big":12345678901234567890, "e":1e2, "s":"\\u0041\\/"}'
    const args = `{"result":${JSON.stringify(result)}, "z":1.50,"é":"\\u00e9","deep":[[ ]]}`
    const line = `{"jsonrpc":"2.0","params":{"arguments":${args} , "name":"g_\\u0072aw"},"id":"xé","method":"tools/call"}`
    client.send(line)
    expect((await client.nextLine()).toString()).toBe(`{"jsonrpc":"2.0","result":${result},"id":"xé"}`)
    expect(
      bus()
        .workspace.lines('heard-git')
        .findLast((heard) => heard.includes('tools/call')),
    ).toContain(args)
    const error = '{"code":-32000,"message":"no","data":{"x":1.0}}'
    client.send({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'g_fail', arguments: { error } } })
    expect((await client.nextLine()).toString()).toBe(`{"jsonrpc":"2.0","error":${error},"id":7}`)
  })

  test('have prompts by name, and resources by who lists them, whose template fits, or in whose result they came', async () => {
    verifies('13.7-resources')
    const client = await guest(bus())
    expect((await ask(client, 'prompts/get', { name: 'g_greet' })).result.description).toBe('git:greet')
    expect(await ask(client, 'prompts/get', { name: 'greet' })).toMatchObject({
      error: { data: { reason: 'unknown_prompt' } },
    })
    const read = async (uri: string) => (await ask(client, 'resources/read', { uri })).result?.contents[0].text
    expect(await read('demo://same')).toBe('files')
    expect(await read('demo://git')).toBe('git')
    expect(await read('files://anything')).toBe('files')
    expect(await ask(client, 'resources/read', { uri: 'demo://nobody' })).toMatchObject({
      error: { code: -32002, data: { reason: 'unknown_resource' } },
    })
    expect(await ask(client, 'resources/read', { uri: 'demo://nobody', ...META })).toMatchObject({
      error: { code: -32602 },
    })
    const link = '{"content":[{"type":"resource_link","uri":"demo://linked","name":"l"}]}'
    await callTool(client, 'g_raw', { result: link })
    expect(await read('demo://linked')).toBe('git')
    const complete = async (ref: object) =>
      (await ask(client, 'completion/complete', { ref, argument: { name: 'a', value: '' } })).result.completion.values
    expect(await complete({ type: 'ref/prompt', name: 'g_greet' })).toEqual(['git:greet'])
    expect(await complete({ type: 'ref/resource', uri: 'files://{id}' })).toEqual(['files:files://{id}'])
  })
})

describe('one name twice', () => {
  test('the earlier member keeps it; when it goes, the name passes on, and whoever has not listed since is told', async () => {
    verifies('13.5-conflict', '13.5-moved')
    const one = member({ name: 'one', tools: tools('search', 'change') })
    const two = member({ name: 'two', tools: tools('search', 'find_tools') })
    const members = ['one', 'two'].map((pool) => ({ pool, prefix: '' }))
    const bus = await startBus({ config: aggregateOf([one, two], { members }) })
    const [client, other] = [await guest(bus), await guest(bus)]
    expect(await toolNames(client)).toEqual(['search', 'change', 'two_search', 'find_tools'])
    expect(await toolNames(other)).toHaveLength(4)
    const { aggregates } = (await bus.status()) as unknown as { aggregates: { conflicts: object[] }[] }
    expect(aggregates[0]!.conflicts).toEqual([
      { pool: 'two', own: 'search', name: 'search', kept_by: 'one', listed: 'two_search' },
    ])
    expect(bus.log.text).toContain('two members have one name')
    await callTool(client, 'change', { lists: { tools: tools('change') } })
    await eventually('the change', async () => (await toolNames(client)).join() === 'change,search,find_tools')
    expect((await callTool(client, 'search')).result.content[0].text).toBe('two:search')
    expect(await callTool(other, 'search')).toMatchObject({ error: { code: -32602, data: { reason: 'tool_moved' } } })
    await toolNames(other)
    expect((await callTool(other, 'search')).result.content[0].text).toBe('two:search')
  })
})
