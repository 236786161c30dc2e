/** The first look at a cluster (contract 14.12). */
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { runBus, testWorkspace } from '../support/bus.ts'
import { NATS, withNats } from '../support/nats.ts'

withNats(1, () => {
  test('three nodes, a call across, a node killed, and what is seen', async () => {
    verifies('14.12-demo')
    const workspace = testWorkspace()
    const done = await runBus(['demo', '--cluster'], { workspace, env: { NATS_SERVER: NATS! }, timeoutMs: 18_000 })
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toMatch(/"id":2,"result"/)
    expect(done.stdout).toMatch(/node_lost.*"node":"n3"/)
    expect(done.stdout).toMatch(/"id":5,"result"/)
    expect(done.stdout).toMatch(/cluster demo {2}node n1[\s\S]*n2 +ready[\s\S]*n3 +lost/)
  })
})

test('without a nats-server it says how to get one', async () => {
  verifies('14.12-no-server')
  const workspace = testWorkspace()
  const env = { PATH: '/nowhere', NATS_SERVER: '/nowhere/nats-server' }
  const done = await runBus(['demo', '--cluster'], { workspace, env })
  expect(done.code).toBe(1)
  expect(done.stderr).toMatch(/^stdio-bus: nats-server cannot be started/)
  for (const way of ['apt install', 'brew install', 'winget install', 'docker run']) expect(done.stderr).toContain(way)
  // A variable that is set to nothing names nothing: it is looked for, and there is one or none.
  const unnamed = await runBus(['demo', '--cluster'], {
    workspace,
    env: { ...env, NATS_SERVER: '' },
    timeoutMs: 18_000,
  })
  expect(unnamed.stderr).toMatch(/^$|^stdio-bus: there is no nats-server on this machine; one of these brings it:/)
})
