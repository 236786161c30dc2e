/**
 * An MCP server for scenarios: a call wants `updates` of its progress, `waitMs` between them and before its answer, and `answerBytes`
 * of padding. The mark of the client goes back with everything.
 */
import { createInterface } from 'node:readline'

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const WELCOME = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'chaos', version: '1' },
}

async function call(id, { arguments: { client, n, updates, waitMs, answerBytes }, _meta }) {
  for (let progress = 1; progress <= updates; progress++) {
    if (waitMs > 0) await pause(waitMs)
    say({
      method: 'notifications/progress',
      params: { progressToken: _meta.progressToken, progress, message: `${client}/${n}` },
    })
  }
  if (waitMs > 0) await pause(waitMs)
  say({ id, result: { content: [], client, n, padding: 'x'.repeat(answerBytes) } })
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined || method === undefined) return
  if (method === 'initialize') say({ id, result: WELCOME })
  else if (method === 'tools/call') call(id, params)
  else say({ id, result: {} })
})
