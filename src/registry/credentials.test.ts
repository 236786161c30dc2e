import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readCredentials } from './credentials.ts'
import { currentPlatform } from './platform.ts'
import { resolveAgent } from './resolve.ts'
import { chooseSources } from './sources.ts'

const SECRET = 'sk-do-not-show-me'
let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'credentials-'))
  path = join(folder, 'credentials.json')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function write(content: unknown, mode = 0o600): void {
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  chmodSync(path, mode)
}

const faultOf = (): Promise<Error & { reason: string; exitCode: number }> =>
  readCredentials(path).then(
    () => expect.unreachable(),
    (error) => error,
  )

describe('the credentials file', () => {
  it('gives each agent its variables; apiKey goes where apiKeyEnv says', async () => {
    const tool = { env: { A: '1' }, apiKey: SECRET, apiKeyEnv: 'TOOL_KEY' }
    write({ version: '1.0.0', agents: { tool, other: { env: { B: '2' } } } })
    const credentials = await readCredentials(path)
    expect(credentials.get('tool')).toEqual({ A: '1', TOOL_KEY: SECRET })
    expect(credentials.get('other')).toEqual({ B: '2' })
    expect((await readCredentials(undefined)).size).toBe(0)
  })

  it.each([0o640, 0o604, 0o660, 0o644, 0o610, 0o601])('is refused with mode %o, naming chmod 600', async (mode) => {
    write({ version: 1, agents: {} }, mode)
    const fault = await faultOf()
    expect(fault).toMatchObject({ reason: 'credentials_exposed', exitCode: 2 })
    expect(fault.message).toContain(`chmod 600 ${path}`)
  })

  it.each([0o600, 0o400, 0o700])('is accepted with mode %o', async (mode) => {
    write({ version: 1, agents: {} }, mode)
    expect((await readCredentials(path)).size).toBe(0)
  })

  it.each([
    ['apiKey without apiKeyEnv', { version: 1, agents: { tool: { apiKey: SECRET } } }],
    ['apiKeyEnv without apiKey', { version: 1, agents: { tool: { apiKeyEnv: 'KEY' } } }],
    ['no agents', { version: 1, tool: SECRET }],
    ['a bad id', { version: 1, agents: { 'Not An Id': { env: { A: SECRET } } } }],
    ['a value that is no text', { version: 1, agents: { tool: { env: { A: [SECRET] } } } }],
    ['a bad name', { version: 1, agents: { tool: { env: { 'A=B': SECRET } } } }],
    ['no JSON', `{"version": 1,\n "agents": ${SECRET}`],
  ])('is refused with %s, and never quoted', async (_title, content) => {
    write(content)
    const fault = await faultOf()
    expect(fault).toMatchObject({ reason: 'credentials_unreadable', exitCode: 2 })
    expect(`${fault.message} ${fault.stack} ${JSON.stringify(fault)}`).not.toContain(SECRET)
  })

  it('must be there, and be a file', async () => {
    expect((await faultOf()).reason).toBe('credentials_unreadable')
    execFileSync('mkfifo', ['-m', '600', path])
    expect((await faultOf()).message).toContain('not a file')
  })

  it('wins over the pool, which wins over the index; only its names can be told', async () => {
    const distribution = { binary: { [currentPlatform()!]: { cmd: 'x', env: { A: 'index', B: 'index', C: 'index' } } } }
    const agentsFile = join(folder, 'agents.json')
    writeFileSync(
      agentsFile,
      JSON.stringify({ agents: [{ id: 'tool', name: 'tool', version: '1.0.0', distribution }] }),
    )
    write({ version: 1, agents: { tool: { env: { C: SECRET } } } })
    const flags = { index: agentsFile, agentsFile, credentialsFile: path, cacheDir: join(folder, 'cache') }
    const agent = await resolveAgent('tool', { sources: chooseSources(flags, {}, {}), env: { B: 'pool', C: 'pool' } })
    expect(agent.env).toEqual({ A: 'index', B: 'pool', C: SECRET })
    expect(agent.secretNames).toEqual(['C'])
    expect(JSON.stringify({ ...agent, env: undefined })).not.toContain(SECRET)
  })
})
