/** Contract 7.5: what waits when its pool is changed is served by what takes its place. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { call, hears, initializeLine, mcpPool, shakeHands } from './mcp-peers.ts'
import { Stage } from './stage.ts'

const WELCOME = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } }

describe('through the program', () => {
  const puppet = (mode: string, more = {}) => config(mcpPool('puppet', { args: [mode], ...more }))

  test.each([
    ['configured', { protocol: 'mcp' }],
    ['found out by itself', {}],
  ])('handshakes that wait for a silent server, %s', async (_, more) => {
    verifies('7.5-waiting')
    const bus = await startBus({ config: puppet('mute', more) })
    const clients = [await bus.connect(), await bus.connect()]
    for (const client of clients) {
      client.send(initializeLine('hello'))
      await client.taken()
    }
    bus.workspace.write('bus.json', puppet('legacy', more))
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    for (const client of clients) {
      expect(await client.answerTo('hello')).toMatchObject({ result: { serverInfo: { name: 'puppet' } } })
      expect(await client.ask(call('call', undefined))).toMatchObject({ result: { echo: { name: 'tool' } } })
    }
    await bus.statusWhere('the silent one is gone', ({ workers }) => workers.length === 1)
  })

  test('a request that waits for a lease', async () => {
    verifies('7.5-waiting')
    const lease = (more = {}) => puppet('legacy', { protocol: 'mcp', sharing: 'lease', ...more })
    const bus = await startBus({ config: lease() })
    const [holder, waiter] = [await bus.connect(), await bus.connect()]
    await shakeHands(holder)
    await shakeHands(waiter)
    holder.send(call('held', []))
    await hears(bus, 'the call', ({ id }) => id === 'held')
    waiter.send(call('waits', undefined))
    await waiter.taken()
    bus.workspace.write('bus.json', lease({ env: { CHANGED: '1' } }))
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    expect(await waiter.answerTo('waits')).toMatchObject({ result: { echo: { name: 'tool' } } })
  })
})

describe('a plain request that waits for a worker that backs off', () => {
  const backingOff = () => {
    const stage = new Stage({ protocol: 'plain' })
    for (let n = 0; n < 6; n++) {
      stage.exit(0)
      if (n < 5) stage.advance(20_000)
    }
    const client = stage.connect()
    stage.send(client, { id: 1, method: 'm' })
    stage.send(client, { id: 2, method: 'm', sessionId: 's' })
    expect(stage.snapshot).toMatchObject({ outstanding: 2 })
    return { stage, client }
  }

  test('is served by the new worker', () => {
    verifies('7.5-waiting')
    const { stage, client } = backingOff()
    stage.reload({ protocol: 'plain', revision: '2' })
    const heard = [...stage.atWorker.values()].flat()
    expect(heard).toMatchObject([
      { id: 1, method: 'm' },
      { id: 2, method: 'm', sessionId: 's' },
    ])
    expect(stage.atClient.get(client)).toEqual([])
  })

  test('is told when its pool is taken away', () => {
    verifies('7.5-waiting')
    const { stage, client } = backingOff()
    stage.reload({ id: 'other', protocol: 'plain' })
    stage.advance(15_000)
    expect(
      stage.atClient
        .get(client)!
        .map(({ id }) => id)
        .sort(),
    ).toEqual([1, 2])
    for (const { error } of stage.atClient.get(client)!)
      expect(error).toMatchObject({ data: { reason: expect.any(String) } })
  })

  test('waits no longer than from its arrival', () => {
    verifies('7.5-waiting', '8.1-arrival')
    const stage = new Stage({ protocol: 'mcp' }, { requestTimeoutMs: 5_000 })
    const client = stage.connect()
    stage.send(client, initializeLine('x'))
    stage.advance(4_000)
    stage.reload({ protocol: 'mcp', revision: '2' })
    stage.advance(999)
    expect(stage.atClient.get(client)).toEqual([])
    stage.advance(2)
    expect(stage.atClient.get(client)).toMatchObject([{ id: 'x', error: { data: { reason: 'request_timeout' } } }])
  })

  test('a handshake of a pool that is changed again and again is answered once', () => {
    verifies('7.5-waiting', 'promise-one-answer')
    const stage = new Stage({ protocol: 'mcp' })
    const client = stage.connect()
    stage.send(client, initializeLine('x'))
    for (let n = 2; n < 6; n++) stage.reload({ protocol: 'mcp', revision: String(n) })
    for (const [worker, heard] of [...stage.atWorker]) {
      const hello = heard.findLast(({ method }) => method === 'initialize')
      if (stage.snapshot.workers.some(({ id, state }) => id === worker && state === 'starting'))
        stage.say(worker, { id: hello.id, result: WELCOME })
    }
    expect(stage.atClient.get(client)).toMatchObject([{ id: 'x', result: WELCOME }])
  })
})
