/**
 * A small ACP agent whose session ids collide with everybody's: it counts from 1. What a prompt says it does: `ask` asks
 * for permission, `die` ends the process in the middle of the turn, `wait` answers late, `env NAME` tells a variable.
 */
import { createInterface } from 'node:readline'

const name = process.argv[2]
const canClose = process.argv[3] === 'close'
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const asked = new Map()
const open = new Set()
let hellos = 0
let questions = 0

const update = (sessionId, text) =>
  send({
    method: 'session/update',
    params: { sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } },
  })

const DEEDS = {
  ask: (sessionId) =>
    new Promise((resolve) => {
      const id = ++questions
      asked.set(id, ({ outcome }) => resolve(outcome.optionId ?? outcome.outcome))
      const toolCall = { toolCallId: 't', title: name }
      const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }]
      send({ id, method: 'session/request_permission', params: { sessionId, toolCall, options } })
    }),
  die: () => process.exit(3),
  wait: () => new Promise((resolve) => setTimeout(resolve, 50, 'waited')),
  env: (_sessionId, variable) =>
    process.env[variable] === undefined ? 'unset' : `set ${process.env[variable].length}`,
}

const METHODS = {
  initialize: () => {
    hellos++
    const sessionCapabilities = canClose ? { close: {} } : {}
    return { protocolVersion: 1, agentInfo: { name, version: '1.0.0' }, agentCapabilities: { sessionCapabilities } }
  },
  'session/new': () => {
    open.add(`session-${open.size + 1}`)
    return { sessionId: `session-${open.size}` }
  },
  'session/close': ({ sessionId }) => (open.delete(sessionId) ? {} : undefined),
  'session/prompt': async ({ sessionId, prompt }) => {
    const [deed, argument] = prompt[0].text.split(' ')
    const told = (await DEEDS[deed]?.(sessionId, argument)) ?? prompt[0].text
    update(sessionId, `${name}/${sessionId}: ${told}`)
    return { stopReason: 'end_turn' }
  },
  '_test/self': () => ({ name, pid: process.pid, hellos, sessions: [...open] }),
}

createInterface({ input: process.stdin })
  .on('line', async (line) => {
    const { id, method, params, result, ...rest } = JSON.parse(line)
    if (method === undefined) return asked.get(id)?.(result)
    if (id === undefined) return
    if ('agentId' in rest || 'agentId' in (params ?? {}))
      return send({ id, error: { code: -32602, message: 'agentId' } })
    if (METHODS[method] === undefined) return send({ id, error: { code: -32601, message: 'Method not found' } })
    send({ id, result: await METHODS[method](params) })
  })
  .on('close', () => process.exit(0))
