/**
 * An ACP client on a bus: the official SDK, two conversations with one agent, side by side.
 *
 * Run: npm run build && node examples/acp-client/run.mjs
 */
import assert from 'node:assert/strict'
import { client, methods, PROTOCOL_VERSION } from '@agentclientprotocol/sdk'
import { BusUnavailable, connect } from 'stdio-bus/client'
import { startBus } from './start-bus.mjs'

const bus = await startBus({ pools: [{ id: 'coder', agent: 'echo', instances: 1 }] })

async function converse(text) {
  const connection = await connect({ unix: bus.unix, pool: 'coder' })
  let said = ''
  const app = client().onNotification(methods.client.session.update, ({ params: { update } }) => {
    if (update.sessionUpdate === 'agent_message_chunk') said += update.content.text
  })
  const stopReason = await app.connectWith(connection.acp(), async (agent) => {
    await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION })
    const { sessionId } = await agent.request(methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] })
    const answer = await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] })
    return answer.stopReason
  })
  await connection.close()
  return { said, stopReason }
}

try {
  const [otter, raven] = await Promise.all([converse('an otter'), converse('a raven')])
  assert.equal(otter.stopReason, 'end_turn')
  assert.match(otter.said, /an otter/)
  assert.match(raven.said, /a raven/)
  assert.doesNotMatch(otter.said, /raven/)
} finally {
  await bus.stop()
}

await assert.rejects(connect({ unix: bus.unix }), BusUnavailable)
console.log('Two ACP clients, one agent, each with its own words.')
