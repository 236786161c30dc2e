/** Clauses 8.1 and 8.2: every bound at, one under and one over. */
import { describe, expect, test } from 'vitest'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { isAlive } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const MIB = 1_048_576
const refusal = (reason: string) => ({ error: { code: -32603, data: { reason, retryable: true } } })

/** A request of exactly `bytes` bytes, newline not counted. */
const lineOf = (bytes: number, id = 1, more = ''): string => {
  const empty = `{"id":${id},"method":"m",${more}"params":""}`
  return `{"id":${id},"method":"m",${more}"params":"${'x'.repeat(bytes - empty.length)}"}`
}

describe('clients, sessions, pending', () => {
  test('8.1 max_clients: as many are served, one more is told and closed', async () => {
    verifies('8.1-max-clients', '8.1-retryable', 'promise-error-shape')
    const bus = await startBus({ config: config(pool('echo'), { max_clients: 3 }), doors: ['unix', 'tcp'] })
    const served = [await bus.connect('unix:'), await bus.connect('tcp:'), await bus.connect('unix:')]
    for (const client of served) expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    const refused = await bus.connect('tcp:')
    expect(await refused.untilClosed()).toMatchObject([{ id: null, ...refusal('too_many_clients') }])
    served[0]!.close()
    await bus.statusWhere('one has left', (status) => status.clients === 2)
    expect(await (await bus.connect()).ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
  })

  test('8.1 max_sessions_per_client: as many are made, one more is refused, known ones go on', async () => {
    verifies('8.1-max-sessions', '8.1-retryable')
    const bus = await startBus({ config: config(pool('echo'), { max_sessions_per_client: 3 }) })
    const client = await bus.connect()
    const ask = (sessionId: string) => client.ask({ id: sessionId, method: 'm', sessionId })
    for (const name of ['a', 'b', 'c']) expect(await ask(name)).toMatchObject({ result: {} })
    expect(await ask('d')).toMatchObject({ id: 'd', ...refusal('too_many_sessions') })
    expect(await ask('a')).toMatchObject({ result: {} })
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    expect(await (await bus.connect()).ask({ id: 1, method: 'm', sessionId: 'd' })).toMatchObject({ result: {} })
    expect((await bus.status()).refused).toMatchObject({ too_many_sessions: 1 })
  })

  test('8.1 max_pending_per_client: as many wait, one more is refused, and an answer makes room', async () => {
    verifies('8.1-max-pending', '8.1-retryable', 'promise-one-answer')
    const bus = await startBus({ config: config(pool('slow'), { max_pending_per_client: 3 }) })
    const [client, other] = [await bus.connect(), await bus.connect()]
    for (const id of [1, 2, 3]) client.send({ id, method: 'm', params: { ms: 700 } })
    expect(await client.ask({ id: 4, method: 'm' })).toMatchObject(refusal('too_many_pending'))
    expect(await other.ask({ id: 1, method: 'm', params: { ms: 0 } })).toMatchObject({ result: {} })
    expect((await client.take(3)).map((each) => each.id)).toEqual([1, 2, 3])
    expect(await client.ask({ id: 5, method: 'm', params: { ms: 0 } })).toMatchObject({ result: {} })
    expect((await bus.status()).refused).toMatchObject({ too_many_pending: 1 })
  })

  test('8.1 notifications do not count as pending', async () => {
    verifies('8.1-max-pending')
    const bus = await startBus({ config: config(pool('raw-log', { args: ['log'] }), { max_pending_per_client: 1 }) })
    const client = await bus.connect()
    for (let n = 0; n < 10; n++) client.send({ method: 'note' })
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    expect(bus.workspace.lines('log')).toHaveLength(11)
  })

  test('8.1 the default of max_pending_per_client is 4,096', async () => {
    verifies('8.1-defaults', '8.1-max-pending')
    const bus = await startBus({ config: config(pool('silent')) })
    const client = await bus.connect()
    client.sendRaw(Array.from({ length: 4_097 }, (_, id) => `{"id":${id},"method":"m"}\n`).join(''))
    expect(await client.next()).toMatchObject({ id: 4_096, ...refusal('too_many_pending') })
    expect((await bus.status()).outstanding).toBe(4_096)
    await client.staysQuiet(50)
  })

  test('8.1 request_timeout_sec answers in place of the worker', async () => {
    verifies('8.1-request-timeout', '8.1-retryable', 'promise-one-answer')
    const bus = await startBus({ config: config(pool('slow'), { request_timeout_sec: 1 }) })
    const client = await bus.connect()
    const began = Date.now()
    client.send({ id: 'late', method: 'm', params: { ms: 1_500 } })
    expect(await client.ask({ id: 'in time', method: 'm', params: { ms: 500 } })).toMatchObject({ result: {} })
    expect(await client.next()).toMatchObject({ id: 'late', ...refusal('request_timeout') })
    expect(Date.now() - began).toBeGreaterThan(900)
    await client.staysQuiet(800)
  })

  test('8.3 a bus that was stopped over every deadline blames nobody when it goes on', async () => {
    verifies('8.3-absent')
    const worker = { ...pool('slow'), hang_timeout_sec: 2 }
    const bus = await startBus({ config: config(worker, { request_timeout_sec: 3 }) })
    const client = await bus.connect()
    const [before] = (await bus.status()).workers
    client.send({ id: 1, method: 'm', params: { ms: 1_500 } })
    await client.ask({ id: 2, method: 'm', params: { ms: 0 } })
    bus.signal('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 6_000))
    bus.signal('SIGCONT')
    expect(await client.next()).toMatchObject({ id: 1, result: {} })
    const [after] = (await bus.status()).workers
    expect(after).toMatchObject({ pid: before!.pid, generation: before!.generation })
  })

  test('8.1 request_timeout_sec is off by default', async () => {
    verifies('8.1-defaults', '8.1-request-timeout')
    const bus = await startBus({ config: config(pool('slow')) })
    const client = await bus.connect()
    expect(await client.ask({ id: 1, method: 'm', params: { ms: 1_500 } })).toMatchObject({ result: {} })
  })
})

describe('lines', () => {
  test.each([MIB - 1, MIB])('8.1 a client line of %i bytes passes by default', async (bytes) => {
    verifies('8.1-defaults', '8.2-client')
    const bus = await startBus({ config: config(pool('echo')) })
    const client = await bus.connect()
    client.send(lineOf(bytes))
    expect((await client.next(10_000)).id).toBe(1)
  })

  test('8.1 a client line of 1 MiB and a byte does not', async () => {
    verifies('8.1-defaults', '8.2-client')
    const bus = await startBus({ config: config(pool('echo')) })
    const client = await bus.connect()
    client.send(lineOf(MIB + 1, 77))
    const tooLarge = { id: 77, error: { code: -32600, data: { reason: 'message_too_large' } } }
    expect(await client.untilClosed()).toMatchObject([tooLarge])
  })

  test('8.2 an id that was not seen yet is null', async () => {
    verifies('8.2-client')
    const bus = await startBus({ config: config(pool('echo'), { max_input_buffer: 1_000 }) })
    const client = await bus.connect()
    client.sendRaw(`{"method":"${'x'.repeat(2_000)}`)
    expect(await client.untilClosed()).toMatchObject([{ id: null, error: { data: { reason: 'message_too_large' } } }])
  })

  test('8.2 nobody else notices, and what it was owed is written', async () => {
    verifies('8.2-client', '4.3-alone')
    const bus = await startBus({ config: config(pool('slow'), { max_input_buffer: 1_000 }) })
    const [client, other] = [await bus.connect(), await bus.connect()]
    other.send({ id: 1, method: 'm', params: { ms: 300 } })
    client.send({ id: 1, method: 'm', params: { ms: 200 } })
    client.send(lineOf(1_001, 2))
    expect((await client.untilClosed()).map((each) => each.id).sort()).toEqual([1, 2])
    expect(await other.next()).toMatchObject({ id: 1, result: {} })
  })

  test.each([1_999, 2_000])('8.2 a worker line of %i bytes is at most the limit and passes', async (bytes) => {
    verifies('8.2-worker', '8.1-override')
    const bus = await startBus({ config: config(pool('big-answers'), { max_input_buffer: 2_000 }) })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', params: { bytes } })
    expect((await client.nextLine()).length).toBe(bytes)
  })

  test('8.2 a worker line one byte over: the worker is restarted and its requests fail', async () => {
    verifies('8.2-worker', 'promise-one-answer')
    const bus = await startBus({ config: config(pool('big-answers'), { max_input_buffer: 2_000 }) })
    const { pid } = (await bus.allReady()).workers[0]!
    const client = await bus.connect()
    expect(await client.ask({ id: 1, method: 'm', params: { bytes: 2_001 } })).toMatchObject({
      error: { code: -32603 },
    })
    await eventually('the old process to be gone', () => !isAlive(pid), 8_000)
    expect((await client.ask({ id: 2, method: 'm' })).result.pid).not.toBe(pid)
  })

  test("8.1 a pool's max_input_buffer governs its workers' lines; a client's may be as long as the largest", async () => {
    verifies('8.1-pool-input', '5.4-pool-limits')
    const pools = [
      pool('big-answers', { id: 'small', limits: { max_input_buffer: 1_000 } }),
      pool('big-answers', { id: 'large', limits: { max_input_buffer: 5_000 } }),
    ]
    const bus = await startBus({ config: config(pools, { max_input_buffer: 2_000 }) })
    const client = await bus.connect()
    const answer = async (to: string, bytes: number) =>
      (await client.ask({ id: 1, method: 'm', pool: to, params: { bytes } })).error === undefined
    expect([await answer('small', 1_000), await answer('large', 5_000)]).toEqual([true, true])
    expect([await answer('small', 1_001), await answer('large', 5_001)]).toEqual([false, false])
    client.send(lineOf(5_000, 2, '"pool":"large",'))
    expect(await client.next()).toMatchObject({ id: 2, result: {} })
    client.send(lineOf(5_001, 3, '"pool":"large",'))
    expect(await client.untilClosed()).toMatchObject([{ id: 3, error: { data: { reason: 'message_too_large' } } }])
  })

  test('4.2.3 a line of 32 MiB passes in both directions when the limits allow it', async () => {
    verifies('8.1-override', '4.2.3-unchanged')
    const limits = { max_input_buffer: 32 * MIB, max_output_queue: 4 * MIB }
    const bus = await startBus({ config: config(pool('echo'), limits) })
    const client = await bus.connect()
    const text = 'x'.repeat(32 * MIB - 1_000)
    const { result } = await client.ask({ id: 1, method: 'm', params: text }, 15_000)
    expect(result.echo === text).toBe(true)
  })

  test('8.1 the starter config sets max_input_buffer to 32 MiB and says why', async () => {
    verifies('8.1-starter')
    const workspace = testWorkspace()
    expect(await runBus(['init'], { workspace })).toMatchObject({ code: 0 })
    const text = workspace.read('stdio-bus.json')
    expect(text).toMatch(/"max_input_buffer":\s*33554432/)
    expect(text).toMatch(/\/\/.*image/i)
    const bus = await startBus({ workspace })
    expect(await (await bus.connect()).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })
})
