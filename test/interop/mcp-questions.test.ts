/** sampling/createMessage, elicitation/create, roots/list: questions of a server to a client, in each sharing mode. */
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
  RELATED_TASK,
  settled,
  timesHeard,
  unasked,
} from './mcp-peers.ts'

const puppet = (more = {}) => config(mcpPool('puppet', { protocol: 'mcp', ...more }))
const METHODS = ['sampling/createMessage', 'elicitation/create', 'roots/list']
let count = 0
const ask = (method: string, params: object = {}) => ({ id: `q${++count}`, method, params })

describe('shared', () => {
  const bus = sharedBus({ config: puppet() })

  test.each(METHODS)(
    '%s goes to the only client with requests in flight, and its answer comes back',
    async (method) => {
      verifies('M18-sole')
      const [one, other] = await greeted(bus(), 2)
      const question = ask(method)
      one!.send(call(1, [question, DONE]))
      const asked = await one!.next()
      expect(asked).toMatchObject({ method })
      one!.send({ jsonrpc: '2.0', id: asked.id, result: { said: method } })
      expect(
        await hears(bus(), 'the answer', ({ id, result }) => id === question.id && result !== undefined),
      ).toMatchObject({
        result: { said: method },
      })
      await settled(other!)
      expect(unasked(other!)).toEqual([])
    },
  )

  test.each(METHODS)('%s with two in flight is refused to the worker: nobody is guessed', async (method) => {
    verifies('6.8-nobody-guessed', 'M18-nobody')
    const [one, other] = await greeted(bus(), 2)
    one!.send(call(1, []))
    await settled(one!)
    const question = ask(method)
    other!.send(call(1, [question, DONE]))
    const refusal = await hears(bus(), 'the refusal', ({ id, error }) => id === question.id && error !== undefined)
    expectRefusal(refusal, 'no_client')
    expect([...unasked(one!), ...unasked(other!)]).toEqual([])
    one!.close()
    await hears(bus(), 'the cancel', () => timesHeard(bus(), 'notifications/cancelled') > 0)
  })

  test('a question of a task goes to whoever started the task', async () => {
    verifies('M18-task')
    const [owner, other] = await greeted(bus(), 2)
    owner!.send(call(1, ['{"jsonrpc":"2.0","id":$ID,"result":{"task":{"taskId":"t1","status":"working"}}}']))
    await owner!.answerTo(1)
    owner!.send(call(2, []))
    await settled(owner!)
    other!.send(call(1, [ask('elicitation/create', { _meta: { [RELATED_TASK]: { taskId: 't1' } } }), DONE]))
    expect(await owner!.next()).toMatchObject({ method: 'elicitation/create' })
    expect(unasked(other!)).toEqual([])
    owner!.close()
  })
})

describe('shared, after a client has gone', () => {
  test('a call that was cancelled or left behind still counts: what it may ask is not put to somebody else', async () => {
    const bus = await startBus({ config: puppet() })
    const [gone, other] = await greeted(bus, 2)
    gone!.send(call(31, []))
    await hears(bus, 'the call', ({ id }) => id === 31)
    gone!.close()
    await hears(
      bus,
      'the cancel',
      ({ method, params }) => method === 'notifications/cancelled' && params.requestId === 31,
    )
    const question = ask('sampling/createMessage')
    other!.send(call(32, [question, DONE]))
    await other!.answerTo(32)
    expectRefusal(await hears(bus, 'the refusal', ({ id }) => id === question.id), 'no_client')
    expect(unasked(other!)).toEqual([])
    const next = ask('sampling/createMessage')
    other!.send(call(33, [{ id: 31, result: {} }, next, DONE]))
    expect(await other!.next()).toMatchObject({ id: next.id })
  })
})

describe('isolated', () => {
  const bus = sharedBus({ config: puppet({ sharing: 'isolated', instances: 2 }) })

  test.each(METHODS)(
    '%s passes through to the client of that worker, with capabilities as the client gave them',
    async (method) => {
      const [one, other] = await greeted(bus(), 2)
      one!.send(call(1, []))
      other!.send(call(1, [{ ...ask(method), id: 0 }, DONE]))
      const asked = await other!.next()
      expect(asked).toMatchObject({ id: 0, method })
      other!.send({ jsonrpc: '2.0', id: 0, result: { said: method } })
      await hears(bus(), 'the answer', ({ id, result }) => id === 0 && result?.said === method)
      await other!.answerTo(1)
      expect(unasked(one!)).toEqual([])
      one!.close()
      other!.close()
    },
  )
})

describe('lease', () => {
  test('a question, a log line and stray progress find the holder', async () => {
    verifies('6.7.3-exclusive')
    const bus = await startBus({ config: puppet({ sharing: 'lease' }) })
    const [one, other] = await greeted(bus, 2)
    const question = ask('elicitation/create')
    one!.send(call(1, [question]))
    const asked = await one!.next()
    other!.send(call(1, [{ method: 'notifications/message', params: { level: 'info', data: 'second' } }, DONE]))
    expect(other!.lines).toHaveLength(1)
    one!.send({ jsonrpc: '2.0', id: asked.id, result: { action: 'accept' } })
    await hears(bus, 'the answer', ({ id, result }) => id === question.id && result?.action === 'accept')
    expect(heard(bus).filter(({ method }) => method === 'tools/call')).toHaveLength(1)
    one!.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    expect(await other!.answerTo(1)).toMatchObject({ result: {} })
    expect(unasked(one!).map(({ method }) => method)).toEqual(['elicitation/create'])
  })
})

describe('notifications/elicitation/complete', () => {
  const bus = sharedBus({ config: puppet() })

  test('goes to the client that received that elicitation', async () => {
    verifies('M19-complete')
    const [one, other] = await greeted(bus(), 2)
    one!.send(call(1, [ask('elicitation/create', { mode: 'url', elicitationId: 'e1' }), DONE]))
    await one!.next()
    await one!.answerTo(1)
    const before = await dropped(bus(), 'unattributable')
    const complete = (elicitationId: string) => ({
      method: 'notifications/elicitation/complete',
      params: { elicitationId },
    })
    other!.send(call(1, [complete('e1'), complete('e2'), DONE]))
    await other!.answerTo(1)
    expect(await one!.next()).toMatchObject(complete('e1'))
    expect(unasked(other!)).toEqual([])
    expect(await dropped(bus(), 'unattributable')).toBe(before + 1)
  })
})

describe('notifications/progress C→S', () => {
  const bus = sharedBus({ config: puppet() })

  test('of a question reaches the worker that asked it; any other is dropped', async () => {
    verifies('M13-progress')
    const [one, other] = await greeted(bus(), 2)
    one!.send(call(1, [ask('sampling/createMessage', { _meta: { progressToken: 'p' } })]))
    await one!.next()
    const before = await dropped(bus(), 'late_progress')
    const note = (progressToken: unknown) => ({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken, progress: 1 },
    })
    one!.send(note('p'))
    one!.send(note('x'))
    other!.send(note('p'))
    await settled(one!, other!)
    expect(
      heard(bus())
        .filter(({ method }) => method === 'notifications/progress')
        .map(({ params }) => params.progressToken),
    ).toEqual(['p'])
    expect(await dropped(bus(), 'late_progress')).toBe(before + 2)
  })
})

describe('a question whose client goes', () => {
  test('is answered for it, so that the worker does not wait', async () => {
    verifies('M18-gone')
    const bus = await startBus({ config: puppet({ sharing: 'lease' }) })
    const [client] = await greeted(bus, 1)
    const questions = METHODS.map((method) => ask(method))
    client!.send(call(1, questions))
    await client!.take(3)
    client!.close()
    const outcome = (n: number) => hears(bus, 'an answer', (message) => message.id === questions[n]!.id)
    expectRefusal(await outcome(0), 'client_gone')
    expect(await outcome(1)).toMatchObject({ result: { action: 'cancel' } })
    expectRefusal(await outcome(2), 'client_gone')
  })
})
