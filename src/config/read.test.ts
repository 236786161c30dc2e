// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file itself spells its references so
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { DEFAULT_LIMITS } from '../kernel/limits.ts'
import type { BusConfig, CommandLaunch } from './bus-config.ts'
import { parseConfig, readConfig } from './read.ts'

const OPTIONS = { environment: { HOME: '/home/ada', TOKEN: 's3cret', EMPTY: '' }, cwd: '/srv/bus' }
const POOL = '"pools": [{ "id": "a", "command": "cat" }]'

function configOf(text: string): BusConfig {
  const reading = parseConfig('etc/bus.json', text, OPTIONS)
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems))
  return reading.config
}

describe('a file that is right', () => {
  it('8.1 the seed file, pools and limits alone, works unchanged', () => {
    const { bus, launches, listen, aio } = configOf(`{
      "_comment": "as the seed has it",
      "pools": [{ "id": "echo", "command": "node", "args": ["echo.js"], "instances": 4 }],
      "limits": { "max_input_buffer": 2048, "max_output_queue": 4096, "max_restarts": 1, "restart_window_sec": 2,
                  "drain_timeout_sec": 3, "backpressure_timeout_sec": 4 }
    }`)
    expect(bus.limits).toEqual({
      ...DEFAULT_LIMITS,
      maxInputBufferBytes: 2048,
      maxOutputQueueBytes: 4096,
      maxRestarts: 1,
      restartWindowMs: 2000,
      drainTimeoutMs: 3000,
      backpressureTimeoutMs: 4000,
    })
    expect(bus.pools).toMatchObject([{ id: 'echo', instances: 4, sharing: 'shared', limits: bus.limits }])
    expect(launches.get('echo')).toEqual({
      command: 'node',
      args: ['echo.js'],
      env: {},
      inheritEnv: false,
      cwd: '/srv/bus',
      pipes: 'default',
    })
    expect(listen).toEqual({ unix: [], tcp: [], tls: [], http: [] })
    expect(aio.enabled).toBe(false)
  })

  it('4.1.1 comments and trailing commas are tolerated, and so is a byte order mark', () => {
    expect(configOf(`{ // a comment\n ${POOL}, /* another */ }`).bus.pools).toHaveLength(1)
    expect(configOf(`{ "$schema": "x", ${POOL.replace('{', '{ "_why": [1], "$schema": 5,')} }`).bus.pools).toHaveLength(
      1,
    )
  })

  it('every default of a pool is the documented one', () => {
    expect(configOf(`{ ${POOL} }`).bus.pools[0]).toMatchObject({
      instances: 1,
      maxInstances: 32,
      sharing: 'shared',
      balance: 'connection',
      protocol: 'auto',
      era: 'auto',
      restart: 'always',
      startTimeoutMs: 60_000,
      hangTimeoutMs: 0,
      limits: DEFAULT_LIMITS,
      trace: false,
    })
  })

  it('8.1 a pool overrides limits, and clients may send lines as long as the largest', () => {
    const { bus } = configOf(`{ "limits": { "max_input_buffer": 100 }, "pools": [
      { "id": "a", "command": "cat", "limits": { "max_input_buffer": 5000, "request_timeout_sec": 7 } },
      { "id": "b", "command": "cat" } ] }`)
    expect(bus.pools.map(({ limits }) => limits.maxInputBufferBytes)).toEqual([5000, 100])
    expect(bus.pools.map(({ limits }) => limits.requestTimeoutMs)).toEqual([7000, 0])
    expect(bus.limits.maxInputBufferBytes).toBe(5000)
  })

  it('5.4 references in env are resolved, escapes are literal, an empty variable is set', () => {
    const env = '{ "A": "Bearer ${TOKEN}!", "B": "$${TOKEN}", "C": "${EMPTY}", "_D": "kept", "_note": ["not kept"] }'
    const launch = configOf(`{ "pools": [{ "id": "a", "command": "cat", "env": ${env} }] }`).launches.get('a')
    expect((launch as CommandLaunch).env).toEqual({ A: 'Bearer s3cret!', B: '${TOKEN}', C: '', _D: 'kept' })
  })

  it('paths are relative to the file, ~/ is the home directory, a command in PATH stays a name', () => {
    const { launches, listen, control, aio, registry } = configOf(`{
      "pools": [{ "id": "a", "command": "~/bin/a", "cwd": "work" }, { "id": "b", "command": "./b", "cwd": "/x" }],
      "listen": { "unix": "run/s.sock" }, "control": "~/c.sock",
      "aio": { "store": { "path": "t.db" } }, "registry": { "index": "i.json", "cache": "/c", "credentials": "k.json" } }`)
    expect(launches.get('a')).toMatchObject({ command: '/home/ada/bin/a', cwd: '/srv/bus/etc/work' })
    expect(launches.get('b')).toMatchObject({ command: './b', cwd: '/x' })
    expect(listen.unix).toEqual([{ path: '/srv/bus/etc/run/s.sock', pool: undefined }])
    expect(control).toBe('/home/ada/c.sock')
    expect(aio.store.path).toBe('/srv/bus/etc/t.db')
    expect(registry).toEqual({
      index: '/srv/bus/etc/i.json',
      cacheDir: '/c',
      ttlMs: 10_800_000,
      agentsFile: undefined,
      credentialsFile: '/srv/bus/etc/k.json',
      idleTimeoutMs: 600_000,
    })
  })

  it('doors are written short, long or as a list', () => {
    const { listen } = configOf(`{ ${POOL}, "listen": {
      "unix": ["/a.sock", { "path": "/b.sock", "pool": "a" }], "tcp": { "address": "[::1]:0", "pool": "a" } } }`)
    expect(listen.unix).toEqual([
      { path: '/a.sock', pool: undefined },
      { path: '/b.sock', pool: 'a' },
    ])
    expect(listen.tcp).toEqual([{ host: '::1', port: 0, pool: 'a' }])
  })

  it('agents that are known to speak ACP have it from the configuration, unless the file says otherwise', () => {
    verifies('A1-configured')
    const { bus } = configOf(`{ "pools": [
      { "id": "a", "agent": "openai" }, { "id": "b", "registry": "gemini" }, { "id": "c", "agent": "registry" },
      { "id": "d", "agent": "echo" }, { "id": "e", "command": "cat" },
      { "id": "f", "agent": "openai", "protocol": "auto" }, { "id": "g", "registry": "x", "protocol": "mcp" },
      { "id": "h", "registry": "x", "aio": {} }, { "id": "i", "registry": "x", "aio": { "type": "mcp" } } ] }`)
    const spoken = Object.fromEntries(bus.pools.map(({ id, protocol }) => [id, protocol]))
    const acp = { a: 'acp', b: 'acp', c: 'acp' }
    expect(spoken).toEqual({ ...acp, d: 'auto', e: 'auto', f: 'auto', g: 'mcp', h: 'auto', i: 'mcp' })
  })

  it('6.6 what is balanced, and which pool serves in place of another', () => {
    const { bus } = configOf(`{ "pools": [
      { "id": "a", "agent": "openai", "fallback": "b" }, { "id": "b", "command": "cat", "fallback": "c" },
      { "id": "c", "command": "cat", "balance": "session" }, { "id": "d", "agent": "openai", "balance": "connection" },
      { "id": "e", "agent": "openai", "sharing": "isolated" } ] }`)
    const told = bus.pools.map(({ balance, fallback }) => [balance, fallback])
    expect(told).toEqual([
      ['session', 'b'],
      ['connection', 'c'],
      ['session', undefined],
      ['connection', undefined],
      ['connection', undefined],
    ])
  })

  it('a changed fallback or balance is a changed pool', () => {
    const revisions = ['', ', "fallback": "b"', ', "balance": "session"'].map((more) => {
      const pools = `[{ "id": "a", "command": "cat"${more} }, { "id": "b", "command": "cat" }]`
      return configOf(`{ "pools": ${pools} }`).bus.pools[0]?.revision
    })
    expect(new Set(revisions).size).toBe(3)
  })

  it('the three ways to name a program', () => {
    const { launches } = configOf(`{ "pools": [ { "id": "a", "command": "cat" }, { "id": "b", "agent": "openai" },
      { "id": "c", "registry": "gemini", "distribution": "npx" } ] }`)
    expect(launches.get('a')).toHaveProperty('command', 'cat')
    expect(launches.get('b')).toHaveProperty('agent', 'openai')
    expect(launches.get('c')).toMatchObject({ registry: 'gemini', distribution: 'npx' })
  })

  it('AIO agents of pools and over HTTP come out in one list', () => {
    const { agents, aio } = configOf(`{ "pools": [
        { "id": "reader", "command": "r", "instances": 2, "protocol": "mcp", "aio": { "sampling": { "tool": "complete" } } },
        { "id": "voice", "command": "v", "aio": { "mode": "oneshot", "method_style": "bare", "modalities": ["audio"] } } ],
      "agents": [{ "name": "far", "endpoint": "https://host/rpc", "headers": { "x-key": "\${TOKEN}" }, "timeout_ms": 5 }] }`)
    const common = { timeoutMs: 30_000, maxPayloadBytes: 4_194_304, maxReplyBytes: 1_048_576 }
    const all = ['text', 'image', 'audio', 'video', 'file']
    expect(aio.enabled).toBe(true)
    expect(agents).toEqual([
      {
        ...common,
        type: 'mcp',
        name: 'reader',
        pool: 'reader',
        instances: 2,
        modalities: all,
        methodStyle: 'namespaced',
        sampling: { tool: 'complete' },
      },
      {
        ...common,
        type: 'stdio',
        name: 'voice',
        pool: 'voice',
        instances: 1,
        mode: 'oneshot',
        modalities: ['audio'],
        methodStyle: 'bare',
      },
      {
        ...common,
        type: 'http',
        name: 'far',
        endpoint: 'https://host/rpc',
        headers: { 'x-key': 's3cret' },
        modalities: all,
        methodStyle: 'namespaced',
        timeoutMs: 5,
      },
    ])
  })

  it('traces have a store and redaction even when the file says nothing of AIO', () => {
    const { aio } = configOf(`{ ${POOL} }`)
    expect(aio.store).toMatchObject({ path: '/home/ada/.stdio-bus/traces.db', retentionDays: 14, payloadBytes: 16_384 })
    expect(aio.store.redact).toContain('password')
  })
})

describe('7.5 the revision of a pool', () => {
  const revision = (pool: string, rest = '', environment = OPTIONS.environment) => {
    const reading = parseConfig('bus.json', `{ "pools": [{ "id": "a", ${pool} }] ${rest} }`, {
      ...OPTIONS,
      environment,
    })
    if (!reading.ok) throw new Error(JSON.stringify(reading.problems))
    return reading.config.bus.pools[0]?.revision
  }
  const base = revision('"command": "cat", "env": { "K": "${TOKEN}", "L": "1" }')

  it("does not change with order, comments, or limits that are not the pool's", () => {
    expect(revision('"_c": 1, "env": { "L": "1", "K": "${TOKEN}" }, "command": "cat"')).toBe(base)
    expect(revision('"command": "cat", "env": { "K": "${TOKEN}", "L": "1" }', ', "limits": { "max_clients": 5 }')).toBe(
      base,
    )
  })

  it.each([
    ['the command', '"command": "dog", "env": { "K": "${TOKEN}", "L": "1" }', ''],
    ['an argument', '"command": "cat", "args": ["x"], "env": { "K": "${TOKEN}", "L": "1" }', ''],
    ['a variable', '"command": "cat", "env": { "K": "${TOKEN}", "L": "2" }', ''],
    ['the directory', '"command": "cat", "cwd": "/", "env": { "K": "${TOKEN}", "L": "1" }', ''],
    [
      'a limit it inherits',
      '"command": "cat", "env": { "K": "${TOKEN}", "L": "1" }',
      ', "limits": { "max_restarts": 9 }',
    ],
    ['AIO', '"command": "cat", "aio": {}, "env": { "K": "${TOKEN}", "L": "1" }', ''],
  ])('changes with %s', (_what, pool, rest) => {
    expect(revision(pool, rest)).not.toBe(base)
  })

  it('changes with the value of a referenced variable, and shows nothing of it', () => {
    const other = { ...OPTIONS.environment, TOKEN: 'other' }
    const changed = revision('"command": "cat", "env": { "K": "${TOKEN}", "L": "1" }', '', other)
    expect(changed).not.toBe(base)
    expect(changed).toMatch(/^[0-9a-f]{16}$/)
  })
})

describe('reading from the disk', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'stdio-bus-config-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('4.1.1 without a name it is ./stdio-bus.json', async () => {
    await writeFile(join(folder, 'stdio-bus.json'), `\ufeff{ ${POOL} }`)
    const reading = await readConfig(undefined, { ...OPTIONS, cwd: folder })
    expect(reading).toMatchObject({ ok: true, config: { file: join(folder, 'stdio-bus.json') } })
  })

  it('4.1.1 a missing file names init', async () => {
    const reading = await readConfig('nowhere.json', { ...OPTIONS, cwd: folder })
    expect(reading).toMatchObject({
      ok: false,
      problems: [{ line: 0, suggestion: expect.stringContaining('stdio-bus init') }],
    })
  })

  it('a directory is not a file', async () => {
    expect(await readConfig(folder, OPTIONS)).toMatchObject({ ok: false, problems: [{ found: 'a directory' }] })
  })

  it('bytes that are not UTF-8 are refused', async () => {
    await writeFile(join(folder, 'latin.json'), Buffer.from([0x7b, 0xe9, 0x7d]))
    const reading = await readConfig('latin.json', { ...OPTIONS, cwd: folder })
    expect(reading).toMatchObject({ ok: false, problems: [{ found: 'bytes that are not UTF-8' }] })
  })

  it('a file without an end is not read to it', async () => {
    expect(await readConfig('/dev/zero', OPTIONS)).toMatchObject({
      ok: false,
      problems: [{ found: expect.stringContaining('too large') }],
    })
  })
})

describe('9.1 who is let in', () => {
  it('without access nobody is asked', () => {
    const reading = parseConfig('bus.json', '{ "pools": [{ "id": "a", "command": "cat" }] }', OPTIONS)
    expect(reading.ok && reading.config.access).toBeUndefined()
  })

  it('becomes rights, absolute paths and resolved variables', () => {
    const text = JSON.stringify({
      pools: [{ id: 'a', command: 'cat' }],
      public_url: 'https://bus.example.com/',
      listen: {
        tls: { address: '0.0.0.0:7443', cert: 'c.pem', key: 'k.pem', client_ca: 'ca.pem', client_cert: 'optional' },
      },
      access: {
        file: 'stdio-bus.access.json',
        anonymous: {
          ...{ pools: ['a*'], tools: { deny: ['*_secret'] }, rate: '600/m', max_pending: 3, max_connections: 2 },
          env: { a: { K: '${HOME}' } },
        },
        audit: 'audit.log',
        oauth: { issuer: 'https://id.example.com', map: [{ claim: 'scope', equals: 'w', as: 'dev' }] },
        certificates: [{ subject: 'CN=x', as: 'dev' }],
      },
    })
    const reading = parseConfig('bus.json', text, { environment: { HOME: '/home/ada' }, cwd: '/srv/bus' })
    if (!reading.ok) throw new Error(JSON.stringify(reading.problems))
    expect(reading.config.access).toEqual({
      file: '/srv/bus/stdio-bus.access.json',
      anonymous: {
        ...{ role: 'user', pools: ['a*'], tools: { deny: ['*_secret'] }, rate: { count: 600, perMs: 60_000 } },
        ...{ maxPending: 3, maxConnections: 2, environmentFor: ['a'] },
      },
      anonymousEnvironment: { a: { K: '/home/ada' } },
      audit: { file: '/srv/bus/audit.log', isRequired: false },
      oauth: { issuer: 'https://id.example.com', audience: [], map: [{ claim: 'scope', equals: 'w', as: 'dev' }] },
      certificates: [{ subject: 'CN=x', as: 'dev' }],
      publicUrl: 'https://bus.example.com',
    })
    expect(reading.config.listen.tls).toEqual([
      {
        ...{ host: '0.0.0.0', port: 7443, pool: undefined, isClientCertOptional: true },
        ...{ cert: '/srv/bus/c.pem', key: '/srv/bus/k.pem', clientCa: '/srv/bus/ca.pem' },
      },
    ])
  })
})
