/** Sessions that outlive their clients, the bus and its store, with the official client and agent (contract 12). */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/host/sqlite.ts'
import { verifies } from '../conformance/verifies.ts'
import { startHouse } from '../e2e/access-harness.ts'
import { acpClient, acpPool, errorOf, heardByAgents, initialised } from '../interop/acp-peers.ts'
import { type Bus, startBus, testWorkspace } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'

const KEEP = { sessions: { keep_sec: 600 } }
const counted = (count: number): string => Array.from({ length: count }, (_, n) => `${n} `).join('')

/** Without what the bus says of turns and drivers. */
const spoken = (shown: string): string => shown.replace(/session_info_update/g, '')

function startKept(pool: object = {}, more: object = {}, workspace?: Workspace): Promise<Bus> {
  const file = { ...config(acpPool({ ...KEEP, ...pool })), store: { path: 'store.db' }, ...more }
  return startBus({ config: file, ...(workspace === undefined ? {} : { workspace }) })
}

test.each(['shared', 'isolated'])(
  '%s: a client goes in mid-turn, and the next one has everything, once',
  async (sharing) => {
    verifies('12.3-detached', '12.12-seam')
    const bus = await startKept({ sharing })
    const [first] = await initialised(bus, 1)
    const session = await first!.newSession()
    void first!.prompt(session, 'drip 30').catch(() => {})
    await eventually('some words', () => first!.shown(session).includes('5 ') || undefined)
    first!.leave()
    const [second] = await initialised(bus, 1)
    await second!.load(session)
    await eventually('the rest', () => second!.shown(session).includes('29 ') || undefined)
    expect(spoken(second!.shown(session))).toBe(`drip 30${counted(30)}`)
    expect(heardByAgents(bus).filter(({ method }) => method === 'session/load')).toEqual([])
    const { kept_sessions: kept } = (await bus.status()) as unknown as { kept_sessions: object }
    expect(kept).toMatchObject({ state: 'ok', kept: 1, detached: 0, dropped: 0 })
  },
)

test('a hundred clients come and go in mid-turn: nothing is missing or doubled, and the agent is asked for nothing', async () => {
  verifies('12.12-seam', '12.12-not-asked')
  const bus = await startKept()
  const [first] = await initialised(bus, 1)
  const session = await first!.newSession()
  void first!.prompt(session, 'drip 100').catch(() => {})
  for (let round = 0; round < 20; round++) {
    const clients = await initialised(bus, 5)
    await Promise.all(clients.map((client) => client.load(session)))
    for (const client of clients) {
      const shown = spoken(client.shown(session))
      expect(`drip 100${counted(100)}`.startsWith(shown) || shown === '').toBe(true)
      client.leave()
    }
  }
  const [last] = await initialised(bus, 1)
  await last!.load(session)
  await eventually('the end', () => last!.shown(session).includes('99 ') || undefined)
  expect(spoken(last!.shown(session))).toBe(`drip 100${counted(100)}`)
  expect(heardByAgents(bus).some(({ method }) => /load|cancel|close/.test(method))).toBe(false)
})

/** Of the journal. */
interface Run {
  readonly seq: number
  readonly count: number
}

describe('the bus is restarted', () => {
  async function restarted(signal: NodeJS.Signals, pool: object = {}): Promise<{ bus: Bus; session: string }> {
    const workspace = testWorkspace()
    const before = await startKept(pool, {}, workspace)
    const [client] = await initialised(before, 1)
    const session = await client!.newSession()
    await client!.prompt(session, 'burst 300')
    if (signal === 'SIGKILL') await new Promise((resolve) => setTimeout(resolve, 1_000))
    await before.stop(signal)
    return { bus: await startKept(pool, {}, workspace), session }
  }

  test.each(['SIGTERM', 'SIGKILL'] as const)('%s loses nothing that was said', async (signal) => {
    verifies('12.10-restart', '12.9-store')
    const { bus, session } = await restarted(signal)
    const [client] = await initialised(bus, 1)
    const { sessions } = await client!.ctx.request('session/list', {})
    const listed = sessions.find(({ sessionId }) => sessionId === session)!
    expect(listed).toMatchObject({
      title: 'burst 300',
      _meta: { 'stdio-bus/session': { state: 'stored', clients: 0 } },
    })
    await client!.load(session)
    expect(client!.shown(session)).toMatch(new RegExp(`^burst 300${counted(300)}This is what was said\\..*lost`))
    expect(await errorOf(client!.prompt(session, 'echo x'))).toMatchObject({
      code: -32002,
      data: { reason: 'session_lost' },
    })
    expect(statSync(bus.workspace.path('store.db')).mode & 0o777).toBe(0o600)
  })

  test('what was deleted is gone', async () => {
    verifies('12.5-delete')
    const { bus, session } = await restarted('SIGTERM')
    const client = await bus.connect()
    const end = { jsonrpc: '2.0', id: 1, method: 'bus::sessions.end', params: { session, delete: true } }
    expect(await client.ask(end)).toMatchObject({ result: {} })
    await bus.stop()
    const again = await startKept({}, {}, bus.workspace)
    const [next] = await initialised(again, 1)
    expect(await errorOf(next!.load(session))).toMatchObject({ code: -32002 })
  })

  test('in memory only nothing is written', async () => {
    verifies('12.1-memory')
    const { bus, session } = await restarted('SIGTERM', { sessions: { keep_sec: 600, journal: false } })
    const [client] = await initialised(bus, 1)
    expect(await errorOf(client!.load(session))).toMatchObject({ code: -32002 })
    expect(() => statSync(bus.workspace.path('store.db'))).toThrow()
  })
})

describe('a store that fails', () => {
  test('sessions go on in memory, and status says so', async () => {
    verifies('12.10-failing')
    const workspace = testWorkspace()
    mkdirSync(workspace.path('store.db'))
    const bus = await startKept({}, {}, workspace)
    const [first] = await initialised(bus, 1)
    const session = await first!.newSession()
    await first!.prompt(session, 'echo kept in memory')
    first!.leave()
    const second = await acpClient(bus)
    await second.initialize()
    await second.load(session)
    expect(second.shown(session)).toContain('kept in memory')
    expect(await bus.status()).toMatchObject({ kept_sessions: { state: 'failed' } })
  })

  test('a file that is no store is left alone', async () => {
    const workspace = testWorkspace()
    writeFileSync(workspace.path('store.db'), 'my diary')
    chmodSync(workspace.path('store.db'), 0o600)
    const bus = await startKept({}, {}, workspace)
    expect(await bus.status()).toMatchObject({ kept_sessions: { state: 'failed' } })
    await bus.stop()
    expect(workspace.read('store.db')).toBe('my diary')
  })
})

describe('a file that others have changed', () => {
  /** A session that was said something in, in the file of a bus that has ended. */
  async function written(): Promise<{ workspace: Workspace; session: string }> {
    const workspace = testWorkspace()
    const bus = await startKept({}, {}, workspace)
    const [client] = await initialised(bus, 1)
    const session = await client!.newSession()
    await client!.prompt(session, 'burst 2000')
    await bus.stop()
    return { workspace, session }
  }

  async function edit(workspace: Workspace, sql: string): Promise<void> {
    const db = await openDatabase(workspace.path('store.db'))
    db.exec(sql)
    db.close()
  }

  /** A line that is none, a run that is gone, one that is no bytes, and one of unknown kinds; what is missing then. */
  async function spoilRuns(workspace: Workspace): Promise<[number, number][]> {
    const db = await openDatabase(workspace.path('store.db'))
    const sql = 'SELECT seq, length(kinds) AS count FROM journal_runs WHERE length(kinds) > 20 ORDER BY seq'
    const runs = db.prepare(sql).all() as Run[]
    const [torn, gone, odd, number] = [runs[0]!, runs[1]!, runs[2]!, runs[3]!]
    const { lines } = db.prepare('SELECT lines FROM journal_runs WHERE seq = ?').get(torn.seq) as { lines: Uint8Array }
    const texts = Buffer.from(lines).toString().split('\n')
    texts[9] = '{"half'
    db.prepare('UPDATE journal_runs SET lines = ? WHERE seq = ?').run(Buffer.from(texts.join('\n')), torn.seq)
    db.prepare('DELETE FROM journal_runs WHERE seq = ?').run(gone.seq)
    db.prepare("UPDATE journal_runs SET kinds = replace(kinds, '0', 'x'), at = 'y' WHERE seq = ?").run(odd.seq)
    db.prepare('UPDATE journal_runs SET lines = 7 WHERE seq = ?').run(number.seq)
    db.close()
    const whole = ({ seq, count }: Run): [number, number] => [seq, seq + count - 1]
    return [[torn.seq + 9, torn.seq + 9], whole(gone), whole(number)]
  }

  test('lines that are gone or no lines are left out, and those who count hear of it', async () => {
    verifies('12.11-edited')
    const { workspace, session } = await written()
    const expected = await spoilRuns(workspace)
    await edit(workspace, `       UPDATE journal_sessions SET answer = '{"not": json', title = x'ff00'`)
    const bus = await startKept({}, {}, workspace)
    const [client] = await initialised(bus, 1)
    await client!.load(session)
    expect(client!.shown(session)).toMatch(/1999 This is what was said/)
    const { stdout, code } = await bus.run(['sessions', 'tail', session, '--from', '1', '--json'])
    expect(code).toBe(0)
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const gaps = lines.filter(({ params }) => params.kind === 'gap').map(({ params }) => [params.from, params.to])
    expect(gaps).toEqual(expected)
    let next = 1
    for (const { seq, params } of lines) {
      expect(params.kind === 'gap' ? params.from : seq).toBe(next)
      next = seq + 1
    }
  })

  test.each([
    'seq = -5',
    "seq = 'many', first_seq = 'few'",
    'seq = 1e300, bytes = -1',
    'first_seq = 9e15',
    "updated_at = 'soon', created_at = -9e300",
    "session = '', pool = 'gone', principal = x'00'",
    "key = 'nobody'",
  ])('a row with %s ends nothing', async (change) => {
    verifies('12.11-edited')
    const { workspace, session } = await written()
    await edit(workspace, `UPDATE journal_sessions SET ${change}`)
    const bus = await startKept({}, {}, workspace)
    const [client] = await initialised(bus, 1)
    await client!.load(session).catch(() => {})
    expect((await bus.run(['sessions', 'ls', '--json'])).code).toBe(0)
    await bus.run(['sessions', 'tail', session, '--from', '1'])
    await client!.list()
    const next = await client!.newSession()
    await client!.prompt(next, 'echo still here')
    expect(client!.shown(next)).toContain('still here')
  })

  test.each([0.9, 0.5, 0.02])('a file cut to %d of its length ends nothing', async (share) => {
    verifies('12.11-edited')
    const { workspace, session } = await written()
    const path = workspace.path('store.db')
    truncateSync(path, Math.floor(statSync(path).size * share))
    const bus = await startKept({}, {}, workspace)
    const [client] = await initialised(bus, 1)
    await client!.load(session).catch(() => {})
    const next = await client!.newSession()
    await client!.prompt(next, 'echo still here')
    expect(client!.shown(next)).toContain('still here')
    client!.leave()
    const [other] = await initialised(bus, 1)
    await other!.load(next)
    expect(spoken(other!.shown(next))).toBe('echo still herestill here')
  })
})

test('a full disk costs nobody a line', async () => {
  verifies('12.10-full-disk')
  const bus = await startKept()
  const [first] = await initialised(bus, 1)
  const session = await first!.newSession()
  // A limit on the size of files stands for the disk.
  execFileSync('prlimit', ['--pid', String(bus.pid), '--fsize=200000:unlimited'])
  await first!.prompt(session, 'burst 3000')
  await eventually('the store to fail', async () => {
    const { kept_sessions: kept } = (await bus.status()) as unknown as { kept_sessions: { state: string } }
    return kept.state === 'failed' || undefined
  })
  await first!.prompt(session, 'burst 10')
  const [second] = await initialised(bus, 1)
  await second!.load(session)
  expect(spoken(second!.shown(session))).toBe(`burst 3000${counted(3_000)}burst 10${counted(10)}`)
})

test.each([
  ['store', { store: { path: 'mine.db' } }, false],
  ['aio.store', { store: undefined, aio: { store: { path: 'mine.db' } } }, true],
])('%s says where what is said is kept; only the second switches calls by name on', async (_key, more, hasAio) => {
  verifies('12.9-spelling')
  const bus = await startKept({}, more)
  const [client] = await initialised(bus, 1)
  const session = await client!.newSession()
  await client!.prompt(session, 'echo x')
  const caller = await bus.connect()
  const answer = await caller.ask({ jsonrpc: '2.0', id: 1, method: 'bus::help' })
  expect(answer.error?.data.reason).toBe(hasAio ? undefined : 'unknown_method')
  await bus.stop()
  expect(statSync(bus.workspace.path('mine.db')).mode & 0o777).toBe(0o600)
  const again = await startKept({}, more, bus.workspace)
  const [next] = await initialised(again, 1)
  expect(await next!.list()).toContain(session)
})

test('what is done to sessions is in the audit log, whoever does it', async () => {
  verifies('12.20-audited', '12.20-roles')
  const pools = [acpPool({ protocol: 'acp', ...KEEP })]
  const principals = { anna: {}, root: { role: 'admin' }, ben: {} }
  const more = { store: { path: 'store.db' } }
  const house = await startHouse({ principals, pools, access: { audit: 'audit.log' }, more })
  const anna = await house.enter('anna', { pool: 'agent' })
  await anna.ask({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } })
  const made = { jsonrpc: '2.0', id: 2, method: 'session/new', params: { cwd: '/', mcpServers: [] } }
  const session = (await anna.ask(made)).result.sessionId
  const [root, ben] = [await house.enter('root'), await house.enter('ben')]
  const attach = { jsonrpc: '2.0', id: 3, method: 'bus::sessions.attach', params: { session, role: 'drive' } }
  expect(await ben.ask(attach)).toMatchObject({ error: { code: -32002, data: { reason: 'unknown_session' } } })
  expect(await root.ask(attach)).toMatchObject({ result: { session, role: 'drive' } })
  expect(await root.ask({ ...attach, method: 'bus::sessions.end' })).toMatchObject({ result: {} })
  const method = 'bus::sessions.attach'
  await house.audited({ event: 'call', principal: 'root', method, outcome: 'ok' })
  await house.audited({ event: 'call', principal: 'root', method: 'bus::sessions.end', outcome: 'ok' })
  const refused = house.audit().find((line) => line.principal === 'ben' && line.method === method)
  expect(refused).toMatchObject({ outcome: 'refused', reason: 'unknown_session' })
})
