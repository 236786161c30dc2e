/**
 * An agent that asks another agent for each of its calls and answers with what it hears. It sends back the trace context it
 * was given, so that every call has one parent.
 */
import { createInterface } from 'node:readline'

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
/** The number of an own call -> the id under which it was asked. */
const asked = new Map()
let calls = 0

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line)
  if (method !== undefined) {
    if (id === undefined) return
    asked.set(++calls, id)
    return say({ id: calls, method: 'leaf::work', params })
  }
  const asker = asked.get(id)
  asked.delete(id)
  if (error === undefined) say({ id: asker, result: { client: result.client, n: result.n } })
  else say({ id: asker, error })
})
