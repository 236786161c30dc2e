/**
 * The stdio agent of the pipeline: it looks up a fact for each word it is given, has the text reviewed, and answers.
 *
 * To call another agent it writes a request with an id to its stdout, as a client would; the bus writes the answer to
 * its stdin. It says nothing about traces: the bus knows which call it is busy with.
 */
import { createInterface } from 'node:readline'

const waiting = new Map()
let lastId = 0

const say = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }))

function call(method, params) {
  const id = `writer-${++lastId}`
  say({ id, method, params })
  return new Promise((resolve) => waiting.set(id, resolve))
}

async function write({ inputs }) {
  const facts = await Promise.all(
    inputs.map(({ value }) => call('library::tools.call', { tool: 'look_up', args: { animal: value } })),
  )
  const text = facts.map(({ result }) => result.outputs[0].value).join(' ')
  const review = await call('reviewer::input', { inputs: [{ type: 'text', value: text }] })
  return { outputs: [{ type: 'text', value: text }, ...review.result.outputs] }
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const message = JSON.parse(line)
  if (message.method === undefined) waiting.get(message.id)?.(message)
  else if (message.method === 'writer::input') say({ id: message.id, result: await write(message.params) })
  else if (message.id !== undefined) {
    say({ id: message.id, error: { code: -32601, message: `Method not found: ${message.method}` } })
  }
})
