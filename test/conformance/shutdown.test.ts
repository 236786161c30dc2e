/** Clause 7.4: how the bus ends, step by step, and that nothing is left behind. */
import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { startBus, testWorkspace } from '../support/bus.ts'
import { connectUnix } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { isAlive, processesWorkingIn } from '../support/processes.ts'
import { eventually, sleep } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const SHUTTING_DOWN = { error: { code: -32603, data: { reason: 'shutting_down' } } }

describe('drain', () => {
  test('7.4 outstanding requests finish while I/O goes on, then exit 0', async () => {
    verifies('7.4-drains', 'promise-one-answer')
    const bus = await startBus({ config: config(pool('slow')) })
    const client = await bus.connect()
    for (const id of [1, 2, 3]) client.send({ id, method: 'm', params: { ms: 300 * id } })
    await client.taken()
    bus.signal('SIGTERM')
    expect((await client.untilClosed()).map((each) => [each.id, each.result?.echo.ms])).toEqual([
      [1, 300],
      [2, 600],
      [3, 900],
    ])
    expect(await bus.exit).toEqual({ code: 0, signal: null })
  })

  test('7.4 notifications of a worker are delivered in the drain too', async () => {
    verifies('7.4-drains')
    const bus = await startBus({ config: config([pool('slow'), pool('notifies')]) })
    const [slow, other] = [await bus.connect(), await bus.connect()]
    await other.ask({ id: 1, method: 'm', pool: 'notifies', sessionId: 's' })
    slow.send({ id: 1, method: 'm', pool: 'slow', params: { ms: 1_000 } })
    await slow.taken()
    bus.signal('SIGTERM')
    await bus.log.line(/drain|shut|stop/i)
    other.send({ method: 'note', sessionId: 's' })
    expect(await slow.answerTo(1)).toMatchObject({ result: {} })
    expect(await bus.exit).toMatchObject({ code: 0 })
  })

  test('7.4 no new client is accepted', async () => {
    verifies('7.4-stops-accepting')
    const bus = await startBus({ config: config(pool('slow')) })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', params: { ms: 1_000 } })
    await client.taken()
    bus.signal('SIGTERM')
    const refused = async () => {
      const late = await connectUnix(bus.workspace.path('bus.sock')).catch((error: NodeJS.ErrnoException) => error)
      return late instanceof Error && /ENOENT|ECONNREFUSED/.test(String(late))
    }
    expect(await eventually('a connection to be refused', refused, 800)).toBe(true)
    expect(await client.next()).toMatchObject({ id: 1, result: {} })
  })

  test('7.4 new requests in the drain get shutting_down', async () => {
    verifies('7.4-new-requests')
    const bus = await startBus({ config: config(pool('slow')) })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', params: { ms: 1_500 } })
    await client.taken()
    bus.signal('SIGTERM')
    await sleep(300)
    expect(await client.ask({ id: 2, method: 'm' })).toMatchObject({ id: 2, ...SHUTTING_DOWN })
    expect(await client.untilClosed()).toMatchObject([{ id: 1, result: {} }])
    expect((await bus.exit).code).toBe(0)
  })

  test('7.4 what is outstanding at the end of the drain gets shutting_down', async () => {
    verifies('7.4-end-of-drain', 'promise-one-answer', '8.1-override')
    const bus = await startBus({ config: config(pool('silent'), { drain_timeout_sec: 1 }) })
    const client = await bus.connect()
    for (const id of ['a', 'b']) client.send({ id, method: 'm' })
    await client.taken()
    const began = Date.now()
    bus.signal('SIGTERM')
    const answers = await client.untilClosed()
    expect(answers.map((each) => each.id).sort()).toEqual(['a', 'b'])
    for (const answer of answers) expect(answer).toMatchObject(SHUTTING_DOWN)
    expect(Date.now() - began).toBeGreaterThan(900)
    expect((await bus.exit).code).toBe(0)
    expect(Date.now() - began).toBeLessThan(4_000)
  })

  test('7.4 a client that does not read its last answers does not hold the end up', async () => {
    verifies('7.4-end-of-drain')
    const limits = { drain_timeout_sec: 1, max_output_queue: 65_536 }
    const bus = await startBus({ config: config(pool('floods'), limits) })
    const client = await bus.connect()
    client.pause()
    client.send({ id: 1, method: 'm', sessionId: 's', params: { count: 3_000, bytes: 2_000 } })
    await bus.statusWhere('the queue is full', (status) => status.queue_bytes >= 32_768)
    const began = Date.now()
    expect((await bus.stop()).code).toBe(0)
    expect(Date.now() - began).toBeLessThan(9_000)
  })

  test('7.4 in stdio mode a signal drains as well', async () => {
    verifies('7.4-drains')
    const bus = await startBus({ config: config(pool('slow')), doors: ['stdio'] })
    const client = bus.stdio()
    client.send({ id: 1, method: 'm', params: { ms: 600 } })
    await client.taken()
    bus.signal('SIGINT')
    expect(await client.next()).toMatchObject({ id: 1, result: {} })
    expect(await bus.exit).toEqual({ code: 0, signal: null })
  })
})

describe('the end', () => {
  test('7.4 the socket file is removed', async () => {
    verifies('7.4-removes-socket', '8.6-ours')
    const bus = await startBus({ config: config(pool('echo')) })
    expect(existsSync(bus.workspace.path('bus.sock'))).toBe(true)
    expect((await bus.stop()).code).toBe(0)
    expect(existsSync(bus.workspace.path('bus.sock'))).toBe(false)
    expect(existsSync(bus.control)).toBe(false)
  })

  test('7.4 a worker that ends with its stdin gets no signal', async () => {
    verifies('7.4-steps')
    const bus = await startBus({ config: config(pool('ends-at-eof', { args: ['noticed'] })) })
    await bus.allReady()
    await sleep(200)
    const began = Date.now()
    expect((await bus.stop()).code).toBe(0)
    expect(Date.now() - began).toBeLessThan(2_400)
    expect(bus.workspace.lines('noticed').map((line) => line.split(' ')[0])).toEqual(['EOF'])
  })

  test('7.4 a worker that ignores EOF gets SIGTERM 2.5 s later', async () => {
    verifies('7.4-steps')
    const bus = await startBus({ config: config(pool('ignores-eof', { args: ['noticed'] })) })
    await bus.allReady()
    await sleep(200)
    expect((await bus.stop()).code).toBe(0)
    const [eof, term] = bus.workspace.lines('noticed').map((line) => line.split(' '))
    expect([eof?.[0], term?.[0]]).toEqual(['EOF', 'SIGTERM'])
    expect(Number(term![1]) - Number(eof![1])).toBeGreaterThan(2_200)
    expect(Number(term![1]) - Number(eof![1])).toBeLessThan(3_200)
  })

  test('7.4 a worker that ignores both is killed with its group 5 s later', async () => {
    verifies('7.4-steps')
    const bus = await startBus({
      config: config([pool('forks-a-grandchild'), pool('ignores-sigterm', { args: ['noticed'] })]),
    })
    const client = await bus.connect()
    const { result } = await client.ask({ id: 1, method: 'm', pool: 'forks-a-grandchild' })
    await client.ask({ id: 2, method: 'm', pool: 'ignores-sigterm' })
    const began = Date.now()
    expect((await bus.stop('SIGTERM', 12_000)).code).toBe(0)
    expect(Date.now() - began).toBeGreaterThan(4_500)
    expect(Date.now() - began).toBeLessThan(7_500)
    expect([result.pid, result.grandchild].filter(isAlive)).toEqual([])
    expect(bus.workspace.lines('noticed').map((line) => line.split(' ')[0])).toEqual(['EOF', 'SIGTERM'])
    await eventually('nothing to be left', () => processesWorkingIn(bus.workspace.folder).length === 0, 2_000)
  })

  test.each([
    ['SIGTERM', 'SIGTERM'],
    ['SIGINT', 'SIGINT'],
    ['SIGTERM', 'SIGINT'],
  ] as const)('7.4 %s and then %s: the groups are killed, exit 1', async (first, second) => {
    verifies('7.4-second-signal')
    const bus = await startBus({ config: config(pool('forks-a-grandchild')) })
    const client = await bus.connect()
    const { result } = await client.ask({ id: 1, method: 'm' })
    bus.signal(first)
    await sleep(300)
    const began = Date.now()
    expect(await bus.stop(second)).toEqual({ code: 1, signal: null })
    expect(Date.now() - began).toBeLessThan(2_000)
    await eventually('the group to be gone', () => ![result.pid, result.grandchild].some(isAlive), 1_000)
  })

  test('7.4 the exit of a worker in the shutdown does not restart it', async () => {
    verifies('7.4-steps')
    const workspace = testWorkspace()
    const bus = await startBus({ config: config([pool('slow'), pool('dies-on-request')]), workspace })
    const { workers } = await bus.allReady()
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', pool: 'slow', params: { ms: 900 } })
    client.send({ id: 2, method: 'wait', pool: 'dies-on-request' })
    await client.taken()
    bus.signal('SIGTERM')
    process.kill(workers.find((each) => each.pool === 'dies-on-request')!.pid, 'SIGKILL')
    expect(await client.answerTo(2)).toMatchObject({ error: { code: -32603 } })
    expect(await client.answerTo(1)).toMatchObject({ result: {} })
    expect((await bus.exit).code).toBe(0)
    expect(processesWorkingIn(workspace.folder)).toEqual([])
  })
})
