// An MCP server, or with `plain` an agent, that asks back during a call: the call says what, and its result is what was heard.
import { createInterface } from 'node:readline'

const isPlain = process.argv[2] === 'plain'
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const capabilities = { tools: {} }
const waiting = new Map()

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, ...answer } = JSON.parse(line)
  if (method === 'initialize')
    return say({
      id,
      result: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'asks', version: '1' } },
    })
  if (method === undefined) return waiting.get(id)?.(answer)
  if (id === undefined) return
  const { question, same } = isPlain ? params : params.arguments
  const own = same ? id : 'q1'
  waiting.set(own, (heard) => say({ id, result: isPlain ? { heard } : { content: [], structuredContent: { heard } } }))
  say({ id: own, method: question, params: {} })
})
