/**
 * A program that is an agent: it registers by a name, and whoever is on the bus calls it by that.
 *
 * Run: npm run build && node examples/aio-program/run.mjs
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { connect } from 'stdio-bus/client'
import { startBus } from '../acp-client/start-bus.mjs'

const bus = await startBus({ pools: [{ id: 'echo', agent: 'echo' }], aio: { store: { path: 'traces.db' } } })
const greeter = spawn(process.execPath, [fileURLToPath(new URL('greeter.mjs', import.meta.url)), bus.unix], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
try {
  await once(greeter.stdout, 'data')
  const connection = await connect({ unix: bus.unix })
  const params = { inputs: [{ type: 'text', value: 'world' }] }
  await connection.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'greeter::input', params }))
  for await (const line of connection.lines()) {
    const { method, result } = JSON.parse(line.toString())
    if (method === 'greeter::partial') continue
    assert.deepEqual(result.outputs, [{ type: 'text', value: 'Hello, world' }])
    console.log(result.outputs[0].value)
    break
  }
  await connection.close()
} finally {
  greeter.kill()
  await bus.stop()
}
