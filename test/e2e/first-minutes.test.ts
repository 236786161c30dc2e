/** The first ten minutes: what the program says is true when it is typed (contract 8.4). */
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { busCommand, busEnv, runBus, testWorkspace } from '../support/bus.ts'
import { run } from '../support/run.ts'
import { eventually } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'

/** `stdio-bus` as a command of its own, as it is once installed. */
function installed(workspace: Workspace): Record<string, string> {
  const [command, args] = busCommand()
  mkdirSync(workspace.path('bin'))
  const shim = workspace.write(
    'bin/stdio-bus',
    `#!/bin/sh\nexec '${command}' ${args.map((each) => `'${each}'`).join(' ')} "$@"\n`,
  )
  chmodSync(shim, 0o755)
  const env = busEnv(workspace)
  return { ...env, PATH: `${join(workspace.folder, 'bin')}:${env['PATH']}` }
}

describe('init', () => {
  test.each([[[]], [['--agent', 'openai']], [['--config', 'other.json']]])(
    '%j ends with commands that work when pasted',
    async (flags) => {
      const workspace = testWorkspace()
      const done = await runBus(['init', ...flags], { workspace, timeoutMs: 20_000 })
      expect(done.code).toBe(0)
      const lines = done.stdout.split('\n').filter((line) => line.startsWith('  '))
      expect(lines.length).toBeGreaterThan(1)
      const env = installed(workspace)
      for (const line of lines) {
        const pasted = await run('sh', ['-c', line], { cwd: workspace.folder, env, timeoutMs: 30_000 })
        expect(pasted, line).toMatchObject({ code: 0, stderr: '' })
      }
      await runBus(['stop'], { workspace, timeoutMs: 20_000 })
    },
  )
})

test('whoever uses npx is told to type npx', async () => {
  const workspace = testWorkspace()
  const env = { npm_lifecycle_event: 'npx', npm_lifecycle_script: 'stdio-bus init' }
  const { stdout } = await runBus(['init'], { workspace, env })
  expect(stdout).toContain('\n  npx stdio-bus start\n  npx stdio-bus chat "hello"\n')
  const added = await runBus(['add', 'x', '--agent', 'echo'], { workspace, env })
  expect(added.stdout).toContain('Next: npx stdio-bus start\n')
})

/** A terminal on which the program runs. */
function onTerminal(workspace: Workspace, ...args: string[]) {
  const [command, first] = busCommand()
  const line = [command, ...first, ...args].map((each) => `'${each}'`).join(' ')
  const child = spawn('script', ['-qefc', line, '/dev/null'], {
    cwd: workspace.folder,
    env: busEnv(workspace, { TERM: 'dumb' }),
    stdio: 'pipe',
  })
  workspace.owns(child.pid)
  const terminal = {
    seen: '',
    type: (text: string) => void child.stdin.write(text),
    exit: new Promise<number | null>((resolve) => child.once('close', resolve)),
  }
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (terminal.seen += chunk))
  return terminal
}

test('a bus on a terminal without a door explains itself, and is not ended by a word', async () => {
  const workspace = testWorkspace()
  workspace.write('stdio-bus.json', { pools: [{ id: 'echo', agent: 'echo' }] })
  const terminal = onTerminal(workspace)
  await eventually('the explanation', () => terminal.seen.includes('For a bus that others reach: stdio-bus start'))
  terminal.type('hello\n')
  await eventually('advice', () => terminal.seen.includes('That is not a message: type one JSON object'))
  terminal.type('{"id":1,"method":"hello"}\n')
  await eventually('an answer', () => terminal.seen.includes('"result":{"echo":null,"method":"hello"}'))
  terminal.type('\u0004')
  expect(await terminal.exit).toBe(0)
})

describe('--help', () => {
  test.each([60, 80])('of everything fits %i columns: words are never broken, commands neither', async (columns) => {
    const workspace = testWorkspace()
    const env = { ...busEnv(workspace), SHELL: '/bin/sh', TERM: 'xterm' }
    const words = [...busCommand()].flat().map((word) => `'${word}'`)
    for (const command of ['', 'serve', 'add', 'trace export', 'token add', 'registry install']) {
      const line = `stty cols ${columns}; exec ${words.join(' ')} ${command} --help`
      const options = { cwd: workspace.folder, env, stdin: '', timeoutMs: 20_000 }
      const { stdout } = await run('script', ['-qefc', line, '/dev/null'], options)
      const shown = stdout.replaceAll('\r', '').split('\n')
      expect(shown.length, command).toBeGreaterThan(5)
      const long = shown.filter((each) => each.length > columns && !/^ {2}(?:stdio-bus|OPENAI_BASE_URL=)/.test(each))
      expect(long, command).toEqual([])
    }
  })

  test('has the flags of serve, examples, and no line that is cut', async () => {
    const { stdout, code } = await runBus(['--help'], { workspace: testWorkspace() })
    expect(code).toBe(0)
    for (const word of [
      '--unix <path>',
      '--log-format',
      'Examples:',
      'stdio-bus add files -- npx',
      'Talk to it:',
      '  attach  ',
    ])
      expect(stdout).toContain(word)
    for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80)
  })

  test('of a command', async () => {
    const { stdout } = await runBus(['help', 'logs'], { workspace: testWorkspace() })
    expect(stdout).toContain('--follow')
    expect(stdout).not.toContain('Examples:')
  })

  test('a command that is not there: exit 2 with the one that was meant', async () => {
    const done = await runBus(['statsu'], { workspace: testWorkspace() })
    expect([done.code, done.stderr]).toEqual([2, expect.stringContaining("did you mean 'status'?")])
  })
})
