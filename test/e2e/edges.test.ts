/** What comes in at an edge of the bus, whatever it is, ends nothing: it is answered, and the bus goes on. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/host/sqlite.ts'
import { verifies } from '../conformance/verifies.ts'
import { startBus, testWorkspace } from '../support/bus.ts'
import { connectUnix } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { agent, oneshot } from './aio-harness.ts'

const aio = { store: { path: 'traces.db' } }
const text = { inputs: [{ type: 'text', value: '' }] }
const isRunning = ({ name, workers }: { name: string; workers: number }) => name === 'voice' && workers === 1
const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`

const GARBAGE: Readonly<Record<string, string>> = {
  null: 'null',
  'a number': '7',
  'a string': '"status"',
  true: 'true',
  'an array': '[]',
  'a batch': '[{"id":1,"method":"status"}]',
  'deep nesting': nested(30_000),
  'an id nested deep': `{"id":${nested(30_000)},"method":"status"}`,
  'a method nested deep': `{"id":1,"method":${nested(30_000)}}`,
  'a method of every object': '{"id":1,"method":"constructor"}',
  'parameters of the wrong kind': '{"id":1,"method":"traces.get","params":[1]}',
  'parameters that are a number': '{"id":1,"method":"traces.list","params":7}',
  'a trace id of the wrong kind': '{"id":1,"method":"traces.get","params":{"trace_id":{}}}',
  'a format of the wrong kind': '{"id":1,"method":"traces.export","params":{"trace_id":"x","format":[]}}',
  'no JSON': '\u0000\u001b[2J{',
  nothing: '',
}

describe('the control socket', () => {
  test('8.6 answers whatever it is asked with an error, and goes on', async () => {
    verifies('8.6-answers')
    const bus = await startBus({ config: { pools: [agent('reader')], aio } })
    for (const [title, line] of Object.entries(GARBAGE)) {
      const control = await connectUnix(bus.control)
      control.send(line)
      expect((await control.next()).error.code, title).toBeLessThan(0)
      expect(await control.ask({ id: 'after', method: 'status' }), title).toMatchObject({ result: { pid: bus.pid } })
      control.close()
    }
  })

  test('8.6 closes on a line without end, and goes on', async () => {
    const bus = await startBus({ config: config(pool('echo')) })
    const control = await connectUnix(bus.control)
    control.sendRaw('x'.repeat(1_000_000))
    await control.untilClosed()
    expect((await bus.status()).workers).toHaveLength(1)
  })
})

describe('files in the way', () => {
  test('8.6 a pipe or junk among the records of running buses holds up neither the start nor a question', async () => {
    verifies('8.6-plain')
    const workspace = testWorkspace()
    const folder = join(workspace.home, '.stdio-bus')
    mkdirSync(folder)
    execFileSync('mkfifo', [join(folder, '4242.json')])
    for (const [name, text] of Object.entries({ 1: 'null', 2: '{}', 3: '{', 4: '[]' }))
      writeFileSync(join(folder, `999${name}.json`), text)
    const bus = await startBus({ config: config(pool('echo')), workspace, defaultControl: true })
    const { code, stdout } = await bus.run(['status', '--json'])
    expect([code, JSON.parse(stdout).pid]).toEqual([0, bus.pid])
    expect(existsSync(join(folder, '4242.json'))).toBe(true)
  })

  test('8.6 a pipe in the place of the lock of a socket: the start is refused, and says why', async () => {
    verifies('8.6-plain')
    const workspace = testWorkspace()
    execFileSync('mkfifo', [workspace.path('bus.sock.lock')])
    const bus = await startBus({ config: config(pool('echo')), workspace, unready: true })
    expect((await bus.exit).code).toBe(1)
    expect(bus.log.text).toContain('bus.sock.lock')
  })
})

describe('one-shot agents', () => {
  test('7.5 a reload that removes the pool of a call that waits: the call gets its error', async () => {
    verifies('N19-waiting')
    const workspace = testWorkspace()
    const voice = { ...oneshot('voice', 'hang'), instances: 1 }
    const bus = await startBus({ config: { pools: [agent('reader'), voice], aio }, workspace })
    const client = await bus.connect()
    client.send({ id: 1, method: 'voice::input', params: text, trace_id: 'first' })
    client.send({ id: 2, method: 'voice::input', params: text, trace_id: 'waits' })
    const shown = async () => (await client.ask({ id: 'agents', method: 'bus::agents.list' })).result.agents
    await eventually('the process', async () => (await shown()).some(isRunning))
    workspace.write('bus.json', { pools: [agent('reader')], aio })
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    const { error } = await client.answerTo(2)
    expect(error).toMatchObject({ code: -32603, data: { reason: 'no_worker', retryable: true } })
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    expect((await client.ask({ id: 3, method: 'reader::pid' })).result).toBeGreaterThan(0)
    expect((await bus.status()).outstanding).toBe(0)
  })
})

describe('reloads', () => {
  test('7.5 of two at once the last file wins, and both are answered', async () => {
    verifies('7.5-last')
    const workspace = testWorkspace()
    const bus = await startBus({ config: config(pool('echo', { id: 'old' })), workspace })
    // The first has to wait: somebody else is busy with the trace store that its agents need.
    const busy = await openDatabase(workspace.path('traces.db'))
    onTestFinished(() => busy.close())
    busy.exec('CREATE TABLE t (x); BEGIN EXCLUSIVE')
    const control = await connectUnix(bus.control)
    workspace.write('bus.json', { pools: [agent('first')], aio })
    control.send({ id: 1, method: 'reload' })
    await eventually('the first to be under way', () => existsSync(workspace.path('traces.db.lock')))
    workspace.write('bus.json', config(pool('echo', { id: 'last' })))
    control.send({ id: 2, method: 'reload' })
    const answers = [await control.next(), await control.next()]
    expect(answers.map(({ id, result }) => [id, result.pools])).toEqual([
      [1, ['first']],
      [2, ['last']],
    ])
    const client = await bus.connect()
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    expect((await bus.status()).workers.map(({ pool: name }) => name)).toContain('last')
  })
})
