// An ACP agent that answers at once: one chunk and the end of the turn. For `aggregate.mjs`.
import { createInterface } from 'node:readline'

const write = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
let sessions = 0

const METHODS = {
  initialize: (id) =>
    write({ id, result: { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { close: {} } } } }),
  'session/new': (id) => write({ id, result: { sessionId: `s${++sessions}` } }),
  'session/prompt': (id, { sessionId }) => {
    const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'word' } }
    write({ method: 'session/update', params: { sessionId, update } })
    write({ id, result: { stopReason: 'end_turn' } })
  },
  'session/close': (id) => write({ id, result: {} }),
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  METHODS[method]?.(id, params)
})
