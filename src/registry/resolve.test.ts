import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { tarGz, zip } from '../../test/fixtures/registry/archives.ts'
import { type IndexServer, startIndexServer } from '../../test/fixtures/registry/index-server.ts'
import { packAgent } from '../../test/fixtures/registry/pack.ts'
import { currentPlatform, PLATFORMS } from './platform.ts'
import { openRegistry, resolveAgent } from './resolve.ts'
import { chooseSources, type SourceSettings } from './sources.ts'

const HERE = currentPlatform()!
const ELSEWHERE = PLATFORMS.find((platform) => platform !== HERE)!
const SCRIPT = '#!/bin/sh\necho "started $1 $FROM_INDEX"\n'

let packed: string
let alpha: string
let folder: string
let server: IndexServer
let warnings: string[]

beforeAll(() => {
  packed = mkdtempSync(join(tmpdir(), 'registry-packed-'))
  alpha = packAgent(packed, 'alpha')
})
afterAll(() => rmSync(packed, { recursive: true, force: true }))

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'registry-'))
  warnings = []
  server = await startIndexServer()
})
afterEach(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

const entry = (id: string, distribution: object, version = '1.0.0') => ({
  id,
  name: id,
  version,
  description: id,
  distribution,
})

function serveIndex(...agents: unknown[]): void {
  server.pages.set('/index.json', JSON.stringify({ version: '1.0.0', agents }))
}

function settings(more: SourceSettings = {}) {
  const base = { index: `${server.url}/index.json`, cacheDir: join(folder, 'cache') }
  return { sources: chooseSources({ ...base, ...more }, {}, {}), onWarning: (text: string) => warnings.push(text) }
}

function writeAgents(...agents: object[]): string {
  const path = join(folder, 'agents.json')
  writeFileSync(path, JSON.stringify({ version: '1.0.0', agents }))
  return path
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

function serveBinary(name: string, bytes: Buffer, more: object = {}): object {
  server.pages.set(`/${name}`, bytes)
  const target = { archive: `${server.url}/${name}`, cmd: './bin/agent', sha256: sha256(bytes), ...more }
  return { binary: { [HERE]: target } }
}

const HONEST = [{ name: 'bin/agent', content: SCRIPT, executable: true }]

describe('an agent of an index over http', () => {
  it.each([
    ['a tarball', 'agent.tar.gz', () => tarGz(HONEST)],
    ['a zip', 'agent.zip', () => zip(HONEST)],
    ['a program as it is', 'agent-linux', () => Buffer.from(SCRIPT)],
  ])('is installed from %s, checked, and starts', async (_title, name, make) => {
    serveIndex(entry('tool', serveBinary(name, make(), { args: ['now'], env: { FROM_INDEX: 'yes' } })))
    const agent = await resolveAgent('tool', settings())
    expect(agent).toMatchObject({ kind: 'binary', version: '1.0.0', args: ['now'], env: { FROM_INDEX: 'yes' } })
    const env = { ...process.env, ...agent.env }
    expect(execFileSync(agent.command, [...agent.args], { env, encoding: 'utf8' })).toBe('started now yes\n')
    expect(warnings).toEqual([])
  })

  it('is refused with a wrong sha256, and nothing is left', async () => {
    verifies('R3-sha')
    serveIndex(entry('tool', serveBinary('agent.tgz', tarGz(HONEST), { sha256: 'a'.repeat(64) })))
    const fault = await resolveAgent('tool', settings()).catch((error) => error)
    expect(fault).toMatchObject({ reason: 'checksum_mismatch', exitCode: 1 })
    expect(fault.message).toContain('a'.repeat(64))
    expect(readdirSync(join(folder, 'cache/agents/tool'))).toEqual([])
    expect(readdirSync(join(folder, 'cache/tmp'))).toEqual([])
  })

  it('is installed without a sha256, with a warning', async () => {
    verifies('R3-sha')
    serveIndex(entry('tool', serveBinary('agent.tgz', tarGz(HONEST), { sha256: undefined })))
    await resolveAgent('tool', settings())
    expect(warnings.join()).toContain('has no sha256')
  })

  it.each([
    ['..', [...HONEST, { name: '../../../outside', content: 'x' }], 'archive_refused'],
    ['an absolute path', [...HONEST, { name: '/outside', content: 'x' }], 'archive_refused'],
    ['a link that leaves', [...HONEST, { name: 'l', link: '../../../..' }], 'archive_refused'],
    ['no program', [{ name: 'readme', content: 'x' }], 'command_missing'],
    ['a folder as its program', [{ name: 'bin/agent', folder: true }], 'command_missing'],
  ])('is refused with %s in its archive, and nothing is left', async (_title, entries, reason) => {
    serveIndex(entry('tool', serveBinary('agent.tgz', tarGz(entries))))
    await expect(resolveAgent('tool', settings())).rejects.toMatchObject({ reason })
    expect(readdirSync(join(folder, 'cache/agents/tool'))).toEqual([])
    expect(existsSync(join(folder, 'outside'))).toBe(false)
  })

  it('is refused when its archive is not there or not an archive', async () => {
    const gone = serveBinary('agent.tgz', tarGz(HONEST))
    server.pages.set('/agent.tgz', 404)
    serveIndex(entry('gone', gone), entry('junk', serveBinary('junk.tgz', Buffer.from('junk'))))
    await expect(resolveAgent('gone', settings())).rejects.toMatchObject({ reason: 'network' })
    await expect(resolveAgent('junk', settings())).rejects.toMatchObject({ reason: 'archive_broken' })
  })

  it('is installed from an npm tarball without network, without its scripts, and runs on this Node', async () => {
    serveIndex(entry('alpha', { npx: { package: `file:${alpha}`, args: ['--acp'], env: { FROM_INDEX: 'yes' } } }))
    const agent = await resolveAgent('alpha', settings())
    expect(agent).toMatchObject({ kind: 'npx', command: process.execPath, env: { FROM_INDEX: 'yes' } })
    expect(agent.args).toEqual([expect.stringMatching(/agent\.mjs$/), '--acp'])
    const input = '{"id":1,"method":"initialize"}\n'
    expect(execFileSync(agent.command, [...agent.args], { input, encoding: 'utf8' })).toContain('"protocolVersion":1')
    expect(readdirSync(join(agent.args[0] ?? '', '..'))).not.toContain('postinstall-ran')
  })

  it('starts the program of a package that "cmd" names', async () => {
    serveIndex(
      entry('other', { npx: { package: `file:${alpha}`, cmd: 'other-program' } }),
      entry('absent', { npx: { package: `file:${alpha}`, cmd: 'no-such' } }),
    )
    const agent = await resolveAgent('other', settings())
    expect(execFileSync(agent.command, [...agent.args], { encoding: 'utf8' })).toBe('other program\n')
    const fault = await resolveAgent('absent', settings()).catch((error) => error)
    expect(fault).toMatchObject({ reason: 'command_missing' })
    expect(fault.message).toContain('alpha, other-program')
  })

  it('is refused when its tarball is not there', async () => {
    serveIndex(entry('alpha', { npx: { package: `file:${folder}/absent.tgz` } }))
    await expect(resolveAgent('alpha', settings())).rejects.toMatchObject({ reason: 'package_not_found' })
  })
})

describe('an installation', () => {
  it('is made once by many at the same time, and found again', async () => {
    verifies('R2-once')
    serveIndex(entry('tool', serveBinary('agent.tgz', tarGz(HONEST))))
    const registry = await openRegistry(settings())
    expect(await registry.isInstalled('tool')).toBe(false)
    const all = await Promise.all(Array.from({ length: 8 }, () => registry.resolve('tool')))
    expect(new Set(all.map(({ command }) => command)).size).toBe(1)
    expect(server.hits.get('/agent.tgz')).toBe(1)
    expect(await registry.isInstalled('tool')).toBe(true)
    expect(readdirSync(join(folder, 'cache/agents/tool'))).toHaveLength(1)
  })

  it('is used without any network, also when the index is old and the tarball gone', async () => {
    const tarball = join(folder, basename(alpha))
    writeFileSync(tarball, readFileSync(alpha))
    serveIndex(
      entry('alpha', { npx: { package: `file:${tarball}` } }),
      entry('tool', serveBinary('a.tgz', tarGz(HONEST))),
    )
    const before = await resolveAgent('alpha', settings())
    await resolveAgent('tool', settings())
    await server.close()
    rmSync(tarball)
    const old = { ...settings().sources, ttlMs: 0 }
    const offline = { sources: old, onWarning: (text: string) => warnings.push(text) }
    expect(await resolveAgent('alpha', offline)).toEqual(before)
    expect((await resolveAgent('tool', offline)).command).toContain('bin/agent')
    expect(warnings.join()).toContain('the copy of the index on disk is used')
  })

  it('is made anew for another version, archive or replaced file, beside the old one', async () => {
    verifies('R2-beside')
    const tarball = join(folder, 'local.tgz')
    writeFileSync(tarball, readFileSync(alpha))
    serveIndex(entry('alpha', { npx: { package: `file:${tarball}` } }))
    const first = await resolveAgent('alpha', settings())
    utimesSync(tarball, 1, 1)
    const second = await resolveAgent('alpha', settings())
    expect(second.folder).not.toBe(first.folder)
    expect(existsSync(first.folder ?? '')).toBe(true)
  })

  it('that was damaged is made anew', async () => {
    serveIndex(entry('tool', serveBinary('agent.tgz', tarGz(HONEST))))
    const agent = await resolveAgent('tool', settings())
    rmSync(agent.command)
    expect((await resolveAgent('tool', settings())).command).toBe(agent.command)
    expect(existsSync(agent.command)).toBe(true)
  })

  it('reports its progress with the size', async () => {
    const bytes = tarGz(HONEST)
    serveIndex(entry('tool', serveBinary('agent.tgz', bytes)))
    const seen: object[] = []
    await resolveAgent('tool', { ...settings(), onProgress: (progress) => seen.push(progress) })
    const total = { doneBytes: bytes.length, totalBytes: bytes.length }
    expect(seen).toContainEqual({ id: 'tool', version: '1.0.0', phase: 'downloading', ...total })
    expect(seen.at(-1)).toMatchObject({ phase: 'installed' })
  })

  it('that is interrupted leaves nothing', async () => {
    serveIndex(entry('tool', serveBinary('agent.tgz', tarGz(HONEST))))
    const controller = new AbortController()
    const onProgress = () => controller.abort()
    const run = resolveAgent('tool', { ...settings(), signal: controller.signal, onProgress })
    await expect(run).rejects.toMatchObject({ reason: 'cancelled' })
    expect(readdirSync(join(folder, 'cache/agents/tool'))).toEqual([])
    expect(readdirSync(join(folder, 'cache/tmp'))).toEqual([])
  })

  it('names the cache that cannot be written', async () => {
    serveIndex(entry('tool', serveBinary('agent.tgz', tarGz(HONEST))))
    const cacheDir = join(folder, 'a-file')
    writeFileSync(cacheDir, '')
    const fault = await resolveAgent('tool', settings({ cacheDir })).catch((error) => error)
    expect(fault).toMatchObject({ reason: 'cache_unusable', exitCode: 1 })
    expect(fault.message).toContain(cacheDir)
  })
})

describe('the index', () => {
  it('is fetched once within its time to live, and again when asked', async () => {
    verifies('R1-ttl')
    serveIndex(entry('tool', { npx: { package: 'tool@1.0.0' } }))
    expect((await openRegistry(settings())).catalogue.indexState).toBe('fetched')
    expect((await openRegistry(settings())).catalogue.indexState).toBe('cached')
    expect(server.hits.get('/index.json')).toBe(1)
    expect((await openRegistry({ ...settings(), refresh: true })).catalogue.indexState).toBe('fetched')
    expect(server.hits.get('/index.json')).toBe(2)
  })

  it('leaves out a bad entry, reports it, and says why when it is asked for', async () => {
    verifies('R1-bad-entry')
    serveIndex(
      entry('good', { npx: { package: 'good@1.0.0' } }),
      entry('bad', { npx: { package: '--registry=evil' } }),
      entry('climber', { binary: { [HERE]: { archive: 'https://x.test/a.tgz', cmd: '../../bin/sh' } } }),
      entry('local', { binary: { [HERE]: { cmd: 'sh' } } }),
      entry('good', { npx: { package: 'second@1.0.0' } }),
      { id: 'Bad Id\u001b[31m' },
      'no object',
    )
    const { catalogue, find } = await openRegistry(settings())
    expect(find('good').entry.distribution.npx?.package).toBe('good@1.0.0')
    expect(catalogue.problems.map(({ position }) => position)).toEqual([1, 2, 3, 4, 5, 6])
    expect(catalogue.problems[4]?.id).toBe('Bad Id\\u001b[31m')
    expect(() => find('bad')).toThrow(/not usable.*package/)
    expect(() => find('climber')).toThrow(/inside the archive/)
  })

  it('that never came leaves the built-in one, with the reason', async () => {
    verifies('R1-offline')
    await server.close()
    const registry = await openRegistry(settings())
    expect(registry.catalogue.indexState).toBe('absent')
    expect(registry.find('openai-agent').origin).toBe('built-in')
    expect(warnings.join()).toContain('cannot fetch')
    expect(() => registry.find('tool')).toThrow(/index could not be fetched/)
  })

  it('that is no index does not replace the good copy', async () => {
    verifies('R1-copy')
    serveIndex(entry('tool', { npx: { package: 'tool@1.0.0' } }))
    await openRegistry(settings())
    for (const junk of ['<html>', '{}', '{"agents": 5}', 500]) {
      server.pages.set('/index.json', junk)
      const registry = await openRegistry({ ...settings(), refresh: true })
      expect(registry.catalogue.indexState).toBe('stale')
      expect(registry.find('tool').origin).toBe('index')
    }
  })

  it('as a file is read as it is; a missing or broken one is a mistake of the user', async () => {
    const index = join(folder, 'index.json')
    writeFileSync(
      index,
      `// comment\n${JSON.stringify({ agents: [entry('tool', { npx: { package: 'tool@1.0.0' } })] })}`,
    )
    expect((await openRegistry(settings({ index }))).find('tool').origin).toBe('index')
    writeFileSync(index, '{"agents": [\n secret')
    const broken = await openRegistry(settings({ index })).catch((error) => error)
    expect(broken).toMatchObject({ reason: 'index_unreadable', exitCode: 2 })
    expect(broken.message).toContain('line 2')
    expect(broken.message).not.toContain('secret')
    await expect(openRegistry(settings({ index: join(folder, 'absent') }))).rejects.toMatchObject({ exitCode: 2 })
  })

  it('is not taken over plain http from elsewhere, nor is an archive without a sha256', async () => {
    verifies('R1-https')
    const index = 'http://registry.test/index.json'
    await expect(openRegistry(settings({ index }))).rejects.toMatchObject({ reason: 'insecure_url', exitCode: 2 })
    const archive = { archive: 'http://registry.test/a.tgz', cmd: 'a' }
    serveIndex(entry('tool', { binary: { [HERE]: archive } }))
    await expect(resolveAgent('tool', settings())).rejects.toMatchObject({ reason: 'insecure_url' })
  })

  it('suggests the id that was meant', async () => {
    serveIndex(entry('opencode', { npx: { package: 'opencode@1.0.0' } }))
    const registry = await openRegistry(settings())
    expect(() => registry.find('opncode')).toThrow(/did you mean "opencode"/)
    expect(() => registry.find('nothing-like-it')).toThrow(/there is no agent "nothing-like-it"/)
  })
})

describe('the choice of a distribution', () => {
  it('prefers the binary of this platform, then npx, and obeys an override', async () => {
    verifies('R2-preference')
    const both = { ...serveBinary('agent.tgz', tarGz(HONEST)), npx: { package: `file:${alpha}` } }
    const elsewhere = {
      binary: { [ELSEWHERE]: { archive: 'https://x.test/a.tgz', cmd: 'a' } },
      npx: { package: `file:${alpha}` },
    }
    serveIndex(entry('both', both), entry('elsewhere', elsewhere))
    const registry = await openRegistry(settings())
    expect((await registry.resolve('both')).kind).toBe('binary')
    expect((await registry.resolve('both', { distribution: 'npx' })).kind).toBe('npx')
    expect((await registry.resolve('elsewhere')).kind).toBe('npx')
    await expect(registry.resolve('both', { distribution: 'uvx' })).rejects.toMatchObject({
      reason: 'distribution_missing',
      exitCode: 2,
    })
  })

  it('says for which platforms there is one', async () => {
    serveIndex(entry('foreign', { binary: { [ELSEWHERE]: { archive: 'https://x.test/a.tgz', cmd: 'a' } } }))
    const registry = await openRegistry(settings())
    expect(await registry.isInstalled('foreign')).toBeUndefined()
    const fault = await registry.resolve('foreign').catch((error) => error)
    expect(fault).toMatchObject({ reason: 'platform_unsupported' })
    expect(fault.message).toContain(ELSEWHERE)
    expect(fault.message).toContain(HERE)
    expect(fault.message).toContain('--agents')
  })
})

describe('the agents file', () => {
  it('replaces an agent of the index, adds others, and may name a command of this machine', async () => {
    verifies('R1-replaces')
    serveIndex(entry('tool', { npx: { package: 'tool@1.0.0' } }))
    const agentsFile = writeAgents(
      entry('tool', { npx: { package: `file:${alpha}` } }, '2.0.0'),
      entry('mine', { binary: { [HERE]: { cmd: 'my-agent', args: ['acp'] } } }),
      entry('broken', {}),
    )
    const registry = await openRegistry(settings({ agentsFile }))
    expect(registry.find('tool')).toMatchObject({ origin: 'agents file', entry: { version: '2.0.0' } })
    expect(await registry.resolve('mine')).toMatchObject({ command: 'my-agent', args: ['acp'], folder: undefined })
    expect(registry.catalogue.problems).toMatchObject([{ origin: 'agents file', id: 'broken' }])
    const absent = settings({ agentsFile: join(folder, 'absent') })
    await expect(openRegistry(absent)).rejects.toMatchObject({ reason: 'agents_unreadable', exitCode: 2 })
  })
})

describe('uvx', () => {
  /** Stands in for uv: makes the environment that uv would make, and notes how it was called. */
  const UV = `#!/bin/sh
echo "$*" >> "$UV_CALLS"
if [ "$1" = venv ]; then for last; do :; done; mkdir -p "$last/bin"; exit 0; fi
printf '#!/bin/sh\\necho python agent\\n' > "$(dirname "$4")/py-agent"; chmod +x "$(dirname "$4")/py-agent"
`
  const path = process.env['PATH']
  afterEach(() => {
    process.env['PATH'] = path
  })

  it('is installed by uv, pinned, and runs from the cache', async () => {
    const bin = join(folder, 'bin')
    mkdirSync(bin)
    writeFileSync(join(bin, 'uv'), UV)
    chmodSync(join(bin, 'uv'), 0o755)
    process.env['PATH'] = `${bin}:${path}`
    process.env['UV_CALLS'] = join(folder, 'calls')
    serveIndex(entry('py', { uvx: { package: 'py-agent', args: ['acp'] } }, '3.1.4'))
    const agent = await resolveAgent('py', settings())
    expect(execFileSync(agent.command, { encoding: 'utf8' })).toBe('python agent\n')
    expect(agent.args).toEqual(['acp'])
    const calls = readFileSync(join(folder, 'calls'), 'utf8').split('\n')
    expect(calls[0]).toContain('venv --relocatable')
    expect(calls[1]).toMatch(/pip install --python .*python -- py-agent==3\.1\.4$/)
  })

  it('names the missing uv and the way out', async () => {
    process.env['PATH'] = folder
    serveIndex(entry('py', { uvx: { package: 'py-agent@1.0.0' } }))
    const fault = await resolveAgent('py', settings()).catch((error) => error)
    expect(fault).toMatchObject({ reason: 'runtime_missing', exitCode: 1 })
    expect(fault.message).toContain('"uv"')
    expect(fault.message).toContain('another distribution')
  })
})

describe('the built-in agent', () => {
  it('runs from this package, without index and installation', async () => {
    await server.close()
    const registry = await openRegistry(settings())
    expect(await registry.isInstalled('openai-agent')).toBe(true)
    const version = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version
    expect(registry.find('openai-agent').entry.version).toBe(version)
  })
})
