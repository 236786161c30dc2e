/**
 * A worker written with `stdio-bus/worker`, behind a bus: two clients with a session each, one process.
 *
 * Run: npm run build && node examples/worker/run.mjs
 */
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { connect } from 'stdio-bus/client'
import { startBus } from '../acp-client/start-bus.mjs'

const args = [fileURLToPath(new URL('counter.mjs', import.meta.url))]
const bus = await startBus({ pools: [{ id: 'counter', command: process.execPath, args, instances: 1 }] })

/** Sends one request and gives everything that comes up to its answer. */
async function ask(connection, lines, request) {
  await connection.send(JSON.stringify({ jsonrpc: '2.0', id: 1, ...request }))
  const said = []
  for (;;) {
    const { value } = await lines.next()
    said.push(JSON.parse(value.toString()))
    if (said.at(-1).id === 1) return said
  }
}

try {
  for (const name of ['left', 'right']) {
    const sessionId = `${name} hand`
    const connection = await connect({ unix: bus.unix })
    const lines = connection.lines()
    const add = (params) => ask(connection, lines, { method: 'add', sessionId, params })
    assert.deepEqual((await add({ by: 2 })).at(-1).result, { count: 2 })
    assert.deepEqual((await add({ by: 3 })).at(-1).result, { count: 5 })
    const [refused] = await add({ by: 'much' })
    assert.deepEqual(refused.error, { code: -32602, message: 'by is a whole number', data: { found: 'much' } })
    const said = await ask(connection, lines, { method: 'countdown', sessionId, params: { from: 3 } })
    assert.deepEqual(
      said.map(({ result, params }) => result ?? params.left),
      [3, 2, 1, 'lift-off'],
    )
    await connection.close()
  }
} finally {
  await bus.stop()
}
console.log('Two clients counted to five in one worker, each for itself.')
