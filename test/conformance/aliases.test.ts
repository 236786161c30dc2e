/** Clause 4.2.3: ids that are taken or would not survive are replaced for the worker and restored for the client. */
import { describe, expect, test } from 'vitest'
import { type Bus, startBus } from '../support/bus.ts'
import type { LineClient } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { eventually } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const seenIds = (bus: Bus): unknown[] => bus.workspace.lines('log').map((line) => JSON.parse(line).id)

describe('taken ids', () => {
  test('4.2.3 two clients with the same id: the worker sees two ids, each client its own', async () => {
    verifies('4.2.3-alias-taken', 'promise-one-answer')
    const bus = await startBus({ config: config(pool('answers-in-reverse', { args: ['3'] })) })
    const clients = [await bus.connect(), await bus.connect(), await bus.connect()]
    for (const [n, client] of clients.entries()) client.send({ id: 0, method: 'm', params: n })
    const answers = await Promise.all(clients.map((client) => client.next()))
    expect(answers.map((each) => [each.id, each.result.echo])).toEqual([
      [0, 0],
      [0, 1],
      [0, 2],
    ])
    expect(new Set(answers.map((each) => each.result.seen)).size).toBe(3)
  })

  test('4.2.3 many clients, many requests, the same ids: nobody gets what is not theirs', async () => {
    verifies('4.2.3-alias-taken', '4.2.3-alias-unique', 'promise-one-answer')
    const bus = await startBus({ config: config(pool('slow', { instances: 2, args: ['5'] })) })
    const clients = await Promise.all(Array.from({ length: 5 }, () => bus.connect()))
    const ids = Array.from({ length: 100 }, (_, id) => id)
    for (const id of ids) {
      for (const [n, client] of clients.entries()) client.send({ id, method: 'm', params: { ms: id % 7, n, id } })
    }
    for (const [n, client] of clients.entries()) {
      const answers = await client.take(100)
      expect(answers.map((each) => each.id).sort((a, b) => a - b)).toEqual(ids)
      expect(answers.every((each) => each.result.echo.n === n && each.result.echo.id === each.id)).toBe(true)
    }
  })

  test('4.2.3 an id that is free is not touched', async () => {
    verifies('4.2.3-unchanged')
    const bus = await startBus({ config: config(pool('raw-log', { args: ['log'] })) })
    const [one, other] = [await bus.connect(), await bus.connect()]
    await one.ask({ id: 1, method: 'm' })
    await other.ask({ id: 1, method: 'm' })
    expect(seenIds(bus)).toEqual([1, 1])
  })

  test('4.2.3 only the id of the line changes', async () => {
    verifies('4.2.3-alias-taken', '4.2.3-unchanged')
    const bus = await startBus({ config: config(pool('raw-log', { args: ['log', 'silent'] })) })
    const [one, other] = [await bus.connect(), await bus.connect()]
    const line = '{ "params":{"id":1 , "x":1.0} ,"id" : 1 , "method":"m" } '
    one.send(line)
    await eventually('the first line', () => bus.workspace.lines('log').length === 1)
    other.send(line)
    await eventually('the second line', () => bus.workspace.lines('log').length === 2)
    const [first, second] = bus.workspace.lines('log')
    expect(first).toBe(line)
    const { id } = JSON.parse(second!)
    expect(second).toBe(line.replace('"id" : 1 ', `"id" : ${JSON.stringify(id)} `))
    expect(id).not.toBe(1)
  })

  test('4.2.3 the answer comes back with the id and with nothing else changed', async () => {
    verifies('4.2.3-alias-taken', '4.2.3-unchanged')
    const bus = await startBus({ config: config(pool('obeys')) })
    const [one, other] = [await bus.connect(), await bus.connect()]
    one.send({ id: 'k', method: 'm', params: {} })
    await one.taken()
    other.send({ id: 'k', method: 'm', params: { write: '{ "result" : {"id":$ID,"n":1.0} , "id" :  $ID  }\n' } })
    const text = (await other.nextLine()).toString()
    const alias = JSON.parse(text).result.id
    expect(alias).not.toBe('k')
    expect(text).toBe(`{ "result" : {"id":${JSON.stringify(alias)},"n":1.0} , "id" :  "k"  }`)
  })

  test('4.2.3 the same id twice from one client: both are answered', async () => {
    verifies('4.2.3-same-id-twice')
    const bus = await startBus({ config: config(pool('answers-in-reverse', { args: ['3'] })) })
    const client = await bus.connect()
    for (const n of [1, 2, 3]) client.send({ id: 'twice', method: 'm', params: n })
    const answers = await client.take(3)
    expect(answers.map((each) => each.id)).toEqual(['twice', 'twice', 'twice'])
    expect(answers.map((each) => each.result.echo).sort()).toEqual([1, 2, 3])
  })

  test('4.2.3 bus-made ids are never reused, and never one that is taken', async () => {
    verifies('4.2.3-alias-unique')
    const bus = await startBus({ config: config(pool('raw-log', { args: ['log', 'silent'] })) })
    const client = await bus.connect()
    for (let n = 0; n < 200; n++) client.send({ id: 1, method: 'm' })
    await eventually('all lines', () => bus.workspace.lines('log').length === 200)
    const aliases = seenIds(bus)
    expect(new Set(aliases).size).toBe(200)
    client.send(JSON.stringify({ id: aliases[5], method: 'm' }))
    await eventually('the last line', () => bus.workspace.lines('log').length === 201)
    expect(new Set(seenIds(bus)).size).toBe(201)
  })
})

describe('ids that a JSON library may respell', () => {
  const bus = sharedBus((workspace) => ({ config: config(pool('raw-log', { args: [workspace.path('log')] })) }))

  test.each([
    '1.5',
    '1.0',
    '1e3',
    '1E+2',
    '-2.50',
    '9007199254740993',
    '12345678901234567890',
    '-9007199254740993',
    '"\\ud800"',
    '"a\\uDC00b"',
    '1e400',
  ])('4.2.3 %s comes back byte for byte', async (id) => {
    verifies('4.2.3-alias-respelled')
    const client: LineClient = await bus().connect()
    client.send(`{"id":${id},"method":"m"}`)
    const line = (await client.nextLine()).toString()
    expect(/"id":(.*?),"result"/.exec(line)?.[1]).toBe(id)
    const seen = /"id":(.*?),"method"/.exec(bus().workspace.lines('log').at(-1)!)![1]!
    expect(seen).not.toBe(id)
    expect(JSON.stringify(JSON.parse(seen))).toBe(seen)
  })
})

describe('ids whose client is not there any more', () => {
  test('4.2.3 an id stays taken when its client has gone', async () => {
    verifies('4.2.3-alias-gone', '7.3-late-answers', 'promise-not-silent')
    const bus = await startBus({ config: config(pool('answers-in-reverse', { args: ['2'] })), doors: ['tcp'] })
    const first = await bus.connect()
    first.send({ id: 7, method: 'm', params: 'first' })
    await first.taken()
    first.reset()
    await bus.statusWhere('the client is gone', (status) => status.clients === 0)
    const second = await bus.connect()
    second.send({ id: 7, method: 'm', params: 'second' })
    const answer = await second.next()
    expect(answer).toMatchObject({ id: 7, result: { echo: 'second' } })
    expect(answer.result.seen).not.toBe(7)
    await second.staysQuiet(100)
    const { dropped } = await bus.status()
    expect(Object.values(dropped).reduce((sum, count) => sum + count, 0)).toBe(1)
  })

  test('4.2.3 an id stays taken when its request has timed out', async () => {
    verifies('4.2.3-alias-timed-out', '8.1-request-timeout')
    const bus = await startBus({ config: config(pool('slow'), { request_timeout_sec: 1 }) })
    const client = await bus.connect()
    const late = await client.ask({ id: 7, method: 'm', params: { ms: 1_600, who: 'late' } })
    expect(late).toMatchObject({ id: 7, error: { data: { reason: 'request_timeout' } } })
    const second = await client.ask({ id: 7, method: 'm', params: { ms: 900, who: 'second' } })
    expect(second).toMatchObject({ id: 7, result: { echo: { who: 'second' } } })
    await client.staysQuiet(100)
  })

  test.each([9_999, 10_000, 10_001])(
    '4.2.3 after %i ownerless ids a new id is aliased only beyond the bound',
    async (count) => {
      verifies('4.2.3-alias-bound')
      const bus = await startBus({
        config: config(pool('raw-log', { args: ['log', 'silent'] }), { max_pending_per_client: 20_000 }),
        doors: ['tcp'],
      })
      const first = await bus.connect()
      let lines = ''
      for (let id = 1; id <= count; id++) lines += `{"id":${id},"method":"m"}\n`
      first.sendRaw(lines)
      await eventually('the worker to have them all', () => bus.workspace.lines('log').length === count, 10_000)
      first.reset()
      await bus.statusWhere('the client is gone', (status) => status.clients === 0)
      const second = await bus.connect()
      second.send({ id: 'fresh', method: 'm' })
      await eventually('the next line', () => bus.workspace.lines('log').length === count + 1)
      const seen = JSON.parse(bus.workspace.lines('log').at(-1)!).id
      if (count <= 10_000) expect(seen).toBe('fresh')
      else expect(seen).not.toBe('fresh')
    },
  )
})
