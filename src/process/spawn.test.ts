import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Compiled, compile } from '../../test/fixtures/process/compile.ts'
import type { Launch, SpawnFailure } from './launch.ts'
import { spawnWorker } from './spawn.ts'
import type { WorkerProcess } from './worker-process.ts'

const FIXTURE = fileURLToPath(new URL('../../test/fixtures/process/holds-descriptors.mjs', import.meta.url))
const PATH = '/usr/bin:/bin'
const workers: WorkerProcess[] = []
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stdio-bus-spawn-'))
})
afterAll(() => rm(folder, { recursive: true }))
afterEach(() => Promise.all(workers.splice(0).map((worker) => worker.kill('end of the test'))))

function start(launch: Partial<Launch>): WorkerProcess {
  const worker = spawnWorker({ command: '/bin/sh', args: [], env: { PATH }, cwd: folder, ...launch })
  workers.push(worker)
  return worker
}

const shell = (script: string, launch: Partial<Launch> = {}) => start({ ...launch, args: ['-c', script, 'worker'] })

async function failure(launch: Partial<Launch>): Promise<SpawnFailure> {
  const worker = start(launch)
  const [reason] = await once(worker, 'failed')
  expect(worker.pid).toBeUndefined()
  return reason
}

function file(name: string, content: string, mode: number): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  chmodSync(path, mode)
  return path
}

describe('5.4 a worker that is started', () => {
  it('is told of, with its number, after the caller could listen', async () => {
    const worker = shell('exit 0')
    const [facts] = await once(worker, 'spawned')
    expect(facts).toEqual({ pid: worker.pid })
  })

  it('has the environment and the directory it was given, and nothing else', async () => {
    const worker = shell('pwd; /usr/bin/env', { env: { ONLY: 'this' } })
    const lines = (await text(worker.stdout)).split('\n')
    expect(lines[0]).toBe(folder)
    expect(lines).toContain('ONLY=this')
    expect(lines.filter((line) => /^(HOME|NODE|VITEST|npm)/.test(line))).toEqual([])
  })

  it('gets its arguments as they are: no shell looks at them', async () => {
    const args = ['$HOME `id` ; echo pwned', '*', '"']
    const worker = start({ command: '/usr/bin/printf', args: ['%s\\n', ...args] })
    expect(await text(worker.stdout)).toBe(`${args.join('\n')}\n`)
  })

  it('leads a session and a process group of its own', async () => {
    const worker = shell('cat /proc/$$/stat; :')
    const [pid, , , , group, session] = (await text(worker.stdout)).split(' ')
    expect([pid, group, session]).toEqual(Array(3).fill(String(worker.pid)))
  })

  it.each([
    ['exit 4', { isClean: false, how: { exitCode: 4, signal: null } }],
    ['kill -9 $$', { isClean: false, how: { exitCode: null, signal: 'SIGKILL' } }],
  ])('%s is told with code and signal', async (script, exit) => {
    const [told] = await once(shell(script), 'exited')
    expect(told).toEqual(exit)
  })
})

describe('7.2 a command that cannot be executed is told with its reason', () => {
  it('not in PATH', async () => {
    const told = await failure({ command: 'no-such-command' })
    expect(told).toMatchObject({
      code: 'ENOENT',
      reason: expect.stringContaining('command not found in PATH: no-such-command'),
    })
  })

  it('a whole line in the place of a program', async () => {
    const { reason } = await failure({ command: 'node server.js --port 1' })
    expect(reason).toContain('write "command": "node", "args": ["server.js", "--port", "1"]')
  })

  it('no such file', async () => {
    const { reason } = await failure({ command: './no-such-file' })
    expect(reason).toContain(`command not found: ./no-such-file (relative to ${folder})`)
  })

  it('not executable', async () => {
    const plain = file('plain', 'text', 0o644)
    expect(await failure({ command: plain })).toMatchObject({
      code: 'EACCES',
      reason: expect.stringContaining('not executable'),
    })
  })

  it('not executable in PATH', async () => {
    file('listed', 'text', 0o644)
    expect((await failure({ command: 'listed', env: { PATH: folder } })).reason).toContain(
      `not executable: ${folder}/listed`,
    )
  })

  it('a missing interpreter', async () => {
    const script = file('script', '#!/no/such/interpreter\n', 0o755)
    expect((await failure({ command: script })).reason).toContain('interpreter')
  })

  it('a directory that does not exist', async () => {
    expect((await failure({ cwd: join(folder, 'nowhere') })).reason).toContain('cwd does not exist')
  })

  it('a directory that is a file', async () => {
    const plain = file('plain', 'text', 0o644)
    expect((await failure({ cwd: plain })).reason).toContain('cwd is not a directory')
  })

  it('a command that is a directory', async () => {
    mkdirSync(join(folder, 'folder'))
    expect((await failure({ command: join(folder, 'folder') })).code).toBe('EACCES')
  })

  it('too much of everything', async () => {
    expect(await failure({ args: ['x'.repeat(200_000)] })).toMatchObject({ code: 'E2BIG' })
  })

  it('a NUL, without repeating the secret that is beside it', async () => {
    const told = await failure({ args: ['secret\0'] })
    expect(told.reason).toContain('NUL')
    expect(JSON.stringify(told)).not.toContain('secret')
  })

  it('and stopping what never started is no trouble', async () => {
    const worker = start({ command: 'no-such-command' })
    worker.stdin.write('lost')
    await expect(worker.stop('test')).resolves.toBeUndefined()
  })
})

describe.runIf(process.platform === 'linux')('5.4 descriptors', () => {
  let compiled: Compiled
  beforeAll(async () => {
    compiled = await compile('process/spawn.ts', 'process/warden.ts', 'process/descriptors.ts')
  })
  afterAll(() => compiled.remove())

  it('a worker inherits its three and no other, not even what the bus was started with', async () => {
    const leaked = openSync('/dev/zero', 'r')
    const given = Array<number | 'ignore'>(40).fill('ignore')
    for (const number of [3, 20, 39]) given[number] = leaked
    const bus = spawn(process.execPath, [FIXTURE, compiled.folder], {
      stdio: ['ignore', 'pipe', 'inherit', ...given.slice(3)],
    })
    const [said] = await Promise.all([text(bus.stdout!), once(bus, 'exit')])
    expect(said.trim().split('\n')).toEqual(['0', '1', '2'])
  })
})
