/** A small MCP server over stdio for the tests: one tool that works, one that fails, one that waits. */
import { createInterface } from 'node:readline'

const tools = [
  { name: 'get weather', description: 'The weather of a city.', inputSchema: { type: 'object' } },
  { name: 'fail', inputSchema: { type: 'object' } },
  { name: 'wait', inputSchema: { type: 'object' } },
  { name: 'environment', inputSchema: { type: 'object' } },
]
const say = (text) => ({ content: [{ type: 'text', text }] })
const run = {
  'get weather': ({ city }) => say(`Sunny in ${city}.`),
  fail: () => ({ ...say('It broke.'), isError: true }),
  wait: () => undefined,
  environment: () => say(Object.keys(process.env).join()),
}
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'weather', version: '1' },
  }),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name, arguments: args }) => run[name](args),
}

if (process.argv[2] === 'deaf') process.on('SIGTERM', () => {})
const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  const result = id === undefined ? undefined : answers[method]?.(params)
  if (result) process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
})
lines.on('close', () => process.argv[2] !== 'deaf' && process.exit(0))
if (process.argv[2] === 'deaf') setInterval(() => {}, 1000)
