/** `reload` names what changed, and does what it says (contract 7.5). */
import { expect, test } from 'vitest'
import { type Bus, startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'

async function pids(bus: Bus, name: string): Promise<number[]> {
  const { workers } = await bus.allReady()
  return workers.filter((worker) => worker.pool === name && worker.state === 'ready').map(({ pid }) => pid)
}

async function reload(bus: Bus, content: object): Promise<string> {
  bus.workspace.write('bus.json', content)
  const done = await bus.run(['reload', '--control', bus.control])
  expect(done).toMatchObject({ code: 0, stderr: '' })
  return done.stdout
}

test('every kind of change by its name, no value of a variable among them', async () => {
  const secret = 's3cr3t-value'
  const bus = await startBus({
    config: config([pool('echo'), pool('slow'), pool('silent')], {}, { default_pool: 'echo' }),
  })
  const said = await reload(
    bus,
    config(
      [
        pool('echo', { env: { KEY: secret }, start_timeout_sec: 5 }),
        pool('slow', { instances: 3 }),
        pool('echo', { id: 'fresh' }),
      ],
      { max_clients: 10 },
      { default_pool: 'fresh' },
    ),
  )
  expect(said.split('\n')).toEqual([
    'changed echo (start_timeout_sec, env): 1 worker, old ones end with their last session',
    'grown slow: 3 workers, those that run stay',
    'added fresh: 1 worker',
    'removed silent: its workers end with their last session',
    'changed limits',
    'changed default_pool',
    '',
  ])
  const line = await bus.log.line(/configuration reloaded/)
  expect(line.fields['changed']).toContain('added fresh: 1 worker')
  expect(bus.log.text).not.toContain(secret)
})

test('instances are raised without replacing the workers that run', async () => {
  const bus = await startBus({ config: config(pool('echo')) })
  const before = await pids(bus, 'echo')
  expect(await reload(bus, config(pool('echo', { instances: 3 })))).toContain('grown echo: 3 workers')
  const after = await pids(bus, 'echo')
  expect(after).toHaveLength(3)
  expect(after).toEqual(expect.arrayContaining(before))
})

test('a file that says the same changes nothing; a bad one is refused with its mistakes: exit 2', async () => {
  const bus = await startBus({ config: config(pool('echo')) })
  expect(await reload(bus, config(pool('echo')))).toBe('nothing has changed\n')
  bus.workspace.write('bus.json', { pools: [{ id: 'echo', comand: 'x' }] })
  const done = await bus.run(['reload', '--control', bus.control])
  expect(done.code).toBe(2)
  expect(done.stderr).toContain('comand')
  expect(await pids(bus, 'echo')).toHaveLength(1)
})
