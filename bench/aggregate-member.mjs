// An MCP server that costs little: argv[2] is JSON, {count, silent}. Its tools are tool_0 to tool_N; calls are echoed.
import { createInterface } from 'node:readline'

const { count = 10, silent = false } = JSON.parse(process.argv[2] ?? '{}')
const SUBJECTS = ['file', 'invoice', 'customer', 'branch', 'ticket', 'message', 'page', 'user', 'order', 'image']
const DEEDS = ['read', 'write', 'list', 'search', 'delete', 'move', 'send', 'count', 'export', 'share']
const tools = Array.from({ length: count }, (_, n) => ({
  name: `tool_${n}`,
  description: `${DEEDS[n % 10]} the ${SUBJECTS[Math.floor(n / 10) % 10]} ${n}`,
  inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
}))
const write = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined || method === undefined) return
  if (method === 'initialize')
    write(id, {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'b', version: '1' },
    })
  else if (silent) return
  else if (method === 'tools/list') write(id, { tools })
  else write(id, { content: [{ type: 'text', text: params?.arguments?.a ?? '' }] })
})
