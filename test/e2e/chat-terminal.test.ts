/**
 * `stdio-bus chat` on a terminal: a pseudo-terminal of `script`, the keys that are typed, and everything that is written.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { displayWidth } from '../../src/wire/columns.ts'
import { type Bus, busCommand, busEnv, startBus, testWorkspace } from '../support/bus.ts'
import { eventually } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'

const SHOWY = fileURLToPath(new URL('../fixtures/acp/showy.mjs', import.meta.url))
const COLUMNS = 70
const CTRL_C = '\x03'
const CTRL_D = '\x04'

/** What a terminal is told beside text: colours, clearing, moving of the cursor, and whether pastes are marked. */
const OWN_ESCAPES = /\x1b\[(?:[0-9;]*m|[0-9]*[ACDGJK]|\?2004[hl]|\?25[hl])/g

const running: Terminal[] = []
afterEach(() => {
  for (const { child } of running.splice(0)) child.kill('SIGKILL')
})

class Terminal {
  readonly child: ChildProcessWithoutNullStreams
  readonly exited: Promise<unknown[]>
  raw = ''

  constructor(workspace: Workspace, args: readonly string[], env: Record<string, string> = {}) {
    const [command, first] = busCommand()
    const words = [command, ...first, 'chat', ...args].map((word) => `'${word}'`).join(' ')
    this.child = spawn('script', ['-qefc', `stty cols ${COLUMNS} rows 40; exec ${words}`, '/dev/null'], {
      env: { ...busEnv(workspace), TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
      cwd: workspace.home,
    })
    this.exited = once(this.child, 'close')
    this.child.stdout.setEncoding('utf8').on('data', (chunk: string) => (this.raw += chunk))
    running.push(this)
  }

  /** Without escapes; what a line was overwritten with is on a line of its own. */
  get text(): string {
    return this.raw.replace(OWN_ESCAPES, '').replace(/\r+\n/g, '\n').replaceAll('\r', '\n')
  }

  async shows(wanted: string | RegExp): Promise<void> {
    const isThere = (): boolean => (typeof wanted === 'string' ? this.text.includes(wanted) : wanted.test(this.text))
    await eventually(
      `${wanted} in ${JSON.stringify(this.text.slice(-2_000))}`,
      async () => isThere() || undefined,
      8_000,
    )
  }

  type(keys: string): void {
    this.child.stdin.write(keys)
  }
}

const agent = ['--', process.execPath, SHOWY]

describe('chat on a terminal', () => {
  test('renders Markdown, wraps words, and names its target in the prompt', async () => {
    const terminal = new Terminal(testWorkspace(), agent)
    await terminal.shows('Showy ❯ ')
    terminal.type('markdown\r')
    await terminal.shows('Done.')
    expect(terminal.raw).toContain('\x1b[1mrouter\x1b[22m')
    expect(terminal.raw).toContain('\x1b[36mid\x1b[39m')
    expect(terminal.text).toContain('• first, look at the table (https://example.test/table)')
    expect(terminal.text).toContain('file        │ what it holds')
    for (const line of terminal.text.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(COLUMNS)
    terminal.type(CTRL_D)
    expect((await terminal.exited)[0]).toBe(0)
  })

  test('shows plans, tool calls with their output, and diffs', async () => {
    const terminal = new Terminal(testWorkspace(), agent)
    await terminal.shows('Showy ❯ ')
    terminal.type('plan\r')
    await terminal.shows('✓ Run the tests  3/3')
    terminal.type('tools\r')
    await terminal.shows('one test fails.')
    expect(terminal.text).toMatch(/✓ Read numbers\.txt\n {4}line 1 of the output\n[\s\S]*… 4 more lines\n/)
    expect(terminal.text).toMatch(/numbers\.txt \+2 -1\n[\s\S]* {4}- three\n {4}\+ 3\n/)
    expect(terminal.text).toMatch(/✗ Run the tests\n {4}\{"exitCode":1/)
    // The spinner says which tool runs.
    expect(terminal.text).toMatch(/[⠋⠙⠹] Read numbers\.txt/)
  })

  test('spins while it waits; Ctrl-C cancels the turn and not the program', async () => {
    const terminal = new Terminal(testWorkspace(), agent)
    await terminal.shows('Showy ❯ ')
    terminal.type('slow\r')
    await terminal.shows(/⠙ waiting/)
    terminal.type(CTRL_C)
    await terminal.shows('stopped: cancelled')
    terminal.type('still here\r')
    await terminal.shows('You said: still here')
    // At the prompt it clears a line, and leaves an empty one.
    terminal.type(`half a quest${CTRL_C}`)
    terminal.type(CTRL_C)
    expect((await terminal.exited)[0]).toBe(0)
  })

  test('asks before a tool runs, showing what it would do', async () => {
    const terminal = new Terminal(testWorkspace(), agent)
    await terminal.shows('Showy ❯ ')
    terminal.type('permission\r')
    await terminal.shows('Allow Edit numbers.txt?')
    expect(terminal.text).toContain('    + eight')
    terminal.type('\x1b[B')
    await terminal.shows('● Reject')
    terminal.type('\r')
    await terminal.shows('You chose no.')
  })

  test('has commands, and sends the agent its own', async () => {
    const terminal = new Terminal(testWorkspace(), [...agent, 'saved'])
    await terminal.shows('Showy ❯ ')
    terminal.type('/help\r')
    await terminal.shows('/review         reviews the last change')
    terminal.type('/model lar\r')
    await terminal.shows('model: Model large')
    terminal.type('/model la\r')
    await terminal.shows('no model "la": there are small, large, latest')
    terminal.type('/mode code\r')
    await terminal.shows('mode: Mode code')
    terminal.type('/sessions saved\r')
    await terminal.shows('You asked this.')
    terminal.type('/review\r')
    await terminal.shows('You said: /review')
    terminal.type('/nonsense\r')
    await terminal.shows('there is no command /nonsense')
    terminal.type(' /nonsense\r')
    await terminal.shows('You said:  /nonsense')
    terminal.type('/new\r')
    await terminal.shows('a new session')
    terminal.type('/quit\r')
    expect((await terminal.exited)[0]).toBe(0)
  })

  test('remembers what was asked, in a file of its owner', async () => {
    const workspace = testWorkspace()
    const first = new Terminal(workspace, agent)
    await first.shows('Showy ❯ ')
    // Pasted lines are one question.
    first.type('\x1b[200~one\ntwo\x1b[201~')
    await first.shows('one⏎two')
    first.type('\r')
    await first.shows('You said: one')
    first.type(CTRL_D)
    await first.exited
    const file = `${workspace.home}/.stdio-bus/chat-history`
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toBe('"one\\ntwo"\n')
    const second = new Terminal(workspace, agent)
    await second.shows('Showy ❯ ')
    second.type('\x1b[A')
    await second.shows('one⏎two')
  })

  test('outlives its agent: a new session, or the old one where it can be loaded', async () => {
    const terminal = new Terminal(testWorkspace(), agent)
    await terminal.shows('Showy ❯ ')
    terminal.type('die\r')
    await terminal.shows('the agent ended (exit code 3) before it answered')
    await terminal.shows(/this\s+is\s+a\s+new\s+one/)
    terminal.type('again\r')
    await terminal.shows('You said: again')
    const saved = new Terminal(testWorkspace(), [...agent, 'saved'])
    await saved.shows('Showy ❯ ')
    saved.type('die\r')
    await saved.shows('its session was brought back')
    // What was said before is on the screen already.
    expect(saved.text).not.toContain('You asked this.')
  })

  test('shows no control character of an agent, wherever it puts one', async () => {
    const terminal = new Terminal(testWorkspace(), agent)
    await terminal.shows('Showy ❯ ')
    terminal.type('hostile\r')
    await terminal.shows('the agent refused: error \\u001b[2J')
    for (const where of ['answer', 'thought', 'title', 'path', 'stderr', 'unknown'])
      await terminal.shows(new RegExp(`${where}\\s\\\\u001b\\[2J`))
    expect(terminal.text).not.toMatch(/[\u0000-\u0006\u0008\u000b-\u001f\u007f-\u009f\u202e]/)
  })

  test('NO_COLOR: no colours; TERM=dumb: no escape at all', async () => {
    const plain = new Terminal(testWorkspace(), agent, { NO_COLOR: '1' })
    await plain.shows('Showy ❯ ')
    plain.type('markdown\r')
    await plain.shows('Done.')
    expect(plain.raw).not.toMatch(/\x1b\[[0-9;]*m/)
    expect(plain.text).toContain('The **router** decides')
    const dumb = new Terminal(testWorkspace(), agent, { TERM: 'dumb' })
    await dumb.shows('Showy ❯ ')
    dumb.type('tools\n')
    await dumb.shows('one test fails.')
    expect(dumb.raw).not.toContain('\x1b')
  })
})

describe('chat with a pool', () => {
  const start = (more: object = {}): Promise<Bus> =>
    startBus({ config: { pools: [{ id: 'coder', command: process.execPath, args: [SHOWY], ...more }] } })

  test('outlives the death of its worker, and says that the session is lost', async () => {
    const bus = await start()
    const terminal = new Terminal(bus.workspace, ['--unix', bus.workspace.path('bus.sock'), '--pool', 'coder'])
    await terminal.shows('coder ❯ ')
    terminal.type('die\r')
    await terminal.shows(/The worker ended before it answered\.\s+\(worker_exited,\s+exit\s+code\s+3\)/)
    await terminal.shows(/the session is\s+lost; this is\s+a\s+new one/)
    terminal.type('again\r')
    await terminal.shows('You said: again')
  })

  test('a worker that died between two questions costs none of them', async () => {
    const bus = await start()
    const terminal = new Terminal(bus.workspace, ['--unix', bus.workspace.path('bus.sock'), '--pool', 'coder'])
    await terminal.shows('coder ❯ ')
    const { workers } = await bus.allReady()
    process.kill(workers[0]!.pid, 'SIGKILL')
    await bus.statusWhere('the worker is another', (status) => {
      const [worker] = status.workers
      return worker?.state === 'ready' && worker.generation > 1
    })
    terminal.type('after\r')
    await terminal.shows(/this\s+is\s+a\s+new\s+one/)
    await terminal.shows('You said: after')
  })

  test('a bus that went away is looked for with the next question', async () => {
    const bus = await start()
    const terminal = new Terminal(bus.workspace, ['--unix', bus.workspace.path('bus.sock'), '--pool', 'coder'])
    await terminal.shows('coder ❯ ')
    await bus.stop()
    terminal.type('anybody?\r')
    await terminal.shows(/the\s+next\s+question\s+tries\s+again/)
    expect(terminal.text.match(/no\s+bus\s+answers/g)).toHaveLength(1)
    terminal.type(CTRL_D)
    expect((await terminal.exited)[0]).toBe(0)
  })
})
