// An ACP agent whose turn has two tool calls, one of which needs permission; "die" in the prompt ends it in the middle.
import { createInterface } from 'node:readline'

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const waiting = new Map()
let sessions = 0

const update = (sessionId, fields) => say({ method: 'session/update', params: { sessionId, update: fields } })

function ask(method, params) {
  const id = `q${waiting.size + 1}`
  say({ id, method, params })
  return new Promise((resolve) => waiting.set(id, resolve))
}

async function prompt({ sessionId, prompt: [{ text }] }) {
  update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Let me see. ' } })
  update(sessionId, {
    sessionUpdate: 'tool_call',
    toolCallId: 't1',
    title: 'Read notes.txt',
    kind: 'read',
    status: 'pending',
    rawInput: { path: 'notes.txt' },
  })
  if (text === 'die') process.exit(3)
  update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId: 't1', status: 'in_progress' })
  update(sessionId, {
    sessionUpdate: 'tool_call_update',
    toolCallId: 't1',
    status: 'completed',
    rawOutput: { bytes: 12 },
  })
  const toolCall = { toolCallId: 't2', title: 'Delete notes.txt' }
  update(sessionId, { sessionUpdate: 'tool_call', ...toolCall, kind: 'delete', status: 'pending' })
  const options = [{ optionId: 'no', name: 'No', kind: 'reject_once' }]
  await ask('session/request_permission', { sessionId, toolCall, options })
  update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId: 't2', status: 'failed' })
  return { stopReason: 'end_turn' }
}

const METHODS = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: {}, authMethods: [] }),
  'session/new': () => ({ sessionId: `s${++sessions}` }),
  'session/prompt': prompt,
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const message = JSON.parse(line)
  if (message.method === undefined) return waiting.get(message.id)?.(message)
  if (message.id !== undefined) say({ id: message.id, result: (await METHODS[message.method]?.(message.params)) ?? {} })
})
