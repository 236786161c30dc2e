/** Clauses 11.1, 11.2 and 11.6: pools that lead to another bus, over every kind of socket. */
import { createServer, type Server } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus, testWorkspace } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { testAuthority } from '../support/tls.ts'
import { eventually } from '../support/waiting.ts'
import { startHouse } from './access-harness.ts'
import { freePort, startNear, urlOf, variable } from './remote-harness.ts'

const ask = { jsonrpc: '2.0', id: 1, method: 'm', params: { text: 'ünï \u2028 "x"' } }

async function stateOf(
  bus: Bus,
  state: string,
): Promise<{ last_error?: string; address?: string; pid: number | null }> {
  const status = await bus.statusWhere(`the worker is ${state}`, ({ workers }) => workers[0]?.state === state)
  return status.workers[0] as never
}

describe('another bus', () => {
  test.each(['unix', 'tcp'] as const)(
    'over %s: what is said arrives byte for byte, in both directions',
    async (door) => {
      verifies('11.1-lines', '11.2-status', '11.1-pool-cut')
      const far = await startBus({ config: config([pool('raw-log'), pool('echo')]), doors: [door] })
      const near = await startNear({ url: urlOf(far, door), pool: 'echo' })
      const { pid, address } = await stateOf(near, 'ready')
      expect([pid, address]).toEqual([null, urlOf(far, door)])
      const client = await near.connect()
      const line =
        '{ "jsonrpc":"2.0" , "id": "a\\u0041", "pool":"far" , "method":"m","params":{"n":1.50,"s":"\\u00fc"}}'
      client.send(line)
      const answer = (await client.nextLine()).toString()
      const direct = await far.connect()
      direct.send(line.replace('"far"', '"echo"'))
      expect(answer).toBe((await direct.nextLine()).toString().replace(' "pool":"echo" ,', ''))
    },
  )

  test('over TLS, with a token: as the principal that it is, and in no other pool', async () => {
    verifies('11.1-lines')
    const house = await startHouse({
      principals: { near: { pools: ['echo'] } },
      pools: [pool('echo'), pool('raw-log')],
      doors: ['tls'],
    })
    const near = await startNear(
      { url: urlOf(house.bus, 'tls'), pool: 'echo', token: variable('FAR_TOKEN'), ca: testAuthority().ca },
      { env: { FAR_TOKEN: house.tokens['near']! } },
    )
    const client = await near.connect()
    expect(await client.ask(ask)).toMatchObject({ id: 1, result: {} })
    const { principals } = (await house.bus.status()) as unknown as { principals: { name: string }[] }
    expect(principals).toContainEqual(expect.objectContaining({ name: 'near', connections: 1 }))
  })

  test('isolated: a connection for each client, sessions are their own', async () => {
    verifies('11.1-isolated')
    const far = await startBus({ config: config(pool('echo')) })
    const near = await startNear({ url: urlOf(far), sharing: 'isolated', instances: 0 })
    const clients = [await near.connect(), await near.connect()]
    for (const [index, client] of clients.entries())
      expect(await client.ask({ ...ask, sessionId: `s-${index}` })).toMatchObject({ id: 1, result: {} })
    expect((await far.status()).clients).toBe(2)
    clients[0]!.close()
    await far.statusWhere('one client is left', (status) => status.clients === 1)
  })

  test('one that is down is waited for and found; who asks meanwhile hears why', async () => {
    verifies('11.2-down-at-start', '11.4-cannot-connect')
    const port = await freePort()
    const near = await startNear(
      { url: `tcp://127.0.0.1:${port}` },
      { limits: { max_restarts: 2, restart_window_sec: 3 } },
    )
    const { last_error } = await stateOf(near, 'parked')
    expect(last_error).toBe(`tcp://127.0.0.1:${port}: nobody listens there (max_restarts is 2 in 3 s)`)
    const client = await near.connect()
    expect((await client.ask(ask)).error).toMatchObject({
      code: -32603,
      data: { reason: 'no_worker', retryable: true, why: expect.stringContaining('nobody listens there') },
    })
    await startBus({ config: config(pool('echo')), doors: [], args: ['--tcp', `127.0.0.1:${port}`] })
    await stateOf(near, 'ready')
    expect(await client.ask({ ...ask, id: 2 })).toMatchObject({ id: 2, result: {} })
  })

  test('one that goes: what it owed is answered with why, and it is found again', async () => {
    verifies('11.2-comes-back', '11.4-broken-off')
    const workspace = testWorkspace()
    const door = ['--unix', workspace.path('far.sock')]
    const far = await startBus({ config: config(pool('silent')), doors: [], args: door })
    const near = await startNear({ url: `unix:${workspace.path('far.sock')}` })
    const client = await near.connect()
    client.send(ask)
    await far.statusWhere('it has the request', ({ outstanding }) => outstanding === 1)
    far.kill()
    expect((await client.answerTo(1)).error.data).toMatchObject({
      reason: 'worker_exited',
      why: expect.stringContaining('far.sock'),
    })
    await far.exit
    await startBus({ config: config(pool('echo')), doors: [], args: door })
    expect(await client.ask({ ...ask, id: 2 })).toMatchObject({ id: 2, result: {} })
  })

  test('paths are relative to the file, and a pool that it does not have is told', async () => {
    const workspace = testWorkspace()
    await startBus({ config: config(pool('echo')), doors: [], args: ['--unix', workspace.path('far.sock')] })
    const near = await startNear({ url: 'unix:far.sock', pool: 'none', restart: 'never' }, { workspace })
    expect((await stateOf(near, 'stopped')).last_error).toContain('it has no such pool')
  })
})

describe('refused', () => {
  test('a token that is none, and one without rights to the pool', async () => {
    verifies('11.2-refused', '11.5-secrets')
    const house = await startHouse({
      principals: { near: { pools: ['raw-log'] } },
      pools: [pool('echo'), pool('raw-log')],
    })
    const url = urlOf(house.bus, 'tcp')
    const near = await startBus({
      config: {
        pools: [
          { id: 'strange', url, token: variable('WRONG') },
          { id: 'bounded', url, pool: 'echo', token: variable('RIGHT') },
        ],
      },
      env: { WRONG: 'sbus_wrong_and_secret', RIGHT: house.tokens['near']! },
      args: ['--log-level', 'debug'],
    })
    const { workers } = await near.statusWhere('both are parked', (status) =>
      status.workers.every(({ state }) => state === 'parked'),
    )
    expect(workers.map((worker) => [worker.restarts, (worker as { last_error?: string }).last_error])).toEqual([
      [0, expect.stringContaining('does not accept the token')],
      [0, expect.stringContaining('no right to that pool')],
    ])
    const client = await near.connect()
    const { error } = await client.ask({ ...ask, pool: 'strange' })
    expect(error.data).toMatchObject({ reason: 'no_worker', why: expect.stringContaining('token') })
    const shown = [near.log.text, JSON.stringify(workers), JSON.stringify(error)].join()
    for (const secret of ['sbus_wrong_and_secret', house.tokens['near']!]) expect(shown).not.toContain(secret)
  })

  test('a certificate of somebody else', async () => {
    verifies('11.2-refused')
    const far = await startBus({ config: config(pool('echo')), doors: ['tls'] })
    const near = await startNear({ url: urlOf(far, 'tls'), ca: testAuthority('nobody').ca })
    const worker = (await stateOf(near, 'parked')) as { restarts?: number; last_error?: string }
    expect([worker.restarts, worker.last_error]).toEqual([0, expect.stringContaining('not signed by an authority')])
  })

  test('somebody who is no bus', async () => {
    const server = await serveLines(
      (line) => `{"jsonrpc":"2.0","id":${JSON.stringify(JSON.parse(line).id)},"error":{"code":-32601,"message":"no"}}`,
    )
    const near = await startNear({ url: `tcp://127.0.0.1:${portOf(server)}`, restart: 'never' })
    expect((await stateOf(near, 'stopped')).last_error).toContain('does not answer bus::open as a bus does')
  })

  test.each([
    ['junk', () => 'hello'],
    ['an answer without an end', () => 'x'.repeat(200_000)],
  ])('hostile: %s', async (_what, answer) => {
    const server = await serveLines(answer, _what === 'junk' ? '\n' : '')
    const near = await startNear({ url: `tcp://127.0.0.1:${portOf(server)}`, restart: 'never' })
    expect((await stateOf(near, 'stopped')).last_error).toContain('does not answer bus::open as a bus does')
  })

  test('hostile: silence ends with connect_timeout_sec', async () => {
    const server = await serveLines(() => '', '')
    const near = await startNear({ url: `tcp://127.0.0.1:${portOf(server)}`, restart: 'never', connect_timeout_sec: 1 })
    expect((await stateOf(near, 'stopped')).last_error).toContain('does not answer bus::open')
  })

  test('a file that cannot be used is exit 2', async () => {
    const near = await startNear({ url: 'tls://127.0.0.1:1', ca: '/nonexistent.pem' }, { unready: true })
    expect((await near.exit).code).toBe(2)
    expect(near.log.text).toContain('/nonexistent.pem does not exist')
  })
})

describe('loops', () => {
  test('a pool that leads to its own bus is parked at once', async () => {
    verifies('11.6-loop', '11.2-refused')
    const workspace = testWorkspace()
    const bus = await startNear({ url: `unix:${workspace.path('bus.sock')}` }, { workspace })
    const worker = (await stateOf(bus, 'parked')) as { restarts?: number; last_error?: string }
    expect([worker.restarts, worker.last_error]).toEqual([0, expect.stringContaining('leads back')])
    const client = await bus.connect()
    expect((await client.ask(ask)).error.data).toMatchObject({
      reason: 'no_worker',
      why: expect.stringContaining('leads back'),
    })
  })

  const CIRCLES = [2, 3].flatMap((count) => Object.keys(CIRCLE_URLS).map((scheme) => [count, scheme] as const))

  test.each(CIRCLES)('a circle of %i buses over %s is found, and no message goes round', async (count, scheme) => {
    verifies('11.6-circle', '11.6-header')
    const buses = await startCircle(count, CIRCLE_URLS[scheme]!)
    // Long before the next try: the first way that leads back was enough.
    const parked = await eventually('one of them to be parked for the loop', async () => {
      const all = await Promise.all(buses.map((bus) => bus.status()))
      return buses.find((_bus, index) => all[index]!.workers[0]!.state === 'parked' && isLoop(all[index]!.workers[0]!))
    })
    const client = await parked.connect()
    expect((await client.ask(ask)).error.data).toMatchObject({ reason: 'no_worker' })
    const lines = await Promise.all(
      buses.map((bus) => bus.status() as Promise<unknown> as Promise<{ lines: { from_clients: number } }>),
    )
    expect(Math.max(...lines.map((status) => status.lines.from_clients))).toBeLessThan(200)
  })

  test('too many buses: 508 over HTTP', async () => {
    verifies('11.6-header')
    const bus = await startBus({ config: config(pool('echo')), args: ['--http', '127.0.0.1:0'] })
    const http = bus.addresses.find((address) => address.startsWith('http:'))!
    const call = (via: string) =>
      fetch(`${http}/rpc`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'stdio-bus-via': via },
        body: JSON.stringify({ ...ask, id: 9 }),
      })
    const ways = ['x', Array(8).fill('x').join(','), Array(9).fill('x').join(', '), 'a b']
    const answers = await Promise.all(ways.map(async (via) => (await call(via)).status))
    expect(answers).toEqual([200, 200, 508, 400])
    expect(((await (await call(ways[2]!)).json()) as Message).error.data.reason).toBe('loop_detected')
  })

  test('two buses that use a pool of each other are none', async () => {
    verifies('11.6-no-circle')
    const [one, two] = [testWorkspace(), testWorkspace()]
    const start = (workspace: typeof one, other: typeof one) =>
      startBus({
        config: {
          pools: [pool('echo'), { id: 'far', url: `unix:${other.path('bus.sock')}`, pool: 'echo' }],
          default_pool: 'far',
        },
        workspace,
      })
    const buses = [await start(one, two), await start(two, one)]
    for (const bus of buses) await bus.allReady()
    for (const bus of buses) expect(await (await bus.connect()).ask(ask)).toMatchObject({ result: {} })
    for (const bus of buses) expect((await bus.status()).refused).toEqual({})
  })
})

/** By which door each bus of a circle is reached: the arguments that open it, and its URL. */
type CircleDoor = (place: { socket: string; port: number }) => { args: string[]; url: string; pool?: string }

const CIRCLE_URLS: Readonly<Record<string, CircleDoor>> = {
  lines: ({ socket }) => ({ args: ['--unix', socket], url: `unix:${socket}`, pool: 'far' }),
  http: ({ port }) => ({ args: ['--http', `127.0.0.1:${port}`], url: `http://127.0.0.1:${port}/mcp/far` }),
  websocket: ({ port }) => ({ args: ['--http', `127.0.0.1:${port}`], url: `ws://127.0.0.1:${port}/ws/far` }),
}

/** Each of them uses the pool of the next one, which is its own use of the one behind that. */
async function startCircle(count: number, doorAt: CircleDoor): Promise<Bus[]> {
  const ports = await Promise.all(Array.from({ length: count }, freePort))
  const doors = ports.map((port) => doorAt({ port, socket: testWorkspace().path('far.sock') }))
  return Promise.all(
    doors.map(({ args }, index) => {
      const { url, pool } = doors[(index + 1) % count]!
      return startNear({ url, ...(pool && { pool }) }, { args, limits: { max_restarts: 50 } })
    }),
  )
}

function isLoop(worker: object): boolean {
  return 'last_error' in worker && String(worker.last_error).includes('leads back')
}

async function serveLines(answer: (line: string) => string, end = '\n'): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (data) => socket.write(`${answer(data.toString().split('\n')[0]!)}${end}`))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => void server.close())
  return server
}

function portOf(server: Server): number {
  return (server.address() as { port: number }).port
}
