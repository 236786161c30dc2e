/**
 * Two buses inside one program: no daemon, no socket, the same promise. One is talked to from within, the other over a
 * Unix socket as well.
 *
 * Run: npm run build && node examples/embedded/run.mjs
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BusConfigError, startBus } from 'stdio-bus'
import { connect } from 'stdio-bus/client'

const folder = await mkdtemp(join(tmpdir(), 'bus-'))
const unix = join(folder, 'bus.sock')
const counter = fileURLToPath(new URL('../worker/counter.mjs', import.meta.url))

async function ask(connection, request) {
  const lines = connection.lines()
  await connection.send(JSON.stringify({ jsonrpc: '2.0', id: 1, ...request }))
  const { value } = await lines.next()
  await connection.close()
  return JSON.parse(value.toString())
}

try {
  const echoing = await startBus({ config: { pools: [{ id: 'echo', agent: 'echo', instances: 1 }] } })
  const counting = await startBus({
    config: {
      pools: [{ id: 'counter', command: process.execPath, args: [counter], instances: 1 }],
      listen: { unix },
    },
  })
  const news = []
  counting.on('client', ({ what, door }) => news.push(`${door} ${what}`))

  const { result } = await ask(await echoing.connect(), { method: 'hello', params: { to: 'you' } })
  assert.deepEqual(result.echo, { to: 'you' })
  assert.deepEqual((await ask(await connect({ unix }), { method: 'add', params: { by: 2 } })).result, { count: 2 })
  const inside = await counting.connect({ pool: 'counter' })
  assert.deepEqual((await ask(inside, { method: 'add', params: { by: 3 } })).result, { count: 5 })
  assert.equal(counting.status().workers[0].state, 'ready')

  await assert.rejects(startBus({ config: { pools: [{ id: 'x', comand: 'typo' }] } }), (error) => {
    assert.ok(error instanceof BusConfigError)
    assert.match(error.message, /did you mean "command"/i)
    return true
  })

  await Promise.all([echoing.stop(), counting.stop()])
  assert.deepEqual(news.slice(0, 2), ['unix came', 'unix went'])
} finally {
  await rm(folder, { recursive: true, force: true })
}
console.log('Two buses lived in one program and left nothing behind.')
