/** Sessions are found where they live, from every node (contract 14.6). */
import { fileURLToPath } from 'node:url'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import type { Bus } from '../support/bus.ts'
import type { LineClient } from '../support/line-client.ts'
import { freePort, type Nats, startNats, startServers, withNats } from '../support/nats.ts'
import { pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { ECHO, startNode, untilReachable } from './nodes.ts'

const AGENT = fileURLToPath(new URL('../fixtures/acp/loads.mjs', import.meta.url))
const agent = (name: string, more: object = {}, ...args: string[]) => ({
  id: 'agent',
  command: process.execPath,
  args: [AGENT, name, ...args],
  protocol: 'acp',
  ...more,
})

const SAID = { type: 'text', text: 'what was said' }

let lastId = 0
async function call(client: LineClient, method: string, params: object) {
  return client.ask({ jsonrpc: '2.0', id: ++lastId, method, params, pool: 'agent' })
}

const introduce = (client: LineClient) => call(client, 'initialize', { protocolVersion: 1, clientCapabilities: {} })

async function introduced(bus: Bus): Promise<LineClient> {
  const client = await bus.connect()
  expect(await introduce(client)).toHaveProperty('result')
  return client
}

async function newSession(bus: Bus): Promise<string> {
  const client = await introduced(bus)
  const { result } = await call(client, 'session/new', { cwd: '/', mcpServers: [] })
  client.close()
  return result.sessionId
}

const load = (client: LineClient, sessionId: string) =>
  call(client, 'session/load', { sessionId, cwd: '/', mcpServers: [] })

/** Two nodes with the agent and one without; sessions at both. */
async function startThree(nats: Nats, ...more: string[]) {
  const sessions = more.includes('any') ? { sessions: { portable: true } } : {}
  const slow = more.includes('slow') ? [pool('slow')] : []
  const [a, b, c] = await Promise.all([
    startNode(nats, 'n1'),
    startNode(nats, 'n2', { pools: [agent('n2', sessions, ...more), ECHO, ...slow] }),
    startNode(nats, 'n3', { pools: [agent('n3', sessions, ...more), ECHO] }),
  ])
  for (const node of ['n2', 'n3']) await untilReachable(a, `echo@${node}`)
  // Who has the pool itself asks where a session lives once it knows that others have it too.
  await untilReachable(b, 'echo@n3')
  await untilReachable(c, 'echo@n2')
  await Promise.all([a, b, c].map(untilDirectory))
  const ids: string[] = []
  while (!ids.some((id) => id.startsWith('n2')) || !ids.some((id) => id.startsWith('n3'))) ids.push(await newSession(a))
  return { a, b, c, ids }
}

withNats(15, () => {
  describe('a session', () => {
    test('is loaded at its home, wherever its client is, and stays there', async () => {
      verifies('14.6-home')
      const { a, c, ids } = await startThree(await startNats({ jetStream: true }))
      const client = await introduced(a)
      for (const id of ids) {
        expect(await load(client, id)).toMatchObject({ result: {} })
        const said = await call(client, 'session/prompt', { sessionId: id, prompt: [] })
        expect(said.result._meta.name).toBe(id.slice(0, 2))
      }
      expect((await load(client, 'nobody-knows')).error.code).toBe(-32002)
      // There is one owner in the whole cluster; and it is found from a node that has the pool itself.
      const other = await introduced(c)
      for (const id of ids) expect((await load(other, id)).error.data.reason).toBe('session_not_owned')
      client.close()
      for (const id of ids)
        await eventually(`${id} to be free`, async () => (await load(other, id)).result !== undefined)
    })

    test('whose home is away is node_lost, and no other node is tried', async () => {
      verifies('14.6-home-away', '14.6-forget')
      const nats = await startNats({ jetStream: true })
      const { a, b, ids } = await startThree(nats)
      b.kill()
      await eventually('the node to be lost', () => a.log.text.includes('node is lost') || undefined)
      const client = await introduced(a)
      const away = ids.find((id) => id.startsWith('n2'))!
      expect(await load(client, away)).toMatchObject({
        error: { code: -32603, data: { reason: 'node_lost', retryable: true, node: 'n2' } },
      })
      expect(await load(client, ids.find((id) => id.startsWith('n3'))!)).toMatchObject({ result: {} })
      // Its pointers go when somebody says so.
      const forgotten = await a.run(['cluster', 'forget', 'n2', '--config', a.workspace.path('bus.json')])
      expect(forgotten.stdout).toMatch(/[1-9]\d* sessions? of n2/)
      expect((await load(client, away)).error.code).toBe(-32002)
    })

    test('whose home is leaving is shutting_down, and nobody sees it lost', async () => {
      verifies('14.6-home-away', '14.7-leaving')
      const { a, b, ids } = await startThree(await startNats({ jetStream: true }), 'slow')
      const busy = await a.connect()
      busy.send({ jsonrpc: '2.0', id: 'slow', method: 'x', pool: 'slow', params: { ms: 5_000 } })
      await b.statusWhere('it is owed', ({ outstanding }) => outstanding === 1)
      const exit = b.stop('SIGTERM')
      // Before the news of it has come, a newcomer may be sent there, and is told to come again.
      const client = await eventually('the other node to welcome somebody', async () => {
        const newcomer = await a.connect()
        return (await introduce(newcomer)).result === undefined ? undefined : newcomer
      })
      const leaving = ids.find((id) => id.startsWith('n2'))!
      const answer = await eventually('it to be known to leave', async () => {
        const said = await load(client, leaving)
        return said.error?.data?.node === 'n2' ? said : undefined
      })
      expect(answer).toMatchObject({ error: { code: -32603, data: { reason: 'shutting_down', retryable: true } } })
      expect(await busy.next()).toHaveProperty('result')
      expect((await exit).code).toBe(0)
    })

    test('that lives here is loaded while NATS is away: own clients notice nothing', async () => {
      verifies('14.6-unavailable', '14.8-long-break')
      const nats = await startNats({ jetStream: true })
      const kept = (node: string) => agent(node, { sessions: { keep_sec: 3_600 } })
      const [a] = await Promise.all([
        startNode(nats, 'n1', { pools: [kept('n1'), ECHO] }),
        startNode(nats, 'n2', { pools: [kept('n2'), ECHO] }),
      ])
      await untilReachable(a, 'echo@n2')
      await untilDirectory(a)
      const id = await newSession(a)
      expect(id).toMatch(/^n1/)
      await nats.stop()
      await eventually('the node to be lost', () => a.log.text.includes('node is lost') || undefined)
      const client = await introduced(a)
      expect(await load(client, id)).toMatchObject({ result: {} })
      // Of what lives nowhere here nobody can tell.
      expect((await load(client, 'elsewhere')).error.data.reason).toBe('directory_unavailable')
    })

    test('is found again where the directory has been deleted, from its next pointer on', async () => {
      verifies('14.6-home')
      const nats = await startNats({ jetStream: true })
      const { a, b } = await startThree(nats)
      const connection = await connect({ servers: `127.0.0.1:${nats.port}` })
      onTestFinished(() => connection.close())
      await (await jetstreamManager(connection)).streams.delete('KV_bus_team')
      const sessionId = await newSession(b)
      const client = await introduced(a)
      await eventually('it to be found', async () => (await load(client, sessionId)).result !== undefined, 20_000)
    }, 40_000)

    test('of a portable pool is loaded elsewhere when its home is away', async () => {
      verifies('14.6-portable')
      const { a, b, ids } = await startThree(await startNats({ jetStream: true }), 'any')
      b.kill()
      await eventually('the node to be lost', () => a.log.text.includes('node is lost') || undefined)
      expect(await load(await introduced(a), ids.find((id) => id.startsWith('n2'))!)).toMatchObject({ result: {} })
    })

    test('is found as newcomers are where there is no JetStream, and that is said', async () => {
      verifies('14.6-no-jetstream')
      const nats = await startNats()
      const [a] = await Promise.all([startNode(nats, 'n1'), startNode(nats, 'n2', { pools: [agent('n2'), ECHO] })])
      await untilReachable(a, 'echo')
      const id = await newSession(a)
      expect(await load(await introduced(a), id)).toMatchObject({ result: {} })
      await eventually('it to be said', () => a.log.text.includes('there is no directory of sessions') || undefined)
    })
  })

  describe('a kept session', () => {
    const kept = (node: string, id = 'agent') => ({ ...agent(node, { sessions: { keep_sec: 3_600 } }), id })
    const startKept = async () => {
      const nats = await startNats({ jetStream: true })
      const [a, b, c] = await Promise.all([
        startNode(nats, 'n1'),
        startNode(nats, 'n2', {
          pools: [kept('n2'), kept('n2', 'hidden'), ECHO],
          cluster: { export: ['agent', 'echo'] },
        }),
        startNode(nats, 'n3', { pools: [kept('n3'), kept('n3', 'other'), ECHO] }),
      ])
      for (const node of ['n2', 'n3']) await untilReachable(a, `echo@${node}`)
      await Promise.all([a, b, c].map(untilDirectory))
      return { a, b, c }
    }
    const about = async (client: LineClient, verb: string, params: object) => {
      const id = `about ${++lastId}`
      client.send({ jsonrpc: '2.0', id, method: `bus::sessions.${verb}`, params })
      return until(client, (line) => line.id === id)
    }
    const begin = async (bus: Bus, pool: string) => {
      const client = await bus.connect()
      const ask = (method: string, params: object) => client.ask({ jsonrpc: '2.0', id: ++lastId, method, params, pool })
      await ask('initialize', { protocolVersion: 1, clientCapabilities: {} })
      const { result } = await ask('session/new', { cwd: '/', mcpServers: [] })
      return { client, session: result.sessionId as string }
    }
    const unknown = { error: { data: { reason: 'unknown_session' } } }

    test.each(['agent@n2', 'agent@n3', 'other'])(
      'of %s is watched, driven, left and ended from another node',
      async (pool) => {
        verifies('14.6-attach')
        const { a, b, c } = await startKept()
        const { client: owner, session } = await begin(a, pool)
        const watcher = await a.connect()
        const seen = await eventually('it to be found', async () => {
          const told = await about(watcher, 'attach', { session, role: 'observe', from: 0 })
          return told.result === undefined ? undefined : told
        })
        expect(seen.result).toMatchObject({ session, role: 'observe', turn: 'idle' })
        owner.send({
          jsonrpc: '2.0',
          id: 'p',
          method: 'session/prompt',
          params: { sessionId: session, prompt: [SAID] },
        })
        expect(await until(owner, (line) => line.id === 'p')).toMatchObject({ result: { stopReason: 'end_turn' } })
        await until(watcher, (line) => line.params?.update?.content?.text === SAID.text)
        expect(await until(watcher, (line) => line.params?.kind === 'turn_ended')).toMatchObject({
          method: 'bus::sessions.event',
          params: { session },
        })
        // Who only looks on cannot prompt; who drives can, at the node where the session is.
        const prompt = { jsonrpc: '2.0', method: 'session/prompt', params: { sessionId: session, prompt: [SAID] } }
        watcher.send({ ...prompt, id: 'w1' })
        expect((await until(watcher, (line) => line.id === 'w1')).error.data.reason).toBe('session_not_owned')
        expect(await about(watcher, 'attach', { session, role: 'drive' })).toMatchObject({ result: { role: 'drive' } })
        watcher.send({ ...prompt, id: 'w2' })
        expect((await until(watcher, (line) => line.id === 'w2')).result._meta.name).toBe(session.slice(0, 2))
        expect(await about(watcher, 'detach', { session })).toMatchObject({ result: {} })
        expect(await about(watcher, 'detach', { session })).toMatchObject(unknown)
        // Nobody else is told that there is such a session; at its home the administrator of that machine sees all.
        const stranger = await (session.startsWith('n2') ? c : b).connect()
        for (const verb of ['attach', 'end'])
          expect(await about(stranger, verb, { session, role: 'observe' })).toMatchObject(unknown)
        expect(await about(await a.connect(), 'end', { session })).toMatchObject({ result: {} })
        owner.send({ ...prompt, id: 'late' })
        expect((await until(owner, (line) => line.id === 'late')).error.data.reason).toBe('session_lost')
      },
    )

    test('whose home is away is node_lost; what is not exported cannot be attached to', async () => {
      verifies('14.6-attach')
      const { a, b } = await startKept()
      const { session } = await begin(a, 'agent@n2')
      const { session: hidden } = await begin(b, 'hidden')
      const watcher = await a.connect()
      expect(await about(watcher, 'attach', { session: hidden, role: 'observe' })).toMatchObject(unknown)
      expect(await about(watcher, 'attach', { session: hidden, pool: 'agent@n2', role: 'observe' })).toMatchObject(
        unknown,
      )
      await eventually('it to be found', async () => {
        const told = await about(watcher, 'attach', { session, role: 'observe' })
        return told.result === undefined ? undefined : told
      })
      b.kill()
      await eventually('the node to be lost', () => a.log.text.includes('node is lost') || undefined)
      for (const verb of ['attach', 'end'])
        expect(await about(await a.connect(), verb, { session, role: 'observe' })).toMatchObject({
          error: { code: -32603, data: { reason: 'node_lost', retryable: true, node: 'n2' } },
        })
    })
  })

  describe('a list of sessions', () => {
    const names = (answer: { result: { sessions: { sessionId: string }[] } }) =>
      [...new Set(answer.result.sessions.map(({ sessionId }) => sessionId.slice(0, 2)))].sort()

    test('is that of all nodes of the pool, and names those that are silent', async () => {
      verifies('14.6-list')
      const { a, b, c, ids } = await startThree(await startNats({ jetStream: true }))
      // From a node without the pool, and from one that has it.
      for (const bus of [a, c]) {
        const client = await introduced(bus)
        // A node may not have heard of all others yet, and on a busy machine one may take longer than a list waits for it.
        const listed = await eventually('a list that nobody is missing from', async () => {
          const answer = await call(client, 'session/list', {})
          return answer.result._meta === undefined && names(answer).length === 2 ? answer : undefined
        })
        expect(listed.result.sessions.map(({ sessionId }: { sessionId: string }) => sessionId).sort()).toEqual(
          [...ids].sort(),
        )
      }
      const client = await introduced(a)
      const ofOne = await client.ask({
        jsonrpc: '2.0',
        id: 'one',
        method: 'session/list',
        params: {},
        pool: 'agent@n3',
      })
      expect(names(ofOne)).toEqual(['n3'])
      b.signal('SIGSTOP')
      const partly = await call(client, 'session/list', {})
      expect(names(partly)).toEqual(['n3'])
      expect(partly.result._meta).toEqual({ 'stdio-bus/silent_nodes': ['n2'] })
      b.signal('SIGCONT')
      await eventually('all to be listed', async () => names(await call(client, 'session/list', {})).length === 2)
    })

    test('that are kept is that of all nodes too, of what may be seen', async () => {
      verifies('14.6-list')
      const nats = await startNats()
      const kept = { sessions: { keep_sec: 3_600 } }
      const hidden = { ...agent('n3', kept), id: 'hidden' }
      const [a] = await Promise.all([
        startNode(nats, 'n1'),
        startNode(nats, 'n2', { pools: [agent('n2', kept), ECHO] }),
        startNode(nats, 'n3', { pools: [agent('n3', kept), hidden, ECHO], cluster: { export: ['agent', 'echo'] } }),
      ])
      for (const node of ['n2', 'n3']) await untilReachable(a, `echo@${node}`)
      const ids: string[] = []
      while (new Set(ids.map((id) => id.slice(0, 2))).size < 2) ids.push(await newSession(a))
      const client = await a.connect()
      const list = (params: object) => client.ask({ jsonrpc: '2.0', id: 1, method: 'bus::sessions.list', params })
      const all = await list({})
      expect(all.result.sessions.map(({ session }: { session: string }) => session).sort()).toEqual([...ids].sort())
      for (const { session, node, pool } of all.result.sessions)
        expect([node, pool]).toEqual([session.slice(0, 2), 'agent'])
      // Page by page, over all of them.
      const first = await list({ limit: 1 })
      expect(first.result.sessions).toHaveLength(1)
      const next = await list({ limit: 1, cursor: first.result.next_cursor })
      expect(next.result.sessions[0].session).toBe(all.result.sessions[1].session)
      expect((await list({ limit: 'x' })).error).toMatchObject({ code: -32602, data: { reason: 'bad_params' } })
      expect((await list({ cursor: 'x' })).error).toMatchObject({ code: -32602, data: { reason: 'bad_params' } })
    })
  })

  test('has three copies on three servers, and outlives one of them', async () => {
    verifies('14.6-copies')
    const servers = await startServers(3, { jetStream: true })
    const cluster = { nats: servers.map(({ url }) => url), lost_after_ms: 5_000 }
    const start = (node: string, pools: object[]) => startNode(servers[0]!, node, { pools, cluster })
    const [a] = await Promise.all([start('n1', []), start('n2', [agent('n2'), ECHO]), start('n3', [agent('n3'), ECHO])])
    for (const node of ['n2', 'n3']) await untilReachable(a, `echo@${node}`, 20_000)
    await untilDirectory(a)
    const connection = await connect({ servers: `127.0.0.1:${servers[1]!.port}` })
    onTestFinished(() => connection.close())
    const { config } = await (await jetstreamManager(connection)).streams.info('KV_bus_team')
    expect(config.num_replicas).toBe(3)
    const id = await newSession(a)
    const first = await introduced(a)
    await eventually('it to be found', async () => (await load(first, id)).result !== undefined)
    first.close()
    await servers[0]!.stop('SIGKILL')
    // A leader is elected meanwhile: whoever asks is told to try again.
    const client = await eventually('a client to be served', () => introduced(a).catch(() => undefined))
    await eventually('it to be found again', async () => (await load(client, id)).result !== undefined, 20_000)
  }, 60_000)

  test('a directory that is mute is unavailable, and nothing else notices', async () => {
    verifies('14.6-unavailable', '14.6-domain')
    const port = await freePort()
    const hub = await startNats({ jetStream: 'hub', config: `leafnodes { listen: "127.0.0.1:${port}" }` })
    const leaf = await startNats({ config: `leafnodes { remotes: [{ url: "nats-leaf://127.0.0.1:${port}" }] }` })
    const cluster = { js_domain: 'hub' }
    const [a] = await Promise.all([
      startNode(leaf, 'n1', { cluster }),
      startNode(leaf, 'n2', { pools: [agent('n2'), ECHO], cluster }),
      startNode(leaf, 'n3', { pools: [agent('n3'), ECHO], cluster }),
    ])
    for (const node of ['n2', 'n3']) await untilReachable(a, `echo@${node}`)
    await untilDirectory(a)
    const id = await newSession(a)
    const client = await introduced(a)
    await eventually('it to be found', async () => (await load(client, id)).result !== undefined)
    hub.signal('SIGSTOP')
    const other = await introduced(a)
    expect(await load(other, id)).toMatchObject({
      error: { code: -32603, data: { reason: 'directory_unavailable', retryable: true } },
    })
    expect(await other.ask({ jsonrpc: '2.0', id: 'on', method: 'x', pool: 'echo' })).toHaveProperty('result')
    expect(a.log.text).not.toContain('node is lost')
  })
})

/** The next line of the kind; what comes before it is not looked at. */
async function until(client: LineClient, isMeant: (line: Awaited<ReturnType<LineClient['next']>>) => boolean) {
  for (;;) {
    const line = await client.next()
    if (isMeant(line)) return line
  }
}

async function untilDirectory(bus: Bus): Promise<void> {
  await eventually('the directory', async () => {
    const { stdout } = await bus.run(['status', '--cluster', '--json', '--control', bus.control])
    return JSON.parse(stdout).nats.directory === true
  })
}
