/** Mistakes of users and failures of the world: one sentence, its exit code, and never a stack trace. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { busCommand, runBus, testWorkspace } from '../support/bus.ts'
import type { Finished } from '../support/run.ts'

const ECHO = { pools: [{ id: 'echo', agent: 'echo' }] }

function expectSaid(done: Finished, code: number, ...words: readonly (string | RegExp)[]): void {
  expect(done.stderr).not.toMatch(/\n\s+at |node:internal|\.js:\d+/)
  for (const word of words) expect(done.stderr).toMatch(word)
  expect(done.code).toBe(code)
}

describe('output that cannot be written', () => {
  const isRoot = process.getuid?.() === 0

  test.each([
    ['--record', ['--record', 'no/such/folder/x.rec'], 'its folder is not there; name another file'],
    ['--log-file', ['--log-file', 'no/such/folder/x.log'], 'its folder is not there; name another file'],
    ['--log-file that is a folder', ['--log-file', '.'], 'is a folder and is left alone; name another file'],
  ])('%s', async (_, args, why) => {
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', ECHO)
    expectSaid(await runBus(['--config', file, ...args], { workspace, stdin: '' }), 2, args[0]!, why)
  })

  test('init', async () => {
    const done = await runBus(['init', '--config', 'no/such/x.json'], { workspace: testWorkspace(), stdin: '' })
    expectSaid(done, 2, 'its folder is not there; name another file with --config')
  })

  test.skipIf(isRoot)('a folder without a right to write', async () => {
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', ECHO)
    mkdirSync(workspace.path('locked'))
    chmodSync(workspace.path('locked'), 0o500)
    const done = await runBus(['--config', file, '--record', 'locked/x.rec'], { workspace, stdin: '' })
    expectSaid(done, 2, '--record', 'locked')
  })
})

describe('a HOME that is no directory', () => {
  const env = { HOME: '/dev/null' }

  test('the bus serves without a control socket, and says so', async () => {
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', ECHO)
    const done = await runBus(['--config', file], { workspace, env, stdin: '{"id":1,"method":"m"}\n' })
    expect(JSON.parse(done.stdout)).toMatchObject({ id: 1 })
    expectSaid(done, 0, 'no control socket')
  })

  test('with a control socket of its own it says how to find it', async () => {
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', ECHO)
    const args = ['--config', file, '--control', workspace.path('control.sock')]
    const done = await runBus(args, { workspace, env, stdin: '{"id":1,"method":"m"}\n' })
    expect(JSON.parse(done.stdout)).toMatchObject({ id: 1 })
    expectSaid(done, 0, '--control')
  })

  test.each([
    ['status', ['status'], 1],
    ['connect', ['connect'], 1],
    ['connect --autostart', ['connect', '--autostart', '--config', 'bus.json'], 1],
    ['start', ['start', '--config', 'bus.json'], 1],
    ['ls', ['ls'], 0],
    ['logs', ['logs'], 1],
    ['trace ls', ['trace', 'ls'], 1],
    ['stop', ['stop'], 1],
  ])('%s', async (_, args, code) => {
    const workspace = testWorkspace()
    workspace.write('bus.json', ECHO)
    expectSaid(await runBus(args, { workspace, env, stdin: '' }), code, /\S/)
  })

  test('start says what HOME must be', async () => {
    const workspace = testWorkspace()
    workspace.write('bus.json', ECHO)
    expectSaid(await runBus(['start', '--config', 'bus.json'], { workspace, env }), 1, 'HOME must be a folder')
  })
})

describe('something else in the place of a configuration', () => {
  const kinds: Readonly<Record<string, (path: string) => unknown>> = {
    directory: (path) => mkdirSync(path),
    pipe: (path) => execFileSync('mkfifo', [path]),
    'link that leads back to itself': (path) => symlinkSync(path, path),
    socket: (path) =>
      new Promise<void>((resolve) => {
        const server = createServer().listen(path, resolve)
        onTestFinished(() => void server.close())
      }),
  }

  test.each(Object.entries(kinds))('a %s', async (kind, make) => {
    const workspace = testWorkspace()
    await make(workspace.path('odd.json'))
    for (const command of ['check', 'serve', 'start']) {
      const done = await runBus([command, '--config', 'odd.json'], { workspace, stdin: '' })
      expectSaid({ ...done, stderr: done.stdout + done.stderr }, 2, `found a ${kind}; allowed: a configuration file`)
    }
    const added = await runBus(['add', 'x', '--agent', 'echo', '--config', 'odd.json'], { workspace })
    expectSaid(added, kind.startsWith('link') ? 1 : 2, 'odd.json')
  })

  test('a pipe that the shell has made is read', async () => {
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', ECHO)
    const [command, first] = busCommand()
    const line = `'${command}' '${first[0]}' check --config <(cat '${file}')`
    expect(execFileSync('bash', ['-c', line], { encoding: 'utf8' })).toContain('no problems')
  })

  test('more pools than anybody has are one mistake, soon', async () => {
    const workspace = testWorkspace()
    const pools = Array.from({ length: 100_000 }, (_, index) => ({ id: `p${index}`, agent: 'echo' }))
    const done = await runBus(['--config', workspace.write('bus.json', { pools })], { workspace, stdin: '' })
    expectSaid(done, 2, 'found 100000 pools; allowed: at most 1024')
  })
})

test('replay of a folder: exit 2', async () => {
  expectSaid(await runBus(['replay', '.'], { workspace: testWorkspace() }), 2, 'is no file: name the file')
})

describe('arguments that a command does not take', () => {
  test.each([
    [['--frob'], 'see stdio-bus serve --help'],
    [['trace', 'show'], 'see stdio-bus trace show --help'],
    [['registry', 'rm'], 'see stdio-bus registry rm --help'],
  ])('%j: exit 2, and where to look', async (args, advice) => {
    expectSaid(await runBus(args, { workspace: testWorkspace(), stdin: '' }), 2, /^error: /, advice)
  })
})
