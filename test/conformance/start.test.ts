/** Clause 3.1: the order of start, readiness, and the two signals that end it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { readyAddresses } from '../support/bus-log.ts'
import { config, pool } from '../support/pools.ts'
import { isAlive } from '../support/processes.ts'
import { verifies } from './verifies.ts'

const ECHO = config(pool('echo'))
const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url))

/** Our own sources but for the trace store, which alone may have a thread. */
function sourcesOutsideTrace(): Array<{ name: string; text: string }> {
  return readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !name.startsWith('trace'))
    .map((name) => ({ name, text: readFileSync(join(SOURCES, name), 'utf8') }))
}

describe('start', () => {
  test('3.1 every pool gets its instances', async () => {
    verifies('3.1-spawns', '3.3-integer-id')
    const pools = [pool('echo', { id: 'a', instances: 3 }), pool('echo', { id: 'b', instances: 1 })]
    const bus = await startBus({ config: config(pools) })
    const { workers } = await bus.allReady()
    expect(workers.map((each) => each.pool).sort()).toEqual(['a', 'a', 'a', 'b'])
    expect(new Set(workers.map((each) => each.id)).size).toBe(4)
    expect(workers.every((each) => Number.isInteger(each.id) && isAlive(each.pid))).toBe(true)
  })

  test('3.1 arguments are checked before the config, the config before a worker is spawned', async () => {
    verifies('3.1-start-order')
    const workspace = testWorkspace()
    const usage = await runBus(['--config', 'missing.json', '--no-such-flag'], { workspace })
    expect([usage.code, usage.stderr]).toEqual([2, expect.stringContaining('--no-such-flag')])
    const spawns = pool('dies-at-start', { args: [workspace.path('started')] })
    const broken = workspace.write('broken.json', { pools: [spawns], limits: { nonsense: 1 } })
    expect((await runBus(['--config', broken], { workspace })).code).toBe(2)
    expect(workspace.read('started')).toBe('')
  })

  test('3.1 a failed bind: exit 1, and no worker was started', async () => {
    verifies('3.1-failed-bind', '8.4-exit-1')
    const workspace = testWorkspace()
    const first = await startBus({ config: ECHO, doors: ['tcp'] })
    const taken = first.addresses[0]!.slice(4)
    const pools = ['started', 'started-too'].map((id) =>
      pool('dies-at-start', { id, args: [workspace.path('started')] }),
    )
    const file = workspace.write('bus.json', config(pools))
    const done = await runBus(['--config', file, '--tcp', taken], { workspace, timeoutMs: 15_000 })
    expect(done.code).toBe(1)
    expect(done.stderr).toContain(taken)
    expect(workspace.read('started')).toBe('')
  })

  test('3.1 ready is said once, and only when a client is served', async () => {
    verifies('3.1-ready')
    const bus = await startBus({ config: ECHO, doors: ['unix', 'tcp'] })
    expect(bus.log.lines.filter((line) => readyAddresses(line) !== undefined)).toHaveLength(1)
    for (const prefix of ['unix:', 'tcp:']) {
      expect(await (await bus.connect(prefix)).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
    }
  })

  test.each(['SIGTERM', 'SIGINT'] as const)('3.1 %s shuts down, exit 0', async (signal) => {
    verifies('3.1-sigterm', '3.1-sigint', '8.4-exit-0')
    const bus = await startBus({ config: ECHO })
    const { workers } = await bus.allReady()
    expect(await bus.stop(signal)).toEqual({ code: 0, signal: null })
    expect(workers.filter((each) => isAlive(each.pid))).toEqual([])
  })

  test('3.1 the daemon runs in one thread of its own making', () => {
    verifies('3.1-one-thread')
    const offenders = sourcesOutsideTrace().filter(({ text }) =>
      /from ['"](node:)?(worker_threads|cluster)['"]/.test(text),
    )
    expect(offenders.map(({ name }) => name)).toEqual([])
  })

  test('3.1 a client that reads nothing makes nobody else wait', async () => {
    verifies('3.1-non-blocking')
    const pools = [pool('floods'), pool('echo')]
    const bus = await startBus({ config: config(pools, { max_output_queue: 65_536 }) })
    const stuck = await bus.connect()
    stuck.pause()
    stuck.send({ id: 1, method: 'm', pool: 'floods', sessionId: 's', params: { count: 5_000, bytes: 2_000 } })
    const other = await bus.connect()
    for (let id = 1; id <= 20; id++) {
      expect(await other.ask({ id, method: 'm', pool: 'echo' }, 3_000)).toMatchObject({ id })
    }
  })
})
