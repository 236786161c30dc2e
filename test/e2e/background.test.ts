/** `start`, `stop`, `restart` and `ls`: a bus in the background, from its first line to its last (contract 8.6). */
import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { connectTo } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { isAlive } from '../support/processes.ts'
import type { Finished } from '../support/run.ts'
import { eventually } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'

interface Row {
  readonly pid: number
  readonly addresses: string[]
  readonly config: string
  readonly log: string
  readonly workers_ready: number
}

function world(content: object = config(pool('echo'))) {
  const workspace = testWorkspace()
  workspace.write('stdio-bus.json', content)
  const run = (...args: string[]): Promise<Finished> => runBus(args, { workspace, timeoutMs: 30_000 })
  return { workspace, run, rows: async () => JSON.parse((await run('ls', '--json')).stdout) as Row[] }
}

function logOf(workspace: Workspace, { log }: Row): string {
  expect(log.startsWith(join(workspace.home, '.stdio-bus'))).toBe(true)
  return readFileSync(log, 'utf8')
}

describe('start', () => {
  test('returns when the bus serves: in the background, with a door and a log of its own', async () => {
    const { workspace, run, rows } = world()
    const done = await run('start')
    expect(done).toMatchObject({ code: 0, stderr: '' })
    const [bus] = await rows()
    expect(done.stdout).toContain(`pid ${bus!.pid}, ${bus!.addresses[0]}`)
    expect(done.stdout).toContain('echo: 1 ready')
    expect(bus).toMatchObject({ config: workspace.path('stdio-bus.json'), workers_ready: 1 })
    expect(await (await connectTo(bus!.addresses[0]!)).ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    expect(logOf(workspace, bus!)).toContain('"msg":"ready"')
    expect(statSync(bus!.log).mode & 0o777).toBe(0o600)
  })

  test('a second time it says what runs, and starts nothing', async () => {
    const { run, rows } = world()
    await run('start')
    const before = await rows()
    expect(await run('start')).toMatchObject({ code: 0, stdout: expect.stringContaining('already') })
    expect(await rows()).toMatchObject([{ pid: before[0]!.pid }])
  })

  test('takes the flags of serve', async () => {
    const { workspace, run, rows } = world()
    const path = workspace.path('own.sock')
    expect((await run('start', '--unix', path, '--log-file', workspace.path('own.log'))).code).toBe(0)
    expect((await rows())[0]).toMatchObject({ addresses: [`unix:${path}`], log: workspace.path('own.log') })
  })

  test('a worker that cannot be started is told of at once', async () => {
    const { run } = world(config({ id: 'gone', command: '/no/such/program' }))
    const done = await run('start')
    expect(done.stdout).toMatch(/gone: 1 (parked|backing_off): .*no\/such\/program/)
  })

  test.each([
    ['no configuration', undefined, 'stdio-bus init'],
    ['a configuration with mistakes', { pools: [{ id: 'a', comand: 'x' }] }, 'comand'],
  ])('%s: exit 2', async (_, content, said) => {
    const workspace = testWorkspace()
    if (content !== undefined) workspace.write('stdio-bus.json', content)
    const done = await runBus(['start'], { workspace })
    expect([done.code, done.stderr]).toEqual([2, expect.stringContaining(said)])
  })

  test('a port in use: exit 1, with what the bus said and where its log is', async () => {
    const { run } = world()
    const server = createServer()
    onTestFinished(() => void server.close())
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
    })
    const done = await run('start', '--tcp', `127.0.0.1:${port}`)
    expect(done.code).toBe(1)
    expect(done.stderr).toContain(String(port))
    expect(done.stderr).toContain('.log')
    expect(done.stderr).not.toContain('"msg"')
  })
})

describe('stop', () => {
  test('returns when the bus and its workers are gone', async () => {
    const { run, rows } = world()
    await run('start')
    const [bus] = await rows()
    const { result } = await (await connectTo(bus!.addresses[0]!)).ask({ id: 1, method: 'm' })
    expect(await run('stop')).toMatchObject({ code: 0, stdout: `stopped: pid ${bus!.pid}\n` })
    expect(isAlive(result.pid)).toBe(false)
    await eventually('the bus to be gone', () => !isAlive(bus!.pid))
    expect(await rows()).toEqual([])
  })

  test('stops one that runs in a terminal too, and what is outstanding is answered', async () => {
    const bus = await startBus({ config: config(pool('slow')), defaultControl: true })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm', params: { ms: 1_800 } })
    await client.taken()
    const stopped = bus.run(['stop'])
    expect(await client.answerTo(1)).toMatchObject({ result: {} })
    expect(await stopped).toMatchObject({ code: 0, stderr: expect.stringContaining('waiting for 1 outstanding') })
    expect(await bus.exit).toEqual({ code: 0, signal: null })
  })

  test('--now does not wait', async () => {
    const bus = await startBus({ config: config(pool('silent')), defaultControl: true })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm' })
    await client.taken()
    expect((await bus.run(['stop', '--now'])).code).toBe(0)
    expect((await bus.exit).code).toBe(1)
  })

  test('nothing to stop: exit 1; several: exit 2 with their names, --all stops them', async () => {
    const { workspace, run, rows } = world()
    expect((await run('stop')).code).toBe(1)
    const [one, other] = ['one.json', 'other.json'].map((name) => workspace.write(name, config(pool('echo'))))
    await run('start', '--config', one!)
    await run('start', '--config', other!)
    const several = await run('stop')
    expect(several.code).toBe(2)
    for (const { pid } of await rows()) expect(several.stderr).toContain(`pid ${pid}`)
    expect((await run('stop', '--config', other!)).code).toBe(0)
    expect(await rows()).toHaveLength(1)
    await run('start', '--config', other!)
    expect((await run('stop', '--all')).stdout.match(/stopped/g)).toHaveLength(2)
    expect(await rows()).toEqual([])
  })

  test('of several the one of this folder is meant, by those who talk to it too', async () => {
    verifies('8.6-folder')
    const { workspace, run, rows } = world({ pools: [{ id: 'here', agent: 'echo' }] })
    const other = workspace.write('other.json', { pools: [{ id: 'there', agent: 'echo' }] })
    await run('start', '--config', other)
    const started = await run('start')
    const [, ...words] = /^Next: (.*)$/m
      .exec(started.stdout)![1]!
      .split(', ')
      .map((command) => command.split(' '))
    expect(words.map(([, name]) => name)).toEqual(['logs', 'chat', 'stop'])
    expect(await run('chat', 'hi')).toMatchObject({ code: 0, stdout: 'You said: hi\n' })
    expect((await run('chat', 'hi', '--pool', 'there')).stderr).toContain('ask one of them with --pool: here')
    expect(await run('chat', 'hi', '--pool', 'there', '--config', other)).toMatchObject({ code: 0 })
    expect((await run('logs')).stdout).toContain('here/0')
    expect((await run('stop')).code).toBe(0)
    expect(await rows()).toMatchObject([{ config: other }])
    await run('stop')
  })
})

describe('restart', () => {
  test('the whole bus: another process at the same door', async () => {
    const { run, rows } = world()
    await run('start', '--log-level', 'debug')
    const [before] = await rows()
    expect((await run('restart')).code).toBe(0)
    const [after] = await rows()
    expect(after).toMatchObject({ addresses: before!.addresses, log: before!.log })
    expect(after!.pid).not.toBe(before!.pid)
    expect(readFileSync(after!.log, 'utf8').match(/"level":"debug".*worker spawned/g)).toHaveLength(2)
  })

  test('with a configuration that no bus would start with: exit 2, and the old one goes on', async () => {
    const { workspace, run, rows } = world()
    await run('start')
    const [before] = await rows()
    workspace.write('stdio-bus.json', '{ "pools": [{ "id": "echo", "agnt": "echo" }] }')
    expect(await run('restart')).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean "agent"?') })
    expect(await rows()).toMatchObject([{ pid: before!.pid, workers_ready: 1 }])
  })

  test('one in the foreground is not taken away: exit 2', async () => {
    const bus = await startBus({ config: config(pool('echo')), defaultControl: true })
    const done = await bus.run(['restart'])
    expect([done.code, done.stderr]).toEqual([2, expect.stringContaining('restart POOL')])
    expect(bus.hasExited).toBe(false)
  })

  test('a pool: new workers at once, the old ones end with their last session', async () => {
    const bus = await startBus({ config: config([pool('echo'), pool('echo', { id: 'other' })]), defaultControl: true })
    const client = await bus.connect()
    const held = await client.ask({ id: 1, method: 'm', pool: 'echo', sessionId: 's' })
    const other = await client.ask({ id: 2, method: 'm', pool: 'other' })
    const done = await bus.run(['restart', 'echo'])
    expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining('1 new worker; 1 old ones end with') })
    expect((await client.ask({ id: 3, method: 'm', pool: 'echo' })).result.pid).not.toBe(held.result.pid)
    expect((await client.ask({ id: 4, method: 'm', sessionId: 's' })).result.pid).toBe(held.result.pid)
    expect((await client.ask({ id: 5, method: 'm', pool: 'other' })).result.pid).toBe(other.result.pid)
    client.close()
    await eventually('the old worker to end', () => !isAlive(held.result.pid))
  })

  test('--now ends the old ones at once, and what they owed is answered', async () => {
    const bus = await startBus({ config: config(pool('silent')), defaultControl: true })
    const client = await bus.connect()
    client.send({ id: 1, method: 'm' })
    await client.taken()
    expect((await bus.run(['restart', 'silent', '--now'])).code).toBe(0)
    expect(await client.answerTo(1)).toMatchObject({ error: { data: { reason: 'worker_exited' } } })
  })

  test('a reload afterwards replaces nobody', async () => {
    const bus = await startBus({ config: config(pool('echo')), defaultControl: true })
    await bus.run(['restart', 'echo'])
    const client = await bus.connect()
    const before = await client.ask({ id: 1, method: 'm' })
    expect((await bus.run(['reload'])).code).toBe(0)
    expect((await client.ask({ id: 2, method: 'm' })).result.pid).toBe(before.result.pid)
  })

  test('a pool that is not there: exit 2 with those that are', async () => {
    const bus = await startBus({ config: config([pool('echo'), pool('slow')]), defaultControl: true })
    const done = await bus.run(['restart', 'coder'])
    expect([done.code, done.stderr]).toEqual([2, 'stdio-bus: no pool "coder": this bus has echo, slow\n'])
  })
})

test('ls: every bus of this user, and nothing is no failure', async () => {
  const { workspace, run } = world()
  expect(await run('ls')).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('stdio-bus start') })
  await run('start')
  await run('start', '--config', workspace.write('other.json', config(pool('echo', { instances: 2 }))))
  const { stdout } = await run('ls')
  expect(stdout).toMatch(/1\/1 ready .*stdio-bus\.json/)
  expect(stdout).toMatch(/2\/2 ready .*other\.json/)
})
