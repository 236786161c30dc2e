/** The worker of `aio.mjs`: answers `input` and `tools/call` with what it was given, and greets as an MCP server does. */
import { createInterface } from 'node:readline'

const ANSWERS = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'bench', version: '1' },
  }),
  'tools/call': ({ arguments: { note } }) => ({ content: [{ type: 'text', text: note }] }),
}
const echo = ({ inputs }) => ({ outputs: inputs })

let queued = ''
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  if (queued === '') setImmediate(flush)
  queued += `${JSON.stringify({ jsonrpc: '2.0', id, result: (ANSWERS[method] ?? echo)(params) })}\n`
})

/** What was answered in one turn of the loop leaves together. */
function flush() {
  process.stdout.write(queued)
  queued = ''
}
