/** Tools on real lines: which may be called, which are listed, and that no worker hears of the others (contract 9.19, 9.20). */

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { busCommand, busEnv } from '../support/bus.ts'
import { pool } from '../support/pools.ts'
import { NOT_ALLOWED, sharedHouse } from './access-harness.ts'

const LOGGING = pool('raw-log', { id: 'git', args: ['heard'] })
const OBEYS = pool('obeys', { id: 'other' })

describe('9.19 calls of tools', () => {
  const house = sharedHouse({
    principals: {
      alice: { tools: { allow: ['read_*', 'git::push', 'caf?'], deny: ['*_secret'] } },
      denied: { tools: { deny: ['other::read_it', 'write_*'] } },
      free: {},
      none: { tools: { allow: [] } },
    },
    pools: [LOGGING, pool('echo', { id: 'other' })],
  })
  const call = (params: string, method = '"tools/call"') =>
    `{"jsonrpc":"2.0","id":1,"method":${method},"params":${params}}`

  test.each<[string, string, string]>([
    ['alice', 'git', '{"name":"read_me"}'],
    ['alice', 'git', '{"name":"push"}'],
    ['alice', 'git', '{"name":"pu\\u0073h"}'],
    ['alice', 'git', '{"n\\u0061me":"push"}'],
    ['alice', 'git', '{"arguments":{"name":"rm"},"name":"read_me"}'],
    ['alice', 'other', '{"name":"café"}'],
    ['denied', 'git', '{"name":"read_it"}'],
    ['free', 'git', '{"name":"anything"}'],
    ['free', 'git', '{}'],
  ])('9.19 %s in %s may: %s', async (who, at, params) => {
    verifies('9.19-called')
    const client = await house().enter(who, { pool: at })
    client.send(call(params))
    expect(await client.next()).toMatchObject({ id: 1, result: {} })
  })

  test.each<[string, string, string]>([
    ['alice', 'other', call('{"name":"push"}')],
    ['alice', 'git', call('{"name":"read_secret"}')],
    ['alice', 'git', call('{"name":"Push"}')],
    ['alice', 'git', call('{"name":"pushx"}')],
    ['alice', 'git', call('{"name":"rm"}')],
    ['alice', 'git', call('{"name":"r\\u006d"}')],
    ['alice', 'git', call('{"n\\u0061me":"rm"}')],
    ['alice', 'git', call('{"name":"push","name":"rm"}')],
    ['alice', 'git', call('{"name":"rm","name":"push"}')],
    ['alice', 'git', call('{"name":"push","n\\u0061me":"rm"}')],
    ['alice', 'git', call('{"name":["push"]}')],
    ['alice', 'git', call('{"name":null}')],
    ['alice', 'git', call('{"arguments":{"name":"push"}}')],
    ['alice', 'git', call('["push"]')],
    ['alice', 'git', call('"push"')],
    ['alice', 'git', '{"jsonrpc":"2.0","id":1,"method":"tools/call"}'],
    ['alice', 'git', call('{"name":"rm"}', '"tools\\/call"')],
    ['alice', 'git', call('{"name":"rm"}', '"tools/c\\u0061ll"')],
    ['denied', 'other', call('{"name":"read_it"}')],
    ['denied', 'git', call('{"name":"write_it"}')],
    ['none', 'git', call('{"name":"read_me"}')],
  ])('9.19 %s in %s may not: %s', async (who, at, line) => {
    verifies('9.19-refused')
    const client = await house().enter(who, { pool: at })
    const before = house().workspace.lines('heard').length
    client.send(line)
    expect(await client.next()).toMatchObject({ id: 1, ...NOT_ALLOWED })
    client.send(line.replace('"id":1,', ''))
    await client.taken()
    await (await house().enter('free', { pool: 'git' })).ask({ id: 1, method: 'after-it' })
    const heard = house().workspace.lines('heard').slice(before)
    expect(heard.map((each) => JSON.parse(each).method)).toEqual(['after-it'])
  })

  test.each([
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"push"},"params":{"name":"rm"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"},"params":{"name":"push"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"m","params":{"name":"rm"}}',
    '{"jsonrpc":"2.0","id":1,"method":"m","method":"tools/call","params":{"name":"rm"}}',
  ])('9.19 what says it twice is refused, and no worker hears of it: %s', async (line) => {
    verifies('9.19-refused')
    const client = await house().enter('alice', { pool: 'git' })
    const before = house().workspace.lines('heard').length
    client.send(line)
    expect(await client.next()).toMatchObject({ error: { code: -32600 } })
    await (await house().enter('free', { pool: 'git' })).ask({ id: 1, method: 'after-it' })
    expect(house().workspace.lines('heard').slice(before)).toHaveLength(1)
  })
})

describe('9.20 lists of tools', () => {
  const house = sharedHouse({
    principals: { alice: { tools: { allow: ['a*'] } }, bob: { tools: { allow: ['b*'] } }, free: {} },
    pools: [OBEYS],
  })
  const list = (id: unknown, result: string) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/list',
    params: { write: `{"jsonrpc":"2.0","id":$ID,"result":${result}}\n` },
  })

  test('9.20 lose what is hidden; every other byte stays, cacheScope becomes private', async () => {
    verifies('9.20-hidden', '9.20-bytes', '9.20-cache-scope')
    const result =
      '{ "tools" : [ {"name":"a1","x":1.50} ,{"name":"b1"}, {"n\\u0061me":"\\u0061 2"}, {} ], "cacheScope":"public" }'
    const whole = await house().enter('free')
    whole.send(list(1, result))
    expect((await whole.nextLine()).toString()).toBe(`{"jsonrpc":"2.0","id":1,"result":${result}}`)
    const alice = await house().enter('alice')
    alice.send(list(1, result))
    const line = (await alice.nextLine()).toString()
    expect(JSON.parse(line).result).toEqual({ tools: [{ name: 'a1', x: 1.5 }, { name: 'a 2' }], cacheScope: 'private' })
    expect(line).toContain('"x":1.50')
    expect(line).toContain('"\\u0061 2"')
  })

  test('9.20 an answer without a list is bad_list', async () => {
    verifies('9.20-bad-list')
    const alice = await house().enter('alice')
    for (const bad of ['{}', '{"tools":5}', '[]', '"x"']) {
      expect(await alice.ask(list(bad, bad))).toMatchObject({ error: { code: -32603, data: { reason: 'bad_list' } } })
    }
  })

  test('9.20 equal ids of different principals never mix', async () => {
    verifies('9.20-equal-ids')
    const result = '{"tools":[{"name":"a1"},{"name":"b1"}]}'
    const who = ['alice', 'bob', 'free']
    const clients = await Promise.all(who.map((name) => house().enter(name)))
    for (const client of clients) for (let n = 0; n < 20; n++) client.send(list(n, result))
    const seen = await Promise.all(clients.map((client) => client.take(20)))
    const names = (answers: { result: { tools: { name: string }[] } }[]) =>
      new Set(answers.flatMap((answer) => answer.result.tools.map(({ name }) => name)))
    expect(seen.map(names)).toEqual([new Set(['a1']), new Set(['b1']), new Set(['a1', 'b1'])])
  })

  test('9.20 an error of the worker passes as it is', async () => {
    verifies('9.20-bytes')
    const alice = await house().enter('alice')
    const write = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-5,"message":"b1 is not to be had"}}\n'
    const answer = await alice.ask({ id: 1, method: 'tools/list', params: { write } })
    expect(answer.error).toEqual({ code: -5, message: 'b1 is not to be had' })
  })
})

describe('9.20 a real host', () => {
  const everything = new URL(
    '../../node_modules/@modelcontextprotocol/server-everything/dist/index.js',
    import.meta.url,
  )
  const house = sharedHouse({
    principals: { alice: { tools: { allow: ['echo', 'get-*'], deny: ['get-env'] } } },
    pools: [{ id: 'everything', command: process.execPath, args: [everything.pathname, 'stdio'] }],
  })

  test('9.20 the official client lists what is allowed, calls it, and is refused the rest', async () => {
    verifies('9.20-host', '9.19-called')
    const { bus, tokens, workspace } = house()
    const [command, first] = busCommand()
    const args = [...first, 'connect', '--tcp', bus.addresses[0]!.replace('tcp:', '')]
    const env = busEnv(workspace, { STDIO_BUS_TOKEN: tokens['alice']! })
    const client = new Client({ name: 'a host', version: '1' })
    await client.connect(new StdioClientTransport({ command, args, env, cwd: workspace.folder, stderr: 'ignore' }))
    const { tools } = await client.listTools()
    expect(tools.length).toBeGreaterThan(1)
    for (const { name } of tools) expect(name).toMatch(/^(echo|get-(?!env$).*)$/)
    expect(await client.callTool({ name: 'echo', arguments: { message: 'hello' } })).toMatchObject({
      content: [{ text: expect.stringContaining('hello') }],
    })
    await expect(client.callTool({ name: 'get-env' })).rejects.toMatchObject({ code: -32600 })
    await client.close()
  })
})
