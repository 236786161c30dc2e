/** Clause 4.3: what closes a client, what it is told, and that nobody else notices. */
import { describe, expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { verifies } from './verifies.ts'

const NOT_JSON: Array<[string, string | Uint8Array]> = [
  ['plain text', 'hello'],
  ['a truncated object', '{"id":1,"method":"m"'],
  ['an object and garbage', '{"id":1,"method":"m"}garbage'],
  ['two objects on one line', '{"id":1,"method":"m"} {"id":2,"method":"m"}'],
  ['broken params', '{"id":1,"method":"m","params":{bad}}'],
  ['single quotes', "{'id':1,'method':'m'}"],
  ['a trailing comma', '{"id":1,"method":"m",}'],
  ['a missing comma', '{"id":1 "method":"m"}'],
  ['a missing colon', '{"id" 1,"method":"m"}'],
  ['a missing value', '{"id":1,"method":}'],
  ['a comment', '{"id":1,"method":"m"/* no */}'],
  ['NaN', '{"id":1,"method":"m","params":NaN}'],
  ['a leading zero', '{"id":1,"method":"m","params":01}'],
  ['a plus sign', '{"id":1,"method":"m","params":+1}'],
  ['a bare fraction', '{"id":1,"method":"m","params":.5}'],
  ['an unfinished fraction', '{"id":1,"method":"m","params":5.}'],
  ['an unfinished exponent', '{"id":1,"method":"m","params":5e}'],
  ['a hexadecimal number', '{"id":1,"method":"m","params":0x10}'],
  ['a word that is none', '{"id":1,"method":"m","params":trve}'],
  ['an unknown escape', '{"id":1,"method":"m","params":"\\x41"}'],
  ['a short unicode escape', '{"id":1,"method":"m","params":"\\u12"}'],
  ['an unfinished string', '{"id":1,"method":"m","params":"abc}'],
  ['a control character in a string', '{"id":1,"method":"m","params":"a\u0001b"}'],
  ['a tab in a string', '{"id":1,"method":"m","params":"a\tb"}'],
  ['unbalanced brackets', '{"id":1,"method":"m","params":[}]'],
  ['a closing brace too many', '{"id":1,"method":"m"}}'],
  ['white space that JSON does not know', '{"id":1,\u00a0"method":"m"}'],
  ['a form feed', '{"id":1,\f"method":"m"}'],
  ['a NUL', '{"id":1,"method":"m"}\0'],
  ['a byte that is not UTF-8', Buffer.from([...Buffer.from('{"id":1,"method":"'), 0xff, ...Buffer.from('"}')])],
  ['a truncated UTF-8 sequence', Buffer.from([...Buffer.from('{"id":1,"method":"'), 0xc3, ...Buffer.from('"}')])],
  ['an overlong UTF-8 sequence', Buffer.from([...Buffer.from('{"id":1,"method":"'), 0xc0, 0xaf, ...Buffer.from('"}')])],
  ['a surrogate in UTF-8', Buffer.from([...Buffer.from('{"id":1,"method":"'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')])],
  [
    'beyond the last code point',
    Buffer.from([...Buffer.from('{"method":"'), 0xf4, 0x90, 0x80, 0x80, ...Buffer.from('"}')]),
  ],
]

const BAD_ENVELOPE: Array<[string, string, unknown]> = [
  ['an array', '[1,2]', null],
  ['a batch', '[{"id":1,"method":"m"}]', null],
  ['a string', '"text"', null],
  ['a number', '42', null],
  ['null', 'null', null],
  ['an empty object', '{}', null],
  ['none of method, result, error', '{"id":1,"params":{}}', 1],
  ['method with a result', '{"id":1,"method":"m","result":0}', 1],
  ['method with an error', '{"id":1,"method":"m","error":{"code":1}}', 1],
]

const TWICE: Array<[string, string]> = [
  ['id', '{"id":1,"id":2,"method":"m"}'],
  ['id, the same', '{"id":1,"id":1,"method":"m"}'],
  ['method', '{"id":1,"method":"m","method":"n"}'],
  ['sessionId', '{"id":1,"method":"m","sessionId":"a","sessionId":"b"}'],
  ['pool', '{"id":1,"method":"m","pool":"raw-log","pool":"raw-log"}'],
  ['id in another spelling', '{"id":1,"\\u0069d":2,"method":"m"}'],
  ['params with a session', '{"id":1,"method":"m","params":{"sessionId":"a"},"params":{"sessionId":"b"}}'],
  ['params.sessionId', '{"id":1,"method":"m","params":{"sessionId":"a","sessionId":"b"}}'],
]

const TYPES: Array<[string, string]> = [
  ['id null', '{"id":null,"method":"m"}'],
  ['id true', '{"id":true,"method":"m"}'],
  ['id object', '{"id":{},"method":"m"}'],
  ['id array', '{"id":[1],"method":"m"}'],
  ['id null with a result', '{"id":null,"result":1}'],
  ['method null', '{"id":1,"method":null}'],
  ['method number', '{"id":1,"method":5}'],
  ['sessionId null', '{"id":1,"method":"m","sessionId":null}'],
  ['sessionId number', '{"id":1,"method":"m","sessionId":7}'],
  ['sessionId object', '{"id":1,"method":"m","sessionId":{}}'],
  ['pool null', '{"id":1,"method":"m","pool":null}'],
  ['pool number', '{"id":1,"method":"m","pool":1}'],
]

describe('one client at fault', () => {
  const bus = sharedBus((workspace) => ({
    config: config(pool('raw-log', { args: [workspace.path('log')] }), { max_input_buffer: 4_194_304 }),
  }))

  test.each(NOT_JSON)('4.3 not JSON: %s', async (_, line) => {
    verifies('4.3-not-json', '4.3-never-broken', 'promise-error-shape')
    const before = bus().workspace.read('log')
    const client = await bus().connect()
    client.send(line)
    client.send({ id: 'after', method: 'm' })
    const answers = await client.untilClosed()
    expect(answers).toMatchObject([{ jsonrpc: '2.0', id: null, error: { code: -32700, data: { reason: 'not_json' } } }])
    expect(bus().workspace.read('log')).toBe(before)
  })

  test.each(BAD_ENVELOPE)('4.3 bad envelope: %s', async (_, line, id) => {
    verifies('4.3-bad-envelope', '4.3-with-id')
    const before = bus().workspace.read('log')
    const client = await bus().connect()
    client.send(line)
    const answers = await client.untilClosed()
    expect(answers).toMatchObject([{ id, error: { code: -32600, data: { reason: 'bad_envelope' } } }])
    expect(bus().workspace.read('log')).toBe(before)
  })

  test.each(TWICE)('4.3 bad envelope: twice %s', async (_, line) => {
    verifies('4.3-twice')
    const client = await bus().connect()
    client.send(line)
    expect(await client.untilClosed()).toMatchObject([{ error: { code: -32600, data: { reason: 'bad_envelope' } } }])
  })

  test.each(TYPES)('4.3 bad envelope: %s', async (_, line) => {
    verifies('4.3-types')
    const client = await bus().connect()
    client.send(line)
    expect(await client.untilClosed()).toMatchObject([{ error: { code: -32600, data: { reason: 'bad_envelope' } } }])
  })

  test.each([
    ['a broken UTF-8 sequence', Buffer.from([0xc0, 0xaf])],
    ['a control character', Buffer.from([0x01])],
    ['an unknown escape', Buffer.from('\\x41')],
    ['a quote too many', Buffer.from('"')],
  ])('4.3 not JSON: %s behind a lot of text', async (_, bytes) => {
    verifies('4.3-not-json', '4.3-never-broken')
    const before = bus().workspace.read('log')
    const client = await bus().connect()
    const head = Buffer.from(`{"id":1,"method":"m","params":"${'x'.repeat(1_200_000)}`)
    client.send(Buffer.concat([head, bytes, Buffer.from('"}')]))
    expect(await client.untilClosed()).toMatchObject([{ id: null, error: { data: { reason: 'not_json' } } }])
    expect(bus().workspace.read('log')).toBe(before)
  })

  test('4.3 a field that is no routing field may come twice', async () => {
    verifies('4.3-twice')
    const client = await bus().connect()
    client.send('{"id":1,"method":"m","other":1,"other":2,"params":{"x":1,"x":2}}')
    expect(await client.next()).toMatchObject({ id: 1, result: {} })
  })

  test('4.3 deep nesting is well-formed', async () => {
    verifies('4.3-not-json')
    const client = await bus().connect()
    client.send(`{"id":1,"method":"m","params":${'['.repeat(1_000)}${']'.repeat(1_000)}}`)
    expect(await client.next()).toMatchObject({ id: 1, result: {} })
  })

  test('4.3 the deepest nesting that fits into a line does no harm', async () => {
    verifies('4.3-alone')
    const [deep, other] = [await bus().connect(), await bus().connect()]
    deep.send('['.repeat(1_000_000))
    expect(await deep.untilClosed(10_000)).toMatchObject([{ error: { data: { reason: 'not_json' } } }])
    expect(await other.ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })
})

describe('around the fault', () => {
  test('4.3 an error response with id null is dropped and counted, the client stays', async () => {
    verifies('4.3-null-error', 'promise-not-silent')
    const bus = await startBus({ config: config(pool('echo')) })
    const client = await bus.connect()
    client.send('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}')
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
    const { dropped } = await bus.status()
    expect(Object.values(dropped)).toEqual([1])
  })

  test.each(['not json at all', '{"id":1}'])('4.3 the log warns of %s', async (line) => {
    verifies('4.3-warning')
    const bus = await startBus({ config: config(pool('echo')) })
    const client = await bus.connect()
    const before = bus.log.warnings().length
    client.send(line)
    await client.untilClosed()
    await bus.log.line(() => bus.log.warnings().length > before)
  })

  test('4.3 what was asked before the fault is answered before the close', async () => {
    verifies('4.3-owed-first', 'promise-one-answer')
    const bus = await startBus({ config: config(pool('slow')) })
    const client = await bus.connect()
    for (const id of [1, 2, 3]) client.send({ id, method: 'm', params: { ms: id * 100 } })
    client.send('garbage')
    const answers = await client.untilClosed()
    expect(answers.map((each) => each.id).sort()).toEqual([1, 2, 3, null])
  })

  test('4.3 a large answer that was owed is written whole before the close', async () => {
    verifies('4.3-owed-first')
    const bus = await startBus({ config: config(pool('big-answers')) })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', params: { bytes: 900_000 } })
    client.send('garbage')
    const answers = await client.untilClosed()
    expect(answers.find((each) => each.id === 1)?.result.pad.length).toBeGreaterThan(899_000)
  })

  test('4.3 nobody else notices', async () => {
    verifies('4.3-alone')
    const bus = await startBus({ config: config(pool('slow')) })
    const others = [await bus.connect(), await bus.connect()]
    for (const other of others)
      other.send({ id: 1, method: 'm', sessionId: `s${others.indexOf(other)}`, params: { ms: 300 } })
    for (const line of ['garbage', '[]', '{}']) {
      const bad = await bus.connect()
      bad.send(line)
      await bad.untilClosed()
    }
    for (const other of others) expect(await other.next()).toMatchObject({ id: 1, result: {} })
    expect((await bus.status()).workers[0]).toMatchObject({ generation: expect.any(Number), restarts: 0 })
  })
})
