/** Clause 4.1.1: which doors there are, how they are named, and which are refused. */
import { existsSync, lstatSync, statSync, symlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { connectTcp, connectUnix } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { KEEPALIVE_TIMER, tcpTimer } from '../support/tcp-table.ts'
import { eventually } from '../support/waiting.ts'
import { verifies } from './verifies.ts'

const ECHO = config(pool('echo'))

describe('doors', () => {
  test('4.1.1 stdio is the default mode', async () => {
    verifies('4.1.1-stdio')
    const bus = await startBus({ config: ECHO, doors: [] })
    expect(await bus.stdio().ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
    expect(bus.addresses.filter((each) => /^(unix|tcp)/.test(each))).toEqual([])
  })

  test.each(['unix', 'tcp'] as const)('4.1.1 the %s door serves many clients at once', async (door) => {
    verifies('4.1.1-unix', '4.1.1-tcp')
    const bus = await startBus({ config: ECHO, doors: [door] })
    const clients = await Promise.all(Array.from({ length: 20 }, () => bus.connect()))
    for (const [n, client] of clients.entries()) client.send({ id: 1, method: 'm', params: { n } })
    const answers = await Promise.all(clients.map((client) => client.next()))
    expect(answers.map((each) => each.result.echo.n)).toEqual(clients.map((_, n) => n))
  })

  test('4.1.1 --unix and --tcp combine and repeat, and ready names them all', async () => {
    verifies('4.1.1-combine', '3.1-ready')
    const workspace = testWorkspace()
    const paths = [workspace.path('a.sock'), workspace.path('b.sock')]
    const args = ['--unix', paths[0]!, '--tcp', '127.0.0.1:0', '--unix', paths[1]!, '--tcp', 'localhost:0']
    const bus = await startBus({ config: ECHO, doors: [], args, workspace })
    expect(bus.addresses.filter((each) => each.startsWith('unix:')).sort()).toEqual(paths.map((each) => `unix:${each}`))
    const tcp = bus.addresses.filter((each) => each.startsWith('tcp:'))
    expect(new Set(tcp).size).toBe(2)
    const clients = [await connectUnix(paths[0]!), await connectUnix(paths[1]!)]
    for (const address of tcp) clients.push(await connectTcp(address.slice(4)))
    for (const client of clients) expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })

  test.each([
    ['--unix', 'bus.sock'],
    ['--tcp', '127.0.0.1:0'],
  ])('4.1.1 --stdio excludes %s', async (flag, value) => {
    verifies('4.1.1-stdio-excludes')
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', ECHO)
    const done = await runBus(['--config', file, '--stdio', flag, value], { workspace })
    expect(done.code).toBe(2)
    expect(done.stderr).toContain('--stdio')
    expect(done.stdout).toBe('')
  })

  test("4.1.1 the config's listen is opened when no flag names a door", async () => {
    verifies('4.1.1-flags-replace-listen')
    const workspace = testWorkspace()
    const listen = { unix: workspace.path('listen.sock'), tcp: '127.0.0.1:0' }
    const bus = await startBus({ config: { ...ECHO, listen }, doors: [], workspace })
    expect(await (await bus.connect('unix:')).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
    expect(await (await bus.connect('tcp:')).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })

  test("4.1.1 flags replace the config's listen", async () => {
    verifies('4.1.1-flags-replace-listen')
    const workspace = testWorkspace()
    const listen = { unix: workspace.path('listen.sock') }
    const bus = await startBus({ config: { ...ECHO, listen }, doors: ['tcp'], workspace })
    expect(bus.addresses.some((each) => each.startsWith('unix:'))).toBe(false)
    expect(existsSync(listen.unix)).toBe(false)
    expect(await (await bus.connect('tcp:')).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })

  test.each(['localhost:0', '127.0.0.1:0', '[::1]:0'])('4.1.1 %s is an address, and port 0 picks one', async (host) => {
    verifies('4.1.1-hosts')
    const bus = await startBus({ config: ECHO, doors: [], args: ['--tcp', host] })
    expect(bus.addresses[0]).toMatch(/:[1-9]\d*$/)
    expect(await (await bus.connect('tcp:')).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })

  test.each(['nowhere', '127.0.0.1:65536', '127.0.0.1:x', '::1:80', ':80'])('4.1.1 %s is no address', async (host) => {
    verifies('4.1.1-hosts', '8.4-exit-2')
    const workspace = testWorkspace()
    const done = await runBus(['--config', workspace.write('bus.json', ECHO), '--tcp', host], { workspace })
    expect(done.code).toBe(2)
    expect(done.stderr).toContain(host)
  })

  test('4.1.1 without --config the file is ./stdio-bus.json', async () => {
    verifies('4.1.1-default-config')
    const workspace = testWorkspace()
    workspace.write('stdio-bus.json', ECHO)
    const bus = await startBus({ workspace })
    expect(await (await bus.connect()).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })

  test('4.1.1 without any config file it exits with 2 and names init', async () => {
    verifies('4.1.1-no-config', '8.4-exit-2')
    const done = await runBus([], { workspace: testWorkspace() })
    expect(done.code).toBe(2)
    expect(done.stderr).toMatch(/stdio-bus\.json/)
    expect(done.stderr).toMatch(/\binit\b/)
  })

  test('4.1.1 comments and trailing commas are tolerated in the config', async () => {
    verifies('4.1.1-comments')
    const text = `// a comment\n{ "pools": [ ${JSON.stringify(pool('echo'))}, /* last */ ], }`
    const bus = await startBus({ config: text })
    expect(await (await bus.connect()).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })

  test.each([102, 103])('4.1.1 a socket path of %i bytes is served', async (bytes) => {
    verifies('4.1.1-socket-path')
    const workspace = testWorkspace()
    const long = `${workspace.folder}/${'x'.repeat(bytes - workspace.folder.length - 1)}`
    const bus = await startBus({ config: ECHO, doors: [], args: ['--unix', long], workspace })
    expect(await (await bus.connect()).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })

  test.each(['--unix', '--control'])('4.1.1 %s with an empty path is refused with exit 2', async (flag) => {
    verifies('4.1.1-socket-path', '8.4-exit-2')
    const workspace = testWorkspace()
    const done = await runBus(['--config', workspace.write('bus.json', ECHO), flag, ''], { workspace })
    expect([done.code, done.stdout]).toEqual([2, ''])
    expect(done.stderr).toContain(flag)
  })

  test('4.1.1 a socket path of 104 bytes is refused with exit 2', async () => {
    verifies('4.1.1-socket-path')
    const workspace = testWorkspace()
    const long = `${workspace.folder}/${'x'.repeat(104 - workspace.folder.length - 1)}`
    const done = await runBus(['--config', workspace.write('bus.json', ECHO), '--unix', long], { workspace })
    expect(done.code).toBe(2)
    expect(done.stderr).toContain('103')
  })

  test('4.1.1 TCP keepalive is on', async () => {
    verifies('4.1.1-keepalive')
    const bus = await startBus({ config: ECHO, doors: ['tcp'] })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'm' })
    const port = Number(bus.addresses[0]?.split(':').at(-1))
    expect(await eventually('the timer to be set', () => tcpTimer(port) === KEEPALIVE_TIMER)).toBe(true)
  })

  test('4.1.1 an address beyond loopback is refused, saying why and what to do', async () => {
    verifies('4.1.1-loopback', '8.4-exit-2')
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', ECHO)
    const done = await runBus(['--config', file, '--tcp', '0.0.0.0:0'], { workspace })
    expect(done.code).toBe(2)
    expect(done.stderr).toContain('--allow-unauthenticated')
  })

  test('4.1.1 an address beyond loopback is served with --allow-unauthenticated', async () => {
    verifies('4.1.1-loopback')
    const args = ['--tcp', '0.0.0.0:0', '--allow-unauthenticated']
    const bus = await startBus({ config: ECHO, doors: [], args })
    const port = bus.addresses[0]?.split(':').at(-1)
    expect(await (await connectTcp(`127.0.0.1:${port}`)).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })

  test('4.1.1 a Unix socket has mode 0600', async () => {
    verifies('4.1.1-socket-mode')
    const bus = await startBus({ config: ECHO })
    expect(statSync(bus.workspace.path('bus.sock')).mode & 0o777).toBe(0o600)
  })

  test.each(['a symlink', 'a file'])('4.1.1 a socket path that is %s is refused and left alone', async (kind) => {
    verifies('4.1.1-socket-mode')
    const workspace = testWorkspace()
    const target = workspace.write('precious', 'data')
    const path = kind === 'a file' ? target : workspace.path('link.sock')
    if (kind === 'a symlink') symlinkSync(target, path)
    const done = await runBus(['--config', workspace.write('bus.json', ECHO), '--unix', path], { workspace })
    expect([1, 2]).toContain(done.code)
    expect(workspace.read('precious')).toBe('data')
    expect(lstatSync(path).isSymbolicLink()).toBe(kind === 'a symlink')
  })
})
