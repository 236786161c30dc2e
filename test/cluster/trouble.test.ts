/** Nodes that are cut off, that leave while others work for them, and that are asked for too much (contract 14.7 to 14.9). */
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { runBus, testWorkspace } from '../support/bus.ts'
import { startMuteProxy } from '../support/mute-proxy.ts'
import { startNats, withNats } from '../support/nats.ts'
import { pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { ECHO, startNode, startPair, untilReachable } from './nodes.ts'

const ask = (id: unknown, more: object = {}) => ({ jsonrpc: '2.0', id, method: 'x', ...more })
const lostAt = (node: string) => ({ error: { code: -32603, data: { reason: 'node_lost', retryable: true, node } } })

withNats(5, () => {
  test('a cut network is two clusters until it heals', async () => {
    verifies('14.8-cut', '14.7-lost')
    const nats = await startNats()
    const way = await startMuteProxy(nats.port)
    const pools = (name: string) => [pool('echo', { id: name }), pool('slow', { id: `slow-${name}` })]
    const [a, b] = await Promise.all([
      startNode(nats, 'n1', { pools: pools('one') }),
      startNode(way.url, 'n2', { pools: pools('two') }),
    ])
    await untilReachable(a, 'two')
    await untilReachable(b, 'one')
    const [here, there] = [await a.connect(), await b.connect()]
    here.send(ask('owed', { pool: 'slow-two', params: { ms: 60_000 } }))
    there.send(ask('owed', { pool: 'slow-one', params: { ms: 60_000 } }))
    await a.statusWhere('it is owed', ({ outstanding }) => outstanding === 2)
    way.mute()
    expect(await here.next()).toMatchObject({ id: 'owed', ...lostAt('n2') })
    expect(await there.next()).toMatchObject({ id: 'owed', ...lostAt('n1') })
    // Each side goes on with its own.
    expect(await here.ask(ask(1, { pool: 'one' }))).toHaveProperty('result')
    expect(await there.ask(ask(1, { pool: 'two' }))).toHaveProperty('result')
    expect(await here.ask(ask(2, { pool: 'two' }))).toMatchObject(lostAt('n2'))
    way.speak()
    await untilReachable(a, 'two')
    await untilReachable(b, 'one')
    // What was given up is gone on both sides, and nothing of it is told late.
    for (const bus of [a, b]) await bus.statusWhere('nothing is owed', ({ outstanding }) => outstanding === 0)
    await here.staysQuiet(100)
    await there.staysQuiet(100)
  })

  test('a node that leaves gets what others owe its clients', async () => {
    verifies('14.7-leaving')
    const nats = await startNats()
    const [a, b] = await Promise.all([
      startNode(nats, 'n1', { pools: [pool('slow', { id: 'far' }), ECHO] }),
      startNode(nats, 'n2', { pools: [pool('slow', { id: 'near' })] }),
    ])
    await untilReachable(b, 'echo')
    await untilReachable(a, 'near')
    const [leaving, staying] = [await b.connect(), await a.connect()]
    leaving.send(ask('mine', { pool: 'far', params: { ms: 2_500 } }))
    staying.send(ask('yours', { pool: 'near', params: { ms: 2_500 } }))
    await Promise.all([a, b].map((bus) => bus.statusWhere('it is owed', ({ outstanding }) => outstanding === 2)))
    const exit = b.stop('SIGTERM')
    expect(await leaving.next()).toMatchObject({ id: 'mine', result: expect.anything() })
    expect(await staying.next()).toMatchObject({ id: 'yours', result: expect.anything() })
    expect((await exit).code).toBe(0)
    expect(a.log.text).not.toContain('node is lost')
  })

  test('what is not delivered within drain_timeout_sec is shutting_down, on both sides', async () => {
    verifies('14.7-leaving')
    const nats = await startNats()
    const [a, b] = await Promise.all([
      startNode(nats, 'n1', { pools: [pool('slow', { id: 'far' }), ECHO] }),
      startNode(nats, 'n2', { pools: [pool('slow', { id: 'near' })], config: { limits: { drain_timeout_sec: 1 } } }),
    ])
    await untilReachable(b, 'echo')
    await untilReachable(a, 'near')
    const [leaving, staying] = [await b.connect(), await a.connect()]
    leaving.send(ask('mine', { pool: 'far', params: { ms: 60_000 } }))
    staying.send(ask('yours', { pool: 'near', params: { ms: 60_000 } }))
    await Promise.all([a, b].map((bus) => bus.statusWhere('it is owed', ({ outstanding }) => outstanding === 2)))
    const exit = b.stop('SIGTERM')
    const shut = { error: { data: { reason: 'shutting_down' } } }
    expect(await leaving.next()).toMatchObject({ id: 'mine', ...shut })
    expect(await staying.next()).toMatchObject({ id: 'yours', ...shut })
    expect((await exit).code).toBe(0)
    expect(a.log.text).not.toContain('node is lost')
  })

  test('a node takes no more streams than clients, and says so', async () => {
    verifies('14.9-bounds')
    const limits = { max_clients: 4 }
    const { a, b } = await startPair({ pools: [ECHO], config: { limits } })
    await b.statusWhere('nobody is there', ({ clients }) => clients === 0)
    const clients = await Promise.all([...Array(8)].map(() => a.connect()))
    const answers = await Promise.all(clients.map((client, n) => client.ask(ask(n, { pool: 'echo' }))))
    expect(answers.filter(({ result }) => result !== undefined)).toHaveLength(4)
    expect(answers.filter(({ error }) => error !== undefined)).toHaveLength(4)
    expect((await b.status()).clients).toBe(4)
    clients[answers.findIndex(({ result }) => result !== undefined)]!.close()
    const late = await a.connect()
    await eventually(
      'there to be room',
      async () => (await late.ask(ask('late', { pool: 'echo' }))).result !== undefined,
    )
  })

  test('where NATS carries little, what does not fit is said and refused, and the rest goes on', async () => {
    verifies('14.5-large-lines', '14.9-bounds')
    const nats = await startNats({ config: 'max_payload: 1024' })
    const workspace = testWorkspace()
    const access = workspace.writeOwn('access.json', { principals: [] })
    const others = [...Array(40)].map((_, n) => `a-pool-with-a-long-name-${n}`).join(',')
    const { stdout } = await runBus(['token', 'add', 'bob', '--pools', `${others},echo`, '--file', access], {
      workspace,
    })
    const many = [...Array(12)].map((_, n) => pool('echo', { id: `${'x'.repeat(90)}${n}` }))
    const [a, , crowded] = await Promise.all([
      startNode(nats, 'n1', { config: { access: { file: access } }, doors: ['unix', 'tcp'] }),
      startNode(nats, 'n2', { pools: [ECHO] }),
      startNode(nats, 'n3', { pools: many }),
    ])
    await untilReachable(a, 'echo')
    await untilReachable(crowded, 'echo')
    expect(crowded.log.text.match(/too much for an announcement/g)).toHaveLength(1)
    const client = await a.connect('unix')
    const text = 'x'.repeat(100_000)
    expect((await client.ask(ask(1, { pool: 'echo', params: { text } }))).result.echo).toEqual({ text })
    const bob = await a.connect('tcp')
    await bob.ask(ask('open', { method: 'bus::open', params: { token: stdout.trim() } }))
    const refused = await bob.ask(ask(2, { pool: 'echo' }))
    expect(refused).toMatchObject({
      error: { data: { reason: 'worker_exited', why: expect.stringContaining('rights') } },
    })
  })
})
