/** Clauses 3.1 and 8.4: what a configuration may say, and how its mistakes are told. */
import { describe, expect, test } from 'vitest'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import type { Finished } from '../support/run.ts'
import { verifies } from './verifies.ts'

async function refusalOf(text: string | object): Promise<Finished & { file: string }> {
  const workspace = testWorkspace()
  const file = workspace.write('bus.json', text)
  return { ...(await runBus(['--config', file, '--unix', workspace.path('bus.sock')], { workspace })), file }
}

describe('accepted', () => {
  test("3.1 the seed's file works as it is", async () => {
    verifies('3.1-config', '8.1-override')
    const limits = {
      max_input_buffer: 1_048_576,
      max_output_queue: 4_194_304,
      max_restarts: 5,
      restart_window_sec: 60,
      drain_timeout_sec: 30,
      backpressure_timeout_sec: 60,
    }
    const bus = await startBus({ config: { pools: [pool('echo')], limits } })
    expect(await (await bus.connect()).ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
  })

  test('8.4 keys that begin with _ are comments, everywhere', async () => {
    verifies('8.4-comment-keys')
    const bus = await startBus({
      config: { _comment: 'x', pools: [{ ...pool('echo'), _why: ['y'] }], limits: { _note: 1, max_restarts: 1 } },
    })
    expect(await (await bus.connect()).ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
  })

  test('8.1 every limit may be overridden, globally and per pool', async () => {
    verifies('8.1-override')
    const perPool = { max_input_buffer: 70_000, max_output_queue: 70_000, max_restarts: 1, restart_window_sec: 5 }
    const limits = {
      ...perPool,
      drain_timeout_sec: 1,
      backpressure_timeout_sec: 2,
      max_clients: 5,
      max_sessions_per_client: 6,
      max_pending_per_client: 7,
      request_timeout_sec: 8,
      max_total_buffer: 9_000_000,
      blocking_timeout_sec: 1,
      half_close_timeout_sec: 2,
    }
    const bus = await startBus({ config: config(pool('echo', { limits: perPool }), limits) })
    expect(await (await bus.connect()).ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
  })
})

describe('refused', () => {
  test('8.4 all mistakes are reported at once, with file, line and path', async () => {
    verifies('8.4-all-at-once', '8.4-each', '8.4-exit-2')
    const text = [
      '{',
      '  "pools": [',
      '    { "id": "a", "command": "true", "instances": "two" },',
      '    { "id": 7, "command": "true" }',
      '  ],',
      '  "limits": { "max_restarts": -1 },',
      '  "default_pool": "nowhere"',
      '}',
    ].join('\n')
    const done = await refusalOf(text)
    expect(done.code).toBe(2)
    expect(done.stdout).toBe('')
    expect(done.stderr).toContain(done.file)
    for (const [line, path] of [
      [3, 'instances'],
      [4, 'id'],
      [6, 'max_restarts'],
      [7, 'default_pool'],
    ] as const) {
      expect(done.stderr).toContain(path)
      expect(done.stderr).toMatch(new RegExp(`[:\\s(]${line}[:,)\\s]`))
    }
  })

  test('8.4 a mistake says what was found and what is allowed', async () => {
    verifies('8.4-each')
    const done = await refusalOf({ pools: [{ ...pool('echo'), sharing: 'borrowed' }] })
    expect(done.code).toBe(2)
    expect(done.stderr).toContain('borrowed')
    for (const allowed of ['shared', 'isolated', 'lease']) expect(done.stderr).toContain(allowed)
  })

  test.each([
    ['instanses', 'instances', { pools: [{ id: 'a', command: 'true', instanses: 1 }] }],
    ['max_input_bufer', 'max_input_buffer', { pools: [pool('echo')], limits: { max_input_bufer: 1 } }],
    ['defaultPool', 'default_pool', { pools: [pool('echo')], defaultPool: 'echo' }],
  ])('8.4 the unknown key %s is an error with a suggestion', async (wrong, right, content) => {
    verifies('8.4-unknown-keys')
    const done = await refusalOf(content)
    expect(done.code).toBe(2)
    expect(done.stderr).toContain(wrong)
    expect(done.stderr).toContain(right)
  })

  test.each([
    ['no pools', {}],
    ['an empty list of pools', { pools: [] }],
    ['a pool without id', { pools: [{ command: 'true', instances: 1 }] }],
    ['a pool without command', { pools: [{ id: 'a', instances: 1 }] }],
    ['an empty id', { pools: [{ id: '', command: 'true', instances: 1 }] }],
    ['two pools of one id', { pools: [pool('echo'), pool('echo')] }],
    ['zero instances', { pools: [pool('echo', { instances: 0 })] }],
    ['instances that are no whole number', { pools: [pool('echo', { instances: 1.5 })] }],
    ['an unknown default_pool', { pools: [pool('echo')], default_pool: 'x' }],
    ['a listener with an unknown pool', { pools: [pool('echo')], listen: { unix: { path: 'x.sock', pool: 'x' } } }],
    ['a negative limit', { pools: [pool('echo')], limits: { max_clients: -1 } }],
    ['a limit that is a string', { pools: [pool('echo')], limits: { max_clients: '5' } }],
    ['an unknown restart policy', { pools: [pool('echo', { restart: 'sometimes' })] }],
    ['args that are no list', { pools: [{ id: 'a', command: 'true', args: 'x', instances: 1 }] }],
    ['an array', []],
    ['text that is not JSON', '{ "pools": ['],
    ['an empty file', ''],
  ])('8.4 %s is a mistake of the user', async (_, content) => {
    verifies('8.4-exit-2')
    const done = await refusalOf(content)
    expect(done.code).toBe(2)
    expect(done.stderr.trim()).not.toBe('')
    expect(done.stderr).not.toMatch(/\n\s+at .*\.js:\d+/)
  })
})
