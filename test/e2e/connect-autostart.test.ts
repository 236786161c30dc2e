/** `connect --autostart`: a bus when none runs, and never two (contract 6.10.5). */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { isAlive, killHard } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'
import { startShim } from './connect-harness.ts'

interface Running {
  readonly pid: number
  readonly addresses: string[]
}

function running(workspace: Workspace): Running[] {
  const folder = join(workspace.home, '.stdio-bus')
  return readdirSync(folder)
    .filter((name) => /^\d+\.json$/.test(name))
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')))
}

const START_MS = 15_000

test('several at once start one bus, and all of them are answered by it', async () => {
  verifies('6.10.5-autostart')
  const workspace = testWorkspace()
  const file = workspace.write('bus.json', config(pool('echo')))
  const shims = [1, 2, 3].map(() => startShim(workspace, '--autostart', '--config', file))
  const answers = await Promise.all(shims.map(({ host }) => host.ask({ id: 1, method: 'x' }, START_MS)))
  expect(new Set(answers.map(({ result }) => result.pid)).size).toBe(1)
  expect(running(workspace)).toHaveLength(1)

  for (const { host } of shims) host.endWriting()
  for (const shim of shims) expect((await shim.ended()).code).toBe(0)
  expect(isAlive(running(workspace)[0]!.pid)).toBe(true)
  const later = startShim(workspace, '--autostart', '--config', 'bus.json')
  expect((await later.host.ask({ id: 1, method: 'x' })).result.pid).toBe(answers[0].result.pid)
  expect(readdirSync(join(workspace.home, '.stdio-bus')).filter((name) => name.endsWith('.lock'))).toEqual([])
})

test('the doors of the configuration are opened, or the one that was asked for', async () => {
  const workspace = testWorkspace()
  const own = workspace.path('own.sock')
  const file = workspace.write('bus.json', config(pool('echo'), {}, { listen: { unix: own } }))
  const shim = startShim(workspace, '--autostart', '--config', file)
  await shim.host.ask({ id: 1, method: 'x' }, START_MS)
  expect(running(workspace)[0]?.addresses).toEqual([`unix:${own}`])

  const asked = workspace.path('asked.sock')
  const other = startShim(workspace, '--autostart', '--config', file, '--unix', asked)
  await other.host.ask({ id: 1, method: 'x' }, START_MS)
  expect(running(workspace).map(({ addresses }) => addresses[0])).toContain(`unix:${asked}`)
})

test('a bus that runs already is used, and one that is killed is replaced', async () => {
  const workspace = testWorkspace()
  const bus = await startBus({ config: config(pool('echo')), workspace })
  const file = workspace.path('bus.json')
  const shim = startShim(workspace, '--autostart', '--config', file)
  const before = await shim.host.ask({ id: 1, method: 'x' })
  expect(running(workspace).map(({ pid }) => pid)).toEqual([bus.pid])

  killHard(bus.pid)
  await bus.exit
  const after = await shim.host.ask({ id: 2, method: 'x' }, START_MS)
  expect(after.id).toBe(2)
  expect(after.result?.pid).not.toBe(before.result.pid)
})

test('a configuration that is wrong: exit 1, with what the bus said', async () => {
  const workspace = testWorkspace()
  const file = workspace.write('bus.json', { pools: [{ id: 'a', comand: 'node' }] })
  const shim = startShim(workspace, '--autostart', '--config', file)
  expect((await shim.ended(START_MS)).code).toBe(1)
  const said = await shim.said
  expect(said).toMatch(/the bus did not start/)
  expect(said).toMatch(/comand/)
  await eventually('no bus', () => running(workspace).length === 0)
})
