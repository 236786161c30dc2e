/** The routing table of the Model Context Protocol for the stateless era, and how the era of a worker is found out. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import {
  call,
  DONE,
  dropped,
  expectRefusal,
  heard,
  hears,
  initializeLine,
  LOG_LEVEL,
  MODERN,
  mcpPool,
  PROTOCOL,
  SUBSCRIPTION,
  shakeHands,
  timesHeard,
  unasked,
} from './mcp-peers.ts'

const discover = (id: unknown): Message => ({
  jsonrpc: '2.0',
  id,
  method: 'server/discover',
  params: { _meta: MODERN },
})
const modern = (id: unknown, say?: readonly (string | object)[], meta = {}) => call(id, say, { ...MODERN, ...meta })
const COMPLETE = '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}'
const puppet = (mode: string, more = {}) => config(mcpPool('puppet', { args: [mode], ...more }))
const connected = (bus: Bus, count: number) => Promise.all(Array.from({ length: count }, () => bus.connect()))

describe('server/discover', () => {
  test('on a pool nobody knows: a server of the handshake era is found out and the client is refused at once', async () => {
    verifies('M2-discover')
    const bus = await startBus({ config: puppet('legacy') })
    const client = await bus.connect()
    expect(await client.ask(discover('d'))).toMatchObject({ id: 'd', error: { code: -32601 } })
    expect((await shakeHands(client)).serverInfo.name).toBe('puppet')
    expect(timesHeard(bus, 'server/discover')).toBe(0)
    expect(timesHeard(bus, 'initialize')).toBe(1)
  })

  test.each(['silent', 'exits'])('a server that is %s at the question is never asked it', async (mode) => {
    verifies('M2-discover')
    const bus = await startBus({ config: puppet(mode) })
    const client = await bus.connect()
    expect(await client.ask(discover(1))).toMatchObject({ id: 1, error: { code: -32601 } })
    await shakeHands(client)
    expect(timesHeard(bus, 'server/discover')).toBe(0)
  })

  test('after the handshake the answer is the same, by the bus', async () => {
    verifies('M2-discover')
    const bus = await startBus({ config: puppet('silent') })
    const client = await bus.connect()
    await shakeHands(client)
    expect(await client.ask(discover(1))).toMatchObject({ error: { code: -32601, data: { reason: 'unknown_method' } } })
    expect(timesHeard(bus, 'server/discover')).toBe(0)
  })

  test('a server of the stateless era answers for itself, to each client with its own id', async () => {
    const bus = await startBus({ config: puppet('modern') })
    const clients = await connected(bus, 3)
    const answers = await Promise.all(clients.map((client, n) => client.ask(discover(n === 1 ? '1' : 1))))
    expect(answers.map(({ id }) => id)).toEqual([1, '1', 1])
    for (const { result } of answers) expect(result.supportedVersions).toEqual(['2026-07-28'])
  })

  test('a pool that says era modern is asked as it is', async () => {
    verifies('M1-era')
    const bus = await startBus({ config: puppet('dual', { protocol: 'mcp', era: 'modern' }) })
    const client = await bus.connect()
    expect((await client.ask(discover(1))).result.resultType).toBe('complete')
    expect(timesHeard(bus, 'initialize')).toBe(0)
  })

  test('the worker of an ACP client is not asked for an era: the client is refused, the worker goes on', async () => {
    verifies('A1-number')
    const bus = await startBus({ config: puppet('legacy') })
    const [acp, mcp] = await connected(bus, 2)
    const welcome = `{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":1}}`
    await acp!.ask({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1, say: [welcome] } })
    expectRefusal(await mcp!.ask(discover(1)), 'protocol_mismatch')
    expect(timesHeard(bus, 'initialize')).toBe(1)
    expect(await acp!.ask({ jsonrpc: '2.0', id: 1, method: 'x', params: { n: 1 } })).toMatchObject({
      result: { echo: { n: 1 } },
    })
  })
})

describe('eras are never mixed on one worker', () => {
  test('a client of the handshake era is refused by a worker of the stateless era, which hears nothing of it', async () => {
    verifies('M2-mismatch', 'M23-unknown')
    const bus = await startBus({ config: puppet('modern') })
    const [one, other] = await connected(bus, 2)
    await one!.ask(discover(1))
    expectRefusal(await other!.ask(initializeLine(1)), 'protocol_mismatch')
    expectRefusal(await one!.ask({ jsonrpc: '2.0', id: 3, method: 'ping' }), 'unknown_method')
    expectRefusal(await one!.ask(initializeLine(4)), 'unknown_method')
    expect(
      heard(bus).filter(({ method, params }) => params?._meta?.[PROTOCOL] === undefined && method !== 'initialize'),
    ).toEqual([])
  })

  test('a client of the stateless era is refused by a worker of the handshake era', async () => {
    verifies('M2-mismatch')
    const bus = await startBus({ config: puppet('dual') })
    const [one, other] = await connected(bus, 2)
    await shakeHands(one!)
    expectRefusal(await other!.ask(modern(1)), 'protocol_mismatch')
    expect((await one!.ask(call(2, undefined))).result.echo.name).toBe('tool')
    expect(heard(bus).filter(({ params }) => params?._meta?.[PROTOCOL] !== undefined)).toEqual([])
  })

  test('a first request of the stateless era does not decide for a server that does not know it', async () => {
    verifies('M3-worker-decides')
    const bus = await startBus({ config: puppet('legacy') })
    const [rash, other] = await connected(bus, 2)
    expectRefusal(await rash!.ask(modern(1)), 'protocol_mismatch')
    expect((await shakeHands(other!)).serverInfo.name).toBe('puppet')
  })

  test('a first request of the stateless era is served where the server knows it, without a discover before', async () => {
    verifies('M1-meta')
    const bus = await startBus({ config: puppet('dual') })
    const clients = await connected(bus, 2)
    const answers = await Promise.all(clients.map((client) => client.ask(modern(1))))
    for (const { result } of answers) expect(result.resultType).toBe('complete')
    expect(timesHeard(bus, 'initialize')).toBe(0)
  })
})

describe('the stateless era', () => {
  const bus = sharedBus({ config: puppet('modern', { protocol: 'mcp', era: 'modern' }) })

  test('subscriptions/listen, acknowledged: the id is an alias where it must be, and the subscription id follows', async () => {
    verifies('M22-id')
    const [one, other] = await connected(bus(), 2)
    const listen = { jsonrpc: '2.0', id: 1, method: 'subscriptions/listen' }
    const stamped = (method: string, id = '$ID') =>
      `{"jsonrpc":"2.0","method":"${method}","params":{"_meta":{"${SUBSCRIPTION}":${id}}}}`
    const ack = stamped('notifications/subscriptions/acknowledged')
    const changed = stamped('notifications/tools/list_changed')
    const updated = stamped('notifications/resources/updated')
    const end = `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","_meta":{"${SUBSCRIPTION}":$ID}}}`
    one!.send({ ...listen, params: { _meta: MODERN, say: [ack] } })
    expect((await one!.next()).params._meta[SUBSCRIPTION]).toBe(1)
    other!.send({ ...listen, params: { _meta: MODERN, say: [ack, changed, updated] } })
    for (const message of await other!.take(3)) expect(message.params._meta[SUBSCRIPTION]).toBe(1)
    const { id } = heard(bus()).findLast(({ method }) => method === 'subscriptions/listen')
    expect(id).not.toBe(1)
    const [trigger] = await connected(bus(), 1)
    trigger!.send(
      modern(9, [stamped('notifications/tools/list_changed', `"${id}"`), end.replaceAll('$ID', id), COMPLETE]),
    )
    await trigger!.answerTo(9)
    expect((await other!.next()).params._meta[SUBSCRIPTION]).toBe('1')
    expect(await other!.answerTo(1)).toMatchObject({ result: { _meta: { [SUBSCRIPTION]: 1 } } })
    expect(one!.lines).toHaveLength(1)
    expect(unasked(trigger!)).toEqual([])
  })

  test('subscriptions/listen is cancelled when its client goes', async () => {
    verifies('M22-gone')
    const [client] = await connected(bus(), 1)
    client!.send({ jsonrpc: '2.0', id: 'gone', method: 'subscriptions/listen', params: { _meta: MODERN, say: [] } })
    await hears(bus(), 'the listen', ({ id }) => id === 'gone')
    client!.close()
    await hears(
      bus(),
      'the cancel',
      ({ method, params }) => method === 'notifications/cancelled' && params.requestId === 'gone',
    )
  })

  test('notifications/cancelled S→C ends a subscription; its result may follow or not', async () => {
    verifies('M22-ended')
    const [client] = await connected(bus(), 1)
    const ended = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}`
    const before = (await bus().status()).outstanding
    client!.send({ jsonrpc: '2.0', id: 5, method: 'subscriptions/listen', params: { _meta: MODERN, say: [ended] } })
    expect(await client!.next()).toMatchObject({ method: 'notifications/cancelled', params: { requestId: 5 } })
    expect((await bus().status()).outstanding).toBe(before)
    client!.send({
      jsonrpc: '2.0',
      id: 6,
      method: 'subscriptions/listen',
      params: { _meta: MODERN, say: [ended, COMPLETE] },
    })
    expect(await client!.next()).toMatchObject({ method: 'notifications/cancelled', params: { requestId: 6 } })
    expect(await client!.next()).toMatchObject({ id: 6, result: { resultType: 'complete' } })
  })

  test('what belongs to no subscription is for nobody: list_changed without one is dropped and counted', async () => {
    verifies('M22-nobody')
    const [one, other] = await connected(bus(), 2)
    await one!.ask(modern(0))
    const before = await dropped(bus(), 'unattributable')
    other!.send(modern(1, [{ method: 'notifications/tools/list_changed' }, COMPLETE]))
    await other!.answerTo(1)
    expect(await dropped(bus(), 'unattributable')).toBe(before + 1)
    expect([...unasked(one!), ...unasked(other!)]).toEqual([])
  })

  test('notifications/message: only if exactly one request in flight asked for log lines', async () => {
    verifies('M23-log')
    const [one, other] = await connected(bus(), 2)
    const log = { method: 'notifications/message', params: { level: 'info', data: 'x' } }
    one!.send(modern('quiet', []))
    await hears(bus(), 'the call', ({ id }) => id === 'quiet')
    other!.send(modern(2, [log, COMPLETE], { [LOG_LEVEL]: 'info' }))
    expect(await other!.next()).toMatchObject(log)
    await other!.answerTo(2)
    const before = await dropped(bus(), 'unattributable')
    other!.send(modern(3, [log, COMPLETE]))
    await other!.answerTo(3)
    expect(await dropped(bus(), 'unattributable')).toBe(before + 1)
    expect(unasked(one!)).toEqual([])
  })

  test('same, modern: input_required is a normal result, and the retry with requestState goes to the worker that issued it', async () => {
    verifies('M7-state', 'M23-input')
    const many = await startBus({ config: puppet('modern', { protocol: 'mcp', era: 'modern', instances: 3 }) })
    const [client, second] = await connected(many, 2)
    const first = await client!.ask(modern(1))
    await second!.ask(modern(1))
    const asks =
      '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create"}},"requestState":"opaque"}}'
    client!.send(modern(2, [asks]))
    expect((await client!.answerTo(2)).result).toMatchObject({ resultType: 'input_required', requestState: 'opaque' })
    const retry = { ...modern(3), params: { ...modern(3).params, inputResponses: { q: {} }, requestState: 'opaque' } }
    expect((await client!.ask(retry)).result).toMatchObject({ pid: first.result.pid, echo: { requestState: 'opaque' } })
  })

  test('progress and cancel by the ids and tokens of each client', async () => {
    const [one, other] = await connected(bus(), 2)
    const progress =
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}'
    one!.send(modern(70, [progress], { progressToken: 70 }))
    expect((await one!.next()).params.progressToken).toBe(70)
    other!.send(modern(70, [progress], { progressToken: 70 }))
    expect((await other!.next()).params.progressToken).toBe(70)
    other!.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 70 } })
    const { id } = heard(bus()).findLast(({ method }) => method === 'tools/call')
    expect(id).not.toBe(70)
    await hears(
      bus(),
      'the cancel',
      ({ method, params }) => method === 'notifications/cancelled' && params.requestId === id,
    )
  })

  test('a question is not in this era: it is refused to the worker, nobody is asked', async () => {
    verifies('M23-question')
    const [client] = await connected(bus(), 1)
    client!.send(modern(1, [{ id: 'q', method: 'sampling/createMessage', params: {} }, COMPLETE]))
    await client!.answerTo(1)
    expect(await hears(bus(), 'the refusal', ({ id, error }) => id === 'q' && error !== undefined)).toBeTruthy()
    expect(unasked(client!)).toEqual([])
  })

  test('tasks of the extension: for the owner only, notifications/tasks too', async () => {
    verifies('M23-tasks')
    const [owner, other] = await connected(bus(), 2)
    const created = '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"task","taskId":"m-1","status":"working"}}'
    owner!.send(modern(1, [created]))
    await owner!.answerTo(1)
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const about = { jsonrpc: '2.0', id: 2, method, params: { taskId: 'm-1', _meta: MODERN } }
      expect((await owner!.ask(about)).result.echo.taskId).toBe('m-1')
      expectRefusal(await other!.ask(about), 'task_not_owned')
    }
    other!.send(modern(4, [{ method: 'notifications/tasks', params: { taskId: 'm-1' } }, COMPLETE]))
    await other!.answerTo(4)
    expect(await owner!.next()).toMatchObject({ method: 'notifications/tasks' })
    expect(unasked(other!)).toEqual([])
  })

  test('DONE of another era is still only an answer', async () => {
    const [client] = await connected(bus(), 1)
    client!.send(modern(1, [DONE]))
    expect((await client!.answerTo(1)).result).toEqual({ content: [] })
  })
})
