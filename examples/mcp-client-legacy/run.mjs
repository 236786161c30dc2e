/**
 * MCP clients of SDK generation 1 on a bus: three of them share one server process.
 *
 * Run: npm run build && node examples/mcp-client-legacy/run.mjs
 */
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { connect } from 'stdio-bus/client'
import { startBus } from '../acp-client/start-bus.mjs'

const server = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))
const bus = await startBus({
  pools: [{ id: 'everything', command: process.execPath, args: [server], instances: 1 }],
})

async function open() {
  const client = new Client({ name: 'example', version: '1.0.0' })
  const connection = await connect({ unix: bus.unix, pool: 'everything' })
  await client.connect(connection.mcp())
  return client
}

try {
  const clients = await Promise.all([open(), open(), open()])
  const answers = await Promise.all(
    clients.map((client, number) => client.callTool({ name: 'get-sum', arguments: { a: number, b: 100 } })),
  )
  for (const [number, answer] of answers.entries())
    assert.match(answer.content[0].text, new RegExp(`\\b${number + 100}\\b`))
  await Promise.all(clients.map((client) => client.close()))
} finally {
  await bus.stop()
}
console.log('Three MCP clients (SDK 1), one server, every sum at the client that asked.')
