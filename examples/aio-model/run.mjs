/**
 * Extract, summarise, speak: a tool agent (MCP), a model agent (ACP, with an endpoint on this machine) and two programs that
 * register themselves, in one trace. The reader calls the others by name; the graph of it is drawn and checked.
 *
 * Run: npm run build && node examples/aio-model/run.mjs [graph.svg]
 */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { startBus } from 'stdio-bus'
import { execute } from './command.mjs'
import { startEndpoint } from './endpoint.mjs'
import { speak } from './speech.mjs'

const HTML = '<h1>Otters</h1><p>Otters hold hands while they sleep. They also juggle stones.</p>'
const extractor = fileURLToPath(new URL('extractor.mjs', import.meta.url))
const text = (value) => ({ inputs: [{ type: 'text', value }] })

const endpoint = await startEndpoint()
const place = await execute.makePlace()
const env = { OPENAI_BASE_URL: endpoint.url, OPENAI_MODEL: 'local' }
const bus = await startBus({
  cwd: place.folder,
  config: {
    control: place.control,
    pools: [
      { id: 'extractor', command: process.execPath, args: [extractor], aio: { type: 'mcp' } },
      { id: 'summariser', agent: 'openai', env, aio: { type: 'acp' } },
    ],
    aio: { store: { path: 'traces.db' } },
  },
})
try {
  const program = await bus.connect()
  await program.agent('speaker', {
    input: ({ inputs: [{ value }] }) => ({ outputs: [{ type: 'audio', value: speak(value), mimeType: 'audio/wav' }] }),
  })
  await program.agent('reader', {
    async input({ inputs: [{ value }] }, call) {
      const page = await call.ask('extractor::tools.call', { tool: 'extract', args: { html: value } })
      const summary = await call.ask('summariser::input', text(page.outputs[0].value))
      return call.ask('speaker::input', text(summary.outputs[0].value))
    },
  })

  const client = await bus.connect()
  await client.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'reader::input', params: text(HTML) }))
  const { value: line } = await client.lines().next()
  const { result, trace_id } = JSON.parse(line.toString())
  const [{ type, value }] = result.outputs
  assert.equal(type, 'audio')
  assert.equal(Buffer.from(value, 'base64').toString('latin1', 0, 4), 'RIFF')

  const graph = await execute.command(place, 'trace', 'graph', trace_id)
  assert.equal(graph.match(/class="[^"]*\bnode\b/g).length, 4)
  assert.equal(graph.match(/class="[^"]*\bedge\b/g).length, 3)
  console.log(await execute.command(place, 'trace', 'show', trace_id))
  const [, , file] = process.argv
  if (file !== undefined) await writeFile(file, graph)
  await client.close()
  await program.close()
} finally {
  await bus.stop()
  endpoint.stop()
  await place.remove()
}
console.log('Extracted, summarised and spoken: one trace of four calls.')
