/**
 * What every door owes its clients, written once and run for stdio, Unix socket and TCP. What only some doors can do
 * (many clients, half-close of one among many) is tested where those doors are.
 */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, type Door, startBus } from '../support/bus.ts'
import type { LineClient } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { sleep } from '../support/waiting.ts'

async function open(
  door: Door,
  worker: ReturnType<typeof pool>,
  limits = {},
): Promise<{ bus: Bus; client: LineClient }> {
  const bus = await startBus({ config: config(worker, limits), doors: [door] })
  return { bus, client: await bus.client() }
}

/** What the bus does with a client whose time is over: a socket is closed, in stdio mode it exits as well. */
async function isOver(bus: Bus, client: LineClient, door: Door): Promise<void> {
  await client.untilClosed()
  if (door === 'stdio') expect(await bus.exit).toEqual({ code: 0, signal: null })
}

export function doorSuite(door: Door): void {
  describe(`the ${door} door`, () => {
    test('3.5 a request is answered, with params and without', async () => {
      verifies('3.5-request', '3.1-config', '5.1-lines', '5.1-echoes-id')
      const { client } = await open(door, pool('echo'))
      expect(await client.ask({ id: 'a', method: 'm' })).toMatchObject({ id: 'a', result: { method: 'm' } })
      const answer = await client.ask({ id: 2, method: 'n', params: { x: 1 }, sessionId: 's' })
      expect(answer).toMatchObject({ id: 2, sessionId: 's', result: { method: 'n', echo: { x: 1 } } })
    })

    test('4.2.1 lines are lines however the bytes arrive', async () => {
      verifies('4.2.1-lines')
      const { client } = await open(door, pool('echo'))
      for (const byte of Buffer.from('{"id":1,"method":"é€😀"}\n')) {
        client.sendRaw(Uint8Array.of(byte))
        await sleep(1)
      }
      expect(await client.next()).toMatchObject({ id: 1, result: { method: 'é€😀' } })
      client.sendRaw('{"id":2,"method":"b"}\n{"id":3,"method":"c"}\n{"id":4,')
      client.sendRaw('"method":"d"}\n')
      expect((await client.take(3)).map((each) => each.id)).toEqual([2, 3, 4])
    })

    test('4.2.1 carriage returns, empty lines and lines of white space are tolerated', async () => {
      verifies('4.2.1-crlf', '4.2.1-empty')
      const { client } = await open(door, pool('echo'))
      client.sendRaw('\n\r\n \t \n   \r\n{"id":1,"method":"m"}\r\n\n{"id":2,"method":"m"}\r\n')
      expect((await client.take(2)).map((each) => each.id)).toEqual([1, 2])
      await client.staysQuiet(100)
    })

    test('4.2.1 a last line without newline counts', async () => {
      verifies('4.2.1-last-line')
      const { bus, client } = await open(door, pool('echo'))
      client.sendRaw('{"id":1,"method":"first"}\n{"id":2,"method":"last"}')
      client.endWriting()
      expect((await client.take(2)).map((each) => each.id)).toEqual([1, 2])
      await isOver(bus, client, door)
    })

    test('4.2.1 a byte order mark is not tolerated', async () => {
      verifies('4.2.1-bom')
      const { client } = await open(door, pool('echo'))
      client.send('\ufeff{"id":1,"method":"m"}')
      expect(await client.untilClosed()).toMatchObject([{ id: null, error: { data: { reason: 'not_json' } } }])
    })

    test('4.3 a line that is not JSON closes the client, after an error line', async () => {
      verifies('4.3-not-json')
      const { client } = await open(door, pool('echo'))
      client.send('hello')
      const lines = await client.untilClosed()
      expect(lines).toMatchObject([{ id: null, error: { code: -32700, data: { reason: 'not_json' } } }])
    })

    test('4.3 a bad envelope closes the client, after an error line', async () => {
      verifies('4.3-bad-envelope', '4.3-with-id')
      const { client } = await open(door, pool('echo'))
      client.send('{"id":"x","nothing":1}')
      const lines = await client.untilClosed()
      expect(lines).toMatchObject([{ id: 'x', error: { code: -32600, data: { reason: 'bad_envelope' } } }])
    })

    test('4.1.2 the end of the writing side leaves every answer that is owed', async () => {
      verifies('4.1.2-half-close-owed')
      const { bus, client } = await open(door, pool('slow'))
      for (const id of [1, 2, 3]) client.send({ id, method: 'm', params: { ms: 100 * id } })
      client.endWriting()
      expect((await client.take(3)).map((each) => each.id)).toEqual([1, 2, 3])
      await isOver(bus, client, door)
    })

    test('4.1.2 the end of the writing side with nothing owed ends the connection', async () => {
      verifies('4.1.2-half-close-owed')
      const { bus, client } = await open(door, pool('echo'))
      client.send({ id: 1, method: 'm' })
      await client.next()
      client.endWriting()
      await isOver(bus, client, door)
    })

    test('4.1.2 an answer that does not come holds the end up for half_close_timeout_sec only', async () => {
      verifies('4.1.2-half-close-bound', 'promise-one-answer')
      const { bus, client } = await open(door, pool('silent'), { half_close_timeout_sec: 1 })
      client.send({ id: 1, method: 'm' })
      client.endWriting()
      const began = Date.now()
      const lines = await client.untilClosed()
      expect(Date.now() - began).toBeGreaterThan(800)
      expect(Date.now() - began).toBeLessThan(3_500)
      for (const line of lines) expect(line).toMatchObject({ id: 1, error: { data: {} } })
      if (door === 'stdio') expect((await bus.exit).code).toBe(0)
    })

    test('8.2 a line at, one under and one over max_input_buffer', async () => {
      verifies('8.2-client', '8.1-override')
      const { bus, client } = await open(door, pool('raw-log', { args: ['log'] }), { max_input_buffer: 2_000 })
      const line = (bytes: number) => `{"id":7,"method":"${'x'.repeat(bytes - 20)}"}`
      for (const bytes of [1_999, 2_000]) {
        client.send(line(bytes))
        expect(await client.next()).toMatchObject({ id: 7, result: {} })
      }
      expect(bus.workspace.lines('log').map((each) => each.length)).toEqual([1_999, 2_000])
      client.send(line(2_001))
      const lines = await client.untilClosed()
      expect(lines).toMatchObject([{ id: 7, error: { code: -32600, data: { reason: 'message_too_large' } } }])
    })

    test('8.2 a line that never ends is closed when it is too long, not when it is over', async () => {
      verifies('8.2-client')
      const { client } = await open(door, pool('echo'), { max_input_buffer: 2_000 })
      client.sendRaw('x'.repeat(2_001))
      const lines = await client.untilClosed()
      expect(lines).toMatchObject([{ id: null, error: { data: { reason: 'message_too_large' } } }])
    })

    test('4.2.3 a line of 1 MiB passes in both directions, byte for byte', async () => {
      verifies('4.2.3-unchanged', '8.1-defaults')
      const { bus, client } = await open(door, pool('raw-log', { args: ['log'] }))
      const line = `{ "method":"m" , "params":"${'é'.repeat(524_200)}","id":"z" }`
      client.send(line)
      expect(await client.next(10_000)).toMatchObject({ id: 'z' })
      expect(bus.workspace.read('log') === `${line}\n`).toBe(true)
    })

    test('3.5 a notification reaches the worker and is not answered', async () => {
      verifies('3.5-notification')
      const { bus, client } = await open(door, pool('raw-log', { args: ['log'] }))
      client.send('{"method":"note","params":[1]}')
      await client.ask({ id: 1, method: 'm' })
      expect(bus.workspace.lines('log')[0]).toBe('{"method":"note","params":[1]}')
      await client.staysQuiet(100)
    })
  })
}
