/**
 * The program where there is no `/proc`, as on macOS: in a mount namespace that hides it. Only root can make one; elsewhere
 * this is skipped, and says so.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync } from 'node:fs'
import { getuid } from 'node:process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { descriptorLimit } from '../../src/transports/acceptor.ts'
import { verifies } from '../conformance/verifies.ts'
import { busCommand, runBus, startBus, testWorkspace } from '../support/bus.ts'
import type { LineClient } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { descendantsOf, isAlive, killHard } from '../support/processes.ts'
import { eventually, sleep, within } from '../support/waiting.ts'

const WITHOUT_PROC = fileURLToPath(new URL('../fixtures/without-proc.sh', import.meta.url))
const HOST = fileURLToPath(new URL('../fixtures/pipes-host.sh', import.meta.url))
const UNGUARDED = fileURLToPath(new URL('../fixtures/process/starts-unguarded.mjs', import.meta.url))
const trial = spawnSync(WITHOUT_PROC, ['sh', '-c', '[ ! -e /proc/self ]'], { encoding: 'utf8' })
const canHide = trial.status === 0
const before = process.env['STDIO_BUS_COMMAND']

if (!canHide) console.warn(`skipped: /proc cannot be hidden here (${trial.stderr?.trim() || 'not root'})`)

test.skipIf(getuid?.() !== 0 || process.env['CI'] === undefined)('root can hide /proc', () => {
  expect(trial).toMatchObject({ status: 0 })
})

describe.skipIf(!canHide)('without /proc', () => {
  beforeAll(() => {
    const [command, args] = busCommand()
    process.env['STDIO_BUS_COMMAND'] = [WITHOUT_PROC, command, ...args].join(' ')
  })
  afterAll(() => {
    if (before === undefined) delete process.env['STDIO_BUS_COMMAND']
    else process.env['STDIO_BUS_COMMAND'] = before
  })

  test.each(['stdio', 'unix', 'tcp'] as const)(
    'a bus at the door %s serves, tells its state and stops',
    async (door) => {
      const bus = await startBus({ config: config(pool('echo')), doors: [door] })
      const client = await bus.client()
      expect(await client.ask({ id: 1, method: 'x', params: { a: 1 } })).toMatchObject({ result: { echo: { a: 1 } } })
      const status = (await bus.allReady()) as unknown as { rss_bytes: number }
      expect(status.rss_bytes).toBeGreaterThan(1024 * 1024)
      expect(await bus.stop()).toEqual({ code: 0, signal: null })
    },
  )

  test.each(['default', 'fifo'])(
    'over %s pipes: a worker that is killed is restarted, its group is ended',
    async (pipes) => {
      const bus = await startBus({ config: config(pool('forks-a-grandchild', { pipes })) })
      const client = await bus.connect()
      const family = await familyOf(client)
      process.kill(family[0]!, 'SIGKILL')
      await eventually('the family to be gone', () => !family.some(isAlive), 8_000)
      const next = await familyOf(client)
      expect(next).not.toEqual(family)
      await bus.stop()
      expect(next.filter(isAlive)).toEqual([])
    },
  )

  test('after a SIGKILL of the bus no worker is left', async () => {
    const bus = await startBus({ config: config(pool('forks-a-grandchild')) })
    const family = await familyOf(await bus.connect())
    bus.kill()
    await eventually('the family to be gone', () => !family.some(isAlive), 4_000)
  })

  test('traces are kept, a turn with the demo model works, a configuration is reloaded', async () => {
    const { code, stdout, stderr } = await runBus(['demo'], { workspace: testWorkspace(), timeoutMs: 20_000 })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('end_turn')
    const bus = await startBus({ config: config(pool('echo', { trace: true })) })
    expect(await bus.status()).toMatchObject({ traces: { state: 'ok' } })
    bus.workspace.write('bus.json', config([pool('echo'), pool('slow')]))
    expect((await bus.run(['reload', '--control', bus.control])).code).toBe(0)
    await bus.statusWhere('the new pool has a worker', ({ workers }) => workers.some((each) => each.pool === 'slow'))
  })

  test('a host on pipes that is killed takes its connect along', async () => {
    verifies('6.10.2-dead-host')
    const bus = await startBus({ config: config(pool('silent')) })
    const [command, args] = busCommand()
    const connect = [command, ...args, 'connect', '--unix', bus.workspace.path('bus.sock')]
    const host = spawn(HOST, connect, { cwd: bus.workspace.folder, stdio: ['ignore', 'pipe', 'inherit'] })
    bus.workspace.owns(host.pid)
    await once(host.stdout, 'data')
    await bus.statusWhere('the client is there', ({ outstanding }) => outstanding === 1)
    const shims = descendantsOf(host.pid!)
    expect(shims.length).toBeGreaterThan(0)
    host.kill('SIGKILL')
    await eventually('connect to be gone', () => !shims.some(isAlive), 3_000)
  })

  test('connections beyond the limit of descriptors are closed and told, and supervision goes on', async () => {
    const workspace = testWorkspace()
    const limited = process.env['STDIO_BUS_COMMAND']!
    const wrapper = workspace.write('limited.sh', `#!/bin/sh\nulimit -n 96\nexec ${limited} "$@"\n`)
    process.env['STDIO_BUS_COMMAND'] = `/bin/sh ${wrapper}`
    onTestFinished(() => {
      process.env['STDIO_BUS_COMMAND'] = limited
    })
    const bus = await startBus({ config: config(pool('dies-on-request')), workspace })
    const clients = await Promise.all(Array.from({ length: 100 }, () => bus.connect()))
    await eventually('the limit to be told', () => bus.log.text.includes('out of file descriptors'))
    clients[0]!.send({ id: 1, method: 'die' })
    await eventually('the worker to be back', () => bus.log.text.split('worker ready').length > 2)
  })

  test('a worker whose number the guard was never told is found by ps, and nobody else', async () => {
    const workspace = testWorkspace()
    const ps = workspace.write('ps', `#!/bin/sh\ncat ${workspace.path('listing')}\n`)
    const environment = `FAKE_PS=${ps} ${WITHOUT_PROC}`
    const shell = workspace.write('shell', `#!/bin/sh\nexec env ${environment} /bin/sh "$@"\n`)
    for (const program of [ps, shell]) chmodSync(program, 0o755)
    const bystander = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' })
    onTestFinished(() => killHard(bystander.pid!))
    const bus = spawn(process.execPath, [UNGUARDED, shell], { stdio: ['ignore', 'pipe', 'inherit'] })
    const { pid, mark } = JSON.parse(String((await once(bus.stdout, 'data'))[0]))
    onTestFinished(() => killHard(pid))
    // The search finds its own words in the listing too.
    const listed = [`${pid} sleep 60 HOME=/ STDIO_BUS_WORKER=${mark} A=b`]
    const others = [`${bystander.pid} sed s/STDIO_BUS_WORKE[R]=${mark}//`, `${bystander.pid} sleep 60 HOME=/`, 'junk']
    workspace.write('listing', [...listed, ...others].join('\n'))
    await sleep(500)
    bus.kill('SIGKILL')
    await eventually('it to be gone', () => !isAlive(pid), 4_000)
    expect(isAlive(bystander.pid!)).toBe(true)
  })
})

test('the limit of descriptors is the same, whoever tells it', () => {
  expect(descriptorLimit('/nowhere')).toBe(descriptorLimit())
})

/** The worker, and whoever it has started. */
async function familyOf(client: LineClient): Promise<number[]> {
  const { result } = await within(8_000, 'an answer', client.ask({ id: 1, method: 'who' }))
  return Object.values(result as object).filter((value) => typeof value === 'number')
}
