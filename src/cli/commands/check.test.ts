import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import type { Problem } from '../../config/problem.ts'
import { check } from './check.ts'

let folder = ''
const at = (name: string) => join(folder, name)

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stdio-bus-check-'))
  await mkdir(at('bin'))
  await writeFile(at('bin/tool'), '#!/bin/sh\n', { mode: 0o755 })
  await writeFile(at('bin/plain'), 'no program', { mode: 0o644 })
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function problemsOf(file: unknown, mode = 0o600): Promise<{ code: number; problems: Problem[] }> {
  await writeFile(at('bus.json'), typeof file === 'string' ? file : JSON.stringify(file, null, 2))
  await chmod(at('bus.json'), mode)
  const environment = { PATH: at('bin'), HOME: folder }
  const { code, text } = await check({ config: at('bus.json'), json: true, environment })
  return { code, problems: JSON.parse(text).problems }
}

const TOOL = { id: 'a', command: 'tool' }
const shown = (problems: readonly Problem[]) => problems.map(({ severity, path }) => `${severity} ${path}`)

describe('stdio-bus check', () => {
  it('says nothing against a file that is right', async () => {
    expect(await problemsOf({ pools: [TOOL, { id: 'b', agent: 'echo' }, { id: 'c', registry: 'gemini' }] })).toEqual({
      code: 0,
      problems: [],
    })
    expect(await check({ config: at('bus.json'), environment: { PATH: at('bin') } })).toEqual({
      code: 0,
      text: expect.stringMatching(/^\S+bus\.json: no problems\n/),
    })
  })

  it.each([
    ['a command that is not in PATH', { command: 'nowhere' }, /"nowhere".*PATH/],
    ['a command without permission to execute', { command: 'plain' }, /without permission/],
    ['a path that does not exist', { command: './nowhere', cwd: 'bin' }, /does not exist/],
    ['a directory as a command', { command: './bin', cwd: '.' }, /no file/],
    ['a command outside the PATH of the pool', { command: 'tool', env: { PATH: '/nonexistent' } }, /PATH/],
  ])('%s is a warning: the bus starts, its pool does not work', async (_title, pool, words) => {
    const { code, problems } = await problemsOf({ pools: [{ id: 'a', ...pool }] })
    expect(code).toBe(0)
    expect(shown(problems)).toEqual(['warning pools[0].command'])
    expect(problems[0]?.found).toMatch(words)
    expect(problems[0]?.line).toBeGreaterThan(1)
  })

  it('a command is found in the PATH of the pool, and relative to its directory', async () => {
    const pools = [
      { id: 'a', command: 'tool', env: { PATH: `/nonexistent:${at('bin')}` } },
      { id: 'b', command: './tool', cwd: 'bin' },
    ]
    expect((await problemsOf({ pools })).problems).toEqual([])
  })

  it('a command line in place of a command is shown taken apart', async () => {
    const pool = { id: 'a', command: 'tool server.js', args: ['--port', '1'] }
    const { problems } = await problemsOf({ pools: [pool] })
    expect(problems[0]?.suggestion).toContain('write "command": "tool", "args": ["server.js", "--port", "1"]')
  })

  it('a list of servers that was pasted names import', async () => {
    const { code, problems } = await problemsOf({ mcpServers: { files: { command: 'npx', args: ['-y', 'server'] } } })
    expect(code).toBe(2)
    const pasted = problems.find(({ path }) => path === 'mcpServers')
    expect(pasted?.suggestion).toContain('run "stdio-bus import FILE"')
  })

  it('with --strict a warning is exit 2', async () => {
    await problemsOf({ pools: [{ ...TOOL, cwd: 'gone' }] })
    const environment = { PATH: at('bin') }
    expect((await check({ config: at('bus.json'), environment })).code).toBe(0)
    expect((await check({ config: at('bus.json'), environment, strict: true })).code).toBe(2)
  })

  it('a directory that does not exist is one warning, not two', async () => {
    const { code, problems } = await problemsOf({ pools: [{ ...TOOL, cwd: 'gone' }] })
    expect(code).toBe(0)
    expect(shown(problems)).toEqual(['warning pools[0].cwd'])
  })

  it('a file that others may write is a warning', async () => {
    const { code, problems } = await problemsOf({ pools: [TOOL] }, 0o620)
    expect(code).toBe(0)
    expect(problems).toMatchObject([{ severity: 'warning', suggestion: expect.stringContaining('chmod go-w') }])
  })

  it.each([
    ['an error where an agent of the registry needs them', { id: 'b', registry: 'gemini' }, 2],
    ['a warning where none does', { id: 'b', agent: 'echo' }, 0],
  ])('credentials that others may read are %s, with a command to paste', async (_title, pool, expected) => {
    await writeFile(at('keys.json'), '{}')
    await chmod(at('keys.json'), 0o640)
    const { code, problems } = await problemsOf({ pools: [TOOL, pool], registry: { credentials: 'keys.json' } })
    expect(code).toBe(expected)
    const { text } = await check({ config: at('bus.json'), environment: { PATH: at('bin') } })
    expect(text).toContain(`Run chmod 600 ${at('keys.json')}\n`)
    expect(problems).toMatchObject([{ path: 'registry.credentials', suggestion: expect.stringContaining('chmod 600') }])
    await chmod(at('keys.json'), 0o600)
    expect((await problemsOf({ pools: [TOOL], registry: { credentials: 'keys.json' } })).problems).toEqual([])
  })

  it('files of the registry must exist; a URL is not looked up', async () => {
    const registry = { index: 'index.json', agents: 'agents.json', credentials: 'keys.json' }
    expect(shown((await problemsOf({ pools: [TOOL], registry })).problems)).toEqual([
      'warning registry.index',
      'warning registry.agents',
      'warning registry.credentials',
    ])
    expect((await problemsOf({ pools: [TOOL], registry: { index: 'http://127.0.0.1:1/i' } })).problems).toEqual([])
  })

  it('a key written out is a warning that does not repeat it', async () => {
    const { code, problems } = await problemsOf({ pools: [{ ...TOOL, env: { MY_API_KEY: 'hunter2', MODEL: 'm' } }] })
    expect(code).toBe(0)
    expect(shown(problems)).toEqual(['warning pools[0].env.MY_API_KEY'])
    expect(JSON.stringify(problems)).not.toContain('hunter2')
  })

  it('a door that other machines may reach is an error, and so is a socket without a directory', async () => {
    const { code, problems } = await problemsOf({
      pools: [TOOL],
      listen: { tcp: ['127.0.0.1:0', '0.0.0.0:7400'], unix: 'gone/s.sock' },
    })
    expect(code).toBe(2)
    expect(shown(problems)).toEqual(['error listen.tcp[1]', 'error listen.unix'])
  })

  it('such a door is a warning for a bus that is told to open it', async () => {
    await problemsOf({ pools: [TOOL], listen: { tcp: '0.0.0.0:7400' } })
    const options = { config: at('bus.json'), environment: { PATH: at('bin') }, allowUnauthenticated: true }
    const { code, text } = await check(options)
    expect([code, text]).toEqual([0, expect.stringContaining('warning  listen.tcp')])
  })

  it.each([
    ['an MCP pool that is shared by default', { protocol: 'mcp' }, 1],
    ['an MCP agent that is shared by default', { aio: { type: 'mcp' } }, 1],
    ['one that is shared on purpose', { protocol: 'mcp', sharing: 'shared' }, 0],
    ['one that is leased', { protocol: 'mcp', sharing: 'lease' }, 0],
    ['one of the modern era', { protocol: 'mcp', era: 'modern' }, 0],
    ['an ACP pool', { protocol: 'acp' }, 0],
  ])('6.7 %s: %o gets %i recommendations', async (_title, pool, count) => {
    verifies('6.7.1-check')
    const { code, problems } = await problemsOf({ pools: [{ ...TOOL, ...pool }] })
    expect(code).toBe(0)
    expect(problems.filter(({ severity, found }) => severity === 'note' && /roots, sampling/.test(found))).toHaveLength(
      count,
    )
  })

  it('pipes that cannot be made are a warning', async () => {
    const pools = [TOOL, { id: 'b', command: 'tool', pipes: 'fifo' }]
    expect(shown((await problemsOf({ pools })).problems)).toEqual(['warning pools[1].pipes'])
    await writeFile(at('bin/mkfifo'), '#!/bin/sh\n', { mode: 0o755 })
    expect((await problemsOf({ pools })).problems).toEqual([])
  })

  it('a fallback of another protocol is a warning, one that may be the same is none', async () => {
    const pool = (id: string, protocol: string, fallback?: string) => ({ id, command: 'tool', protocol, fallback })
    const pools = [pool('a', 'acp', 'b'), pool('b', 'plain', 'c'), pool('c', 'auto', 'd'), pool('d', 'acp', 'e')]
    const { code, problems } = await problemsOf({ pools: [...pools, pool('e', 'acp')] })
    expect(code).toBe(0)
    expect(shown(problems)).toEqual(['warning pools[0].fallback'])
  })

  it('a total below the longest line is a warning', async () => {
    const { problems } = await problemsOf({ pools: [TOOL], limits: { max_total_buffer: 1000 } })
    expect(shown(problems)).toEqual(['warning limits.max_total_buffer'])
  })

  it('8.4 mistakes of the file and of the machine come together', async () => {
    const { code, problems } = await problemsOf(`{
      "pools": [
        { "id": "a", "command": "nowhere", "env": { "K": "\${UNSET_VARIABLE}" } },
        { "id": "b", "command": "plain", "shareing": "lease" } ],
      "default_pool": "c" }`)
    expect(code).toBe(2)
    expect(shown(problems)).toEqual([
      'warning pools[0].command',
      'error pools[0].env.K',
      'warning pools[1].command',
      'error pools[1].shareing',
      'error default_pool',
    ])
    expect(problems[1]?.found).toContain('UNSET_VARIABLE')
  })

  it('a missing file is exit 2 and names init', async () => {
    const { code, text } = await check({ config: at('gone.json') })
    expect(code).toBe(2)
    expect(text).toContain('stdio-bus init')
  })

  it('is coloured only when asked', async () => {
    const plain = await check({ config: at('gone.json') })
    const colored = await check({ config: at('gone.json'), color: true })
    expect(plain.text).not.toContain('\u001b[')
    expect(colored.text).toContain('\u001b[')
  })
})

describe('the variables that a worker will see', () => {
  async function variablesOf(pool: object, environment: Record<string, string>) {
    await writeFile(at('bus.json'), JSON.stringify({ pools: [{ id: 'a', ...pool }] }), { mode: 0o600 })
    const options = { config: at('bus.json'), environment: { PATH: at('bin'), ...environment } }
    const [plain, json] = [await check(options), await check({ ...options, json: true })]
    return { code: plain.code, text: plain.text, ...JSON.parse(json.text) }
  }

  it('are named with where they come from, never with their values', async () => {
    verifies('8.4-variables')
    const env = { MODEL: 'small', KEY: `\${MY_KEY}` }
    const { text, variables } = await variablesOf({ command: 'tool', env }, { MY_KEY: 'hunter2', LANG: 'C' })
    expect(variables).toEqual([
      { pool: 'a', own: ['MODEL', `KEY (\${MY_KEY})`], passed: [], safe: ['PATH', 'LANG'], inherits: false },
    ])
    expect(text).toContain(`of the pool (env): MODEL, KEY (\${MY_KEY})\n`)
    expect(text).toContain('of the bus, as for every worker: PATH, LANG\n')
    expect(text).not.toContain('hunter2')
  })

  it('are those that a shipped agent is documented to read, unless the pool sets them', async () => {
    const exported = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_MODEL: 'm', GITHUB_TOKEN: 'hunter2' }
    const { text, problems } = await variablesOf({ agent: 'openai', env: { OPENAI_MODEL: 'mine' } }, exported)
    expect(text).toContain('of the bus, for this agent: OPENAI_BASE_URL\n')
    expect(text).toContain('of the pool (env): OPENAI_MODEL\n')
    expect(text).not.toContain('GITHUB_TOKEN')
    expect(problems).toEqual([])
  })

  it('are all of them where the pool asks for that', async () => {
    const { text } = await variablesOf({ command: 'tool', inherit_env: true }, { ANY: '1', OTHER: '2' })
    expect(text).toContain('all of the bus (inherit_env): 3 variables\n')
  })

  it.each([
    ['a program', { command: 'tool', args: ['-y', '@zed-industries/claude-code-acp@latest'] }, 'ANTHROPIC_API_KEY'],
    ['an agent of the registry', { registry: 'gemini' }, 'GEMINI_API_KEY'],
    ['openai-agent by its own name', { command: 'tool', args: ['openai-agent'] }, 'OPENAI_BASE_URL'],
  ])('%s: %o is documented to read a variable that is set and not passed', async (_title, pool, name) => {
    verifies('8.4-variables')
    const { code, problems } = await variablesOf(pool, { [name]: 'hunter2' })
    expect([code, shown(problems)]).toEqual([0, ['warning pools[0]']])
    expect(problems[0].found).toContain(name)
    expect(problems[0].suggestion).toBe(`add "env": { "${name}": "\${${name}}" }`)
    const mended = await variablesOf({ ...pool, env: { [name]: `\${${name}}` } }, { [name]: 'hunter2' })
    expect(mended.problems).toEqual([])
  })

  it('a demo that ignores the endpoint which is set is a warning', async () => {
    const { problems } = await variablesOf({ agent: 'openai', args: ['--demo'] }, { OPENAI_BASE_URL: 'http://h/v1' })
    expect(problems).toMatchObject([{ severity: 'warning', found: expect.stringContaining('OPENAI_BASE_URL is set') }])
  })
})
