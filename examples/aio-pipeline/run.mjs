/**
 * Three agents of three kinds work on one request: a stdio agent that asks an MCP server and an HTTP agent through the
 * bus. One trace holds it all; its graph is drawn and checked against it.
 *
 * Run: npm run build && node examples/aio-pipeline/run.mjs [graph.svg]
 */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { startBus } from '../aio-seed/bus.mjs'
import { startReviewer } from './reviewer.mjs'

const program = (name) => ({ command: process.execPath, args: [fileURLToPath(new URL(name, import.meta.url))] })

const reviewer = await startReviewer()
const bus = await startBus({
  pools: [
    { id: 'library', ...program('library.mjs'), protocol: 'mcp', aio: { type: 'mcp' } },
    { id: 'writer', ...program('writer.mjs'), aio: { type: 'stdio', modalities: ['text'] } },
  ],
  agents: [{ name: 'reviewer', type: 'http', endpoint: reviewer.endpoint, modalities: ['text'] }],
})

const { result: issued } = await bus.ask({ method: 'bus::trace.new', id: 1 })
const { trace_id } = issued
const inputs = ['otter', 'raven'].map((value) => ({ type: 'text', value }))
const answer = await bus.ask({ method: 'writer::input', params: { inputs }, id: 2, trace_id })
assert.deepEqual(answer.result.outputs, [
  { type: 'text', value: 'Otters hold hands while they sleep. Ravens remember who cheated them.' },
  { type: 'text', value: '11 words, well said.' },
])

const { result: trace } = await bus.ask({ method: 'bus::traces.get', params: { trace_id }, id: 3 })
const edges = trace.calls.filter((call) => call.parent_id !== null)
assert.deepEqual(
  trace.calls.map(({ agent, type, status }) => [agent, type, status]),
  [
    ['writer', 'stdio', 'ok'],
    ['library', 'mcp', 'ok'],
    ['library', 'mcp', 'ok'],
    ['reviewer', 'http', 'ok'],
  ],
)
assert.deepEqual(
  edges.map((call) => call.parent_id),
  [2, 2, 2],
)
assert.equal(trace.calls[3].partials, 2)

console.log(await bus.command('trace', 'show', trace_id))
const svg = await bus.command('trace', 'graph', trace_id)
const count = (name) => svg.match(new RegExp(`class="[^"]*\\b${name}\\b`, 'g'))?.length ?? 0
assert.equal(count('node'), trace.calls.length)
assert.equal(count('edge'), edges.length)
const [, , file] = process.argv
if (file !== undefined) await writeFile(file, svg)

await bus.stop()
reviewer.stop()
console.log(`One request, ${trace.calls.length} calls, ${edges.length} edges: the graph is what happened.`)
