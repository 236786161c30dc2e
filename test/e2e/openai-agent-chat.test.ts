/**
 * `stdio-bus chat` as a program, its output piped: what a script sees, and what Ctrl-C does.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { Echo } from '../../src/agents/echo/answers.ts'
import { busCommand } from '../support/bus.ts'
import { until } from './openai-agent-harness.ts'

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const echo = pathOf('../../dist/agents/echo/main.js')

interface Chat {
  readonly child: ChildProcessWithoutNullStreams
  readonly exited: Promise<unknown[]>
  stdout: string
  stderr: string
}

const running: Chat[] = []
afterEach(() => {
  for (const { child } of running.splice(0)) child.kill('SIGKILL')
})

function start(...args: string[]): Chat {
  const env = { PATH: process.env['PATH'], HOME: tmpdir() }
  const [command, first] = busCommand()
  const child = spawn(command, [...first, 'chat', ...args], { env })
  const chat: Chat = { child, exited: once(child, 'close'), stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => (chat.stdout += chunk))
  child.stderr.on('data', (chunk) => (chat.stderr += chunk))
  running.push(chat)
  return chat
}

async function ends(chat: Chat): Promise<unknown> {
  return (await chat.exited)[0]
}

describe('chat', () => {
  it('asks the demo when nothing is named, and prints the answer and nothing else', async () => {
    const chat = start('How are you?')
    expect(await ends(chat)).toBe(0)
    expect(chat.stdout).toMatch(/^This is the built-in demo .*How are you\?.*\.\n$/)
    expect(chat.stderr).toBe('')
  })

  it('asks any agent, named as a command line or after --', async () => {
    const quoted = start('hi', '--agent', `"${process.execPath}" ${echo}`)
    const dashed = start('hi', '--', process.execPath, echo)
    expect(await Promise.all([ends(quoted), ends(dashed)])).toEqual([0, 0])
    expect([quoted.stdout, dashed.stdout]).toEqual(['You said: hi\n', 'You said: hi\n'])
  })

  it('asks every line of its input without a question', async () => {
    const chat = start('--', process.execPath, echo)
    chat.child.stdin.end('one\n\ntwo\n')
    expect(await ends(chat)).toBe(0)
    expect(chat.stdout).toBe('You said: one\nYou said: two\n')
  })

  it('cancels the turn on Ctrl-C and says so in its exit code', async () => {
    const chat = start('hi', '--demo')
    await until(() => chat.stdout.includes('This'), 10_000)
    chat.child.kill('SIGINT')
    expect(await ends(chat)).toBe(130)
    expect(chat.stderr).toBe('stopped: cancelled\n')
  })

  it.each([
    ['cannot start', 1, ['hi', '--', 'no-such-agent-anywhere']],
    ['the agent ended (exit code 3) before it answered', 1, ['hi', '--', process.execPath, '-e', 'process.exit(3)']],
    ['no bus answers', 1, ['hi', '--unix', join(tmpdir(), 'no-such-socket')]],
    ['start one with "stdio-bus start"', 1, ['hi', '--pool', 'x']],
    ['no bus is asked', 2, ['hi', '--pool', 'x', '--demo']],
    ['--ca goes with --tls', 2, ['hi', '--tcp', '127.0.0.1:1', '--ca', 'x']],
    ['leave all but one out', 2, ['hi', '--demo', '--agent', 'x']],
    ['in quotes', 2, ['two', 'words']],
  ])('says %j with exit code %i', async (message, code, args) => {
    const chat = start(...args)
    expect(await ends(chat)).toBe(code)
    expect(chat.stderr).toContain(message)
    expect(chat.stdout).toBe('')
  })
})

describe('chat with a bus', () => {
  let server: Server
  const sockets: Socket[] = []

  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
    server.close()
  })

  it('names its pool in a first line', async () => {
    const lines: string[] = []
    server = createServer((socket) => {
      sockets.push(socket)
      const agent = new Echo()
      createInterface({ input: socket }).on('line', (line) => {
        lines.push(line)
        for (const answer of agent.answer(JSON.parse(line))) socket.write(`${JSON.stringify(answer)}\n`)
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const chat = start('hi', '--tcp', `127.0.0.1:${(server.address() as { port: number }).port}`, '--pool', 'coder')
    expect(await ends(chat)).toBe(0)
    expect(chat.stdout).toBe('You said: hi\n')
    expect(JSON.parse(lines[0]!)).toMatchObject({ method: 'bus::open', params: { pool: 'coder' } })
  })

  it('says so when the bus goes away', async () => {
    server = createServer((socket) => {
      sockets.push(socket)
      socket.once('data', () => socket.destroy())
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const chat = start('hi', '--tcp', `127.0.0.1:${(server.address() as { port: number }).port}`)
    expect(await ends(chat)).toBe(1)
    expect(chat.stderr).toMatch(/^stdio-bus: the bus at .* closed the connection before it answered\n$/)
  })
})
