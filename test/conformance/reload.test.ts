/** Clause 7.5: a new configuration while the bus runs. */
import { describe, expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { isAlive } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const echo = (name: string, more = {}) => pool('echo', { id: 'p', args: [name], ...more })

describe('reload', () => {
  test('7.5 a changed pool: new sessions on new workers, old workers retire when their sessions end', async () => {
    verifies('7.5-reload', '7.5-retire')
    const bus = await startBus({ config: config(echo('old')) })
    const [held, other] = [await bus.connect(), await bus.connect()]
    const old = await held.ask({ id: 1, method: 'm', sessionId: 'held' })
    expect(old.result.worker).toBe('old')
    bus.workspace.write('bus.json', config(echo('new')))
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    await bus.statusWhere('a new worker is ready', ({ workers }) =>
      workers.some((each) => each.state === 'ready' && each.pid !== old.result.pid),
    )
    expect(await other.ask({ id: 1, method: 'm', sessionId: 'fresh' })).toMatchObject({ result: { worker: 'new' } })
    expect(await held.ask({ id: 2, method: 'm', sessionId: 'held' })).toMatchObject({
      result: { worker: 'old', pid: old.result.pid },
    })
    expect(await held.ask({ id: 3, method: 'm' })).toMatchObject({ result: { worker: 'new' } })
    expect((await bus.status()).workers.find((each) => each.pid === old.result.pid)?.state).toBe('retiring')
    held.close()
    await eventually('the old worker to end', () => !isAlive(old.result.pid), 6_000)
  })

  test('7.5 an old worker with a request outstanding answers it before it ends', async () => {
    verifies('7.5-retire', 'promise-one-answer')
    const bus = await startBus({ config: config(pool('slow', { id: 'p' })) })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', params: { ms: 1_500 } })
    await client.taken()
    bus.workspace.write('bus.json', config(echo('new')))
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    expect(await client.answerTo(1)).toMatchObject({ result: { echo: { ms: 1_500 } } })
    await bus.statusWhere(
      'only the new is left',
      ({ workers }) => workers.length === 1 && workers[0]!.state === 'ready',
    )
    expect(await client.ask({ id: 2, method: 'm' })).toMatchObject({ result: { worker: 'new' } })
  })

  test('7.5 an unchanged pool keeps its workers', async () => {
    verifies('7.5-reload')
    const bus = await startBus({ config: config(echo('same')) })
    const client = await bus.connect()
    const before = await client.ask({ id: 1, method: 'm', sessionId: 's' })
    bus.workspace.write('bus.json', config([echo('same'), pool('echo', { id: 'added', args: ['added'] })]))
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    await bus.statusWhere('the added pool is there', ({ workers }) => workers.some((each) => each.pool === 'added'))
    expect((await client.ask({ id: 2, method: 'm', sessionId: 's' })).result.pid).toBe(before.result.pid)
    expect(await client.ask({ id: 3, method: 'm', pool: 'added' })).toMatchObject({ result: { worker: 'added' } })
    expect((await bus.status()).workers.find((each) => each.pool === 'p')).toMatchObject({
      pid: before.result.pid,
      restarts: 0,
    })
  })

  test('7.5 where only instances grew, the workers that run stay, with their sessions and requests', async () => {
    verifies('7.5-grow', '7.5-reload')
    const slow = (instances: number) => config(pool('slow', { id: 'p', instances }))
    const bus = await startBus({ config: slow(1) })
    const client = await bus.connect()
    const { pid } = (await client.ask({ id: 1, method: 'm', sessionId: 's' })).result
    client.send({ id: 2, method: 'm', params: { ms: 1_500 } })
    await client.taken()
    bus.workspace.write('bus.json', slow(3))
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    const { workers } = await bus.statusWhere(
      'there are three',
      (status) => status.workers.filter(({ state }) => state === 'ready').length === 3,
    )
    expect(workers).toHaveLength(3)
    expect(workers.find((each) => each.pid === pid)).toMatchObject({ state: 'ready', generation: 1, restarts: 0 })
    expect((await client.answerTo(2)).result.pid).toBe(pid)
    expect((await client.ask({ id: 3, method: 'm', sessionId: 's' })).result.pid).toBe(pid)
    const pids = new Set<number>()
    for (let n = 0; n < 6; n++) pids.add((await client.ask({ id: n, method: 'm' })).result.pid)
    expect(pids.size).toBe(3)
  })

  test('7.5 fewer instances, or another change beside, is a changed pool', async () => {
    verifies('7.5-grow', '7.5-retire')
    const bus = await startBus({ config: config(echo('old', { instances: 2 })) })
    const client = await bus.connect()
    const before = (await bus.allReady()).workers.map(({ pid }) => pid)
    for (const [next, count] of [
      [echo('old', { instances: 1 }), 1],
      [echo('new', { instances: 2 }), 2],
    ] as const) {
      bus.workspace.write('bus.json', config(next))
      expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
      await bus.statusWhere(
        'the new ones are left',
        ({ workers }) => workers.length === count && workers.every(({ state }) => state === 'ready'),
      )
      expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    }
    const after = (await bus.status()).workers.map(({ pid }) => pid)
    expect(after.filter((pid) => before.includes(pid))).toEqual([])
    expect((await client.ask({ id: 2, method: 'm' })).result.worker).toBe('new')
  })

  test('7.5 a pool that is taken away is unknown to new sessions', async () => {
    verifies('7.5-reload', '7.5-retire')
    const bus = await startBus({ config: config([echo('stays'), pool('echo', { id: 'leaves' })]) })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'm', pool: 'leaves' })
    bus.workspace.write('bus.json', config(echo('stays')))
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    expect(await client.ask({ id: 2, method: 'm', pool: 'leaves' })).toMatchObject({
      error: { data: { reason: 'unknown_pool' } },
    })
    expect(await client.ask({ id: 3, method: 'm' })).toMatchObject({ result: { worker: 'stays' } })
  })

  test('7.5 SIGHUP reloads when there is a socket door', async () => {
    verifies('7.5-sighup')
    const bus = await startBus({ config: config(echo('old')) })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'm' })
    bus.workspace.write('bus.json', config(echo('new')))
    bus.signal('SIGHUP')
    const isNew = async () => (await client.ask({ id: 2, method: 'm' })).result?.worker === 'new'
    expect(await eventually('the new worker to answer', isNew)).toBe(true)
  })

  test('7.5 a bad file is refused with its errors and the old one stays', async () => {
    verifies('7.5-bad-file')
    const bus = await startBus({ config: config(echo('old')) })
    const client = await bus.connect()
    const before = await client.ask({ id: 1, method: 'm', sessionId: 's' })
    for (const bad of ['{ broken', JSON.stringify({ pools: [{ ...echo('x'), instanses: 1 }], limitz: {} })]) {
      bus.workspace.write('bus.json', bad)
      const done = await bus.run(['reload', '--control', bus.control])
      expect(done.code).not.toBe(0)
      expect(done.stderr).toContain('bus.json')
      if (bad.includes('limitz')) for (const key of ['instanses', 'limitz']) expect(done.stderr).toContain(key)
    }
    expect((await client.ask({ id: 2, method: 'm', sessionId: 's' })).result).toMatchObject({ pid: before.result.pid })
  })

  test('7.5 a bad file after SIGHUP is in the log, and the old one stays', async () => {
    verifies('7.5-bad-file', '7.5-sighup')
    const bus = await startBus({ config: config(echo('old')) })
    const client = await bus.connect()
    bus.workspace.write('bus.json', { pools: [], limitz: {} })
    bus.signal('SIGHUP')
    await bus.log.line(/limitz/)
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: { worker: 'old' } })
  })

  test('7.5 a changed listen is refused', async () => {
    verifies('7.5-listen')
    const listen = (tcp: string) => ({ ...config(echo('old')), listen: { unix: 'l.sock', tcp } })
    const bus = await startBus({ config: listen('127.0.0.1:0'), doors: [] })
    const client = await bus.connect('unix:')
    bus.workspace.write('bus.json', { ...config(echo('new')), listen: { unix: 'other.sock' } })
    const done = await bus.run(['reload', '--control', bus.control])
    expect(done.code).not.toBe(0)
    expect(done.stderr).toContain('listen')
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: { worker: 'old' } })
  })
})
