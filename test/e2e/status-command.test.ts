/** `status`: who is there and how they fare, for one bus and for several, and while one is restarted (contract 8.6). */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { busCommand, busEnv, runBus, startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'

const hasProc = existsSync('/proc/self/stat')

// biome-ignore lint/suspicious/noExplicitAny: the document is what is tested
type Document = any

async function statusOf(bus: { run(args: string[]): Promise<{ stdout: string }> }): Promise<Document> {
  return JSON.parse((await bus.run(['status', '--json'])).stdout)
}

function watch(workspace: Workspace, ...args: string[]) {
  const [command, first] = busCommand()
  const child = spawn(command, [...first, 'status', '--watch', ...args], {
    cwd: workspace.folder,
    env: busEnv(workspace),
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const seen = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => (seen.stdout += chunk))
  child.stderr.on('data', (chunk) => (seen.stderr += chunk))
  return seen
}

describe('who is there', () => {
  test('clients and sessions are numbers, and lists beside them', async () => {
    const bus = await startBus({ config: config([pool('echo'), pool('slow')]), defaultControl: true })
    const client = await bus.connect()
    await client.ask({ id: 1, method: 'm', pool: 'echo', sessionId: 'one\u001b[2J' })
    client.send({ id: 2, method: 'm', pool: 'slow', params: { ms: 3_000 } })
    const status = await eventually('the request', async () => {
      const document = await statusOf(bus)
      return document.outstanding === 1 ? document : undefined
    })
    expect([status.clients, status.sessions]).toEqual([1, 1])
    const [row] = status.client_list
    expect(row).toMatchObject({ door: 'unix', principal: 'local', pool: null, sessions: 1, pending: 1 })
    expect(status.session_list).toEqual([
      { id: 'one\u001b[2J', pool: 'echo', worker: 0, client: row.id, principal: 'local' },
    ])
    const page = (await bus.run(['status'])).stdout
    expect(page).toContain('one\\u001b[2J  echo/0')
    expect(page).not.toContain('\u001b')
  })

  test('lists are cut, counts are not', async () => {
    const bus = await startBus({ config: config(pool('echo')), defaultControl: true })
    const client = await bus.connect()
    for (let id = 1; id <= 600; id++) client.send({ id, method: 'm', sessionId: `s${id}` })
    await client.take(600, 15_000)
    const status = await statusOf(bus)
    expect([status.sessions, status.session_list.length]).toEqual([600, 500])
    expect((await bus.run(['status'])).stdout).toContain('and 580 more')
  })

  test('a pool without workers is visible', async () => {
    const pools = [pool('echo'), pool('echo', { id: 'own', sharing: 'isolated', instances: 0 })]
    const bus = await startBus({ config: config(pools), defaultControl: true })
    expect((await statusOf(bus)).pools).toMatchObject([
      { id: 'echo', workers: 1, sharing: 'shared' },
      { id: 'own', workers: 0, ready: 0, sharing: 'isolated' },
    ])
    expect((await bus.run(['status'])).stdout).toContain('own  no workers: a client brings one')
  })
})

describe('how workers fare', () => {
  test('uptime, requests, and what the process uses', async () => {
    const bus = await startBus({ config: config(pool('echo')), defaultControl: true })
    const client = await bus.connect()
    for (let id = 1; id <= 20; id++) await client.ask({ id, method: 'm' })
    const [worker] = (await statusOf(bus)).workers
    expect(worker).toMatchObject({ requests: 20, state: 'ready' })
    expect(worker.requests_per_sec).toBeGreaterThan(0)
    expect(worker.uptime_sec).toBeGreaterThan(0)
    if (hasProc) expect(worker.memory_bytes).toBeGreaterThan(1024 * 1024)
    if (hasProc) expect(worker.cpu_percent).toBeGreaterThanOrEqual(0)
    expect((await bus.run(['status', '--metrics'])).stdout).toContain(
      'stdio_bus_worker_requests_total{pool="echo",worker="0"} 20',
    )
  })

  test('a rate is that of the time between two looks', async () => {
    const bus = await startBus({ config: config(pool('echo')), defaultControl: true })
    const client = await bus.connect()
    for (let id = 1; id <= 50; id++) await client.ask({ id, method: 'm' })
    await statusOf(bus)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect((await statusOf(bus)).workers[0].requests_per_sec).toBe(0)
  })

  test('a parked worker says why: in the status, to whoever asks for it, in the log', async () => {
    const args = ['-c', 'echo "no licence \u0007 found" >&2; exit 3']
    const dies = { id: 'dies', command: 'sh', args, limits: { max_restarts: 1 } }
    const bus = await startBus({ config: config([dies, pool('echo')]), defaultControl: true })
    const worker = await eventually('parked', async () => {
      const { workers } = await statusOf(bus)
      return workers.find((each: Document) => each.state === 'parked')
    })
    const why = 'it keeps ending (exit code 3): max_restarts is 1 in 60 s'
    expect(worker).toMatchObject({
      last_error: why,
      last_exit: { reason: 'worker_exited', how: 'exit code 3' },
      last_stderr: 'no licence \\u0007 found',
    })
    expect(worker.retry_in_sec).toBeGreaterThan(0)
    const page = (await bus.run(['status'])).stdout
    expect(page).toContain(`parked: ${why}; next try in`)
    expect(page).toContain('| no licence \\u0007 found')
    const refused = await (await bus.connect()).ask({ id: 1, method: 'm', pool: 'dies' })
    expect(refused.error.data).toMatchObject({ reason: 'no_worker', why })
    expect(bus.log.text).toContain(`worker is parked: ${why}`)
  })

  test('what its runtime adds behind an error does not hide it', async () => {
    const dies = { id: 'dies', command: process.execPath, args: ['no-such-script.js'], limits: { max_restarts: 1 } }
    const bus = await startBus({ config: config([dies]), defaultControl: true })
    await eventually('parked', async () => (await statusOf(bus)).workers[0].state === 'parked' || undefined)
    expect((await bus.run(['status'])).stdout).toMatch(/ {2}\| Error: Cannot find module .*no-such-script\.js/)
  })

  test('one whose command is not there says so, and is tried again', async () => {
    const gone = { id: 'gone', command: '/no/such/program', limits: { max_restarts: 1 } }
    const bus = await startBus({ config: config(gone), defaultControl: true })
    const worker = await eventually('parked', async () => {
      const { workers } = await statusOf(bus)
      return workers.find((each: Document) => each.state === 'parked')
    })
    expect(worker.last_error).toMatch(/no\/such\/program.*max_restarts is 1/)
  })
})

describe('several buses', () => {
  test('are a list; metrics are those of one', async () => {
    const first = await startBus({ config: config(pool('echo')), defaultControl: true })
    const { workspace } = first
    const other = workspace.write('other.json', config(pool('slow')))
    await runBus(['start', '--config', other], { workspace, timeoutMs: 30_000 })
    const page = await first.run(['status'])
    expect(page.code).toBe(0)
    for (const name of ['echo/0', 'slow/0']) expect(page.stdout).toContain(name)
    const list = await statusOf(first)
    expect(list.map(({ config }: Document) => config).sort()).toEqual([workspace.path('bus.json'), other].sort())
    expect(JSON.parse((await first.run(['status', '--json', '--config', other])).stdout)).toMatchObject({
      config: other,
    })
    const metrics = await first.run(['status', '--metrics'])
    expect([metrics.code, metrics.stderr]).toEqual([2, expect.stringContaining(`--config ${other}`)])
    await runBus(['stop', '--config', other], { workspace, timeoutMs: 30_000 })
  })
})

describe('--watch', () => {
  test('survives a restart of the bus', async () => {
    const workspace = testWorkspace()
    workspace.write('stdio-bus.json', config(pool('echo')))
    const run = (...args: string[]) => runBus(args, { workspace, timeoutMs: 30_000 })
    await run('start')
    const seen = watch(workspace, '--json')
    const pids = () =>
      seen.stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).pid)
    await eventually('a first look', () => pids().length > 0)
    await run('stop')
    await eventually('the end', () => seen.stderr.includes('waiting for it to come back'))
    await run('start')
    await eventually('a look at the next', () => new Set(pids()).size === 2)
    await run('stop')
  })

  test('of nothing ends at once: exit 1', async () => {
    expect((await runBus(['status', '--watch'], { workspace: testWorkspace() })).code).toBe(1)
  })
})
