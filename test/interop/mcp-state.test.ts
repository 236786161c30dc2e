/** The routing table of the Model Context Protocol, continued: what a shared worker keeps for its clients of the handshake era. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import {
  call,
  DONE,
  dropped,
  expectRefusal,
  greeted,
  heard,
  hears,
  mcpPool,
  settled,
  timesHeard,
  unasked,
} from './mcp-peers.ts'

const puppet = (more = {}) => config(mcpPool('puppet', { protocol: 'mcp', ...more }))

describe('logging/setLevel', () => {
  test('is kept per client; the worker is told the most verbose level anybody wants, also after a restart', async () => {
    verifies('M15-level')
    const bus = await startBus({ config: puppet() })
    const [one, other] = await greeted(bus, 2)
    const setLevel = (id: number, level: string) => ({
      jsonrpc: '2.0',
      id,
      method: 'logging/setLevel',
      params: { level },
    })
    const levels = () =>
      heard(bus)
        .filter(({ method }) => method === 'logging/setLevel')
        .map(({ params }) => params.level)
    const log = (level: string) => ({ method: 'notifications/message', params: { level, data: level } })
    expect((await one!.ask(setLevel(1, 'warning'))).result).toEqual({})
    await other!.ask(setLevel(1, 'debug'))
    await one!.ask(setLevel(2, 'error'))
    await settled(one!)
    expect(levels()).toEqual(['warning', 'debug'])
    one!.send(call(3, [log('warning'), log('error'), DONE]))
    await one!.answerTo(3)
    expect(unasked(one!).map(({ params }) => params.data)).toEqual(['error'])
    await other!.ask(setLevel(2, 'warning'))
    await settled(one!)
    expect(levels()).toEqual(['warning', 'debug', 'warning'])
    process.kill((await bus.status()).workers[0]!.pid, 'SIGKILL')
    await bus.statusWhere(
      'the worker is new',
      ({ workers }) => workers[0]!.generation === 2 && workers[0]!.state === 'ready',
    )
    await settled(one!, other!)
    expect(levels().at(-1)).toBe('warning')
    expect(levels().length).toBeGreaterThan(3)
  })
})

describe('resources/subscribe, unsubscribe; notifications/resources/updated', () => {
  const updated = (uri: string) => ({ method: 'notifications/resources/updated', params: { uri } })
  const subscribe = (id: number, uri: string) => ({
    jsonrpc: '2.0',
    id,
    method: 'resources/subscribe',
    params: { uri },
  })
  const unsubscribe = (id: number, uri: string) => ({
    jsonrpc: '2.0',
    id,
    method: 'resources/unsubscribe',
    params: { uri },
  })

  test('counted per URI: the worker hears the first subscribe and the last unsubscribe; updates go to subscribers only', async () => {
    verifies('M16-counted')
    const bus = await startBus({ config: puppet() })
    const [one, two, three] = await greeted(bus, 3)
    await one!.ask(subscribe(1, 'a:/1'))
    await two!.ask(subscribe(1, 'a:/1'))
    await two!.ask(subscribe(2, 'a:/2'))
    expect(timesHeard(bus, 'resources/subscribe')).toBe(2)
    three!.send(call(5, [updated('a:/1'), updated('a:/2'), updated('a:/3'), DONE]))
    await three!.answerTo(5)
    await settled(one!, two!, three!)
    expect(unasked(one!).map(({ params }) => params.uri)).toEqual(['a:/1'])
    expect(unasked(two!).map(({ params }) => params.uri)).toEqual(['a:/1', 'a:/2'])
    expect(unasked(three!)).toEqual([])
    await one!.ask(unsubscribe(3, 'a:/1'))
    expect(timesHeard(bus, 'resources/unsubscribe')).toBe(0)
    await two!.ask(unsubscribe(3, 'a:/1'))
    expect(timesHeard(bus, 'resources/unsubscribe')).toBe(1)
    two!.close()
    expect(
      await hears(
        bus,
        'the last unsubscribe',
        ({ method, params }) => method === 'resources/unsubscribe' && params.uri === 'a:/2',
      ),
    ).toBeTruthy()
  })

  test('after a restart the new worker hears of them without the client doing anything', async () => {
    verifies('M16-restart')
    const bus = await startBus({ config: puppet() })
    const [silent, other] = await greeted(bus, 2)
    await silent!.ask(subscribe(1, 'a:/1'))
    process.kill((await bus.status()).workers[0]!.pid, 'SIGKILL')
    await bus.statusWhere(
      'the worker is new',
      ({ workers }) => workers[0]!.generation === 2 && workers[0]!.state === 'ready',
    )
    await hears(bus, 'both subscribes', () => timesHeard(bus, 'resources/subscribe') === 2)
    other!.send(call(5, [updated('a:/1'), DONE]))
    expect(await silent!.next()).toMatchObject(updated('a:/1'))
  })
})

describe('notifications/{tools,prompts,resources}/list_changed', () => {
  const bus = sharedBus({ config: puppet() })

  test.each(['tools', 'prompts', 'resources'])('%s: to all initialised clients of that worker', async (kind) => {
    verifies('6.8-everyone', 'M17-list-changed')
    const clients = await greeted(bus(), 3)
    const stranger = await bus().connect()
    clients[0]!.send(call(1, [{ method: `notifications/${kind}/list_changed` }, DONE]))
    await clients[0]!.answerTo(1)
    await settled(...clients)
    for (const client of clients)
      expect(unasked(client)).toEqual([{ jsonrpc: '2.0', method: `notifications/${kind}/list_changed` }])
    expect(stranger.lines).toEqual([])
    for (const client of clients) client.close()
  })
})

describe('notifications/roots/list_changed', () => {
  test('means nothing to a shared worker: dropped and counted; an isolated one hears it', async () => {
    verifies('M21-roots')
    const note = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' }
    const shared = await startBus({ config: puppet() })
    const [client] = await greeted(shared, 1)
    client!.send(note)
    await settled(client!)
    expect(timesHeard(shared, note.method)).toBe(0)
    expect(await dropped(shared, 'not_when_shared')).toBe(1)
    const isolated = await startBus({ config: puppet({ sharing: 'isolated' }) })
    const [alone] = await greeted(isolated, 1)
    alone!.send(note)
    await settled(alone!)
    expect(timesHeard(isolated, note.method)).toBe(1)
  })
})

describe('tasks/get, result, cancel; notifications/tasks/status', () => {
  const bus = sharedBus({ config: puppet() })
  const created = (taskId: string) =>
    `{"jsonrpc":"2.0","id":$ID,"result":{"task":{"taskId":"${taskId}","status":"working"}}}`
  const about = (id: number, method: string, taskId: string) => ({ jsonrpc: '2.0', id, method, params: { taskId } })

  test.each(['tasks/get', 'tasks/result', 'tasks/cancel'])(
    '%s: for the owner; refused to others and for unknown tasks',
    async (method) => {
      verifies('M20-owner')
      const [owner, other] = await greeted(bus(), 2)
      const taskId = `${method}-1`
      owner!.send(call(1, [created(taskId)]))
      await owner!.answerTo(1)
      expect((await owner!.ask(about(2, method, taskId))).result.echo.taskId).toBe(taskId)
      expectRefusal(await other!.ask(about(2, method, taskId)), 'task_not_owned')
      expectRefusal(await owner!.ask(about(3, method, 'nobody')), 'task_not_owned')
    },
  )

  test('notifications/tasks/status goes to the owner', async () => {
    verifies('M20-status')
    const [owner, other] = await greeted(bus(), 2)
    owner!.send(call(1, [created('t-status')]))
    await owner!.answerTo(1)
    other!.send(
      call(1, [{ method: 'notifications/tasks/status', params: { taskId: 't-status', status: 'working' } }, DONE]),
    )
    await other!.answerTo(1)
    expect(await owner!.next()).toMatchObject({ method: 'notifications/tasks/status' })
    expect(unasked(other!)).toEqual([])
  })

  test('tasks/list is refused on a shared worker: it would show the tasks of others', async () => {
    verifies('M21-list')
    const [client] = await greeted(bus(), 1)
    expectRefusal(await client!.ask({ jsonrpc: '2.0', id: 1, method: 'tasks/list' }), 'not_when_shared')
  })
})
