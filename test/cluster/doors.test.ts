/** What is elsewhere is at all doors: official clients of MCP and ACP use servers and agents of another node (contract 14.2, 14.4). */
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { withNats } from '../support/nats.ts'
import { ECHO, startPair } from './nodes.ts'

const ACP_AGENT = fileURLToPath(new URL('../fixtures/acp/loads.mjs', import.meta.url))

withNats(2, () => {
  describe('at the web door of a node', () => {
    test('an MCP server of another node lists and calls its tools', async () => {
      verifies('14.2-all-doors')
      const mcp = { id: 'tools', agent: 'echo', protocol: 'mcp' }
      const { a } = await startPair({ pools: [ECHO, mcp] }, { doors: ['unix', 'http'] })
      const client = new Client({ name: 'test', version: '1' })
      await client.connect(new StreamableHTTPClientTransport(new URL(a.url('/mcp/tools'))))
      const { tools } = await client.listTools()
      expect(tools.map(({ name }) => name)).toContain('echo')
      const said = await client.callTool({ name: 'echo', arguments: { text: 'across' } })
      expect(JSON.stringify(said.content)).toContain('across')
      await client.close()
    })
  })

  test("an ACP agent of another node is spoken to, and its sessions are the client's", async () => {
    verifies('14.4-dialects')
    const agent = { id: 'agent', command: process.execPath, args: [ACP_AGENT, 'far'], protocol: 'acp' }
    const { a } = await startPair({ pools: [ECHO, agent] })
    const client = await a.connect()
    let id = 0
    const call = (method: string, params: object) =>
      client.ask({ jsonrpc: '2.0', id: ++id, method, params, pool: 'agent' })
    expect(await call('initialize', { protocolVersion: 1, clientCapabilities: {} })).toMatchObject({
      result: { protocolVersion: 1 },
    })
    const { result } = await call('session/new', { cwd: '/', mcpServers: [] })
    const said = await call('session/prompt', { sessionId: result.sessionId, prompt: [] })
    expect(said.result._meta.name).toBe('far')
    const other = await a.connect()
    const stolen = await other.ask({
      jsonrpc: '2.0',
      id: 1,
      method: 'session/prompt',
      params: { sessionId: result.sessionId, prompt: [] },
      pool: 'agent',
    })
    expect(stolen.error.data.reason).toBe('session_not_owned')
  })
})
