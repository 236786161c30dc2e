/** What a principal may do, on real lines: roles, pools and connections (contract 9.6, 9.10, 9.18, 9.24). */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { pool } from '../support/pools.ts'
import { NOT_ALLOWED, sharedHouse, startHouse } from './access-harness.ts'

const POOLS = [
  pool('raw-log', { id: 'coder', args: ['coder-heard'] }),
  pool('echo', { id: 'tools-a' }),
  pool('raw-log', { id: 'secret', args: ['secret-heard'] }),
]
const WHO = { id: 'who', method: 'bus::whoami' }

describe('9.18 pools', () => {
  const house = sharedHouse({
    principals: {
      alice: { pools: ['coder', 'tools-?'] },
      one: { pools: ['tools-*'] },
      nobody: { pools: [] },
      case: { pools: ['CODER', 'oder', 'code'] },
      boss: { role: 'admin' },
      watch: { role: 'observer', pools: ['coder'] },
    },
    pools: POOLS,
    doors: ['tcp', 'unix'],
  })

  test('9.18 one that no pattern matches is not_allowed, existing or not, and both read alike', async () => {
    verifies('9.18-pools', '9.18-named-pools')
    const [client, secret] = await house().present('alice', { pool: 'secret' })
    expect(secret).toMatchObject(NOT_ALLOWED)
    expect(await client.untilClosed()).toEqual([])
    const [, absent] = await house().present('alice', { pool: 'secrex' })
    expect(JSON.parse(JSON.stringify(absent).replace('secrex', 'secret'))).toEqual(secret)
  })

  test('9.18 of what is allowed and not there, errors name allowed ones only', async () => {
    verifies('9.18-named-pools')
    const [, answer] = await house().present('alice', { pool: 'tools-z' })
    expect(answer).toMatchObject({ error: { data: { reason: 'unknown_pool', pools: ['coder', 'tools-a'] } } })
    const client = await house().enter('alice')
    const unnamed = await client.ask({ id: 1, method: 'm' })
    expect(unnamed.error.data.pools).toEqual(['coder', 'tools-a'])
    expect(JSON.stringify(unnamed)).not.toContain('secret')
  })

  test('9.18 the only pool is the only one that is allowed', async () => {
    verifies('9.18-named-pools')
    const [client, answer] = await house().present('one')
    expect(answer.result.pool).toBe('tools-a')
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: { method: 'm' } })
  })

  test.each(['nobody', 'case'])(
    '9.18 %s may use nothing: an empty list is nothing, case and the whole name count',
    async (who) => {
      verifies('9.18-pools')
      for (const name of ['coder', 'tools-a', 'secret']) {
        const [, answer] = await house().present(who, { pool: name })
        expect(answer).toMatchObject(NOT_ALLOWED)
      }
      const client = await house().enter(who)
      expect(await client.ask({ id: 1, method: 'm' })).toHaveProperty('error')
    },
  )

  test('9.18 nothing of what was refused has reached a worker', async () => {
    verifies('9.18-pools')
    const boss = await house().enter('boss', { pool: 'secret' })
    await boss.ask({ id: 1, method: 'after-all' })
    expect(
      house()
        .workspace.lines('secret-heard')
        .map((line) => JSON.parse(line).method),
    ).toEqual(['after-all'])
  })

  test('9.6 an observer sends no message to a worker, in its pools either', async () => {
    verifies('9.6-observer')
    const client = await house().enter('watch', { pool: 'coder' })
    expect(await client.ask({ id: 1, method: 'by-an-observer' })).toMatchObject(NOT_ALLOWED)
    client.send({ method: 'by-an-observer' })
    await client.taken()
    const alice = await house().enter('alice', { pool: 'coder' })
    await alice.ask({ id: 2, method: 'by-a-user' })
    expect(house().workspace.read('coder-heard')).not.toContain('by-an-observer')
  })

  test('9.6 bus::whoami tells principal, role, via, pools, tools and expires', async () => {
    verifies('9.6-whoami')
    await house().change((rows) => {
      rows.set('whole', { name: 'whole', pools: ['coder'], tools: { allow: ['a*'], deny: ['ab'] }, tokens: [] })
      house().tokens['whole'] = house().give('whole', { expires: '2099-01-02T03:04:05Z' })
    })
    const client = await house().enter('whole')
    expect((await client.ask(WHO)).result).toEqual({
      principal: 'whole',
      role: 'user',
      via: 'token',
      pools: ['coder'],
      tools: { allow: ['a*'], deny: ['ab'] },
      expires: '2099-01-02T03:04:05.000Z',
    })
    const watch = await house().enter('watch')
    expect((await watch.ask(WHO)).result).toMatchObject({ principal: 'watch', role: 'observer' })
  })

  test('9.24 status tells of every principal its connections, pending and refused, and the terminal shows them', async () => {
    verifies('9.24-status')
    const one = await house().enter('one')
    const two = await house().enter('one')
    await two.ask({ id: 1, method: 'm' })
    two.send({ id: 2, method: 'bus::open', params: { token: house().tokens['alice'] } })
    expect(await two.next()).toMatchObject(NOT_ALLOWED)
    const { principals } = (await house().bus.status()) as unknown as { principals: { name: string }[] }
    const rows = principals.filter(({ name }) => name === 'one')
    expect(rows).toEqual([{ name: 'one', connections: expect.any(Number), pending: 0, refused: 1 }])
    expect((rows[0] as unknown as { connections: number }).connections).toBeGreaterThanOrEqual(2)
    const shown = await house().bus.run(['status', '--control', house().bus.control])
    expect(shown.stdout).toMatch(/^one +\d+ +0 +1$/m)
    for (const client of [one, two]) client.close()
  })
})

describe('9.10 narrowed rights', () => {
  test('9.10 hold from the next message; what was accepted is answered; what is allowed goes on', async () => {
    verifies('9.10-narrowed')
    const house = await startHouse({ pools: [pool('slow', { args: ['1500'] }), pool('echo')] })
    const slow = await house.enter('alice', { pool: 'slow' })
    const echo = await house.enter('alice', { pool: 'echo' })
    slow.send({ id: 'accepted', method: 'm' })
    await slow.taken()
    await house.change((rows) => Object.assign(rows.get('alice')!, { pools: ['echo'] }))
    slow.send({ id: 'next', method: 'm' })
    const answers = await slow.take(2)
    expect(answers.find(({ id }) => id === 'next')).toMatchObject(NOT_ALLOWED)
    expect(answers.find(({ id }) => id === 'accepted')).toMatchObject({ result: {} })
    expect(await echo.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    await house.change((rows) => Object.assign(rows.get('alice')!, { pools: ['*'] }))
    expect(await slow.ask({ id: 'again', method: 'm', params: { ms: 0 } })).toMatchObject({ result: {} })
  })

  test('9.10 a session in a lost pool ends, and its name is free for others', async () => {
    verifies('9.10-sessions-end')
    const house = await startHouse({ principals: { alice: {}, bob: {} } })
    const alice = await house.enter('alice')
    const bob = await house.enter('bob')
    await alice.ask({ id: 1, sessionId: 's', method: 'm' })
    expect(await bob.ask({ id: 1, sessionId: 's', method: 'm' })).toMatchObject({
      error: { data: { reason: 'session_not_owned' } },
    })
    await house.change((rows) => Object.assign(rows.get('alice')!, { pools: [] }))
    expect(await alice.ask({ id: 2, sessionId: 's', method: 'm' })).toMatchObject(NOT_ALLOWED)
    expect(await bob.ask({ id: 2, sessionId: 's', method: 'm' })).toMatchObject({ result: {} })
  })

  test('9.9 a change with mistakes is logged and shown by status, and the old rights stay', async () => {
    verifies('9.9-old-rights-stay')
    const house = await startHouse()
    const alice = await house.enter('alice')
    house.writeText('{"principals":[{"name":"alice","poools":[]}]}')
    await house.bus.log.line(/the access file has problems, the old rights stay/)
    expect(await alice.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    await house.enter('alice')
    const { access } = (await house.bus.status()) as unknown as { access: { problem: string } }
    expect(access.problem).toContain('poools')
    const shown = await house.bus.run(['status', '--control', house.bus.control])
    expect(shown.stdout).toMatch(/access .*problems/)
    await house.change(() => {})
    expect(await house.bus.status()).toMatchObject({ access: {} })
    expect(JSON.stringify((await house.bus.status()) as object)).not.toContain('poools')
  })
})
