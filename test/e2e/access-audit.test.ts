/** What is left of it: audit lines, recordings, and no secret in any of them (contract 9.15, 9.23, 9.25, 9.26). */
import { chmodSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { digestOf, makeToken } from '../../src/access/token.ts'
import { verifies } from '../conformance/verifies.ts'
import { call, DONE, mcpPool, shakeHands } from '../interop/mcp-peers.ts'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { House, NOT_ALLOWED, STRANGE, startHouse, UNKNOWN } from './access-harness.ts'

const CALL = { jsonrpc: '2.0', id: 1, method: 'm' }
const PAYLOAD = 'what-nobody-else-may-read'

/** Every file below the folder, as one text. */
function everythingIn(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(`${entry.parentPath}/${entry.name}`, 'latin1'))
    .join('\n')
}

describe('9.23 audit lines', () => {
  test('9.23 name the trace of what is traced: calls of agents, and requests to a pool', async () => {
    verifies('9.23-events', '9.24-caller')
    const house = await startHouse({
      principals: { alice: {} },
      pools: [pool('echo'), mcpPool('puppet', { trace: true })],
      access: { audit: 'audit.log' },
      more: { aio: {} },
    })
    const caller = await house.enter('alice')
    await caller.ask({ jsonrpc: '2.0', id: 1, method: 'echo::hi', params: {} })
    await caller.ask({ jsonrpc: '2.0', id: 2, method: 'echo::ho', params: {}, trace_id: 'mine' })
    const user = await house.enter('alice', { pool: 'puppet' })
    await shakeHands(user)
    await user.ask(call(3, [DONE]))
    const traceOf = async (method: string) => (await house.audited({ event: 'call', method })).trace_id
    const listed = await house.bus.run(['trace', 'ls', '--caller', 'alice', '--json', '--control', house.bus.control])
    const ids = [await traceOf('echo::hi'), await traceOf('echo::ho'), await traceOf('tools/call')]
    expect(ids[1]).toBe('mine')
    for (const id of ids) expect(listed.stdout).toContain(JSON.stringify(id))
    expect((await house.audited({ event: 'open' })).trace_id).toBeNull()
  })

  test('9.23 tell who came, what was done, denied and refused, and who went; and hold no secret', async () => {
    verifies('9.23-events', '9.26-nowhere', '9.25-written')
    const house = await startHouse({
      principals: { alice: { pools: ['echo', 'dies-on-request'], tools: { allow: ['read_*'] } }, bob: {} },
      pools: [pool('echo'), pool('dies-on-request')],
      access: { audit: 'audit.log' },
      args: ['--log-level', 'debug'],
      more: { aio: {} },
    })
    const alice = await house.enter('alice', { pool: 'echo' })
    await alice.ask({ ...CALL, params: { PAYLOAD } })
    await alice.ask({ ...CALL, method: 'tools/call', params: { name: 'read_it', arguments: { PAYLOAD } } })
    expect(await alice.ask({ ...CALL, method: 'tools/call', params: { name: 'rm', PAYLOAD } })).toMatchObject(
      NOT_ALLOWED,
    )
    await house.present(STRANGE)
    const who = {
      principal: 'alice',
      via: 'token',
      credential: digestOf(house.tokens['alice']!).slice(0, 8),
      door: 'tcp',
    }
    expect(await house.audited({ event: 'open' })).toMatchObject({ ...who, outcome: 'ok', client: expect.any(Number) })
    const done = await house.audited({ event: 'call', method: 'm' })
    expect(done).toMatchObject({ ...who, pool: 'echo', outcome: 'ok', duration_ms: expect.any(Number) })
    expect(done.peer).toMatch(/^127\.0\.0\.1:\d+$/)
    expect(await house.audited({ event: 'call', tool: 'read_it' })).toMatchObject({ ...who, method: 'tools/call' })
    const denied = { ...who, tool: 'rm', outcome: 'denied', reason: 'not_allowed' }
    expect(await house.audited({ event: 'denied' })).toMatchObject(denied)
    const refused = { principal: null, outcome: 'refused', reason: 'unauthenticated' }
    expect(await house.audited({ event: 'refused' })).toMatchObject(refused)
    const gone = await house.enter('bob')
    gone.close()
    expect(await house.audited({ event: 'close' })).toMatchObject({ principal: 'bob' })
    await house.change((rows) => rows.delete('alice'))
    await alice.untilClosed()
    expect(await house.audited({ event: 'access' })).toMatchObject({ outcome: 'ok' })
    expect(await house.audited({ event: 'close', principal: 'alice' })).toMatchObject(who)
    await house.bus.run(['reload', '--control', house.bus.control])
    await house.audited({ event: 'reload', outcome: 'ok' })
    expect(statSync(house.workspace.path('audit.log')).mode & 0o777).toBe(0o600)
    const status = JSON.stringify(await house.bus.status())
    for (const secret of [STRANGE, ...Object.values(house.tokens)])
      for (const place of [house.bus.log.text, status, everythingIn(house.workspace.folder)])
        expect(place).not.toContain(secret.slice(5, 40))
    for (const place of [house.bus.log.text, status, house.workspace.read('audit.log')])
      expect(place).not.toContain(PAYLOAD)
  })

  test('9.23 it is opened anew on SIGHUP, also where the configuration is refused, and on reload', async () => {
    verifies('9.23-reopened')
    const house = await startHouse({ access: { audit: 'audit.log' } })
    const file = house.workspace.path('audit.log')
    const client = await house.enter('alice')
    for (const [round, isGood] of [true, false].entries()) {
      await client.ask({ ...CALL, method: `before-${round}` })
      await house.audited({ event: 'call', method: `before-${round}` })
      renameSync(file, `${file}.${round}`)
      if (!isGood) house.workspace.write('bus.json', '{"pools":5}')
      house.bus.signal('SIGHUP')
      await eventually('a new audit log', () => house.workspace.read('audit.log') !== '' || statOf(file))
      await client.ask({ ...CALL, method: `after-${round}` })
      await house.audited({ event: 'call', method: `after-${round}` })
      expect(house.workspace.read(`audit.log.${round}`)).not.toContain(`after-${round}`)
    }
  })

  test('9.23 one that is required and cannot be written lets no request go on; status says so', async () => {
    verifies('9.23-required')
    const workspace = testWorkspace()
    const house = new House(workspace, { alice: {} })
    const access = { file: 'access.json', audit: { file: 'no-such-folder/audit.log', required: true } }
    const file = config(pool('echo'), {}, { access })
    house.bus = await startBus({ config: file, doors: ['tcp'], workspace })
    const client = await house.enter('alice')
    const refused = { error: { code: -32603, data: { reason: 'audit_unavailable' } } }
    expect(await client.ask(CALL)).toMatchObject(refused)
    expect(await house.bus.status()).toMatchObject({ access: { audit: { state: 'failed' } } })
    const shown = await house.bus.run(['status', '--control', house.bus.control])
    expect(shown.stdout).toMatch(/audit failed/)
    workspace.write('bus.json', { ...file, access: { ...access, audit: { file: 'audit.log', required: true } } })
    await house.bus.run(['reload', '--control', house.bus.control])
    await eventually('requests to be served', async () => (await client.ask(CALL)).result !== undefined)
  })

  test('9.23 it goes to stdout where nobody is served there, and is refused where somebody is', async () => {
    verifies('9.23-stdout')
    const house = await startHouse({ access: { audit: '/dev/stdout' } })
    const told: string[] = []
    house.bus.child.stdout!.on('data', (chunk) => told.push(String(chunk)))
    await house.enter('alice')
    await eventually('an audit line on stdout', () => told.join('').includes('"event":"open"'))
    const workspace = testWorkspace()
    new House(workspace, { alice: {} })
    for (const audit of ['/dev/stdout', '/proc/self/fd/1', { file: '/dev/fd/1', required: true }]) {
      const file = workspace.write('bus.json', config(pool('echo'), {}, { access: { file: 'access.json', audit } }))
      const done = await runBus(['--config', file, '--stdio'], { workspace })
      expect(done).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('stdout') })
    }
  })

  test('9.25 of many refusals 10 lines a second are written, and the rest are counted', async () => {
    verifies('9.25-written')
    const house = await startHouse({ access: { audit: 'audit.log' } })
    const began = performance.now()
    const knock = async () => {
      const client = await house.knock()
      client.send(CALL)
      expect(await client.untilClosed()).toMatchObject([UNKNOWN])
    }
    for (let n = 0; n < 10; n++) await Promise.all(Array.from({ length: 20 }, knock))
    const seconds = Math.ceil((performance.now() - began) / 1_000) + 1
    const turned = () => house.bus.log.lines.filter(({ text }) => text.includes('turned away'))
    const counted = () => turned().reduce((sum, { fields }) => sum + Number(fields['unwritten'] ?? 0), 0)
    const lines = () => turned().filter(({ text }) => text.includes('a client was turned away')).length
    await eventually('all to be told of', () => lines() + counted() === 200)
    expect(lines()).toBeLessThanOrEqual(10 * seconds)
    expect(house.audit().filter(({ event }) => event === 'refused').length).toBeLessThanOrEqual(10 * seconds)
  })
})

function statOf(file: string): boolean {
  try {
    return statSync(file).isFile()
  } catch {
    return false
  }
}

describe('9.15 recordings', () => {
  test('9.15 hold no credential, and replay to the same decisions', async () => {
    verifies('9.15-recording')
    const house = await startHouse({
      principals: { alice: {}, bob: {} },
      access: { audit: 'audit.log' },
      args: ['--record', 'night.ndjson'],
    })
    const client = await house.enter('alice', {}, 'tcp')
    await client.ask(CALL)
    for (const [id, token] of [house.tokens['alice'], house.tokens['bob'], STRANGE].entries())
      await client.ask({ id, method: 'bus::open', params: { token } })
    const cut = await house.knock()
    cut.sendRaw(`{"id":1,"method":"bus::open","params":{"token":"${house.tokens['bob']}`)
    cut.endWriting()
    await cut.untilClosed()
    await house.present(STRANGE)
    await house.change((rows) => rows.delete('alice'))
    await client.untilClosed()
    expect((await house.bus.stop()).code).toBe(0)
    const text = house.workspace.read('night.ndjson')
    const whole = text + [...text.matchAll(/"([A-Za-z0-9+/=]{16,})"/g)].map(([, base64]) => atob64(base64!)).join('\n')
    for (const secret of [STRANGE, ...Object.values(house.tokens)]) expect(whole).not.toContain(secret.slice(5, 30))
    const replayed = await house.bus.run(['replay', 'night.ndjson'])
    expect(replayed).toMatchObject({ code: 0, stdout: expect.stringMatching(/the same/) })
  })

  test('9.15 with payloads and access exclude each other, at start and at a reload', async () => {
    verifies('9.15-recording')
    const workspace = testWorkspace()
    new House(workspace, { alice: {} })
    const open = config(pool('echo'))
    const closed = { ...open, access: { file: 'access.json' } }
    const file = workspace.write('bus.json', closed)
    const flags = ['--record', 'night.ndjson', '--record-payloads']
    const done = await runBus(['--config', file, ...flags], { workspace })
    expect(done).toMatchObject({ code: 2, stderr: expect.stringContaining('--record-payloads') })
    const bus = await startBus({ config: open, args: flags, workspace })
    workspace.write('bus.json', closed)
    const reload = await bus.run(['reload', '--control', bus.control])
    expect(reload).toMatchObject({ code: 1, stderr: expect.stringContaining('records payloads') })
  })
})

function atob64(text: string): string {
  return Buffer.from(text, 'base64').toString('latin1')
}

describe('9.26 secrets', () => {
  test('9.26 connect with a token that was revoked ends at once, and says nothing of it', async () => {
    verifies('9.16-refused', '9.26-nowhere')
    const house = await startHouse({ principals: { alice: {}, bob: {} } })
    await house.change((rows) => rows.delete('bob'))
    const at = house.bus.addresses[0]!.replace('tcp:', '')
    const file = house.workspace.write('token', house.tokens['bob']!)
    chmodSync(file, 0o600)
    for (const [args, env] of [
      [['--token-file', file], {}],
      [[], { STDIO_BUS_TOKEN: house.tokens['bob']! }],
      [[], { STDIO_BUS_TOKEN: makeToken() }],
    ] as const) {
      const done = await house.bus.run(['connect', '--tcp', at, ...args], env)
      expect(done.code).toBe(1)
      expect(done.stderr + done.stdout).not.toContain(house.tokens['bob']!.slice(5, 30))
      expect(done.stderr).toMatch(/refuse/)
    }
    expect(house.bus.log.text).not.toContain(house.tokens['bob']!.slice(5, 30))
  })

  test('9.26 no worker inherits STDIO_BUS_TOKEN of the bus', async () => {
    verifies('9.26-token-variable')
    const bus = await startBus({ config: config(pool('prints-env')), env: { STDIO_BUS_TOKEN: STRANGE } })
    const answer = await (await bus.connect()).ask(CALL)
    expect(JSON.stringify(answer)).not.toContain(STRANGE)
  })
})
