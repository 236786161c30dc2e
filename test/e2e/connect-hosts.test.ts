/** Real hosts give `stdio-bus connect` as the command of a server or agent: the stdio transports of the SDKs do the same. */
import { spawn } from 'node:child_process'
import { Readable, Writable } from 'node:stream'
import {
  client as acpClient,
  type ContentBlock,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
} from '@agentclientprotocol/sdk'
import { Client as ClientV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { expect, test } from 'vitest'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { connectCommand, strippedEnv } from './connect-harness.ts'

const everything = {
  id: 'everything',
  command: process.execPath,
  args: [new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url).pathname],
  instances: 1,
}
const bus = sharedBus({ config: config([everything, { id: 'agent', agent: 'echo', instances: 1 }]) })
const info = { name: 'host', version: '1' }

function server(pool: string) {
  return { ...connectCommand('--pool', pool), env: strippedEnv(bus().workspace) }
}

test('three MCP hosts of two generations, each with its own connect, one worker', async () => {
  const hosts = [
    { client: new ClientV1(info), transport: new StdioV1(server('everything')) },
    { client: new ClientV2(info), transport: new StdioV2(server('everything')) },
    { client: new ClientV1(info), transport: new StdioV1(server('everything')) },
  ]
  await Promise.all(hosts.map(({ client, transport }) => client.connect(transport as never)))
  const answers = await Promise.all(
    hosts.map(({ client }, i) => client.callTool({ name: 'echo', arguments: { message: `host ${i}` } })),
  )
  expect(answers.map(({ content }) => JSON.stringify(content).match(/host \d/)?.[0])).toEqual([
    'host 0',
    'host 1',
    'host 2',
  ])
  expect((await hosts[1]!.client.listTools()).tools.map(({ name }) => name)).toContain('echo')
  const { workers } = await bus().status()
  expect(workers.filter(({ pool }) => pool === 'everything')).toHaveLength(1)
  await Promise.all(hosts.map(({ client }) => client.close()))
})

test('a progress token comes back to the host that sent it', async () => {
  const client = new ClientV1(info)
  await client.connect(new StdioV1(server('everything')))
  const progress: number[] = []
  const long = { name: 'trigger-long-running-operation', arguments: { duration: 0.3, steps: 3 } }
  await client.callTool(long, undefined, { onprogress: (step) => progress.push(step.progress) })
  expect(progress.length).toBeGreaterThan(0)
  await client.close()
})

test('an editor with two sessions, and the end of its input ends connect', async () => {
  const { command, args, env } = server('agent')
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] })
  bus().workspace.owns(child.pid)
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const input = Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>
  const said = new Map<string, string>()
  const app = acpClient().onNotification(methods.client.session.update, ({ params: { sessionId, update } }) => {
    if (update.sessionUpdate !== 'agent_message_chunk' || update.content.type !== 'text') return
    said.set(sessionId, (said.get(sessionId) ?? '') + update.content.text)
  })
  const ids = await app.connectWith(ndJsonStream(Writable.toWeb(child.stdin), input), async (agent) => {
    await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION })
    const open = async () => (await agent.request(methods.agent.session.new, { cwd: '/', mcpServers: [] })).sessionId
    const ids = [await open(), await open()]
    for (const sessionId of ids) {
      const prompt: ContentBlock[] = [{ type: 'text', text: `to ${sessionId}` }]
      await agent.request(methods.agent.session.prompt, { sessionId, prompt })
    }
    return ids
  })
  for (const id of ids) expect(said.get(id)).toContain(`to ${id}`)
  child.stdin.end()
  expect(await exit).toBe(0)
})
