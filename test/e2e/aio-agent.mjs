// An agent for the tests over the real daemon; its method says what it does. `pretty` as argument: answers over several lines.
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const indent = process.argv[2] === 'pretty' ? 2 : undefined
const say = (message) => process.stdout.write(`${JSON.stringify(message, null, indent)}\n`)
const waiting = new Map()
let lastId = 0

/** Calls through the bus, as an agent may. */
function call(method, params) {
  const id = `d${++lastId}`
  say({ jsonrpc: '2.0', id, method, params })
  return new Promise((resolve) => waiting.set(id, resolve))
}

const METHODS = {
  input: ({ params }) => ({ result: { outputs: params.inputs } }),
  show: (request) => ({ result: request }),
  pid: () => ({ result: process.pid }),
  die: () => process.exit(7),
  wait: () => new Promise(() => {}),
  later: ({ params }) => new Promise((resolve) => setTimeout(() => resolve({ result: 'late' }), params.ms)),
  big: ({ params }) => ({ result: 'x'.repeat(params.bytes) }),
  deep: ({ id, params }) => {
    const nested = `${'['.repeat(params.depth)}${']'.repeat(params.depth)}`
    process.stdout.write(`{"id":${id},"result":${nested}}\n`)
    return new Promise(() => {})
  },
  note: ({ params }) => {
    appendFileSync(params.file, 'noted\n')
    return { result: null }
  },
  outputs: () => ({ outputs: [{ type: 'text', value: 'loose' }] }),
  stream: ({ id }) => {
    say({ id, partial: true, outputs: [{ type: 'text', value: 'a' }] })
    say({ id, partial: true, result: { outputs: [{ type: 'text', value: 'b' }] } })
    return { result: { outputs: [{ type: 'text', value: 'ab' }] } }
  },
  /** Passes on where it stands in the trace, as an agent with several open calls must. */
  relay: async ({ params }) => {
    const { traceparent } = params._meta
    return { result: { said: await call(params.to, { ...params.with, _meta: { traceparent } }) } }
  },
  /** Says nothing of where it stands: with one open call the bus knows. */
  ask: async ({ params }) => ({ result: { said: await call(params.to, params.with) } }),
  /** Hands every call on to another that does the same, and says nothing of where it stands. */
  bounce: async ({ method, params }) => {
    appendFileSync(params.file, 'x')
    return { result: await call(params.to, { ...params, to: method }) }
  },
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const message = JSON.parse(line)
  if (message.method === undefined) return waiting.get(message.id)?.(message)
  const act = METHODS[message.method.split('::').at(-1)]
  const answer = act
    ? await act(message)
    : { error: { code: -32601, message: `no ${message.method}`, data: { own: 1 } } }
  if (message.id !== undefined) say({ jsonrpc: '2.0', id: message.id, ...answer })
})
