/** Clauses 4.2.1 and 5.1: lines in, lines out, in both directions, whatever the pieces are. */
import { describe, expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { sleep } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

describe('from clients', () => {
  const bus = sharedBus({ config: config(pool('echo')) })

  test.each([1, 2, 3, 7, 64])('4.2.1 the same lines in pieces of %i bytes', async (size) => {
    verifies('4.2.1-lines')
    const client = await bus().connect()
    const text = '{"id":1,"method":"é😀\\n"}\r\n\n{"id":2,"method":"b"}\n'
    const bytes = Buffer.from(text)
    for (let start = 0; start < bytes.length; start += size) {
      client.sendRaw(bytes.subarray(start, start + size))
      await sleep(0)
    }
    expect((await client.take(2)).map((each) => [each.id, each.result.method])).toEqual([
      [1, 'é😀\n'],
      [2, 'b'],
    ])
  })

  test('4.2.1 a thousand lines in one piece keep their order', async () => {
    verifies('4.2.1-lines')
    const client = await bus().connect()
    const ids = Array.from({ length: 1_000 }, (_, id) => id)
    client.sendRaw(ids.map((id) => `{"id":${id},"method":"m"}\n`).join(''))
    expect((await client.take(1_000)).map((each) => each.id)).toEqual(ids)
  })

  test('4.2.1 an unfinished line waits without harm to others', async () => {
    verifies('4.2.1-lines')
    const [slow, other] = [await bus().connect(), await bus().connect()]
    slow.sendRaw('{"id":1,"meth')
    expect(await other.ask({ id: 2, method: 'm' })).toMatchObject({ id: 2 })
    slow.sendRaw('od":"m"}\n')
    expect(await slow.next()).toMatchObject({ id: 1 })
  })
})

describe('from workers', () => {
  test('5.1 an answer in two pieces is one line', async () => {
    verifies('5.1-lines')
    const bus = await startBus({ config: config(pool('half-a-line')) })
    const client = await bus.connect()
    expect(await client.ask({ id: 1, method: 'm', params: 'é😀' })).toMatchObject({ id: 1, result: { echo: 'é😀' } })
  })

  test('5.1 half a line of a worker that died is never delivered', async () => {
    verifies('5.1-lines', '7.1-worker-exited')
    const bus = await startBus({ config: config(pool('half-a-line')) })
    const client = await bus.connect()
    const answer = await client.ask({ id: 1, method: 'die' })
    expect(answer).toMatchObject({ id: 1, error: { data: { reason: 'worker_exited' } } })
    await client.staysQuiet(200)
    expect(client.rest.length).toBe(0)
  })

  test('5.1 several messages in one write are several lines, in order', async () => {
    verifies('5.1-lines', '5.1-echoes-id')
    const bus = await startBus({ config: config(pool('obeys')) })
    const client = await bus.connect()
    const note = (n: number) => `{"method":"n${n}","sessionId":"s"}\n`
    client.send({
      id: 1,
      method: 'm',
      sessionId: 's',
      params: { write: `${note(1)}\n\r\n${note(2)}{"id":$ID,"result":0}\n${note(3)}` },
    })
    expect((await client.take(4)).map((each) => each.method ?? each.id)).toEqual(['n1', 'n2', 1, 'n3'])
  })

  test('5.1 every message to a worker is one line', async () => {
    verifies('5.1-lines')
    const bus = await startBus({ config: config(pool('raw-log', { args: ['log'] })) })
    const client = await bus.connect()
    client.sendRaw('{"id":1,"method":"a"}\r\n\n  \n{"id":2,"method":"b"}\n')
    await client.take(2)
    const parsed = bus.workspace.lines('log').map((line) => JSON.parse(line).method)
    expect(parsed).toEqual(['a', 'b'])
    expect(bus.workspace.read('log').split('\n')).toHaveLength(3)
  })
})
