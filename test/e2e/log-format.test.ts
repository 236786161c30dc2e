/** `--log-format`, `--log-file`, NO_COLOR and TERM=dumb: what the log looks like is for the user to say (contract 8.5). */
import { spawn } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { busCommand, busEnv, startBus, testWorkspace } from '../support/bus.ts'
import { eventually } from '../support/waiting.ts'

const ECHO = { pools: [{ id: 'echo', agent: 'echo' }] }
const ESCAPE = '\u001b['

/** The first line `ready` of a bus whose stderr is a terminal. */
async function readyOnTerminal(args: readonly string[], env: Record<string, string>): Promise<string> {
  const workspace = testWorkspace()
  const file = workspace.write('bus.json', ECHO)
  const [command, first] = busCommand()
  const line = [command, ...first, '--config', file, '--unix', workspace.path('bus.sock'), ...args]
  const child = spawn('script', ['-qefc', line.map((each) => `'${each}'`).join(' '), '/dev/null'], {
    cwd: workspace.folder,
    env: busEnv(workspace, { TERM: 'xterm', ...env }),
    stdio: 'pipe',
  })
  workspace.owns(child.pid)
  let seen = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (seen += chunk))
  const lines = () => seen.split(/\r?\n/)
  return eventually('ready', () => lines().find((each) => /ready/.test(each) && /bus\.sock/.test(each)))
}

describe('on a terminal', () => {
  test('the clock is local and says its zone', async () => {
    const ready = await readyOnTerminal([], { TZ: 'Asia/Kolkata', NO_COLOR: '1' })
    expect(ready).toMatch(/^\d\d:\d\d:\d\d\.\d{3}\+05:30 info {2}ready/)
  })

  test('colours, unless NO_COLOR or TERM=dumb', async () => {
    expect(await readyOnTerminal([], {})).toContain(ESCAPE)
    expect(await readyOnTerminal([], { NO_COLOR: '1' })).not.toContain(ESCAPE)
    expect(await readyOnTerminal([], { TERM: 'dumb' })).not.toContain(ESCAPE)
  })

  test('--log-format json', async () => {
    expect(JSON.parse(await readyOnTerminal(['--log-format', 'json'], {}))).toMatchObject({ msg: 'ready' })
  })
})

describe('elsewhere', () => {
  test('--log-format text: lines for people, without colour', async () => {
    const bus = await startBus({ config: ECHO, args: ['--log-format', 'text'] })
    const ready = await bus.log.line(/ready.*bus\.sock/)
    expect(ready.text).toMatch(/^\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d info {2}ready/)
    expect(bus.log.text).not.toContain(ESCAPE)
  })

  test('--log-file: everything is there, for its owner alone, and nothing on stderr', async () => {
    const workspace = testWorkspace()
    const path = workspace.path('bus.log')
    const bus = await startBus({ config: ECHO, workspace, args: ['--log-file', path], unready: true })
    await eventually('ready in the file', () => workspace.read('bus.log').includes('"msg":"ready"'))
    expect(statSync(path).mode & 0o777).toBe(0o600)
    await bus.stop()
    expect(bus.log.text).toBe('')
    for (const line of readFileSync(path, 'utf8').trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('msg')
  })
})
