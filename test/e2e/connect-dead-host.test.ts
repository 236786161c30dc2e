/** A host that is killed takes its `connect` along, and the bus sees the client gone at once (contract 4.1.2, 6.10, 7.3). */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { descendantsOf, isAlive } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'
import { connectCommand, startShim, strippedEnv } from './connect-harness.ts'

const AGENT = fileURLToPath(new URL('../fixtures/acp/agent.mjs', import.meta.url))

/** What the host says, one after the other, each after the answer to the one before. */
const CONVERSATION = [
  { id: 1, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } },
  { id: 2, method: 'session/new', params: { cwd: '/', mcpServers: [] } },
  { id: 3, method: 'session/prompt', params: { sessionId: 's1', prompt: [{ type: 'text', text: 'permission' }] } },
].map((message) => JSON.stringify({ jsonrpc: '2.0', ...message }))

/** A shell gives pipes: the ends of two FIFOs, which only it holds. */
const SHELL = `mkfifo in out
"$@" < in > out &
exec 3>in 4<out
while read -r line; do printf '%s\\n' "$line" >&3; read -r answer <&4; done
echo asked
read -r answer <&4`

/** Node gives socket pairs. */
const NODE = `const { spawn } = require('node:child_process')
const [, command, ...args] = process.argv
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
const waiting = []
const say = () => child.stdin.write(waiting.shift() + '\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => waiting.push(line)).on('close', say)
child.stdout.on('data', () => (waiting.length > 0 ? say() : console.log('asked')))`

function startHost(workspace: Workspace, kind: 'pipes' | 'socket pairs', ...args: string[]): ChildProcess {
  const { command, args: words } = connectCommand(...args)
  const options = { cwd: workspace.folder, env: strippedEnv(workspace) }
  const host =
    kind === 'pipes'
      ? spawn('sh', ['-c', SHELL, 'host', command, ...words], options)
      : spawn(process.execPath, ['-e', NODE, command, ...words], options)
  workspace.owns(host.pid)
  host.stdin.end(`${CONVERSATION.join('\n')}\n`)
  return host
}

test.each(['pipes', 'socket pairs'] as const)(
  '7.3 a host on %s that is killed while a permission is pending: cancelled, and the turn gets its cancel',
  async (kind) => {
    verifies('6.10.2-dead-host')
    const pool = { id: 'agent', command: process.execPath, args: [AGENT], protocol: 'acp' }
    const bus = await startBus({ config: config(pool) })
    const host = startHost(bus.workspace, kind, '--unix', bus.workspace.path('bus.sock'))
    await new Promise((resolve) => host.stdout!.once('data', resolve))
    expect((await bus.status()).clients).toBe(1)
    const shims = descendantsOf(host.pid!)
    host.kill('SIGKILL')
    await eventually('the bus to see the client gone', async () => (await bus.status()).clients === 0)
    const heard = await eventually('the agent to hear of it', () => {
      const lines = bus.workspace.lines('heard').map((line) => JSON.parse(line))
      return lines.some(({ method }) => method === 'session/cancel') && lines
    })
    const answers = heard.filter(({ method }) => method === undefined)
    expect(answers).toMatchObject([{ result: { outcome: { outcome: 'cancelled' } } }])
    await eventually('connect to end', () => !shims.some(isAlive))
    await bus.stop()
  },
)

test('4.1.2 a host that has only ended its input is still there for what it is owed', async () => {
  const pool = { id: 'agent', command: process.execPath, args: [AGENT], protocol: 'acp' }
  const bus = await startBus({ config: config(pool) })
  const shim = startShim(bus.workspace, '--unix', bus.workspace.path('bus.sock'))
  const [initialize, open] = CONVERSATION
  shim.host.sendRaw(`${initialize}\n`)
  await shim.host.next()
  shim.host.sendRaw(`${open}\n`)
  shim.host.endWriting()
  expect(await shim.host.next()).toMatchObject({ id: 2, result: { sessionId: 's1' } })
  expect((await shim.ended()).code).toBe(0)
  await bus.stop()
})
