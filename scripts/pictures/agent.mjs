// The agent of the pictures: it speaks ACP, and whatever it is asked, it plans, reads, edits and answers the same.
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

const OLD = 'export function retryAfter(tries) {\n  return tries * 100\n}\n'
const NEW = 'export function retryAfter(tries) {\n  return Math.min(2 ** tries * 100, 30_000)\n}\n'
const ANSWER = `The delay grew **linearly and without bound**. It now doubles, up to 30 s:

| tries | before | now |
|--:|--:|--:|
| 1 | 100 ms | 200 ms |
| 10 | 1 s | 30 s |

All tests of \`retry.test.js\` pass.
`
const steps = ['Read retry.js', 'Bound the delay', 'Run the tests']
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

async function prompt({ sessionId }) {
  const tell = (update) => say({ method: 'session/update', params: { sessionId, update } })
  const plan = (done) =>
    tell({
      sessionUpdate: 'plan',
      entries: steps.map((content, at) => ({
        content,
        priority: 'medium',
        status: at < done ? 'completed' : at === done ? 'in_progress' : 'pending',
      })),
    })
  const tool = async (toolCallId, title, kind, ms, content) => {
    tell({ sessionUpdate: 'tool_call', toolCallId, title, kind, status: 'in_progress', rawInput: { path: 'retry.js' } })
    await sleep(ms)
    tell({ sessionUpdate: 'tool_call_update', toolCallId, status: 'completed', content })
  }
  plan(0)
  await tool('t1', 'Read retry.js', 'read', 120, [])
  plan(1)
  await tool('t2', 'Edit retry.js', 'edit', 240, [{ type: 'diff', path: 'retry.js', oldText: OLD, newText: NEW }])
  plan(2)
  const passed = { type: 'content', content: { type: 'text', text: '4 tests passed in 31 ms' } }
  await tool('t3', 'Run npm test', 'execute', 420, [passed])
  plan(3)
  for (const word of ANSWER.split(/(?<=\s)/)) {
    tell({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: word } })
    await sleep(3)
  }
  return { stopReason: 'end_turn' }
}

const METHODS = {
  initialize: () => ({ protocolVersion: 1, agentInfo: { name: 'coder', version: '1.0.0' }, agentCapabilities: {} }),
  'session/new': () => ({ sessionId: `s-${process.pid}` }),
  'session/prompt': prompt,
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id !== undefined) say({ id, result: (await METHODS[method]?.(params)) ?? {} })
})
