/** Who comes in through a real door, and what becomes of everybody else (contract 9.1 to 9.3). */
import { createConnection } from 'node:net'
import { describe, expect, test } from 'vitest'
import { makeToken } from '../../src/access/token.ts'
import { verifies } from '../conformance/verifies.ts'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { connectTcp, type LineClient } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { tlsFlags } from '../support/tls.ts'
import { eventually } from '../support/waiting.ts'
import { type House, NOT_ALLOWED, STRANGE, sharedHouse, startHouse, UNKNOWN } from './access-harness.ts'

const CALL = { jsonrpc: '2.0', id: 1, method: 'm' }
const SECRET = 'a-word-of-a-stranger'

/** A worker that writes down all it hears. */
const LOGGING = pool('raw-log', { id: 'logging', args: ['heard'] })

async function isTurnedAway(client: LineClient, id: unknown = null): Promise<void> {
  expect(await client.untilClosed()).toMatchObject([{ id, ...UNKNOWN }])
}

describe('9.3 the first line', () => {
  const house = sharedHouse({
    principals: { alice: {}, bob: {} },
    pools: [LOGGING, pool('echo')],
    doors: ['tcp', 'tls', 'unix'],
    args: ['--log-level', 'debug'],
  })

  test.each(['tcp', 'tls'])('9.3 over %s it is bus::open with a token, answered with who that is', async (door) => {
    verifies('9.3-open')
    const [client, answer] = await house().present('alice', { pool: 'echo' }, door)
    expect(answer.result).toEqual({ pool: 'echo', principal: 'alice', role: 'user' })
    expect(await client.ask(CALL)).toMatchObject({ id: 1, result: { method: 'm' } })
  })

  test('9.3 without an id it is not answered, and holds', async () => {
    verifies('9.3-open')
    const client = await house().knock()
    client.send({ method: 'bus::open', params: { token: house().tokens['alice'], pool: 'echo' } })
    client.send({ ...CALL, id: 'first' })
    expect(await client.next()).toMatchObject({ id: 'first', result: {} })
  })

  test.each<[string, string | Buffer, unknown]>([
    ['a request', JSON.stringify({ ...CALL, id: 'x', params: { SECRET } }), 'x'],
    ['a request of another method of the bus', '{"id":7,"method":"bus::whoami"}', 7],
    ['a notification', `{"method":"${SECRET}"}`, null],
    ['an answer', `{"id":1,"result":"${SECRET}"}`, null],
    ['no JSON', SECRET, null],
    ['an array', `[{"id":1,"method":"${SECRET}"}]`, null],
    ['bytes that are no text', Buffer.from([0xff, 0xfe, 0x80, 0x00]), null],
    ['bus::open without params', '{"id":1,"method":"bus::open"}', 1],
    ['bus::open without a token', `{"id":1,"method":"bus::open","params":{"pool":"${SECRET}"}}`, 1],
    ['bus::open with a list', `{"id":1,"method":"bus::open","params":["${SECRET}"]}`, 1],
    ['a token that is a number', '{"id":1,"method":"bus::open","params":{"token":5}}', 1],
    ['a token that is a list', `{"id":1,"method":"bus::open","params":{"token":["${SECRET}"]}}`, 1],
    ['a token in another place', `{"id":1,"method":"bus::open","token":"${SECRET}"}`, 1],
    ['an empty token', '{"id":1,"method":"bus::open","params":{"token":""}}', 1],
    ['a token nobody has', `{"id":1,"method":"bus::open","params":{"token":"${STRANGE}"}}`, 1],
    ['a token of nobody, without an id', `{"method":"bus::open","params":{"token":"${STRANGE}"}}`, null],
  ])('9.3 %s is unauthenticated, then the end, and nobody hears of it', async (_what, line, id) => {
    verifies('9.3-first-line', '9.2-never-anonymous')
    const client = await house().knock()
    client.send(line)
    client.send({ id: 'behind', method: SECRET })
    await isTurnedAway(client, id)
    await nobodyHeard(house(), SECRET)
  })

  test('9.3 what follows waits for the verdict, in order, and nothing is lost at the end of the input', async () => {
    verifies('9.3-in-order')
    const client = await house().knock()
    const lines = [
      { id: 'open', method: 'bus::open', params: { token: house().tokens['alice'], pool: 'echo' } },
      ...Array.from({ length: 50 }, (_, n) => ({ id: n, method: 'm' })),
    ]
    client.sendRaw(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    client.endWriting()
    expect((await client.untilClosed()).map(({ id }) => id)).toEqual(['open', ...Array(50).keys()])
  })

  test('9.3 a first line in pieces is one line', async () => {
    verifies('9.3-open')
    const client = await house().knock()
    const token = house().tokens['alice']
    const line = `{"id":"open","method":"bus::open","params":{"token":"${token}"}}\n`
    for (let at = 0; at < line.length; at += 40) {
      client.sendRaw(line.slice(at, at + 40))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await client.next()).toMatchObject({ id: 'open', result: { principal: 'alice' } })
  })

  test('9.3 a first line beyond 16 KiB is the end, one below is read', async () => {
    verifies('9.3-16-kib')
    const token = house().tokens['alice']
    const line = (bytes: number) =>
      `{"id":"open","method":"bus::open","params":{"token":"${token}","more":"${'x'.repeat(bytes)}"}}`
    const small = await house().knock()
    small.send(line(15_000))
    expect(await small.next()).toMatchObject({ result: { principal: 'alice' } })
    const large = await house().knock()
    large.send(line(17_000))
    expect(await large.untilClosed()).toMatchObject([{ error: { code: -32600 } }])
    const open = await house().knock()
    open.sendRaw('x'.repeat(17_000))
    expect(await open.untilClosed()).toMatchObject([{ error: { code: -32600 } }])
  })

  test('9.3 once in, lines are as long as ever', async () => {
    verifies('9.3-16-kib')
    const client = await house().enter('alice', { pool: 'echo' })
    const long = 'x'.repeat(200_000)
    expect((await client.ask({ ...CALL, params: { long } })).result.echo.long).toBe(long)
  })

  test('9.3 a fresh token of the same principal extends the connection, one of another is not_allowed', async () => {
    verifies('9.3-later')
    const client = await house().enter('alice', { pool: 'echo' })
    const open = (id: string, who: string) =>
      client.ask({ id, method: 'bus::open', params: { token: house().tokens[who] ?? who } })
    expect(await open('same', 'alice')).toMatchObject({ result: { principal: 'alice', pool: 'echo' } })
    expect(await open('other', 'bob')).toMatchObject(NOT_ALLOWED)
    expect(await open('bad', STRANGE)).toMatchObject(UNKNOWN)
    expect(await client.ask({ id: 'who', method: 'bus::whoami' })).toMatchObject({ result: { principal: 'alice' } })
  })

  test('9.3 the line after the one that let it in is a later one', async () => {
    verifies('9.3-later')
    const other = await house().enter('alice')
    const bob = { id: 1, method: 'bus::open', params: { token: house().tokens['bob'] } }
    expect(await other.ask(bob)).toMatchObject(NOT_ALLOWED)
    expect(await other.ask({ id: 'who', method: 'bus::whoami' })).toMatchObject({ result: { principal: 'alice' } })
    const named = await house().enter('alice', { pool: 'echo' })
    expect(await named.ask({ id: 1, method: 'bus::open', params: { pool: 'logging' } })).toMatchObject({
      error: { data: { reason: 'unknown_method' } },
    })
    expect(await named.ask(CALL)).toMatchObject({ result: { method: 'm' } })
  })

  test('9.1 on a Unix socket nobody needs a token, and a good one counts, and a bad one is refused', async () => {
    verifies('9.1-local', '9.3-unix')
    const plain = await house().knock('unix')
    expect((await plain.ask({ id: 'who', method: 'bus::whoami' })).result).toMatchObject({
      principal: 'local',
      role: 'admin',
      via: 'local',
    })
    const alice = await house().enter('alice', {}, 'unix')
    expect((await alice.ask({ id: 'who', method: 'bus::whoami' })).result).toMatchObject({ principal: 'alice' })
    const [bad, answer] = await house().present(STRANGE, {}, 'unix')
    expect(answer).toMatchObject(UNKNOWN)
    expect(await bad.untilClosed()).toEqual([])
  })

  test('9.7 unknown and revoked tokens read alike, byte for byte; an expired one says so', async () => {
    verifies('9.7-alike')
    await house().change((rows) => {
      rows.set('carl', { name: 'carl', pools: ['*'], tokens: [] })
      house().tokens['carl'] = house().give('carl')
      house().tokens['late'] = house().give('carl', { expires: '2020-01-01T00:00:00Z' })
    })
    await house().enter('carl')
    const [, late] = await house().present('late')
    expect(late).toMatchObject({ error: { data: { reason: 'unauthenticated', why: 'expired' } } })
    await house().change((rows) => rows.delete('carl'))
    const [, revoked] = await house().present('carl')
    const [, unknown] = await house().present(STRANGE)
    expect(revoked).toEqual(unknown)
    expect(revoked).toMatchObject(UNKNOWN)
    expect(unknown.error.data).not.toHaveProperty('why')
  })
})

/** Waits until the worker has heard what a good client says after all that was before. */
async function nobodyHeard(house: House, word: string): Promise<void> {
  const good = await house.enter('alice', { pool: 'logging' })
  await good.ask({ ...CALL, method: 'good' })
  expect(house.workspace.read('heard')).not.toContain(word)
  expect(house.bus.log.text).not.toContain(word)
  for (const token of [STRANGE, house.tokens['alice']!]) {
    expect(house.workspace.read('heard')).not.toContain(token)
    expect(house.bus.log.text).not.toContain(token)
  }
  good.close()
}

describe('9.3 those who have proved nothing', () => {
  test('9.3 are ended 5 s after they came, and not before; who is in stays', async () => {
    verifies('9.3-5-s')
    const house = await startHouse()
    const good = await house.enter('alice')
    const began = performance.now()
    const silent = await house.knock()
    const slow = await house.knock()
    const drip = setInterval(() => slow.sendRaw(' '), 300)
    await Promise.all([isTurnedAway(silent), isTurnedAway(slow)])
    clearInterval(drip)
    expect(performance.now() - began).toBeGreaterThan(4_500)
    expect(await good.ask(CALL)).toMatchObject({ result: {} })
  })

  test('9.3 are 256 of an address and 1,024 in all: the oldest gives way, and the good come in', async () => {
    verifies('9.3-strangers')
    const house = await startHouse({ limits: { max_clients: 3_000 } })
    const port = Number(house.bus.addresses[0]!.split(':').at(-1))
    /** So many silent ones from an address; in the order in which they came. */
    const come = async (from: string, count: number): Promise<{ isOver: boolean }[]> => {
      const crowd: { isOver: boolean }[] = []
      for (let n = 0; n < count; n++) {
        const socket = createConnection({ port, host: '127.0.0.1', localAddress: from })
        const one = { isOver: false }
        for (const event of ['end', 'close', 'error']) socket.on(event, () => (one.isOver = true))
        socket.resume()
        await new Promise((resolve) => socket.once('connect', resolve))
        crowd.push(one)
      }
      return crowd
    }
    const first = await come('127.0.0.2', 257)
    await eventually('the oldest to give way', () => first[0]!.isOver)
    expect(first.slice(1).some(({ isOver }) => isOver)).toBe(false)
    // 256 are there; with 768 more of other addresses it is full, and one more ends the oldest of all.
    const others = await Promise.all(['127.0.0.3', '127.0.0.4', '127.0.0.5'].map((from) => come(from, 256)))
    await come('127.0.0.6', 1)
    await eventually('the oldest of all to give way', () => first[1]!.isOver)
    expect(others.flat().some(({ isOver }) => isOver)).toBe(false)
    const good = await house.enter('alice')
    expect(await good.ask(CALL)).toMatchObject({ result: {} })
  })
})

describe('9.1 nobody in particular', () => {
  test('9.1 without access it is anonymous, who may use all pools, and nobody is told apart', async () => {
    verifies('9.1-without-access')
    const bus = await startBus({ config: config([pool('echo'), pool('silent')]), doors: ['tcp'] })
    const client = await bus.connect()
    expect(await client.ask({ id: 0, method: 'bus::open', params: { pool: 'echo' } })).toEqual({
      jsonrpc: '2.0',
      id: 0,
      result: { pool: 'echo' },
    })
    expect(await client.ask(CALL)).toMatchObject({ result: {} })
    expect(await bus.status()).not.toHaveProperty('principals')
  })

  test('9.1 with access it has what anonymous says, and 9.2 a bad credential is not taken for it', async () => {
    verifies('9.1-anonymous-rights', '9.2-never-anonymous')
    const anonymous = { pools: ['echo'], tools: { allow: ['read_*'] }, max_connections: 2 }
    const house = await startHouse({ pools: [pool('echo'), pool('silent')], access: { anonymous } })
    const client = await house.knock()
    expect((await client.ask({ id: 'who', method: 'bus::whoami' })).result).toMatchObject({
      principal: 'anonymous',
      role: 'user',
      via: 'anonymous',
      pools: ['echo'],
    })
    expect(await client.ask(CALL)).toMatchObject({ result: { method: 'm' } })
    const use = (id: string, name: string) => client.ask({ id, method: 'tools/call', params: { name } })
    expect(await use('yes', 'read_it')).toMatchObject({ result: {} })
    expect(await use('no', 'write_it')).toMatchObject(NOT_ALLOWED)
    const [bad, answer] = await house.present(makeToken())
    expect(answer).toMatchObject(UNKNOWN)
    expect(await bad.untilClosed()).toEqual([])
    const [, other] = await house.present('alice', { pool: 'silent' })
    expect(other.result).toMatchObject({ principal: 'alice' })
    const elsewhere = await house.knock()
    expect(await elsewhere.ask({ id: 1, method: 'bus::open', params: { pool: 'silent' } })).toMatchObject(NOT_ALLOWED)
  })

  test('9.1 anonymous exists on doors of this machine, by the address that is bound', async () => {
    verifies('9.1-bound')
    const house = await startHouse({
      access: { anonymous: { pools: ['*'] } },
      doors: [],
      args: ['--tcp', '0.0.0.0:0', '--tcp', '[::1]:0'],
    })
    const [everywhere, here] = house.bus.addresses.map((address) => address.replace('tcp:', ''))
    const near = await connectTcp(here!)
    expect(await near.ask(CALL)).toMatchObject({ result: {} })
    const far = await connectTcp(`127.0.0.1:${everywhere!.split(':').at(-1)}`)
    expect(await far.ask(CALL)).toMatchObject(UNKNOWN)
    expect(await far.untilClosed()).toEqual([])
  })

  test('9.1 --allow-unauthenticated lets anonymous in everywhere', async () => {
    verifies('9.1-bound')
    const house = await startHouse({
      access: { anonymous: { pools: ['*'] } },
      doors: [],
      args: ['--tcp', '0.0.0.0:0', '--allow-unauthenticated'],
    })
    const far = await connectTcp(`127.0.0.1:${house.bus.addresses[0]!.split(':').at(-1)}`)
    expect(await far.ask(CALL)).toMatchObject({ result: {} })
  })

  test.each([
    ['tcp', ['--tcp', '0.0.0.0:0']],
    ['tls', tlsFlags().with(1, '[::]:0')],
  ])('9.1 a %s door beyond this machine, where nobody can prove anything, is exit 2', async (_door, args) => {
    verifies('9.1-beyond')
    for (const access of [undefined, { anonymous: { pools: ['*'] } }]) {
      const workspace = testWorkspace()
      const file = workspace.write('bus.json', config(pool('echo'), {}, access && { access }))
      const done = await runBus(['--config', file, ...args], { workspace })
      expect(done).toMatchObject({ code: 2, stderr: expect.stringMatching(/--allow-unauthenticated/) })
    }
  })

  test('9.3 over stdio a token is optional, but counts', async () => {
    verifies('9.3-unix')
    const house = await startHouse({ doors: ['stdio'] })
    const client = house.bus.stdio()
    const open = { id: 1, method: 'bus::open', params: { token: house.tokens['alice'] } }
    expect(await client.ask(open)).toMatchObject({ result: { principal: 'alice', role: 'user' } })
    const plain = (await startHouse({ doors: ['stdio'] })).bus.stdio()
    expect(await plain.ask(CALL)).toMatchObject({ result: { method: 'm' } })
  })
})
