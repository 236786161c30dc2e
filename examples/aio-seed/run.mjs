/**
 * The messages of the AIO-MCP whitepaper, sent as they stand there to a running bus; each answer is checked.
 *
 * Run: npm run build && node examples/aio-seed/run.mjs
 */
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { startBus } from './bus.mjs'

const program = (name) => ({ command: process.execPath, args: [fileURLToPath(new URL(name, import.meta.url))] })
const mcp = (id, aio = {}) => ({ id, ...program('server.mjs'), protocol: 'mcp', aio: { type: 'mcp', ...aio } })

const bus = await startBus({
  pools: [
    mcp('agent'),
    mcp('math_agent'),
    mcp('llm_agent', { sampling: { tool: 'complete' } }),
    { id: 'reader', ...program('echo-agent.mjs'), aio: { type: 'stdio', modalities: ['text'] } },
  ],
})

const trace_id = 'AIO-TR-20250326-0001'
const inputs = [{ type: 'text', value: 'hello' }]

// Section 2: the base call.
const base = await bus.ask({ jsonrpc: '2.0', method: 'reader::input', params: { inputs }, id: 1, trace_id })
assert.deepEqual(base, { jsonrpc: '2.0', id: 1, result: { outputs: inputs }, trace_id, call_id: 1 })

// Section 4: help in the four fields of the seed.
const help = await bus.ask({ method: 'math_agent::help', id: 2, trace_id })
assert.equal(help.result.type, 'mcp')
assert.deepEqual(help.result.mcp, { resources: true, prompts: false, tools: true, sampling: false })

// Section 8.1: resources.list, without jsonrpc.
const list = await bus.ask({ method: 'agent::resources.list', params: {}, id: 3, trace_id })
assert.equal(list.result.resources[0].title, 'Spec Sheet')
assert.equal(list.result.resources[0].type, 'pdf')

// Section 8.3: tools.call; 8.4: sampling.start. Without an id they would be notifications.
const area = await bus.ask({
  method: 'math_agent::tools.call',
  params: { tool: 'calculate_area', args: { x: 3, y: 4 } },
  id: 4,
  trace_id,
})
assert.deepEqual(area.result.outputs, [{ type: 'text', value: '12' }])
const sampling = await bus.ask({
  method: 'llm_agent::sampling.start',
  params: { input: { type: 'text', value: 'Please summarize this document...' } },
  id: 5,
  trace_id,
})
assert.match(sampling.result.outputs[0].value, /^Read 1 message/)

// Section 5: an MCP agent has no generic input, and that is in the trace too.
const refused = await bus.ask({ method: 'math_agent::input', params: { inputs }, id: 6, trace_id })
assert.equal(refused.error.data.reason, 'input_not_available_on_mcp')

// Section 7: the execution graph.
const { result: trace } = await bus.ask({ method: 'bus::traces.get', params: { trace_id }, id: 7 })
assert.equal(trace.trace_id, trace_id)
assert.deepEqual(
  trace.calls.map(({ id, agent, method, status }) => [id, agent, method, status]),
  [
    [1, 'reader', 'input', 'ok'],
    [2, 'math_agent', 'help', 'ok'],
    [3, 'agent', 'resources.list', 'ok'],
    [4, 'math_agent', 'tools.call', 'ok'],
    [5, 'llm_agent', 'sampling.start', 'ok'],
    [6, 'math_agent', 'input', 'error'],
  ],
)
for (const call of trace.calls) assert.ok('input' in call && 'output' in call)

await bus.stop()
console.log('Every message of the whitepaper was answered as it should be.')
