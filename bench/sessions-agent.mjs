// An ACP agent for `sessions.mjs`. A prompt `N` is N updates at once and the end of the turn; `N each` writes them one by one, as
// words come from a model; `N every MS` says one each MS milliseconds. Each update has its number in its text. It counts what it
// is asked to load.
import { createInterface } from 'node:readline'

const PADDING = 'x'.repeat(60)
const write = (lines) => process.stdout.write(lines.map((line) => `${line}\n`).join(''))
const answer = (id, result) => JSON.stringify({ jsonrpc: '2.0', id, result })
let sessions = 0
let loads = 0

function chunk(sessionId, n) {
  const content = { type: 'text', text: `${n} ${PADDING}` }
  const update = { sessionUpdate: 'agent_message_chunk', content }
  return JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } })
}

function sayEach(sessionId, count, end, n = 0) {
  if (n === count) return write([end])
  write([chunk(sessionId, n)])
  setImmediate(() => sayEach(sessionId, count, end, n + 1))
}

function prompt(id, { sessionId, prompt: [{ text }] }) {
  const [count, how, everyMs] = text.split(' ')
  const end = answer(id, { stopReason: 'end_turn', loads })
  if (how === 'each') return sayEach(sessionId, Number(count), end)
  if (everyMs === undefined)
    return write([...Array.from({ length: Number(count) }, (_, n) => chunk(sessionId, n)), end])
  let n = 0
  const timer = setInterval(() => {
    write([chunk(sessionId, n)])
    if (++n < Number(count)) return
    clearInterval(timer)
    write([end])
  }, Number(everyMs))
}

const METHODS = {
  initialize: (id) => write([answer(id, { protocolVersion: 1, agentCapabilities: { loadSession: true } })]),
  'session/new': (id) => write([answer(id, { sessionId: `s${++sessions}` })]),
  'session/load': (id) => {
    loads++
    write([answer(id, {})])
  },
  'session/prompt': prompt,
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  METHODS[method]?.(id, params)
})
