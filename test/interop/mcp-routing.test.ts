/** The routing table of the Model Context Protocol, row by row, for clients of the handshake era that share one worker. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import {
  call,
  DONE,
  dropped,
  greeted,
  heard,
  hears,
  initializeLine,
  mcpPool,
  settled,
  shakeHands,
  timesHeard,
  unasked,
} from './mcp-peers.ts'

const puppet = (more = {}) => config(mcpPool('puppet', { protocol: 'mcp', ...more }))

describe('any request C→S', () => {
  const bus = sharedBus({ config: puppet() })

  test('ids that collide reach the worker as different ids and come back as they were, 1 and "1" apart', async () => {
    verifies('M6-ids')
    const clients = await greeted(bus(), 2)
    const spellings = ['1', '"1"', '1.0', '1e2', '9007199254740993', '"\\ud800"', '-1']
    for (const client of clients) {
      for (const [n, id] of spellings.entries())
        client.send(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"n":${n}}}`)
    }
    for (const client of clients) {
      await client.take(spellings.length)
      const answers = client.lines.slice(-spellings.length).map((line) => line.toString())
      for (const [n, id] of spellings.entries()) {
        const mine = answers.filter((line) => JSON.parse(line).result.echo.n === n)
        expect(mine).toHaveLength(1)
        expect(mine[0]).toContain(`"id":${id},`)
      }
    }
  })

  test('addressing fields that the protocol does not know are cut out, everything else arrives as it was', async () => {
    verifies('4.2.3-addressing')
    const [client] = await greeted(bus(), 1)
    client!.send(
      '{"pool":"puppet", "sessionId":"s" ,"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"x" : 1.0 }}',
    )
    await client!.answerTo(77)
    const line = bus()
      .workspace.lines('heard')
      .find((each) => each.includes('"x" : 1.0'))
    expect(line).toBe('{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"x" : 1.0 }}')
  })

  test('a null id closes the client with bad_envelope, as contract 4.3 says', async () => {
    const [client] = await greeted(bus(), 1)
    client!.send('{"jsonrpc":"2.0","id":null,"method":"tools/list"}')
    expect((await client!.untilClosed()).at(-1)).toMatchObject({
      id: null,
      error: { data: { reason: 'bad_envelope' } },
    })
  })
})

describe('result/error S→C', () => {
  const bus = sharedBus({ config: puppet() })

  test('exactly once: a second answer, and one nobody asked for, are dropped and counted', async () => {
    verifies('M8-once')
    const [client, other] = await greeted(bus(), 2)
    const before = await dropped(bus(), 'unknown_answer')
    client!.send(call(1, [DONE, DONE, { id: 'nobody', result: {} }, { id: 99, error: { code: 1, message: 'x' } }]))
    await client!.answerTo(1)
    await settled(client!, other!)
    expect(await dropped(bus(), 'unknown_answer')).toBe(before + 3)
    expect(client!.lines.filter((line) => JSON.parse(line.toString()).id === 1)).toHaveLength(1)
  })

  test('a late answer to a client that has gone reaches nobody, even one that uses the same id', async () => {
    verifies('M8-late')
    const [gone, next] = await greeted(bus(), 2)
    gone!.send(call(5, []))
    const { id } = await hears(bus(), 'the call', ({ params }) => params?.say?.length === 0)
    gone!.close()
    await hears(
      bus(),
      'the cancel',
      ({ method, params }) => method === 'notifications/cancelled' && params.requestId === id,
    )
    next!.send(call(5, [{ id, result: { for: 'gone' } }, DONE]))
    expect((await next!.answerTo(5)).result).toEqual({ content: [] })
    expect(await dropped(bus(), 'late_answer')).toBeGreaterThan(0)
  })

  test('an error of the worker passes unchanged', async () => {
    verifies('M8-errors')
    const [client] = await greeted(bus(), 1)
    client!.send(call(3, ['{"jsonrpc":"2.0","id":$ID,"error":{"code":-32021,"message":"m","data":{"x":[1.0]}}}']))
    await client!.answerTo(3)
    expect(client!.lines.at(-1)!.toString()).toBe(
      '{"jsonrpc":"2.0","id":3,"error":{"code":-32021,"message":"m","data":{"x":[1.0]}}}',
    )
  })
})

describe('initialize, notifications/initialized', () => {
  test('one handshake per worker; later clients are answered from what it said, with their own ids', async () => {
    verifies('M4-once')
    const bus = await startBus({ config: puppet() })
    const clients = await Promise.all(Array.from({ length: 4 }, () => bus.connect()))
    const ids = [0, '0', 1.5, 'x']
    const answers = await Promise.all(clients.map((client, n) => client.ask(initializeLine(ids[n]))))
    for (const answer of answers) expect(answer.result.serverInfo).toEqual({ name: 'puppet', version: '1' })
    for (const client of clients) client.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await settled(...clients)
    expect(timesHeard(bus, 'initialize')).toBe(1)
    expect(timesHeard(bus, 'notifications/initialized')).toBe(1)
  })

  test('many that come before the worker has answered share one handshake, on a pool that has not been told it is MCP', async () => {
    verifies('M1-string', 'M4-shared')
    const bus = await startBus({ config: config(mcpPool('puppet')) })
    await greeted(bus, 5)
    expect(timesHeard(bus, 'initialize')).toBe(1)
  })

  test('each client is offered the revision it asked for, or the latest the worker knows', async () => {
    verifies('M4-revision')
    const bus = await startBus({ config: puppet() })
    for (const [wanted, offered = wanted] of [
      ['2024-11-05'],
      ['2025-03-26'],
      ['2025-06-18'],
      ['2025-11-25'],
      ['1999-01-01', '2025-11-25'],
    ]) {
      expect((await shakeHands(await bus.connect(), 0, wanted)).protocolVersion).toBe(offered)
    }
  })

  test('a shared worker is offered no roots, sampling or elicitation, a leased one is', async () => {
    verifies('6.7.1-no-questions', 'M5-shared')
    const shared = await startBus({ config: puppet() })
    await greeted(shared, 1)
    expect(heard(shared)[0].params.capabilities).toEqual({})
    const lease = await startBus({ config: puppet({ sharing: 'lease' }) })
    await greeted(lease, 1)
    expect(Object.keys(heard(lease)[0].params.capabilities).sort()).toEqual(['elicitation', 'roots', 'sampling'])
  })
})

describe('ping', () => {
  const bus = sharedBus({ config: puppet() })

  test('is answered by the bus for both sides', async () => {
    verifies('M10-ping')
    const [client] = await greeted(bus(), 1)
    expect(await client!.ask({ jsonrpc: '2.0', id: 'p', method: 'ping' })).toEqual({
      jsonrpc: '2.0',
      id: 'p',
      result: {},
    })
    client!.send(call(1, [{ id: 'w', method: 'ping' }, DONE]))
    await client!.answerTo(1)
    expect(await hears(bus(), 'the pong', ({ id, method }) => id === 'w' && method === undefined)).toMatchObject({
      result: {},
    })
    expect(timesHeard(bus(), 'ping')).toBe(0)
    expect(unasked(client!)).toEqual([])
  })
})

describe('tools/call, prompts/get, resources/read, completion/complete, */list', () => {
  test('cursors stay with the worker that gave them: a client stays with its worker', async () => {
    verifies('M7-sticks')
    const bus = await startBus({ config: puppet({ instances: 3 }) })
    for (const client of await greeted(bus, 4)) {
      const pids = new Set<number>()
      for (const [n, method] of ['tools/list', 'prompts/get', 'resources/read', 'completion/complete'].entries())
        pids.add((await client.ask({ jsonrpc: '2.0', id: n, method, params: { cursor: 'c' } })).result.pid)
      expect(pids.size).toBe(1)
    }
  })
})

describe('notifications/cancelled C→S', () => {
  const bus = sharedBus({ config: puppet() })
  const cancel = (requestId: unknown) => ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })

  test('reaches the worker with the id it knows, for requests of that client only', async () => {
    verifies('4.2.3-alias-references', 'M9-mapped')
    const [one, other] = await greeted(bus(), 2)
    one!.send(call(1, []))
    await settled(one!)
    other!.send(call(1, [], { mine: true }))
    await settled(other!)
    other!.send(cancel(1))
    const mine = await hears(bus(), 'the call', ({ params }) => params?._meta?.mine === true)
    const heardCancel = await hears(bus(), 'the cancel', ({ method }) => method === 'notifications/cancelled')
    expect(mine.id).not.toBe(1)
    expect(heardCancel.params.requestId).toBe(mine.id)
  })

  test('for nothing, for a request of another, with the other type, or without an id: dropped and counted', async () => {
    verifies('M9-nothing')
    const [one, other] = await greeted(bus(), 2)
    one!.send(call(8, []))
    await settled(one!, other!)
    const told = timesHeard(bus(), 'notifications/cancelled')
    const before = await dropped(bus(), 'cancel_for_nothing')
    other!.send(cancel(8))
    one!.send(cancel('8'))
    one!.send(cancel(123))
    one!.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: {} })
    await settled(one!, other!)
    expect(timesHeard(bus(), 'notifications/cancelled')).toBe(told)
    expect(await dropped(bus(), 'cancel_for_nothing')).toBe(before + 4)
  })

  test('ends what the client is owed: a cancelled request counts no more, an answer that still comes is delivered', async () => {
    verifies('M9-owed')
    const [client] = await greeted(bus(), 1)
    const before = (await bus().status()).outstanding
    client!.send(call(20, []))
    const { id } = await hears(bus(), 'the call', (message) => message.id === 20)
    expect((await bus().status()).outstanding).toBe(before + 1)
    client!.send(cancel(20))
    await settled(client!)
    expect((await bus().status()).outstanding).toBe(before)
    client!.send(call(21, [{ id, result: { late: true } }, DONE]))
    expect((await client!.answerTo(20)).result).toEqual({ late: true })
    await client!.answerTo(21)
  })
})

describe('notifications/cancelled S→C', () => {
  const bus = sharedBus({ config: puppet({ sharing: 'lease' }) })

  test('cancels a question at the client that was asked, by the id it was asked with; a late answer is dropped', async () => {
    verifies('M11-cancelled')
    const [client] = await greeted(bus(), 1)
    const before = await dropped(bus(), 'unasked_answer')
    const ask = { id: 7, method: 'sampling/createMessage', params: {} }
    client!.send(call(1, [ask, { method: 'notifications/cancelled', params: { requestId: 7 } }, DONE]))
    const [question, cancelled] = await client!.take(2)
    expect(cancelled).toMatchObject({ method: 'notifications/cancelled', params: { requestId: question.id } })
    await client!.answerTo(1)
    client!.send({ jsonrpc: '2.0', id: question.id, result: {} })
    await settled(client!)
    expect(await dropped(bus(), 'unasked_answer')).toBe(before + 1)
  })
})

describe('notifications/progress S→C', () => {
  const bus = sharedBus({ config: puppet() })
  const progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}'

  test('tokens that collide come back to whoever chose them, in type and spelling', async () => {
    verifies('M6-tokens')
    const [one, other] = await greeted(bus(), 2)
    one!.send(call(1, [], { progressToken: 1 }))
    one!.send(call(2, [], { progressToken: '1' }))
    await settled(one!)
    for (const [n, token] of ['1', '"1"', '1.0', '9007199254740993'].entries()) {
      other!.send(
        `{"jsonrpc":"2.0","id":${n},"method":"tools/call","params":{"say":[${JSON.stringify(progress)},${JSON.stringify(DONE)}],"_meta":{"progressToken":${token}}}}`,
      )
      const line = (await other!.nextLine()).toString()
      expect(line).toContain(`"progressToken":${token},`)
      await other!.answerTo(n)
    }
    expect(unasked(one!)).toEqual([])
  })

  test('comes before the answer, and never after it', async () => {
    verifies('M12-before')
    const [client] = await greeted(bus(), 1)
    const before = await dropped(bus(), 'late_progress')
    client!.send(call(1, [progress, DONE, progress], { progressToken: 'late' }))
    await client!.answerTo(1)
    await settled(client!)
    expect(unasked(client!)).toHaveLength(1)
    expect(await dropped(bus(), 'late_progress')).toBe(before + 1)
  })

  test('with a token nobody gave: dropped', async () => {
    verifies('M12-unknown')
    const [client] = await greeted(bus(), 1)
    const before = await dropped(bus(), 'late_progress')
    client!.send(call(1, [progress.replace('$TOKEN', '424242'), progress.replace('$TOKEN', 'null'), DONE]))
    await client!.answerTo(1)
    expect(unasked(client!)).toEqual([])
    expect(await dropped(bus(), 'late_progress')).toBe(before + 2)
  })

  test('of a task outlives the answer that created the task, and ends with the task', async () => {
    verifies('M12-task')
    const [client, other] = await greeted(bus(), 2)
    const created = '{"jsonrpc":"2.0","id":$ID,"result":{"task":{"taskId":"t-progress","status":"working"}}}'
    client!.send(call(1, [created, progress], { progressToken: 1 }))
    await client!.answerTo(1)
    expect(await client!.next()).toMatchObject({ method: 'notifications/progress', params: { progressToken: 1 } })
    const status = { method: 'notifications/tasks/status', params: { taskId: 't-progress', status: 'completed' } }
    other!.send(call(2, [status, progress.replace('$TOKEN', '1'), DONE], { progressToken: 2 }))
    await other!.answerTo(2)
    expect(unasked(client!).map(({ method }) => method)).toEqual([
      'notifications/progress',
      'notifications/tasks/status',
    ])
  })

  test('of a task ends when its result has been fetched', async () => {
    verifies('M12-task')
    const [client] = await greeted(bus(), 1)
    const created = '{"jsonrpc":"2.0","id":$ID,"result":{"task":{"taskId":"t-fetched","status":"working"}}}'
    client!.send(call(1, [created, progress], { progressToken: 'fetched' }))
    await client!.answerTo(1)
    await client!.next()
    await client!.ask({ jsonrpc: '2.0', id: 2, method: 'tasks/result', params: { taskId: 't-fetched' } })
    const before = await dropped(bus(), 'late_progress')
    client!.send(call(3, [progress.replace('$TOKEN', '"fetched"'), DONE]))
    await client!.answerTo(3)
    expect(await dropped(bus(), 'late_progress')).toBe(before + 1)
  })
})

describe('notifications/message', () => {
  const bus = sharedBus({ config: puppet() })
  const log = (data: string, level = 'error') => ({ method: 'notifications/message', params: { level, data } })

  test('goes to the only client with requests in flight', async () => {
    verifies('M14-sole')
    const [one, other] = await greeted(bus(), 2)
    one!.send(call(1, [log('mine'), DONE]))
    await one!.answerTo(1)
    await settled(other!)
    expect(unasked(one!).map(({ params }) => params.data)).toEqual(['mine'])
    expect(unasked(other!)).toEqual([])
  })

  test('with two in flight, or none, it is dropped and counted, never broadcast', async () => {
    verifies('M14-never-broadcast')
    const [one, other] = await greeted(bus(), 2)
    const before = await dropped(bus(), 'unattributable')
    one!.send(call(2, []))
    await settled(one!)
    // In one write: before any client can have asked again.
    const last = `{"jsonrpc":"2.0","id":2,"result":{}}\n${JSON.stringify(log('nobody'))}`
    other!.send(call(3, [log('whose?'), DONE, last]))
    await Promise.all([one!.answerTo(2), other!.answerTo(3)])
    await settled(one!, other!)
    expect([...unasked(one!), ...unasked(other!)]).toEqual([])
    expect(await dropped(bus(), 'unattributable')).toBe(before + 2)
  })
})
