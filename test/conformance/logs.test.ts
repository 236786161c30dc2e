/** Clause 8.5: where the log goes, what it looks like, and what is never in it. */
import { spawn } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { busCommand, busEnv, runBus, startBus, testWorkspace } from '../support/bus.ts'
import { levelOf } from '../support/bus-log.ts'
import { connectUnix } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { eventually, sleep } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const ECHO = config(pool('echo'))

describe('form', () => {
  test('8.5 every line is JSON when stderr is no terminal', async () => {
    verifies('8.5-form', '8.5-stderr')
    const bus = await startBus({ config: config(pool('stderr-noise')), args: ['--log-level', 'debug'] })
    await (await bus.connect()).ask({ id: 1, method: 'm', params: { lines: 3 } })
    await bus.stop()
    expect(bus.log.lines.length).toBeGreaterThan(1)
    for (const line of bus.log.lines) expect(line.fields).toMatchObject({ msg: expect.any(String) })
  })

  test('8.5 nothing of the log is on stdout', async () => {
    verifies('8.5-stderr')
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', config(pool('stderr-noise')))
    const args = ['--config', file, '--log-level', 'debug']
    const done = await runBus(args, { workspace, stdin: '{"id":1,"method":"m"}\n' })
    expect(done.code).toBe(0)
    expect(
      done.stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).id),
    ).toEqual([1])
    expect(done.stderr).toContain('noise')
  })

  test('8.5 lines are for people on a terminal', async () => {
    verifies('8.5-form')
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', ECHO)
    const [command, first] = busCommand()
    const line = [command, ...first, '--config', file, '--unix', workspace.path('bus.sock')]
      .map((each) => `'${each}'`)
      .join(' ')
    const child = spawn('script', ['-qefc', line, '/dev/null'], {
      cwd: workspace.folder,
      env: busEnv(workspace),
      stdio: 'pipe',
    })
    workspace.owns(child.pid)
    let seen = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (seen += chunk))
    const lines = () => seen.split(/\r?\n/)
    const ready = await eventually('ready on the terminal', () => lines().find((each) => /ready.*bus\.sock/.test(each)))
    expect(ready).not.toMatch(/^\s*\{/)
  })
})

describe('level', () => {
  test('8.5 --log-level hides what is below', async () => {
    verifies('8.5-level')
    const bus = await startBus({ config: config(pool('prints-junk')), args: ['--log-level', 'error'], unready: true })
    const connected = () => connectUnix(bus.workspace.path('bus.sock')).catch(() => undefined)
    const client = await eventually('the door to open', connected)
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    expect(bus.log.lines.filter((line) => levelOf(line) < 50)).toEqual([])
  })

  test('8.5 debug shows more than info', async () => {
    verifies('8.5-level')
    const [quiet, loud] = [
      await startBus({ config: ECHO }),
      await startBus({ config: ECHO, args: ['--log-level', 'debug'] }),
    ]
    for (const bus of [quiet, loud]) await (await bus.connect()).ask({ id: 1, method: 'm' })
    await eventually('a debug line', () => loud.log.lines.some((line) => levelOf(line) === 20))
    expect(quiet.log.lines.some((line) => levelOf(line) < 30)).toBe(false)
  })

  test('8.5 no line per message at the default level', async () => {
    verifies('8.5-quiet')
    const bus = await startBus({ config: ECHO })
    const client = await bus.connect()
    await client.ask({ id: 0, method: 'm' })
    await sleep(100)
    const before = bus.log.lines.length
    for (let id = 1; id <= 200; id++) client.send({ id, method: 'm', sessionId: `s${id}` })
    await client.take(200)
    await sleep(100)
    expect(bus.log.lines.length - before).toBeLessThan(5)
  })

  test('8.5 warnings are rate-limited', async () => {
    verifies('8.5-rate')
    const bus = await startBus({ config: config(pool('prints-junk')) })
    const client = await bus.connect()
    for (let id = 1; id <= 500; id++) client.send({ id, method: 'm' })
    await client.take(500, 10_000)
    await sleep(100)
    expect(bus.log.warnings().length).toBeGreaterThan(0)
    expect(bus.log.warnings().length).toBeLessThan(200)
  })

  test('8.5 so are warnings of clients at fault', async () => {
    verifies('8.5-rate')
    const bus = await startBus({ config: ECHO })
    for (let n = 0; n < 300; n++) {
      const client = await bus.connect()
      client.send('garbage')
      await client.untilClosed()
    }
    expect(bus.log.warnings().length).toBeGreaterThan(0)
    expect(bus.log.warnings().length).toBeLessThan(200)
  })
})

describe('content', () => {
  test('8.5 payloads are never in it at info level', async () => {
    verifies('8.5-no-payload')
    const bus = await startBus({ config: config([pool('echo'), pool('dies-on-request')]) })
    const client = await bus.connect()
    const secret = 'PAYLOAD-SECRET'
    await client.ask({ id: `id-${secret}`, method: 'm', pool: 'echo', params: { secret } })
    await client.ask({ id: 2, method: 'die', pool: 'dies-on-request', params: { secret } })
    client.send({ method: 'x', pool: 'nowhere', params: { secret } })
    client.send(`garbage ${secret}`)
    await client.untilClosed()
    const other = await bus.connect()
    other.send({ id: 1, params: { secret } })
    await other.untilClosed()
    await bus.stop()
    expect(bus.log.text).not.toContain(secret)
  })

  test('8.5 text from peers is escaped', async () => {
    verifies('8.5-escaped')
    const bus = await startBus({ config: config(pool('stderr-noise')), args: ['--log-level', 'debug'] })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'm\u001b]0;title\u0007', params: { text: 'a\u001b[2Jb\u0000c\u0085d\u2028e' } })
    await bus.log.line(/\[2Jb/)
    client.send('garbage \u001b[2J\u0007')
    await client.untilClosed()
    await bus.stop()
    expect(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(bus.log.text)).toBe(false)
  })
})

describe('requests', () => {
  test('8.5 at debug every answered request has one line, and no payload in it', async () => {
    verifies('8.5-requests')
    const pools = [pool('echo'), pool('dies-on-request')]
    const bus = await startBus({ config: { pools, default_pool: 'echo' }, args: ['--log-level', 'debug'] })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'first', params: { secret: 'hush' } })
    await client.ask({ id: 2, method: 'second' })
    const other = await bus.connect()
    await other.ask({ jsonrpc: '2.0', id: 'open', method: 'bus::open', params: { pool: 'dies-on-request' } })
    await other.ask({ id: 3, method: 'die' })
    const told = await eventually('three lines', () => {
      const lines = bus.log.lines.filter(({ fields }) => fields?.['msg'] === 'answered')
      return lines.length >= 3 && lines
    })
    expect(told.map(({ fields }) => fields)).toMatchObject([
      { level: 'debug', client: 1, pool: 'echo', method: 'first', outcome: 'ok', ms: expect.any(Number) },
      { method: 'second', outcome: 'ok' },
      { client: 2, pool: 'dies-on-request', method: 'die', outcome: 'worker_exited' },
    ])
    expect(bus.log.lines.map(({ text }) => text).join('\n')).not.toContain('hush')
  })
})
