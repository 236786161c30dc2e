/** What one node can do to others, what goes along with a client, and what is shown (contract 14.9 to 14.11). */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { runBus, testWorkspace } from '../support/bus.ts'
import { type Nats, startNats, withNats } from '../support/nats.ts'
import { pool } from '../support/pools.ts'
import { eventually, sleep } from '../support/waiting.ts'
import { clusterConfig, ECHO, startNode, startPair, untilReachable } from './nodes.ts'

const ask = (id: unknown, more: object = {}) => ({ jsonrpc: '2.0', id, method: 'x', ...more })

async function stranger(nats: Nats, more: object = {}): Promise<NatsConnection> {
  const connection = await connect({ servers: `127.0.0.1:${nats.port}`, ...more })
  onTestFinished(() => connection.close())
  return connection
}

async function permissionsOf(node: string): Promise<string> {
  const workspace = testWorkspace()
  workspace.write('bus.json', clusterConfig('nats://127.0.0.1:1', 'n1'))
  const done = await runBus(['cluster', 'permissions', node, '--config', workspace.path('bus.json')], { workspace })
  expect(done.code).toBe(0)
  return done.stdout.replace('"..."', `"secret-${node}"`)
}

const ACP_AGENT = fileURLToPath(new URL('../fixtures/acp/loads.mjs', import.meta.url))

withNats(9, () => {
  test('with the permissions that are printed a node is itself and nobody else', async () => {
    verifies('14.9-permissions', '14.9-check')
    const users = await Promise.all(['n1', 'n2', 'n3'].map(permissionsOf))
    const nats = await startNats({ jetStream: true, config: `authorization { users: [\n${users.join('\n')}\n] }` })
    const at = (node: string) => ({ nats: `nats://${node}:\${NATS_PASSWORD}@127.0.0.1:${nats.port}` })
    const env = (node: string) => ({ NATS_PASSWORD: `secret-${node}` })
    const [a] = await Promise.all([
      startNode(nats, 'n1', { cluster: at('n1'), env: env('n1') }),
      startNode(nats, 'n2', { pools: [ECHO], cluster: at('n2'), env: env('n2') }),
    ])
    await untilReachable(a, 'echo')
    await eventually('the directory', async () => {
      const status = await a.run(['status', '--cluster', '--json', '--control', a.control])
      return JSON.parse(status.stdout).nats.directory === true
    })
    expect(a.log.text).not.toMatch(/ermissions|secret/)
    // A third one that wants to be n2, and to hear what is for n1.
    const evil = await stranger(nats, { user: 'n3', pass: 'secret-n3' })
    const refused: string[] = []
    void (async () => {
      for await (const status of evil.status()) if (status.type === 'error') refused.push(status.error.message)
    })()
    evil.publish('bus.team.n1.n2', Buffer.from('{"say":"who"}'))
    evil.subscribe('bus.team.n1.*', { callback: () => {} })
    evil.subscribe('_INBOX_n1.>', { callback: () => {} })
    await eventually('the server to refuse', () => refused.length >= 3 || undefined)
    // What it has JetStream keep, JetStream would hand on as an answer, wherever that is asked for.
    const lie = { say: 'here', speaks: [1, 1], version: '1.0.0', run: 77, state: 'ready', pools: [], agents: [] }
    evil.publish('$KV.bus_team.lie', Buffer.from(JSON.stringify(lie)))
    await evil.flush()
    evil.publish('$JS.API.DIRECT.GET.KV_bus_team.$KV.bus_team.lie', '', { reply: 'bus.team.n1.n2' })
    await eventually('what nobody has said to be counted', async () => {
      const { stdout } = await a.run(['status', '--json', '--control', a.control])
      return JSON.parse(stdout).cluster.junk.n2 === 1 || undefined
    })
    expect(a.log.text).not.toContain('node is lost')
    await untilReachable(a, 'echo')
    const checked = await a.run(['check', '--config', a.workspace.path('bus.json')], env('n1'))
    expect([checked.code, checked.stdout]).toEqual([0, expect.stringContaining('no problems')])
  })

  test('a bucket that was made to listen to nodes is no directory, and that is said', async () => {
    verifies('14.9-permissions')
    const users = await Promise.all(['n1', 'n3'].map(permissionsOf))
    const nats = await startNats({ jetStream: true, config: `authorization { users: [\n${users.join('\n')}\n] }` })
    const evil = await stranger(nats, { user: 'n3', pass: 'secret-n3', inboxPrefix: '_INBOX_n3' })
    const ears = {
      name: 'KV_bus_team',
      subjects: ['$KV.bus_team.>', 'bus.team.>'],
      storage: 'file',
      allow_direct: true,
    }
    const made = await evil.request('$JS.API.STREAM.CREATE.KV_bus_team', JSON.stringify(ears))
    expect(made.json()).toMatchObject({ did_create: true })
    const cluster = { nats: `nats://n1:\${NATS_PASSWORD}@127.0.0.1:${nats.port}` }
    const a = await startNode(nats, 'n1', { cluster, env: { NATS_PASSWORD: 'secret-n1' } })
    await eventually('it to be said', () => a.log.text.includes('no directory of sessions') || undefined)
    expect(a.log.text).toContain('take in more than where sessions live: $KV.bus_team.>, bus.team.>')
    const { stdout } = await a.run(['status', '--cluster', '--json', '--control', a.control])
    expect(JSON.parse(stdout).nats).toMatchObject({ connected: true, directory: false })
  })

  test('check says where a node could speak as another, listen to others, or has no directory', async () => {
    verifies('14.9-check', '14.6-no-jetstream')
    const nats = await startNats()
    const workspace = testWorkspace()
    workspace.write('bus.json', clusterConfig(nats, 'n1'))
    const done = await runBus(['check', '--config', workspace.path('bus.json')], { workspace })
    expect(done.code).toBe(0)
    expect(done.stdout).toContain('lets this node speak as any other')
    expect(done.stdout).toContain('lets this node listen to what is for others')
    expect(done.stdout).toContain('without JetStream')
    expect(done.stdout).toContain('stdio-bus cluster permissions n1')
    workspace.write('bus.json', clusterConfig('nats://me:hidden@127.0.0.1:1', 'n1'))
    const away = await runBus(['check', '--config', workspace.path('bus.json')], { workspace })
    expect(away.stdout).toContain('nats://127.0.0.1:1, which cannot be reached')
    expect(away.stdout).not.toContain('hidden')
  })

  describe('who a client is', () => {
    test('goes along: local with the name of its node, or as it is called', async () => {
      verifies('14.9-principal')
      const nats = await startNats()
      const far = { pools: [ECHO], config: { access: { audit: 'audit.log' } } }
      const [a, b, c] = await Promise.all([
        startNode(nats, 'n1'),
        startNode(nats, 'n2', far),
        startNode(nats, 'n3', { cluster: { local: 'ann' } }),
      ])
      await untilReachable(a, 'echo')
      await untilReachable(c, 'echo')
      const audit = () =>
        readFileSync(b.workspace.path('audit.log'), 'utf8')
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line))
      const client = await a.connect()
      expect(await client.ask(ask(1, { pool: 'echo' }))).toHaveProperty('result')
      const other = await c.connect()
      expect(await other.ask(ask(2, { pool: 'echo' }))).toHaveProperty('result')
      await eventually(
        'the audit log',
        () => existsSync(b.workspace.path('audit.log')) && audit().some(({ principal }) => principal === 'ann'),
      )
      expect(audit()).toContainEqual(
        expect.objectContaining({
          event: 'call',
          principal: 'local@n1',
          door: 'cluster',
          peer: 'n1',
          pool: 'echo',
          outcome: 'ok',
        }),
      )
      expect(audit()).toContainEqual(expect.objectContaining({ event: 'call', principal: 'ann', peer: 'n3' }))
    })

    test('is narrowed by an entry of its name, which gives its environment too', async () => {
      verifies('14.9-narrowed')
      const nats = await startNats()
      const workspace = testWorkspace()
      const digest = 'a'.repeat(64)
      const principals = [{ name: 'ann', pools: ['own'], env: { WHO: 'ann-at-n2' }, tokens: [{ sha256: digest }] }]
      const access = workspace.writeOwn('access.json', { principals })
      const pools = [ECHO, pool('prints-env', { id: 'own', sharing: 'isolated', instances: 0 })]
      const [a] = await Promise.all([
        startNode(nats, 'n1', { cluster: { local: 'ann' } }),
        startNode(nats, 'n2', { pools, config: { access: { file: access } } }),
        startNode(nats, 'n3'),
      ])
      const client = await a.connect()
      const answer = await eventually('the pool', async () => {
        const said = await client.ask(ask(1, { pool: 'own' }))
        return said.result === undefined ? undefined : said
      })
      expect(JSON.stringify(answer.result)).toContain('ann-at-n2')
      expect(await client.ask(ask(2, { pool: 'echo' }))).toMatchObject({ error: { data: { reason: 'not_allowed' } } })
    })
  })

  test('an observer sees the sessions of its pools at all nodes, and drives none', async () => {
    verifies('14.9-principal')
    const nats = await startNats()
    const workspace = testWorkspace()
    const access = workspace.writeOwn('access.json', { principals: [] })
    const token = async (...args: string[]) =>
      (await runBus(['token', 'add', ...args, '--file', access], { workspace })).stdout.trim()
    const tokens = { ann: await token('ann'), eye: await token('eye', '--role', 'observer') }
    const agent = { id: 'agent', command: process.execPath, args: [ACP_AGENT, 'n2'], protocol: 'acp' }
    const [a] = await Promise.all([
      startNode(nats, 'n1', { config: { access: { file: access } }, doors: ['unix', 'tcp'] }),
      startNode(nats, 'n2', { pools: [{ ...agent, sessions: { keep_sec: 3_600 } }, ECHO] }),
    ])
    await untilReachable(a, 'echo')
    const open = async (name: keyof typeof tokens) => {
      const client = await a.connect('tcp')
      await client.ask(ask('open', { method: 'bus::open', params: { token: tokens[name] } }))
      return client
    }
    const [ann, eye] = [await open('ann'), await open('eye')]
    const initialize = { method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } }
    await ann.ask(ask(1, { pool: 'agent', ...initialize }))
    const begun = { method: 'session/new', params: { cwd: '/', mcpServers: [] } }
    const { sessionId } = (await ann.ask(ask(2, { pool: 'agent', ...begun }))).result
    const about = (verb: string, params: object) => eye.ask(ask(verb, { method: `bus::sessions.${verb}`, params }))
    expect(await about('list', {})).toMatchObject({ result: { sessions: [{ session: sessionId, node: 'n2' }] } })
    expect(await about('attach', { session: sessionId, role: 'observe' })).toHaveProperty('result')
    const denied = { error: { data: { reason: 'not_allowed' } } }
    expect(await about('attach', { session: sessionId, role: 'drive' })).toMatchObject(denied)
    expect(await about('end', { session: sessionId })).toMatchObject(denied)
    const prompt = { method: 'session/prompt', params: { sessionId, prompt: [] } }
    expect(await eye.ask(ask(3, prompt))).toMatchObject(denied)
    expect(await eye.ask(ask(4, { pool: 'echo' }))).toMatchObject(denied)
  })

  test('whatever is said on its subjects, a node goes on, counts it by sender, and grows nothing', async () => {
    verifies('14.9-hostile', '14.10-metrics', '14.11-incompatible')
    const { nats, a, b } = await startPair()
    const evil = await stranger(nats)
    const say = (to: string, from: string, message: Buffer | string) =>
      evil.publish(`bus.team.${to}.${from}`, Buffer.from(message))
    const here = (more: object) =>
      JSON.stringify({
        say: 'here',
        speaks: [1, 1],
        version: '1.0.0',
        run: 5,
        state: 'ready',
        pools: [],
        agents: [],
        ...more,
      })
    for (let n = 0; n < 400; n++) {
      const junk = Buffer.from(Array.from({ length: 1 + ((n * 7) % 90) }, (_, at) => (n * 31 + at * 17) % 256))
      say('n1', 'evil', junk)
      say('all', 'evil', `{"say":"here","n":${n}`)
      // More nodes than there can be.
      say('all', `flood${n}`, here({ run: n + 1 }))
    }
    say('all', 'evil', here({ run: 'x' }))
    say('all', 'evil', here({ run: 2 ** 40 }))
    say('all', 'evil', here({ pools: [['p', 'acp', 'auto', -1, 0, 0, 0, 0, 0, 0]] }))
    say('all', 'evil', `{"say":"here","pad":"${'x'.repeat(300_000)}"}`)
    say('all', 'a.b', here({}))
    say('all', 'future', here({ speaks: [7, 9], pools: 'otherwise' }))
    say('all', 'future', here({ speaks: [7, 9] }))
    say(
      'all',
      'kind',
      here({ run: 9, more: { than: 'we know' }, pools: [['p@q', 'acp', 'auto', 1, 1, 0, 0, 0, 10, 0]] }),
    )
    await evil.flush()
    const client = await a.connect()
    expect(await client.ask(ask(1, { pool: 'echo' }))).toHaveProperty('result')
    // Whoever may speak as another is believed, for a while: then the true one is back by itself.
    say('all', 'n1', here({ run: 77 }))
    say('all', 'n2', here({ run: 78 }))
    await evil.flush()
    await sleep(100)
    await untilReachable(a, 'echo')
    await sleep(700)
    const status = JSON.parse((await a.run(['status', '--json', '--control', a.control])).stdout)
    expect(status.cluster.nodes.length).toBeLessThanOrEqual(256)
    expect(status.cluster.junk.evil).toBeGreaterThan(100)
    const future = status.cluster.nodes.find(({ node }: { node: string }) => node === 'future')
    if (future !== undefined) expect(future.state).toBe('incompatible')
    const { stdout: metrics } = await a.run(['status', '--metrics', '--control', a.control])
    expect(metrics).toMatch(/^stdio_bus_cluster_junk_total\{node="evil"\} \d+$/m)
    expect(metrics).toMatch(/^stdio_bus_cluster_nodes\{state="ready"\} \d+$/m)
    for (const name of [
      'streams',
      'bytes_total',
      'frames_total',
      'resent_bytes_total',
      'stalled_total',
      'lost_total',
      'rtt_seconds',
    ])
      expect(metrics).toContain(`stdio_bus_cluster_${name}`)
    expect([a.hasExited, b.hasExited]).toEqual([false, false])
  })

  test('a node that speaks another version is told of once, and not used', async () => {
    verifies('14.11-incompatible')
    const { nats, a } = await startPair()
    const other = await stranger(nats)
    const word = {
      say: 'here',
      speaks: [7, 9],
      version: '9.0.0',
      run: 5,
      state: 'ready',
      pools: 'another shape',
      later: 1,
    }
    for (let n = 0; n < 3; n++) other.publish('bus.team.all.future', Buffer.from(JSON.stringify(word)))
    await other.flush()
    const nodes = await eventually('it to be seen', async () => {
      const status = JSON.parse((await a.run(['status', '--cluster', '--json', '--control', a.control])).stdout)
      return status.nodes.length === 2 ? status.nodes : undefined
    })
    expect(nodes[0]).toMatchObject({ node: 'future', state: 'incompatible', version: '9.0.0', pools: [] })
    expect(a.log.text.match(/speaks no version/g)).toHaveLength(1)
  })

  test('status tells of the other nodes', async () => {
    verifies('14.10-status')
    const { a, b } = await startPair()
    const client = await a.connect()
    expect(await client.ask(ask(1, { pool: 'echo' }))).toHaveProperty('result')
    const json = async () => JSON.parse((await a.run(['status', '--cluster', '--json', '--control', a.control])).stdout)
    await sleep(600)
    expect(await json()).toMatchObject({
      cluster: 'team',
      node: 'n1',
      nats: { connected: true },
      nodes: [
        {
          node: 'n2',
          state: 'ready',
          version: expect.any(String),
          heard_ms: expect.any(Number),
          rtt_ms: expect.any(Number),
          streams: 1,
          pools: [{ id: 'echo', ready: 1, workers: 1, outstanding: 0, sessions: 0 }],
        },
      ],
    })
    const page = await a.run(['status', '--cluster', '--control', a.control])
    expect(page.stdout).toMatch(/cluster team {2}node n1[\s\S]*n2 +ready[\s\S]*echo 1\/1/)
    b.kill()
    await eventually('it to be lost', async () => (await json()).nodes[0]?.state === 'lost')
    const alone = testWorkspace()
    expect((await runBus(['status', '--cluster', '--control', alone.path('none')], { workspace: alone })).code).toBe(1)
  })
})
