/** Clause 7.2: who comes back, when, how often, and what requests get meanwhile. */
import { describe, expect, test } from 'vitest'
import { type Bus, startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { isAlive } from '../support/processes.ts'
import { eventually, sleep } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const NO_WORKER = { error: { code: -32603, data: { reason: 'no_worker' } } }

const firstState = async (bus: Bus): Promise<string> => (await bus.status()).workers[0]!.state

describe('coming back', () => {
  test('7.2 a worker that exits is restarted', async () => {
    verifies('7.2-restarted', '3.1-monitors')
    const bus = await startBus({ config: config(pool('dies-on-request')) })
    const client = await bus.connect()
    const before = await client.ask({ id: 1, method: 'm' })
    await client.ask({ id: 2, method: 'die' })
    const after = await client.ask({ id: 3, method: 'm' })
    expect(after.result.pid).not.toBe(before.result.pid)
    expect((await bus.status()).workers[0]).toMatchObject({ restarts: 1, state: 'ready' })
  })

  test('7.2 exit 0 restarts too', async () => {
    verifies('7.2-exit-zero')
    const bus = await startBus({ config: config(pool('exits-zero')) })
    const client = await bus.connect()
    const pids = new Set<number>()
    for (let id = 1; id <= 3; id++) {
      pids.add((await client.ask({ id, method: 'm' })).result.pid)
      await eventually('the worker to be gone', () => ![...pids].some(isAlive))
    }
    expect(pids.size).toBe(3)
  })

  test('7.2 restart on-failure leaves exit 0 alone', async () => {
    verifies('7.2-on-failure', '7.2-no-worker')
    const bus = await startBus({ config: config(pool('exits-zero', { restart: 'on-failure' })) })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'm' })
    await bus.statusWhere('it is stopped', ({ workers }) => workers[0]!.state === 'stopped')
    expect(await client.ask({ id: 2, method: 'm' }, 3_000)).toMatchObject(NO_WORKER)
  })

  test('7.2 restart on-failure brings a crash back', async () => {
    verifies('7.2-on-failure')
    const bus = await startBus({ config: config(pool('dies-on-request', { restart: 'on-failure' })) })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'die', params: { code: 1 } })
    expect(await client.ask({ id: 2, method: 'm' })).toMatchObject({ result: {} })
  })

  test('7.2 restart never means never', async () => {
    verifies('7.2-never', '7.2-no-worker')
    const bus = await startBus({ config: config(pool('dies-on-request', { restart: 'never' })) })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'die' })
    await bus.statusWhere('it is stopped', ({ workers }) => workers[0]!.state === 'stopped')
    expect(await client.ask({ id: 2, method: 'm' }, 3_000)).toMatchObject(NO_WORKER)
  })
})

describe('limits', () => {
  test.each([0, 1, 2])('7.2 max_restarts %i allows so many and no more', async (max) => {
    verifies('7.2-limit', '7.2-parked')
    const workspace = testWorkspace()
    const bus = await startBus({
      config: config(pool('dies-at-start', { args: [workspace.path('starts')] }), { max_restarts: max }),
      workspace,
    })
    await bus.statusWhere('it is parked', ({ workers }) => workers[0]!.state === 'parked')
    await sleep(300)
    expect(workspace.lines('starts')).toHaveLength(max + 1)
    expect(await firstState(bus)).toBe('parked')
    expect(bus.log.text).toMatch(/park/i)
  })

  test('7.2 the count is per worker', async () => {
    verifies('7.2-limit')
    const limits = { max_restarts: 1 }
    const bus = await startBus({ config: config(pool('dies-on-request', { instances: 2 }), limits) })
    await bus.allReady()
    const client = await bus.connect()
    for (const id of [1, 2]) {
      await client.ask({ id, method: 'die' })
      await bus.statusWhere(
        'all are back',
        ({ workers }) =>
          workers.every((each) => each.state === 'ready') &&
          workers.reduce((sum, each) => sum + each.restarts, 0) === id,
      )
    }
    const { workers } = await bus.status()
    expect(workers.map((each) => each.restarts)).toEqual([1, 1])
  })

  test('7.2 a parked worker comes back when the window has room again', async () => {
    verifies('7.2-parked', '7.2-limit')
    const limits = { max_restarts: 1, restart_window_sec: 2 }
    const bus = await startBus({ config: config(pool('dies-on-request'), limits) })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'die' })
    expect(await client.ask({ id: 2, method: 'm' })).toMatchObject({ result: {} })
    await client.ask({ id: 3, method: 'die' })
    await bus.statusWhere('it is parked', ({ workers }) => workers[0]!.state === 'parked')
    expect(await client.ask({ id: 4, method: 'm' }, 3_000)).toMatchObject(NO_WORKER)
    await bus.statusWhere('it is back', ({ workers }) => workers[0]!.state === 'ready')
    expect(await client.ask({ id: 5, method: 'm' })).toMatchObject({ result: {} })
  })

  test('7.2 the pauses between starts grow', async () => {
    verifies('7.2-back-off')
    const workspace = testWorkspace()
    await startBus({
      config: config(pool('dies-at-start', { args: [workspace.path('starts')] }), { max_restarts: 4 }),
      workspace,
    })
    await eventually('five starts', () => workspace.lines('starts').length === 5, 8_000)
    const times = workspace.lines('starts').map(Number)
    const pauses = times.slice(1).map((time, n) => time - times[n]!)
    expect(pauses[0]).toBeGreaterThanOrEqual(45)
    expect(pauses[0]).toBeLessThan(1_000)
    expect(pauses[3]).toBeGreaterThan(350)
    expect(pauses[3]).toBeGreaterThan(pauses[0]!)
  })
})

describe('requests meanwhile', () => {
  test('7.2 a request waits for a worker that is backing off', async () => {
    verifies('7.2-waits', 'promise-one-answer')
    const bus = await startBus({ config: config(pool('dies-on-request')) })
    const client = await bus.connect()
    for (const id of [1, 2, 3]) await client.ask({ id, method: 'die' })
    for (const id of [4, 5]) client.send({ id, method: 'm', params: id })
    expect((await client.take(2)).map((each) => each.result.echo)).toEqual([4, 5])
  })

  test('7.2 a request waits for a worker that is starting', async () => {
    verifies('7.2-waits')
    const bus = await startBus({ config: config(pool('slow-start', { args: ['600'] })) })
    const client = await bus.connect()
    expect(await client.ask({ id: 1, method: 'm', params: 'early' })).toMatchObject({ result: { echo: 'early' } })
  })

  test('7.2 if all are parked the answer is no_worker at once', async () => {
    verifies('7.2-no-worker', 'promise-one-answer')
    const bus = await startBus({ config: config(pool('dies-at-start', { instances: 2 }), { max_restarts: 0 }) })
    await bus.statusWhere('all are parked', ({ workers }) => workers.every((each) => each.state === 'parked'))
    const client = await bus.connect()
    const began = Date.now()
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject(NO_WORKER)
    expect(await client.ask({ id: 2, method: 'm', sessionId: 's' })).toMatchObject(NO_WORKER)
    expect(Date.now() - began).toBeLessThan(1_000)
  })

  test('7.2 requests that wait get no_worker when the last hope is parked', async () => {
    verifies('7.2-no-worker', 'promise-one-answer')
    const bus = await startBus({ config: config(pool('dies-at-start'), { max_restarts: 2 }) })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm' })
    const answer = await client.next()
    expect(answer).toMatchObject({ id: 1, error: { code: -32603 } })
    expect(['no_worker', 'worker_exited']).toContain(answer.error.data.reason)
  })

  test('7.2 a worker that owes and neither reads nor writes is restarted', async () => {
    verifies('7.2-hang')
    const bus = await startBus({ config: config(pool('never-reads', { hang_timeout_sec: 1 })) })
    const { pid } = (await bus.allReady()).workers[0]!
    const client = await bus.connect()
    const began = Date.now()
    const answer = await client.ask({ id: 1, method: 'm' })
    expect(answer).toMatchObject({ error: { code: -32603, data: { reason: 'worker_stalled' } } })
    expect(Date.now() - began).toBeGreaterThan(900)
    await eventually('the old process to be gone', () => !isAlive(pid), 8_000)
  })

  test('7.2 hang_timeout_sec is off by default, and an idle worker never hangs', async () => {
    verifies('7.2-hang')
    const pools = [pool('silent'), pool('echo', { hang_timeout_sec: 1 })]
    const bus = await startBus({ config: config(pools) })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', pool: 'silent' })
    await client.ask({ id: 2, method: 'm', pool: 'echo' })
    await client.staysQuiet(2_000)
    expect((await bus.status()).workers.map((each) => each.restarts)).toEqual([0, 0])
  })

  test.each([
    ['not found', 'no-such-program-anywhere', /not found|no such|ENOENT/i],
    ['not executable', './plain.txt', /not executable|permission|EACCES/i],
  ])('7.2 a command that is %s is reported at start with its reason', async (_, command, reason) => {
    verifies('7.2-cannot-execute')
    const workspace = testWorkspace()
    const broken = { id: 'broken', command: command.replace('.', workspace.folder), args: [], instances: 1 }
    workspace.write('plain.txt', 'not a program')
    const bus = await startBus({
      config: config([broken, pool('echo')], { max_restarts: 0 }),
      workspace,
      unready: true,
    })
    const line = await bus.log.line((each) => each.text.includes(broken.command) && reason.test(each.text))
    expect(line.text).toContain('broken')
  })
})

test('7.2 the end of a stalled worker begins with SIGTERM, at once', async () => {
  verifies('7.2-stalled', '7.2-hang')
  const workspace = testWorkspace()
  const notes = workspace.path('notes')
  const bus = await startBus({ config: config(pool('ends-at-eof', { args: [notes], hang_timeout_sec: 1 })), workspace })
  await bus.allReady()
  const client = await bus.connect()
  const { error } = await client.ask({ id: 1, method: 'm' })
  expect(error).toMatchObject({ code: -32603, data: { reason: 'worker_stalled' } })
  const [first] = await eventually(
    'it to be told',
    () => workspace.lines('notes').length > 0 && workspace.lines('notes'),
  )
  expect(first).toMatch(/^SIGTERM/)
})
