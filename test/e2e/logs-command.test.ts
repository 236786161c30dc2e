/** `logs`: what a bus and its workers have said, now, as it comes, and after the bus has gone. */
import { spawn } from 'node:child_process'
import { expect, onTestFinished, test } from 'vitest'
import { busCommand, busEnv, runBus, startBus, testWorkspace } from '../support/bus.ts'
import { connectTo } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'

const NOISE = config([pool('stderr-noise', { id: 'loud' }), pool('echo')])

/** `logs ARGS` while it runs. */
function follow(workspace: Workspace, ...args: string[]) {
  const [command, first] = busCommand()
  const child = spawn(command, [...first, 'logs', ...args], { cwd: workspace.folder, env: busEnv(workspace) })
  onTestFinished(() => void child.kill('SIGKILL'))
  const seen = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => (seen.stdout += chunk))
  child.stderr.on('data', (chunk) => (seen.stderr += chunk))
  return seen
}

test('of a bus, of a pool, as text and as it was logged', async () => {
  const bus = await startBus({ config: NOISE, defaultControl: true })
  await bus.allReady().catch(() => {})
  const client = await bus.connect()
  await client.ask({ id: 1, method: 'm', pool: 'loud', params: { text: 'quite a \u001b[2J noise' } })
  await bus.log.line(/quite a/)
  const all = await bus.run(['logs'])
  expect(all.stdout).toMatch(/^\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d info {2}ready/m)
  expect(all.stdout).toMatch(/ loud\/0 \| quite a \\u001b\[2J noise 0/)
  const own = await bus.run(['logs', 'echo', '--json'])
  for (const line of own.stdout.trim().split('\n')) expect(JSON.parse(line)).toMatchObject({ pool: 'echo' })
  expect((await bus.run(['logs', '-n', '1'])).stdout.trim().split('\n')).toHaveLength(1)
})

test('mistakes: a pool that is not there, a number that is none, no bus', async () => {
  const bus = await startBus({ config: NOISE, defaultControl: true })
  expect(await bus.run(['logs', 'nope'])).toMatchObject({
    code: 2,
    stderr: 'stdio-bus: no pool "nope": this bus has loud, echo\n',
  })
  expect((await bus.run(['logs', '-n', 'many'])).code).toBe(2)
  expect((await runBus(['logs'], { workspace: testWorkspace() })).code).toBe(1)
})

test('-f goes on with every line, and with the bus that comes back', async () => {
  const workspace = testWorkspace()
  workspace.write('stdio-bus.json', NOISE)
  const socket = workspace.path('b.sock')
  const started = () => runBus(['start', '--unix', socket], { workspace, timeoutMs: 30_000 })
  await started()
  const seen = follow(workspace, 'loud', '-f')
  const say = async (text: string): Promise<void> => {
    await (await connectTo(`unix:${socket}`)).ask({ id: 1, method: 'm', pool: 'loud', params: { text } })
  }
  await say('before')
  await eventually('the line', () => seen.stdout.includes('before 0'))
  await runBus(['stop'], { workspace })
  await eventually('the end', () => seen.stderr.includes('waiting for it to come back'))
  await started()
  await say('after')
  await eventually('the line of the next bus', () => seen.stdout.includes('after 0'))
  expect(seen.stdout.match(/after 0/g)).toHaveLength(1)
})

test('without a bus: the last words of the one that was in the background', async () => {
  const workspace = testWorkspace()
  workspace.write('stdio-bus.json', NOISE)
  await runBus(['start'], { workspace, timeoutMs: 30_000 })
  await runBus(['stop'], { workspace, timeoutMs: 30_000 })
  const done = await runBus(['logs'], { workspace })
  expect(done.code).toBe(0)
  expect(done.stdout).toContain('shutting down')
  expect(done.stderr).toContain('.log')
})
