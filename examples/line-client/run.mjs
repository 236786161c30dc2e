/**
 * A client without an SDK: lines in, lines out, for any protocol of one JSON message a line.
 *
 * Run: npm run build && node examples/line-client/run.mjs
 */
import assert from 'node:assert/strict'
import { BusRefused, connect } from 'stdio-bus/client'
import { startBus } from '../acp-client/start-bus.mjs'

const bus = await startBus({ pools: [{ id: 'echo', agent: 'echo', instances: 1 }] })
try {
  const connection = await connect({ unix: bus.unix })
  const requests = [1, 'two', 3].map((id) => ({ jsonrpc: '2.0', id, method: 'say', params: { word: `word ${id}` } }))
  for (const request of requests) await connection.send(JSON.stringify(request))
  const finished = connection.finish()
  const answers = []
  for await (const line of connection.lines()) answers.push(JSON.parse(line.toString()))
  await finished
  assert.deepEqual(
    answers.map(({ id, result }) => [id, result.echo.word]),
    requests.map(({ id, params }) => [id, params.word]),
  )

  await assert.rejects(connect({ unix: bus.unix, pool: 'nobody' }), (error) => {
    assert.ok(error instanceof BusRefused)
    assert.equal(error.reason, 'unknown_pool')
    return true
  })
} finally {
  await bus.stop()
}
console.log('Three requests, three answers, and a refusal with its reason.')
