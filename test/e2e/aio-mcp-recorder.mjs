// An MCP server that never answers a tool call and writes every line it reads to a file.
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const [, , file] = process.argv
const capabilities = { tools: {} }

createInterface({ input: process.stdin }).on('line', (line) => {
  appendFileSync(file, `${line}\n`)
  const { id, method } = JSON.parse(line)
  if (method !== 'initialize') return
  const result = { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'recorder', version: '1' } }
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
})
