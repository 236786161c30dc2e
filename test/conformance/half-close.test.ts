/** Clause 4.1.2: a client that has ended its writing side, and one that has gone altogether. */
import { describe, expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

describe.each(['unix', 'tcp'] as const)('at the %s door', (door) => {
  test('4.1.2 a half-closed client gets its answers while others go on', async () => {
    verifies('4.1.2-half-close-owed')
    const bus = await startBus({ config: config(pool('slow')), doors: [door] })
    const [half, other] = [await bus.connect(), await bus.connect()]
    half.sendRaw('{"id":1,"method":"m","params":{"ms":400}}\n{"id":2,"method":"m","params":{"ms":100}}\n')
    half.endWriting()
    expect(await other.ask({ id: 1, method: 'm', params: { ms: 0 } })).toMatchObject({ result: {} })
    expect((await half.untilClosed()).map((each) => each.id)).toEqual([2, 1])
    expect(await other.ask({ id: 2, method: 'm', params: { ms: 0 } })).toMatchObject({ result: {} })
  })

  test('4.1.2 its notifications come until its last answer', async () => {
    verifies('4.1.2-half-close-owed')
    const bus = await startBus({ config: config(pool('floods')), doors: [door] })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', sessionId: 's', params: { count: 300, bytes: 1_000 } })
    client.endWriting()
    const lines = await client.untilClosed()
    expect(lines).toHaveLength(301)
    expect(lines.at(-1)).toMatchObject({ id: 1 })
  })

  test('4.1.2 questions put to it are answered with an error at once', async () => {
    verifies('4.1.2-half-close-question')
    const bus = await startBus({ config: config(pool('asks')), doors: [door] })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', sessionId: 's', params: { ms: 300 } })
    client.endWriting()
    const began = Date.now()
    const lines = await client.untilClosed()
    expect(lines.find((each) => each.id === 1)).toMatchObject({
      result: { said: null, error: { code: expect.any(Number) } },
    })
    expect(Date.now() - began).toBeLessThan(2_000)
  })

  test('4.1.2 a question that waits when it half-closes is answered with an error at once', async () => {
    verifies('4.1.2-half-close-question')
    const bus = await startBus({ config: config(pool('asks')), doors: [door] })
    const client = await bus.connect()
    client.send({ id: 'mine', method: 'm', sessionId: 's' })
    expect(await client.next()).toMatchObject({ method: 'question' })
    client.endWriting()
    const lines = await client.untilClosed()
    expect(lines).toMatchObject([{ id: 'mine', result: { said: null, error: { code: expect.any(Number) } } }])
  })

  test('4.1.2 a client that is wholly gone is gone at once', async () => {
    verifies('4.1.2-wholly-gone', '7.3-sessions-end')
    const bus = await startBus({ config: config([pool('silent'), pool('floods')]), doors: [door] })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', pool: 'silent', sessionId: 's' })
    client.pause()
    client.send({ id: 2, method: 'm', pool: 'floods', sessionId: 't', params: { count: 400, bytes: 2_000 } })
    await bus.statusWhere('it is known', (status) => status.sessions === 2 && status.outstanding === 1)
    client.reset()
    const status = await bus.statusWhere('it is gone', ({ clients }) => clients === 0, 3_000)
    expect(status.sessions).toBe(0)
  })

  test('4.1.2 the session of a half-closed client is still its own', async () => {
    verifies('4.1.2-half-close-owed', '6.4-never-taken-over')
    const bus = await startBus({ config: config(pool('slow')), doors: [door] })
    const [half, other] = [await bus.connect(), await bus.connect()]
    half.send({ id: 1, method: 'm', sessionId: 's', params: { ms: 500 } })
    await half.taken()
    half.endWriting()
    const refused = await other.ask({ id: 1, method: 'm', sessionId: 's' })
    expect(refused).toMatchObject({ error: { data: { reason: 'session_not_owned' } } })
    await half.untilClosed()
    const free = async () =>
      (await other.ask({ id: 2, method: 'm', sessionId: 's', params: { ms: 0 } })).error === undefined
    expect(await eventually('the session to be free', free)).toBe(true)
  })
})

describe('in stdio mode', () => {
  test('4.1.2 EOF delivers what is owed, then exit 0', async () => {
    verifies('4.1.2-stdio-eof', '8.4-exit-0')
    const bus = await startBus({ config: config(pool('slow')), doors: ['stdio'] })
    const client = bus.stdio()
    client.sendRaw('{"id":1,"method":"m","params":{"ms":500}}\n{"id":2,"method":"m","params":{"ms":50}}')
    client.endWriting()
    expect((await client.untilClosed()).map((each) => each.id)).toEqual([2, 1])
    expect(await bus.exit).toEqual({ code: 0, signal: null })
  })

  test('4.1.2 EOF with nothing owed is exit 0', async () => {
    verifies('4.1.2-stdio-eof')
    const bus = await startBus({ config: config(pool('echo')), doors: ['stdio'] })
    const began = Date.now()
    bus.stdio().endWriting()
    expect(await bus.exit).toEqual({ code: 0, signal: null })
    expect(Date.now() - began).toBeLessThan(3_000)
  })

  test('4.1.2 what does not come within half_close_timeout_sec is not waited for', async () => {
    verifies('4.1.2-stdio-eof-bound')
    const bus = await startBus({ config: config(pool('silent'), { half_close_timeout_sec: 1 }), doors: ['stdio'] })
    const client = bus.stdio()
    client.send({ id: 1, method: 'm' })
    client.endWriting()
    const began = Date.now()
    await client.untilClosed()
    expect(await bus.exit).toEqual({ code: 0, signal: null })
    expect(Date.now() - began).toBeGreaterThan(800)
    expect(Date.now() - began).toBeLessThan(4_000)
  })

  test('4.1.2 the reader of stdout going away ends the bus', async () => {
    verifies('4.1.2-wholly-gone')
    const bus = await startBus({ config: config(pool('echo')), doors: ['stdio'] })
    bus.child.stdout!.destroy()
    bus.child.stdin!.write('{"id":1,"method":"m"}\n')
    const exit = await Promise.race([bus.exit, eventually('the end', () => bus.hasExited).then(() => bus.exit)])
    expect(exit.signal).toBe(null)
  })
})
