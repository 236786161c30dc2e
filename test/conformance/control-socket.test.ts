/** Clause 8.6: the control socket, who finds it, and whose files are removed. */
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { launch, runBus, startBus, testWorkspace } from '../support/bus.ts'
import { connectUnix } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { within } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const ECHO = config(pool('echo'))

function sockets(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isSocket())
}

describe('where it is', () => {
  test('8.6 --control PATH, mode 0600', async () => {
    verifies('8.6-control')
    const bus = await startBus({ config: ECHO })
    expect(statSync(bus.control).isSocket()).toBe(true)
    expect(statSync(bus.control).mode & 0o777).toBe(0o600)
    expect(await bus.status()).toMatchObject({ clients: 0, sessions: 0, outstanding: 0, queue_bytes: 0 })
  })

  test('8.6 by default under ~/.stdio-bus/, mode 0600, gone at the end', async () => {
    verifies('8.6-default', '8.6-ours')
    const workspace = testWorkspace()
    const bus = await launch({ config: ECHO, defaultControl: true }, workspace)
    const found = sockets(join(workspace.home, '.stdio-bus'))
    expect(found).toHaveLength(1)
    expect(statSync(found[0]!).mode & 0o777).toBe(0o600)
    expect((await bus.stop()).code).toBe(0)
    expect(sockets(join(workspace.home, '.stdio-bus'))).toEqual([])
  })
})

describe('who finds it', () => {
  test('8.6 status and reload find the only running bus by themselves', async () => {
    verifies('8.6-finds')
    const bus = await startBus({ config: ECHO, defaultControl: true })
    const status = await bus.run(['status', '--json'])
    expect(status.code).toBe(0)
    expect(JSON.parse(status.stdout)).toMatchObject({ workers: [{ pool: 'echo' }] })
    expect((await bus.run(['reload'])).code).toBe(0)
  })

  test("8.6 status takes the bus's --unix PATH", async () => {
    verifies('8.6-finds')
    const bus = await startBus({ config: ECHO, defaultControl: true })
    const status = await bus.run(['status', '--json', '--unix', bus.workspace.path('bus.sock')])
    expect(status.code).toBe(0)
    expect(JSON.parse(status.stdout)).toMatchObject({ workers: [{ pool: 'echo' }] })
  })

  test('8.6 with two running status shows both, and what is meant for one asks which', async () => {
    verifies('8.6-finds')
    const workspace = testWorkspace()
    await launch({ config: ECHO, defaultControl: true }, workspace)
    await launch({ config: ECHO, defaultControl: true, doors: ['tcp'] }, workspace)
    const both = await runBus(['status', '--json'], { workspace })
    expect(JSON.parse(both.stdout)).toHaveLength(2)
    const done = await runBus(['reload'], { workspace })
    expect(done.code).toBe(2)
    expect(done.stderr).toContain('--control')
  })

  test('8.6 a bus that was killed is not taken for a running one', async () => {
    verifies('8.6-finds', '8.6-stale')
    const workspace = testWorkspace()
    const killed = await launch({ config: ECHO, defaultControl: true }, workspace)
    killed.kill()
    await killed.exit
    const running = await launch({ config: ECHO, defaultControl: true }, workspace)
    const status = await running.run(['status', '--json'])
    expect(JSON.parse(status.stdout)).toMatchObject({ workers: [{ pool: 'echo' }] })
  })
})

describe('status', () => {
  test('8.6 status says what there is', async () => {
    verifies('8.6-control', '6.1-outstanding')
    const bus = await startBus({ config: config([pool('slow'), pool('echo', { instances: 2 })]) })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'm', sessionId: 's', pool: 'echo' })
    client.send({ id: 2, method: 'm', sessionId: 't', pool: 'slow', params: { ms: 3_000 } })
    await client.ask({ id: 3, method: 'm', pool: 'nowhere' })
    const status = await bus.statusWhere('one is outstanding', ({ outstanding }) => outstanding === 1)
    expect(status).toMatchObject({ clients: 1, sessions: 2, dropped: {}, refused: { unknown_pool: 1 } })
    expect(status.workers.map((each) => each.sessions).sort()).toEqual([0, 1, 1])
    for (const worker of status.workers) expect(worker).toMatchObject({ state: 'ready', restarts: 0, queue_bytes: 0 })
  })

  test('8.6 status without --json is for people, --metrics for Prometheus', async () => {
    verifies('8.6-control')
    const bus = await startBus({ config: ECHO })
    const people = await bus.run(['status', '--control', bus.control])
    expect([people.code, people.stdout]).toEqual([0, expect.stringContaining('echo')])
    const metrics = await bus.run(['status', '--metrics', '--control', bus.control])
    expect(metrics.code).toBe(0)
    expect(metrics.stdout).toMatch(/^# TYPE \w+ (gauge|counter)$/m)
    for (const line of metrics.stdout.split('\n').filter((each) => each !== '' && !each.startsWith('#'))) {
      expect(line).toMatch(/^[a-z_]+(\{[^}]*\})? -?\d+(\.\d+)?$/)
    }
  })
})

describe('whose files', () => {
  test('8.6 a stale socket is replaced', async () => {
    verifies('8.6-stale')
    const workspace = testWorkspace()
    const killed = await launch({ config: ECHO }, workspace)
    killed.kill()
    await killed.exit
    expect(existsSync(workspace.path('bus.sock'))).toBe(true)
    const bus = await launch({ config: ECHO }, workspace)
    expect(await (await bus.connect()).ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    expect(await bus.status()).toMatchObject({ clients: 1 })
  })

  test('8.6 of several that start at once over a stale socket exactly one serves', async () => {
    verifies('8.6-stale')
    const workspace = testWorkspace()
    const killed = await launch({ config: ECHO }, workspace)
    killed.kill()
    await killed.exit
    const starts = await Promise.all(
      Array.from({ length: 4 }, (_, n) => {
        const args = ['--control', workspace.path(`c${n}.sock`)]
        return launch({ config: ECHO, unready: true, args }, workspace)
      }),
    )
    const ended = await within(
      15_000,
      'three of four to give up',
      new Promise<number[]>((resolve) => {
        const codes: number[] = []
        for (const each of starts) each.exit.then(({ code }) => codes.push(code ?? -1) === 3 && resolve(codes))
      }),
    )
    expect(ended).toEqual([1, 1, 1])
    expect(await (await connectUnix(workspace.path('bus.sock'))).ask({ id: 1, method: 'm' })).toMatchObject({
      result: {},
    })
  }, 30_000)

  test('8.6 a socket that somebody else has put there meanwhile is left alone', async () => {
    verifies('8.6-ours')
    const workspace = testWorkspace()
    const first = await launch({ config: ECHO, args: ['--control', workspace.path('c1.sock')] }, workspace)
    rmSync(workspace.path('bus.sock'))
    await launch({ config: ECHO, args: ['--control', workspace.path('c2.sock')] }, workspace)
    expect((await first.stop()).code).toBe(0)
    const client = await connectUnix(workspace.path('bus.sock'))
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
  })
})
