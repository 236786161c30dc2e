import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type McpServer, methods } from '@agentclientprotocol/sdk'
import { afterEach, describe, expect, it } from 'vitest'
import { calls, says } from '../../src/agents/demo-endpoint/reply.ts'
import type { Script } from '../../src/agents/demo-endpoint/server.ts'
import { verifies } from '../conformance/verifies.ts'
import { allow, type Harness, type HarnessOptions, reject, startHarness, until } from './openai-agent-harness.ts'

const program = fileURLToPath(new URL('openai-agent-mcp-server.mjs', import.meta.url))
const weather: McpServer = { name: 'weather', command: process.execPath, args: [program], env: [] }
const missing: McpServer = { name: 'missing', command: 'no-such-program-anywhere', args: [], env: [] }

let harness: Harness
afterEach(() => harness.stop())

/** Calls the tool first, then says what came back. */
function callThenSay(name: string, args = '{"city":"Minsk"}'): Script {
  return (request) => {
    const last = request.body.messages.at(-1)
    return last.role === 'tool' ? says(`I heard: ${last.content}`) : calls({ name, arguments: args })
  }
}

async function start(script: Script, permission?: HarnessOptions['permission'], servers: McpServer[] = [weather]) {
  harness = await startHarness({ script, ...(permission ? { permission } : {}) })
  return harness.newSession(process.cwd(), servers)
}

const statuses = () =>
  harness.updates.flatMap(({ update }) =>
    update.sessionUpdate === 'tool_call' || update.sessionUpdate === 'tool_call_update' ? [update.status] : [],
  )

describe('tools', () => {
  it('are offered, asked for, run, shown and fed back', async () => {
    verifies('O13-loop')
    const asked: unknown[] = []
    const session = await start(callThenSay('get_weather'), (request) => {
      asked.push(request)
      return allow!(request)
    })
    expect(await harness.prompt(session, 'weather?')).toBe('end_turn')
    expect(harness.shown(session)).toBe('I heard: Sunny in Minsk.')
    expect(statuses()).toEqual(['pending', 'in_progress', 'completed'])
    expect(asked).toMatchObject([
      {
        sessionId: session,
        toolCall: { title: 'weather: get weather', rawInput: { city: 'Minsk' } },
        options: [{ kind: 'allow_once' }, { kind: 'reject_once' }],
      },
    ])
    const [first, second] = harness.endpoint.chats()
    expect(first!.body.tools[0]).toEqual({
      type: 'function',
      function: { name: 'get_weather', description: 'The weather of a city.', parameters: { type: 'object' } },
    })
    expect(second!.body.messages.slice(1)).toMatchObject([
      { role: 'assistant', content: null, tool_calls: [{ id: 'call_0', function: { name: 'get_weather' } }] },
      { role: 'tool', tool_call_id: 'call_0', content: 'Sunny in Minsk.' },
    ])
  })

  it.each<[string, string, string, HarnessOptions['permission']]>([
    ['refused', 'get_weather', 'The user did not allow this call.', reject],
    ['answered with an error', 'get_weather', 'The user did not allow this call.', undefined],
    ['failing', 'fail', 'It broke.', allow],
    ['unknown', 'no_such_tool', 'There is no tool of this name.', allow],
  ])('that are %s end as failed and the model is told', async (_, name, reason, permission) => {
    const session = await start(callThenSay(name), permission)
    expect(await harness.prompt(session, 'go')).toBe('end_turn')
    expect(statuses().at(-1)).toBe('failed')
    expect(harness.shown(session)).toBe(`I heard: ${reason}`)
  })

  it('are called at most 25 rounds', async () => {
    verifies('O3-rounds')
    const session = await start(() => calls({ name: 'get_weather', arguments: '{}' }), allow)
    expect(await harness.prompt(session, 'go')).toBe('max_turn_requests')
    expect(harness.endpoint.chats()).toHaveLength(25)
  })

  it('that are cancelled leave no call without its result', async () => {
    verifies('O13-result')
    const script: Script = (request) =>
      request.body.messages.at(-1).content === 'again' ? says('ok') : calls({ name: 'wait', arguments: '{}' })
    const session = await start(script, allow)
    const turn = harness.prompt(session, 'go')
    await until(() => statuses().includes('in_progress'))
    await harness.ctx.notify(methods.agent.session.cancel, { sessionId: session })
    expect(await turn).toBe('cancelled')
    expect(await harness.prompt(session, 'again')).toBe('end_turn')
    const roles = harness.endpoint
      .chats()
      .at(-1)!
      .body.messages.map((message: { role: string }) => message.role)
    expect(roles).toEqual(['user', 'assistant', 'tool', 'user'])
  })

  it('wait for permission no longer than the turn lasts', async () => {
    const session = await start(callThenSay('get_weather'), () => new Promise(() => {}))
    const turn = harness.prompt(session, 'go')
    await until(() => statuses().includes('pending'))
    await harness.ctx.notify(methods.agent.session.cancel, { sessionId: session })
    expect(await turn).toBe('cancelled')
  })

  it('never see the environment of the agent', async () => {
    verifies('O13-environment')
    process.env['OPENAI_API_KEY_OF_TEST'] = 'x'
    const session = await start(callThenSay('environment', '{}'), allow, [
      { ...weather, env: [{ name: 'GIVEN', value: '1' }] } as McpServer,
    ])
    await harness.prompt(session, 'go')
    delete process.env['OPENAI_API_KEY_OF_TEST']
    expect(harness.shown(session)).toContain('GIVEN')
    expect(harness.shown(session)).not.toContain('OPENAI_API_KEY_OF_TEST')
  })

  it('of two servers with the same names are told apart', async () => {
    const session = await start(callThenSay('second_get_weather'), allow, [weather, { ...weather, name: 'second' }])
    await harness.prompt(session, 'go')
    expect(harness.shown(session)).toBe('I heard: Sunny in Minsk.')
  })
})

describe('a server that cannot be reached', () => {
  it('is reported once, and the session works without it', async () => {
    verifies('O13-unreachable')
    const session = await start(() => says('fine'), allow, [missing])
    expect(await harness.prompt(session, 'hi')).toBe('end_turn')
    expect(await harness.prompt(session, 'hi')).toBe('end_turn')
    const reports = harness.updates.filter(({ update }) => update.sessionUpdate === 'tool_call')
    expect(reports).toMatchObject([{ update: { status: 'failed', title: expect.stringContaining('missing') } }])
    expect(harness.logs).toEqual([expect.stringContaining('"missing" is not available')])
    expect(harness.endpoint.chats()[0]!.body).not.toHaveProperty('tools')
    expect(harness.shown(session)).toBe('finefine')
  })
})

describe('a server over HTTP', () => {
  let server: Server

  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  it('is reached with its headers', async () => {
    const seen: unknown[] = []
    server = createServer((request, response) => {
      seen.push(request.headers['x-token'])
      if (request.method !== 'POST') return void response.writeHead(405).end()
      let body = ''
      request.on('data', (chunk) => (body += chunk))
      request.on('end', () => {
        const { id, method, params } = JSON.parse(body)
        if (id === undefined) return void response.writeHead(202).end()
        const result = {
          initialize: {
            protocolVersion: params?.protocolVersion,
            capabilities: { tools: {} },
            serverInfo: { name: 'remote', version: '1' },
          },
          'tools/list': { tools: [{ name: 'ping', inputSchema: { type: 'object' } }] },
          'tools/call': { content: [{ type: 'text', text: 'pong' }] },
        }[method as string]
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
    const remote: McpServer = { type: 'http', name: 'remote', url, headers: [{ name: 'X-Token', value: 'secret' }] }
    const session = await start(callThenSay('ping', '{}'), allow, [remote])
    expect(await harness.prompt(session, 'go')).toBe('end_turn')
    expect(harness.shown(session)).toBe('I heard: pong')
    expect(new Set(seen)).toEqual(new Set(['secret']))
  })
})
