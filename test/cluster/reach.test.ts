/** A client of one node and a pool of another, on a real nats-server (contract 14.1 to 14.5). */
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus, testWorkspace } from '../support/bus.ts'
import { freePort, Nats, startNats, withNats } from '../support/nats.ts'
import { pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { clusterConfig, ECHO, startNode, startPair, untilReachable } from './nodes.ts'

const ask = (id: unknown, more: object = {}) => ({ jsonrpc: '2.0', id, method: 'x', ...more })

withNats(12, () => {
  describe('a client of one node', () => {
    test('reaches the pool of another, byte for byte, both ways', async () => {
      verifies('14.2-reach', '14.4-bytes')
      const file = testWorkspace().path('heard')
      const { a } = await startPair({ pools: [ECHO, pool('obeys'), pool('raw-log', { args: [file, 'silent'] })] })
      const client = await a.connect()
      const line = '{"jsonrpc" : "2.0","id":"é\\u0041" , "method":"x","params":{"n":1.50,"x":[{}]}}'
      client.send(line.replace('{', '{"pool":"raw-log",'))
      await eventually(
        'the worker to have read it',
        () => existsSync(file) && readFileSync(file, 'utf8').includes('\n'),
      )
      expect(readFileSync(file, 'utf8')).toBe(`${line}\n`)
      const said = '{"result" :  {"b":2.0, "a":"\\u00e9"},"id":$ID , "jsonrpc":"2.0"}\n'
      client.send(ask(7, { pool: 'obeys', params: { write: said } }))
      expect((await client.nextLine()).toString()).toBe(said.trimEnd().replace('$ID', '7'))
    })

    test('is answered exactly once, and only what it asked', async () => {
      verifies('14.4-once')
      const { a } = await startPair({ pools: [{ ...ECHO, instances: 2 }] })
      const clients = await Promise.all([1, 2, 3, 4, 5].map(() => a.connect()))
      const count = 200
      for (let n = 0; n < count; n++)
        for (const [who, client] of clients.entries()) client.send(ask(n, { params: { who, n } }))
      for (const [who, client] of clients.entries()) {
        const answers = await client.take(count)
        const ids = answers.map(({ id }) => id).sort((one, other) => one - other)
        expect(ids).toEqual([...Array(count).keys()])
        expect(answers.every(({ id, result }) => result.echo.who === who && result.echo.n === id)).toBe(true)
        await client.staysQuiet(50)
      }
    })

    test('is asked by the worker of another node, and its answer goes back there', async () => {
      verifies('14.4-questions')
      const { a } = await startPair({ pools: [ECHO, pool('asks')] })
      const client = await a.connect()
      client.send(ask(1, { pool: 'asks', sessionId: 's', params: { a: 1 } }))
      const question = await client.next()
      expect(question).toMatchObject({ method: 'question', params: { a: 1 } })
      client.send({ jsonrpc: '2.0', id: question.id, result: { yes: true } })
      expect(await client.next()).toMatchObject({ id: 1, result: { said: { yes: true } } })
    })

    test('sends and gets lines far larger than a message, a window and a share', async () => {
      verifies('14.5-large-lines')
      const limits = { max_input_buffer: 32 * 1024 * 1024 }
      const { a } = await startPair({ pools: [ECHO], config: { limits } }, { config: { limits } })
      const client = await a.connect()
      const text = 'xyz-'.repeat(2_000_000)
      const answer = await client.ask(ask(1, { params: { text } }), 30_000)
      expect(answer.result.echo.text === text).toBe(true)
    })

    test('that does not read holds up its own stream and nobody else', async () => {
      verifies('14.5-credit')
      const { a, b } = await startPair({ pools: [ECHO, pool('big-answers', { sharing: 'isolated' })] })
      const stuck = await a.connect()
      stuck.pause()
      for (let n = 0; n < 40; n++) stuck.send(ask(n, { pool: 'big-answers', params: { bytes: 900_000 } }))
      const other = await a.connect()
      for (let n = 0; n < 20; n++) expect(await other.ask(ask(`other ${n}`, { pool: 'echo' }))).toHaveProperty('result')
      const { queue_bytes } = await b.status()
      expect(queue_bytes).toBeLessThan(16 * 1024 * 1024)
      stuck.resume()
      const answers = await stuck.take(40, 30_000)
      expect(answers.map(({ id }) => id)).toEqual([...Array(40).keys()])
    })
  })

  describe('what is elsewhere', () => {
    test('is had by its name, by its node, and after what is here', async () => {
      verifies('14.2-own-first', '14.2-at-node')
      const nats = await startNats()
      const [a, b] = await Promise.all([
        startNode(nats, 'n1', { pools: [pool('echo', { args: ['here'] })] }),
        startNode(nats, 'n2', { pools: [pool('echo', { args: ['there'] }), pool('slow')] }),
      ])
      await untilReachable(a, 'slow')
      const client = await a.connect()
      const whoAnswers = async (name: string) => (await client.ask(ask(name, { pool: name }))).result?.worker
      expect(await whoAnswers('echo')).toBe('here')
      expect(await whoAnswers('echo@n2')).toBe('there')
      expect(await whoAnswers('echo@n1')).toBe('here')
      expect(await client.ask(ask(1, { pool: 'echo@n3' }))).toMatchObject({
        error: { code: -32601, data: { reason: 'unknown_pool', pools: ['echo', 'slow'] } },
      })
      await untilReachable(b, 'echo@n1')
      const far = await b.connect()
      expect((await far.ask(ask(2, { pool: 'echo@n1' }))).result.worker).toBe('here')
    })

    test('does not exist where it is not exported, or not imported', async () => {
      verifies('14.2-export-import')
      const nats = await startNats()
      const pools = [ECHO, pool('slow'), pool('silent')]
      const [a, b] = await Promise.all([
        startNode(nats, 'n1', { cluster: { import: ['*o', 'silent'] } }),
        startNode(nats, 'n2', { pools, cluster: { export: ['e*', 'slow'] } }),
      ])
      await untilReachable(a, 'echo')
      const client = await a.connect()
      for (const name of ['slow', 'silent', 'slow@n2', 'silent@n2'])
        expect(await client.ask(ask(name, { pool: name }))).toMatchObject({
          error: { data: { reason: 'unknown_pool', pools: ['echo'] } },
        })
      b.workspace.write('bus.json', clusterConfig(nats, 'n2', { pools, cluster: { export: ['*'] } }))
      expect((await b.run(['reload', '--control', b.control])).code).toBe(0)
      a.workspace.write('bus.json', clusterConfig(nats, 'n1', {}))
      expect((await a.run(['reload', '--control', a.control])).code).toBe(0)
      await untilReachable(a, 'slow')
      a.workspace.write('bus.json', clusterConfig(nats, 'other', {}))
      const refused = await a.run(['reload', '--control', a.control])
      expect(refused.code).toBe(1)
      expect(refused.stderr).toContain('cluster has changed')
    })

    test('is chosen by how much there is to do', async () => {
      verifies('14.3-choice', '14.3-stays')
      const nats = await startNats()
      const slow = (name: string, instances = 1) => pool('echo', { args: [name], instances })
      const [a] = await Promise.all([
        startNode(nats, 'n1'),
        startNode(nats, 'n2', { pools: [slow('n2')] }),
        startNode(nats, 'n3', { pools: [slow('n3', 3)] }),
      ])
      await eventually('all workers to be known', async () => {
        const { stdout } = await a.run(['status', '--cluster', '--json', '--control', a.control])
        const ready = JSON.parse(stdout).nodes.map(({ pools }: { pools: { ready: number }[] }) => pools[0]?.ready)
        return (ready[0] === 1 && ready[1] === 3) || undefined
      })
      const places: string[] = []
      // One after the other: what the nodes say of themselves is half a second old.
      for (let n = 0; n < 16; n++) {
        const client = await a.connect()
        const first = (await client.ask(ask(1, { pool: 'echo' }))).result.worker
        const second = (await client.ask(ask(2, { pool: 'echo' }))).result.worker
        expect(second).toBe(first)
        places.push(first)
      }
      // Four workers, and one of them is at n2.
      const atOne = places.filter((place) => place === 'n2').length
      expect(atOne).toBeGreaterThanOrEqual(3)
      expect(atOne).toBeLessThanOrEqual(6)
    })
  })

  describe('a node', () => {
    test('whose name a living one has does not start, and that one notices nothing', async () => {
      verifies('14.1-name-taken')
      const { nats, a, b } = await startPair()
      const client = await a.connect()
      const twin = await startBus({ config: clusterConfig(nats, 'n2', { pools: [ECHO] }), unready: true })
      expect((await twin.exit).code).toBe(1)
      expect(twin.log.text).toContain('a living node of the cluster team is called n2')
      expect(await client.ask(ask(1, { pool: 'echo' }))).toHaveProperty('result')
      expect(a.log.text + b.log.text).not.toMatch(/lost|another node/)
    })

    test('joins later where NATS is away at its start', async () => {
      verifies('14.1-nats-away')
      const port = await freePort()
      const late = new Nats(port, {})
      const [a, b] = await Promise.all([
        startNode(late, 'n1', { pools: [pool('slow')] }),
        startNode(late, 'n2', { pools: [ECHO] }),
      ])
      expect(a.log.text).toContain('NATS cannot be reached')
      const client = await a.connect()
      expect(await client.ask(ask(1, { pool: 'slow' }))).toHaveProperty('result')
      const nats = await startNats({ port })
      expect(nats.port).toBe(port)
      await untilReachable(a, 'echo')
      expect(b.hasExited).toBe(false)
    })

    test.each([
      [{ cluster: { nats: [] } }, 'cluster.nats'],
      [{ cluster: { nats: 'http://x' } }, 'cluster.nats'],
      [{ cluster: { nats: ['nats://a', 'ws://b'] } }, 'cluster.nats'],
      [{ cluster: { nats: [`nats://$\{STDIO_BUS_NOT_SET}@a`] } }, 'STDIO_BUS_NOT_SET'],
      [{ cluster: { name: 'a.b' } }, 'cluster.name'],
      [{ cluster: { node: 'all' } }, 'cluster.node'],
      [{ cluster: { node: 'x'.repeat(65) } }, 'cluster.node'],
      [{ cluster: { lost_after_ms: 5 } }, 'cluster.lost_after_ms'],
      [{ cluster: { exports: ['*'] } }, 'id you mean "export"'],
      [{ cluster: { tls: { cert: 'a.pem' } } }, 'only beside "key"'],
      [{ cluster: { credentials: 'none.creds' } }, 'none.creds does not exist'],
      [{ cluster: { tls: { ca: 'none.pem' } } }, 'none.pem does not exist'],
      [{ pools: [{ ...ECHO, id: 'a@b' }] }, 'without "@"'],
    ])('refuses to start with %j', async (spec, said) => {
      verifies('14.1-mistakes')
      const bus = await startBus({ config: clusterConfig('nats://127.0.0.1:1', 'n1', spec), unready: true })
      expect((await bus.exit).code).toBe(2)
      expect(bus.log.text).toContain(said)
    })

    test('without a cluster has at least one pool', async () => {
      verifies('14.1-mistakes')
      const bus = await startBus({ config: { pools: [] }, unready: true })
      expect((await bus.exit).code).toBe(2)
      expect(bus.log.text).toContain('at least 1 pool')
    })
  })
})
