/**
 * An MCP client on a bus, SDK generation 2: it goes on when the bus is restarted under it.
 *
 * Run: npm run build && node examples/mcp-client/run.mjs
 */
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/client'
import { connect, isRetryable, reasonOf } from 'stdio-bus/client'
import { startBus } from '../acp-client/start-bus.mjs'

const bus = await startBus({ pools: [{ id: 'tools', agent: 'echo', instances: 1 }] })
try {
  const news = []
  const connection = await connect({
    unix: bus.unix,
    pool: 'tools',
    onLost: (failed) => news.push(`lost ${failed}`),
    onRestored: () => news.push('restored'),
  })
  const client = new Client({ name: 'example', version: '1.0.0' })
  await client.connect(connection.mcp())
  const call = (text) => client.callTool({ name: 'echo', arguments: { text } })

  const { tools } = await client.listTools()
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['echo'],
  )
  assert.equal((await call('before')).content[0].text, 'before')

  const restarted = bus.restart()
  // What was in flight when the bus went fails with a reason that says it may be tried again; what comes later waits.
  const answer = await call('after').catch((error) => {
    assert.equal(reasonOf(error), 'bus_gone')
    assert.ok(isRetryable(error))
    return call('after')
  })
  await restarted
  assert.equal(answer.content[0].text, 'after')
  assert.match(news.join(', '), /^lost [01], restored$/)

  await client.close()
  assert.equal(await connection.closed, undefined)
} finally {
  await bus.stop()
}
console.log('An MCP client (SDK 2) that outlived its bus.')
