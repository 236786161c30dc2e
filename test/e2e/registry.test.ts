import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import * as acp from '@agentclientprotocol/sdk'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { currentPlatform } from '../../src/registry/platform.ts'
import { verifies } from '../conformance/verifies.ts'
import { tarGz } from '../fixtures/registry/archives.ts'
import { type IndexServer, startIndexServer } from '../fixtures/registry/index-server.ts'
import { packAgent } from '../fixtures/registry/pack.ts'

const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const STUBBORN = fileURLToPath(new URL('../fixtures/registry/stubborn-agent.mjs', import.meta.url))
const HERE = currentPlatform()!
const SECRET = 'sk-never-to-be-seen'

let folder: string
let server: IndexServer
let flags: string[]
let credentials: string
const running = new Set<ChildProcess>()

const entry = (id: string, distribution: object) => ({
  id,
  name: id,
  version: '1.0.0',
  description: `the agent ${id}`,
  distribution,
})
const command = (...args: string[]) => ({ binary: { [HERE]: { cmd: process.execPath, args } } })

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'registry-e2e-'))
  server = await startIndexServer()
  const archive = tarGz([{ name: 'bin/tool', content: '#!/bin/sh\necho "tool $*"\n', executable: true }])
  const sha256 = createHash('sha256').update(archive).digest('hex')
  server.pages.set('/tool.tgz', archive)
  const tool = { binary: { [HERE]: { archive: `${server.url}/tool.tgz`, cmd: './bin/tool', sha256 } } }
  const alpha = { npx: { package: `file:${packAgent(folder, 'alpha')}`, args: ['--acp'] } }
  const agents = [entry('alpha', alpha), entry('tool', tool), { id: 'broken' }]
  server.pages.set('/index.json', JSON.stringify({ version: '1.0.0', agents }))

  const agentsFile = join(folder, 'agents.json')
  const custom = [
    entry('stubborn', command(STUBBORN)),
    entry('leaver', command(STUBBORN, 'leave')),
    entry(
      'interrupted',
      command('-e', "process.on('SIGINT', () => process.exit(5)); console.log('up'); setInterval(() => {}, 1000)"),
    ),
    entry('absent', { binary: { [HERE]: { cmd: join(folder, 'no-such-program') } } }),
  ]
  writeFileSync(agentsFile, JSON.stringify({ version: '1.0.0', agents: custom }))
  credentials = join(folder, 'credentials.json')
  const keys = { version: '1.0.0', agents: { alpha: { apiKey: SECRET, apiKeyEnv: 'ALPHA_KEY' } } }
  writeFileSync(credentials, JSON.stringify(keys), { mode: 0o600 })
  flags = ['--index', `${server.url}/index.json`, '--agents', agentsFile]
})

afterAll(async () => {
  for (const child of running) child.kill('SIGKILL')
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

let home: string
beforeEach(() => {
  home = mkdtempSync(join(folder, 'home-'))
})

function start(...args: string[]) {
  const env = { ...process.env, HOME: home, NO_COLOR: '1' }
  const child = spawn(process.execPath, [CLI, 'registry', ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const exit = once(child, 'exit').then(([code]) => code as number)
  return { child, exit, stderr: () => stderr }
}

async function finish(...args: string[]) {
  const { child, exit, stderr } = start(...args)
  child.stdin.end()
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  await once(child, 'close')
  return { code: await exit, stdout, stderr: stderr() }
}

async function firstLine(child: ChildProcess): Promise<string> {
  const [line] = await once(createInterface({ input: child.stdout! }), 'line')
  return line
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  // Where /proc is, a process that has ended but whose parent has not looked yet is told apart.
  const state = `/proc/${pid}/stat`
  return !existsSync(state) || readFileSync(state, 'utf8').split(') ')[1]?.[0] !== 'Z'
}

async function goneWithin(pids: readonly number[], limitMs: number): Promise<number> {
  const startMs = Date.now()
  while (pids.some(isAlive) && Date.now() - startMs < limitMs + 1_000) await sleep(20)
  expect(pids.filter(isAlive)).toEqual([])
  return Date.now() - startMs
}

/** Everything that is written below a folder, as one text. */
function contentOf(path: string): string {
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name))
  return names
    .filter((name) => statSync(name).isFile())
    .map((name) => readFileSync(name, 'latin1'))
    .join('\n')
}

describe('registry run', () => {
  it('is the agent for an ACP client, installed on the way, with its secret in its environment only', async () => {
    const { child, exit, stderr } = start('run', 'alpha', ...flags, '--credentials', credentials, '--', 'extra')
    const texts: string[] = []
    const stream = acp.ndJsonStream(
      Writable.toWeb(child.stdin),
      Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
    )
    const started = await acp
      .client()
      .onNotification(acp.methods.client.session.update, ({ params }) => {
        const { update } = params
        if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text')
          texts.push(update.content.text)
      })
      .connectWith(stream, async (ctx) => {
        const hello = await ctx.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} })
        expect(hello.agentInfo?.name).toBe('fixture')
        const { sessionId } = await ctx.request(acp.methods.agent.session.new, { cwd: folder, mcpServers: [] })
        const prompt = [{ type: 'text' as const, text: 'hello' }]
        const turn = await ctx.request(acp.methods.agent.session.prompt, { sessionId, prompt })
        expect(turn).toMatchObject({ stopReason: 'end_turn' })
        return ctx.request('_fixture/start', { variable: 'ALPHA_KEY' })
      })
    expect(texts).toEqual(['echo: hello'])
    expect(started).toEqual({ args: ['--acp', 'extra'], value: SECRET })
    child.stdin.end()
    expect(await exit).toBe(0)
    expect(stderr()).toContain('installed alpha 1.0.0')
    expect(stderr()).not.toContain(SECRET)
    expect(contentOf(home)).not.toContain(SECRET)
  })

  it('gives the agent what came before it was installed, and its exit code to the caller', async () => {
    verifies('R6-is-agent')
    const { child, exit } = start('run', 'alpha', ...flags)
    child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
    child.stdin.write('{"jsonrpc":"2.0","id":2,"method":"_fixture/exit","params":{"code":7}}\n')
    expect(JSON.parse(await firstLine(child))).toMatchObject({ id: 1, result: { protocolVersion: 1 } })
    expect(await exit).toBe(7)
  })

  it('starts offline what has been installed', async () => {
    verifies('R2-offline')
    expect((await finish('install', 'tool', ...flags)).code).toBe(0)
    const pages = [...server.pages]
    server.pages.set('/index.json', 503)
    server.pages.set('/tool.tgz', 503)
    try {
      const run = await finish('run', 'tool', ...flags, '--refresh', '--', 'a', '--b')
      expect(run).toMatchObject({ code: 0, stdout: 'tool a --b\n' })
      expect(run.stderr).toContain('the copy of the index on disk is used')
    } finally {
      for (const [path, page] of pages) server.pages.set(path, page)
    }
  })

  it('passes signals on', async () => {
    verifies('R6-signals')
    const { child, exit } = start('run', 'interrupted', ...flags)
    await firstLine(child)
    child.kill('SIGINT')
    expect(await exit).toBe(5)
  })

  it('ends an agent that ignores SIGTERM, and its children, within a second', async () => {
    verifies('R6-nothing-left')
    const { child, exit } = start('run', 'stubborn', ...flags)
    const pids = (await firstLine(child)).split(' ').map(Number)
    child.kill('SIGTERM')
    expect(await goneWithin(pids, 2_000)).toBeLessThan(2_000)
    expect(await exit).toBe(137)
  })

  it('leaves nothing behind when it is killed itself', async () => {
    verifies('R6-nothing-left')
    const { child } = start('run', 'stubborn', ...flags)
    const pids = (await firstLine(child)).split(' ').map(Number)
    child.kill('SIGKILL')
    expect(await goneWithin(pids, 3_000)).toBeLessThan(3_000)
  })

  it('ends what the agent leaves behind', async () => {
    const { child, exit } = start('run', 'leaver', ...flags)
    const pids = (await firstLine(child)).split(' ').map(Number)
    expect(await exit).toBe(3)
    await goneWithin(pids, 500)
  })

  it('says why an agent cannot be started, on stderr', async () => {
    verifies('R6-stderr')
    const run = await finish('run', 'absent', ...flags)
    expect(run).toMatchObject({ code: 1, stdout: '' })
    expect(run.stderr).toMatch(/agent "absent" cannot be started.*ENOENT/)
  })
})

describe('registry install', () => {
  it('by two at once downloads once', async () => {
    verifies('R2-once')
    server.hits.clear()
    const both = await Promise.all([finish('install', 'tool', ...flags), finish('install', 'tool', ...flags, '--json')])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    expect(server.hits.get('/tool.tgz')).toBe(1)
    expect(JSON.parse(both[1]?.stdout ?? '')).toMatchObject({ id: 'tool', kind: 'binary', version: '1.0.0' })
  })

  it('that is interrupted leaves nothing and says so', async () => {
    verifies('R2-interrupted')
    const slow = entry('slow', {
      binary: { [HERE]: { archive: `${server.url}/slow.tgz`, cmd: 'x', sha256: 'a'.repeat(64) } },
    })
    const agents = join(home, 'slow.json')
    writeFileSync(agents, JSON.stringify({ agents: [slow] }))
    server.pages.set('/slow.tgz', 0)
    const { child, exit, stderr } = start('install', 'slow', '--agents', agents, '--index', agents)
    while (!stderr().includes('downloading')) await sleep(20)
    child.kill('SIGTERM')
    expect(await exit).toBe(143)
    expect(stderr()).toContain('interrupted')
    expect(readdirSync(join(home, '.stdio-bus/registry/tmp'))).toEqual([])
  })

  it('refuses what it cannot do: unknown ids and distributions are mistakes of the user', async () => {
    const unknown = await finish('install', 'alpa', ...flags)
    expect(unknown).toMatchObject({ code: 2, stdout: '' })
    expect(unknown.stderr).toContain('did you mean "alpha"?')
    expect((await finish('install', 'alpha', ...flags, '--distribution', 'uvx')).code).toBe(2)
    expect((await finish('install', 'broken', ...flags)).stderr).toContain('not usable')
  })
})

describe('registry update, prune and rm', () => {
  const toolOf = (version: string) => {
    const target = { archive: `${server.url}/tool-${version}.tgz`, cmd: './bin/tool' }
    return { ...entry('tool', { binary: { [HERE]: target } }), version }
  }
  const offer = (...agents: object[]) => {
    server.pages.set('/changing.json', JSON.stringify({ version: '1.0.0', agents }))
  }
  let changing: string[]
  const installedOf = (id: string) => {
    const parent = join(home, '.stdio-bus/registry/agents', id)
    return existsSync(parent) ? readdirSync(parent).map((name) => name.split('-')[0]) : []
  }

  beforeEach(async () => {
    for (const version of ['1.0.0', '2.0.0']) server.pages.set(`/tool-${version}.tgz`, server.pages.get('/tool.tgz')!)
    changing = ['--index', `${server.url}/changing.json`]
    offer(toolOf('1.0.0'))
    expect((await finish('install', 'tool', ...changing)).code).toBe(0)
  })

  it('a newer version comes beside the old one, which prune removes', async () => {
    verifies('R2-update', 'R2-prune')
    expect((await finish('update', ...changing)).stdout).toContain('tool 1.0.0 (binary) is current')
    offer(toolOf('2.0.0'))
    const update = await finish('update', ...changing)
    expect(update).toMatchObject({ code: 0, stdout: expect.stringContaining('tool 1.0.0 -> 2.0.0 (binary)') })
    expect(installedOf('tool').sort()).toEqual(['1.0.0', '2.0.0'])
    const prune = await finish('prune', ...changing)
    expect(prune).toMatchObject({ code: 0, stdout: 'removed tool 1.0.0 (binary)\n' })
    expect(installedOf('tool')).toEqual(['2.0.0'])
    expect((await finish('prune', ...changing)).stdout).toContain('nothing to remove')
  })

  it('what is broken, and what the index has no longer, is removed by prune and told by update', async () => {
    const [name] = readdirSync(join(home, '.stdio-bus/registry/agents/tool'))
    offer()
    expect((await finish('update', ...changing)).stdout).toContain('tool 1.0.0 (binary) is not in the index any more')
    rmSync(join(home, '.stdio-bus/registry/agents/tool', name!, 'files'), { recursive: true })
    offer(toolOf('1.0.0'))
    expect((await finish('prune', ...changing, '--refresh')).stdout).toMatch(/^removed tool \(broken\): /)
    expect(installedOf('tool')).toEqual([])
  })

  it('without an index nothing is removed', async () => {
    verifies('R2-prune')
    const elsewhere = ['--index', `${server.url}/nowhere.json`]
    for (const command of ['prune', 'update']) {
      const refused = await finish(command, ...elsewhere)
      expect(refused).toMatchObject({ code: 1, stdout: '' })
      expect(refused.stderr).toContain('nothing was changed')
    }
    expect(installedOf('tool')).toEqual(['1.0.0'])
  })

  it('rm removes one agent; what is not installed, or no name at all, is exit 2 with what is', async () => {
    verifies('R2-rm')
    for (const name of ['toool', '../../..', '.']) {
      const refused = await finish('rm', name)
      expect(refused).toMatchObject({ code: 2, stdout: '' })
      expect(refused.stderr).toContain('installed: tool')
    }
    expect(await finish('rm', 'tool')).toMatchObject({ code: 0, stdout: 'removed tool 1.0.0 (binary)\n' })
    expect(installedOf('tool')).toEqual([])
    expect((await finish('rm', 'tool')).stderr).toContain('nothing is')
    expect(readdirSync(join(home, '.stdio-bus/registry/tmp'))).toEqual([])
  })
})

describe('registry ls and show', () => {
  it('list every agent with its mark, and report the bad entry on stderr', async () => {
    await finish('install', 'tool', ...flags)
    const { code, stdout, stderr } = await finish('ls', ...flags)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^● tool +1\.0\.0 +binary +tool: the agent tool$/m)
    expect(stdout).toMatch(/^ {2}alpha +1\.0\.0 +npx/m)
    expect(stdout).toMatch(/^● openai-agent/m)
    expect(stderr).toContain('entry "broken" is left out')
  })

  it('print JSON that a program can read', async () => {
    const { stdout } = await finish('ls', ...flags, '--json')
    const listed = JSON.parse(stdout)
    expect(listed.index.state).toBe('fetched')
    expect(listed.agents.find(({ id }: { id: string }) => id === 'alpha')).toMatchObject({
      installed: false,
      supported: true,
      origin: 'index',
      distributions: ['npx'],
    })
    expect(listed.problems).toMatchObject([{ id: 'broken', position: 2 }])
    const shown = await finish('show', 'tool', ...flags, '--json')
    expect(JSON.parse(shown.stdout).distribution.binary[HERE].cmd).toBe('./bin/tool')
    expect((await finish('show', 'tool', ...flags)).stdout).toContain(`${server.url}/tool.tgz`)
  })
})

describe('credentials that others can read', () => {
  it('are refused with exit 2 and the command that helps', async () => {
    verifies('R4-exposed')
    const exposed = join(folder, 'exposed.json')
    writeFileSync(exposed, '{"version": 1, "agents": {}}')
    chmodSync(exposed, 0o644)
    const run = await finish('run', 'alpha', ...flags, '--credentials', exposed)
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toContain(`chmod 600 ${exposed}`)
  })
})
