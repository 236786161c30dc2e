/** Clause 8.4: 2 a mistake of the user, 1 a failure of the world, 0 a clean stop. */
import { createServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { verifies } from './verifies.ts'

const ECHO = config(pool('echo'))

describe('exit 2', () => {
  test.each([
    ['an unknown flag', ['--nonsense']],
    ['an unknown command', ['frobnicate']],
    ['a flag without its value', ['--config']],
    ['an unknown log level', ['--log-level', 'loud']],
    ['a config file that is not there', ['--config', 'nowhere.json']],
  ])('8.4 %s', async (_, args) => {
    verifies('8.4-exit-2')
    const done = await runBus(args, { workspace: testWorkspace() })
    expect(done.code).toBe(2)
    expect(done.stderr).toContain(args.at(-1)?.replace(/^--/, ''))
    expect(done.stdout).toBe('')
  })

  test('8.4 check of a bad file, with every problem', async () => {
    verifies('8.4-exit-2', '8.4-all-at-once')
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', {
      pools: [{ id: 'a', command: 'no-such-program-anywhere', instnces: 1 }],
      x: 1,
    })
    const done = await runBus(['check', '--config', file], { workspace })
    expect(done.code).toBe(2)
    const said = done.stdout + done.stderr
    for (const word of ['instnces', 'instances']) expect(said).toContain(word)
  })

  test('8.4 init over an existing file', async () => {
    verifies('8.4-exit-2')
    const workspace = testWorkspace()
    workspace.write('stdio-bus.json', 'precious')
    const done = await runBus(['init'], { workspace })
    expect(done.code).toBe(2)
    expect(workspace.read('stdio-bus.json')).toBe('precious')
  })
})

describe('exit 1', () => {
  test('8.4 a live socket', async () => {
    verifies('8.4-exit-1', '8.6-stale')
    const bus = await startBus({ config: ECHO })
    const path = bus.workspace.path('bus.sock')
    const done = await bus.run(['--config', bus.workspace.path('bus.json'), '--unix', path])
    expect([done.code, done.stderr]).toEqual([1, expect.stringContaining(path)])
    expect(await (await bus.connect()).ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
  })

  test('8.4 a port in use', async () => {
    verifies('8.4-exit-1', '3.1-failed-bind')
    const workspace = testWorkspace()
    const server = createServer()
    onTestFinished(() => void server.close())
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
    })
    const file = workspace.write('bus.json', ECHO)
    const done = await runBus(['--config', file, '--tcp', `127.0.0.1:${port}`], { workspace })
    expect([done.code, done.stderr]).toEqual([1, expect.stringContaining(String(port))])
  })

  test('8.4 a socket in a folder that is not there', async () => {
    verifies('8.4-exit-1', '8.4-exit-2')
    const workspace = testWorkspace()
    const path = workspace.path('no/such/folder.sock')
    const done = await runBus(['--config', workspace.write('bus.json', ECHO), '--unix', path], { workspace })
    expect([1, 2]).toContain(done.code)
    expect(done.stderr).toContain('no/such')
  })

  test.each([['status'], ['reload']])('8.4 %s without a bus', async (command) => {
    verifies('8.4-exit-1')
    const done = await runBus([command], { workspace: testWorkspace() })
    expect(done.code).toBe(1)
    expect(done.stderr.trim()).not.toBe('')
  })
})

describe('exit 0', () => {
  test.each([['--help'], ['--version'], ['serve', '--help'], ['status', '--help']])('8.4 %s', async (...args) => {
    verifies('8.4-exit-0')
    const done = await runBus(args, { workspace: testWorkspace() })
    expect(done.code).toBe(0)
    expect(done.stdout.trim()).not.toBe('')
  })

  test('8.4 check of a good file', async () => {
    verifies('8.4-exit-0')
    const workspace = testWorkspace()
    const done = await runBus(['check', '--config', workspace.write('bus.json', ECHO)], { workspace })
    expect(done.code).toBe(0)
  })

  test('8.4 serve by name is the default command', async () => {
    verifies('8.4-exit-0')
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', ECHO)
    const done = await runBus(['serve', '--config', file], { workspace, stdin: '{"id":1,"method":"m"}\n' })
    expect(done.code).toBe(0)
    expect(JSON.parse(done.stdout)).toMatchObject({ id: 1, result: {} })
  })
})
