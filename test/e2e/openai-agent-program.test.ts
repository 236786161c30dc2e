import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { calls, type Reply, says, text } from '../../src/agents/demo-endpoint/reply.ts'
import { type Endpoint, startEndpoint } from '../../src/agents/demo-endpoint/server.ts'
import { verifies } from '../conformance/verifies.ts'
import { until } from './openai-agent-harness.ts'

const program = fileURLToPath(new URL('../../dist/agents/openai/main.js', import.meta.url))
const mcpServer = fileURLToPath(new URL('openai-agent-mcp-server.mjs', import.meta.url))

// biome-ignore lint/suspicious/noExplicitAny: lines of a protocol, looked at field by field
type Line = any

class Program {
  readonly child: ChildProcessWithoutNullStreams
  readonly lines: Line[] = []
  readonly exited: Promise<[number | null, NodeJS.Signals | null]>
  stderr = ''

  constructor(args: string[], env: Record<string, string> = {}) {
    this.child = spawn(process.execPath, [program, ...args], { env: { PATH: process.env['PATH'], ...env } })
    this.exited = once(this.child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
    createInterface({ input: this.child.stdout }).on('line', (line) => this.lines.push(JSON.parse(line)))
    this.child.stderr.on('data', (chunk) => (this.stderr += chunk))
  }

  send(...messages: Line[]): void {
    this.child.stdin.write(messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join(''))
  }

  async answer(id: unknown): Promise<Line> {
    const find = () => this.lines.find((line) => line.id === id && line.method === undefined)
    await until(() => find() !== undefined, 10_000)
    return find()
  }

  async newSession(extra: Line = {}, mcpServers: Line[] = []): Promise<string> {
    this.send(
      { id: 'i', method: 'initialize', params: { protocolVersion: 1 } },
      { id: 'n', method: 'session/new', params: { cwd: '/', mcpServers }, ...extra },
    )
    return (await this.answer('n')).result.sessionId
  }
}

const promptOf = (id: unknown, sessionId: string, words = 'hi'): Line => ({
  id,
  method: 'session/prompt',
  params: { sessionId, prompt: [{ type: 'text', text: words }] },
})

const running: Program[] = []
const endpoints: Endpoint[] = []

function start(args: string[] = [], env: Record<string, string> = {}): Program {
  const started = new Program(args, env)
  running.push(started)
  return started
}

async function startWith(reply: Reply | ((count: number) => Reply)): Promise<Program> {
  const script = (_: unknown, count: number) => (typeof reply === 'function' ? reply(count) : reply)
  const endpoint = await startEndpoint({ script })
  endpoints.push(endpoint)
  return start([], { OPENAI_BASE_URL: endpoint.url })
}

afterEach(async () => {
  for (const { child } of running.splice(0)) child.kill('SIGKILL')
  await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.close()))
})

async function timeToExit(running: Program): Promise<number> {
  const before = Date.now()
  expect(await running.exited).toEqual([0, null])
  return Date.now() - before
}

describe('the program', () => {
  it('is built', () => expect(existsSync(program)).toBe(true))

  it('answers with the demo, which wins over the environment and says what it is', async () => {
    const agent = start(['--demo'], { OPENAI_BASE_URL: 'not a url', OPENAI_API_KEY: 'sk-never\nsent' })
    const session = await agent.newSession()
    agent.send(promptOf(1, session, 'How are you?'))
    expect((await agent.answer(1)).result).toEqual({ stopReason: 'end_turn' })
    const shown = agent.lines.map((line) => line.params?.update?.content?.text ?? '').join('')
    expect(shown).toContain('demo')
    expect(shown).toContain('How are you?')
    agent.child.stdin.end()
    expect(await timeToExit(agent)).toBeLessThan(1000)
  })

  it.each([
    [{ OPENAI_TEMPERATURE: 'warm' }, /^openai-agent: OPENAI_TEMPERATURE .*\n$/],
    [{ OPENAI_API_KEY: 'sk-secret\n' }, /^openai-agent: OPENAI_API_KEY (?!.*sk-secret).*\n$/],
  ])('refuses %j in one line with exit code 2', async (env, message) => {
    const agent = start([], env)
    expect(await agent.exited).toEqual([2, null])
    expect(agent.stderr).toMatch(message)
  })

  it('refuses a bad variable with the demo too, and does not stay', async () => {
    const args = [fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url)), 'agent', 'openai', '--demo']
    const child = spawn(process.execPath, args, { env: { PATH: process.env['PATH'], OPENAI_VISION: 'maybe' } })
    expect(await once(child, 'exit')).toEqual([2, null])
  })

  it('refuses a session folder that is a file, and unknown arguments, with exit code 2', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'openai-agent-'))
    writeFileSync(join(dir, 'file'), '')
    const agent = start([], { OPENAI_SESSION_DIR: join(dir, 'file') })
    expect(await agent.exited).toEqual([2, null])
    expect(agent.stderr).toMatch(/^openai-agent: OPENAI_SESSION_DIR /)
    rmSync(dir, { recursive: true })
    const other = start(['--dmo'])
    expect(await other.exited).toEqual([2, null])
    expect(other.stderr).toContain('--dmo')
  })

  it('answers what it owes before it ends with its input', async () => {
    verifies('O15-owes')
    const agent = await startWith(says('x'))
    agent.send({ id: 1, method: 'initialize', params: { protocolVersion: 1 } })
    agent.send({ id: 2, method: 'session/new', params: { cwd: '/', mcpServers: [] } })
    agent.child.stdin.end()
    expect(await agent.exited).toEqual([0, null])
    expect(agent.lines.map((line) => line.id)).toEqual([1, 2])
  })

  it.each(['SIGTERM', 'SIGINT', 'EOF'])('ends within a second of %s, and what runs with it', async (how) => {
    verifies('3.3-shipped-agents-end', 'O15-ends')
    const agent = await startWith({ steps: [text('partial'), { hang: true }] })
    const session = await agent.newSession()
    agent.send(promptOf(1, session))
    await until(() => agent.lines.some((line) => line.method === 'session/update'))
    if (how === 'EOF') agent.child.stdin.end()
    else agent.child.kill(how as NodeJS.Signals)
    expect(await timeToExit(agent)).toBeLessThan(1000)
    expect((await agent.answer(1)).result).toEqual({ stopReason: 'cancelled' })
    await until(() => endpoints[0]!.chats()[0]!.ended === 'aborted')
  })

  it('ends its servers too, also one that does not listen', async () => {
    verifies('3.3-shipped-agents-end', 'O15-ends')
    const agent = await startWith((count) => (count ? says('ok') : calls({ name: 'get_weather', arguments: '{}' })))
    const server = { name: 'deaf', command: process.execPath, args: [mcpServer, 'deaf'], env: [] }
    const session = await agent.newSession({}, [server])
    agent.send(promptOf(1, session))
    await until(() => agent.lines.some((line) => line.method === 'session/request_permission'), 10_000)
    const children = childrenOf(agent.child.pid!)
    expect(children).toHaveLength(1)
    agent.child.kill('SIGTERM')
    expect(await timeToExit(agent)).toBeLessThan(1000)
    await until(() => !isAlive(children[0]!))
  })

  it('ends a server that is still being connected', async () => {
    const agent = await startWith(says('x'))
    const sleeper = 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)'
    await agent.newSession({}, [{ name: 'mute', command: process.execPath, args: ['-e', sleeper], env: [] }])
    await until(() => childrenOf(agent.child.pid!).length === 1)
    const [mute] = childrenOf(agent.child.pid!)
    agent.child.stdin.end()
    expect(await timeToExit(agent)).toBeLessThan(1000)
    await until(() => !isAlive(mute!))
  })

  it('takes a cancel in the same write as its prompt', async () => {
    verifies('O5-same-write')
    const agent = await startWith({ steps: [text('partial'), { hang: true }] })
    const session = await agent.newSession()
    agent.send(promptOf(1, session), { method: 'session/cancel', params: { sessionId: session } })
    expect((await agent.answer(1)).result).toEqual({ stopReason: 'cancelled' })
    agent.send(promptOf(2, session), { method: '$/cancel_request', params: { requestId: 2 } })
    expect((await agent.answer(2)).result).toEqual({ stopReason: 'cancelled' })
  })

  it('survives lines that are no protocol', async () => {
    const agent = await startWith(says('x'))
    agent.child.stdin.write('not json\n[]\n5\n\n{"jsonrpc":"2.0","id":9,"method":"session/prompt"}\n')
    expect((await agent.answer(9)).error.code).toBe(-32602)
    expect(agent.lines.slice(0, 3).map((line) => line.error.code)).toEqual([-32700, -32600, -32600])
    expect(await agent.newSession()).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe('the dialect of the seed', () => {
  it('has its name on every line that belongs to the session, questions of the agent included', async () => {
    verifies('O16-name')
    const agent = await startWith((count) => (count ? says('ok') : calls({ name: 'get_weather', arguments: '{}' })))
    const server = { name: 'weather', command: process.execPath, args: [mcpServer], env: [] }
    const session = await agent.newSession({ sessionId: 'bus-1' }, [server])
    agent.send({ ...promptOf(0, session), sessionId: 'bus-1' })
    await until(() => agent.lines.some((line) => line.method === 'session/request_permission'), 10_000)
    const question = agent.lines.find((line) => line.method === 'session/request_permission')
    const result = { outcome: { outcome: 'selected', optionId: 'allow' } }
    agent.send({ id: question.id, result, sessionId: 'bus-1' })
    expect((await agent.answer(0)).result).toEqual({ stopReason: 'end_turn' })
    const named = agent.lines.filter((line) => line.id !== 'i')
    expect(named.length).toBeGreaterThan(4)
    expect(new Set(named.map((line) => line.sessionId))).toEqual(new Set(['bus-1']))
    expect(agent.lines.find((line) => line.id === 'i')).not.toHaveProperty('sessionId')
  })

  it('may cancel with the name alone', async () => {
    const agent = await startWith({ steps: [text('partial'), { hang: true }] })
    const session = await agent.newSession({ sessionId: 'bus-1' })
    agent.send({ ...promptOf(1, session), sessionId: 'bus-1' })
    await until(() => agent.lines.some((line) => line.method === 'session/update'))
    agent.send({ method: 'cancel', sessionId: 'bus-1' })
    expect((await agent.answer(1)).result).toEqual({ stopReason: 'cancelled' })
  })
})

function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return children.split(' ').flatMap((child) => (child ? [Number(child)] : []))
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
