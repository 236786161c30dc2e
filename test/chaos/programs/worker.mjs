/**
 * The worker of all scenarios. What a request wants is in its `params`: `waitMs` before the answer, `answerBytes` of
 * padding, `note` for an update in its session first, `silent` for no answer at all. The mark of the client goes back.
 */
import { createInterface } from 'node:readline'

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

function answer({ id, sessionId, params = {} }) {
  const { client, n, note, answerBytes } = params
  if (note && sessionId !== undefined) say({ method: 'update', sessionId, params: { client } })
  const padding = answerBytes === undefined ? undefined : 'x'.repeat(answerBytes)
  say({ id, sessionId, result: { client, n, padding } })
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line)
  if (message.id === undefined || message.method === undefined || message.params?.silent) return
  const waitMs = message.params?.waitMs ?? 0
  if (waitMs === 0) answer(message)
  else setTimeout(answer, waitMs, message)
})
