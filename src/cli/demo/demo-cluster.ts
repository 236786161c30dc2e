/**
 * `stdio-bus demo --cluster` (contract 14.12): a nats-server of this machine, three nodes, a call across, a node that is
 * killed, and what the others see. Everything it starts ends with it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { connect, createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ClusterStatus, formatCluster } from '../../console/cluster-view.ts'
import { askControl } from '../../console/control-client.ts'
import { wantsColor } from '../../host/terminal.ts'
import { VERSION } from '../version.ts'
import { WorldFailure } from '../world-failure.ts'
import { colors, DemoBus, say, step } from './demo-bus.ts'

/** Debian and others have it where a user's PATH need not lead. */
const MORE_PLACES = ['/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin']
const WAIT_MS = 10_000
const STEP_MS = 50

const HOW_TO_GET_ONE = `one of these brings it:
  apt install nats-server
  brew install nats-server
  winget install NATSAuthors.NATSServer
  docker run -p 4222:4222 nats    (then name it in "cluster": {"nats": ...} of a file of your own)
or name it: NATS_SERVER=/path/to/nats-server stdio-bus demo --cluster`

export async function showCluster(folder: string): Promise<void> {
  const program = findServer()
  if (program === undefined) throw new WorldFailure(`there is no nats-server on this machine; ${HOW_TO_GET_ONE}`)
  const port = await freePort()
  const nats = spawn(program, ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', join(folder, 'nats')], {
    stdio: 'ignore',
  })
  const nodes = ['n1', 'n2', 'n3'].map((node) => new DemoBus(folder, configOf(node, port), node))
  try {
    await untilListening(nats, port)
    await show(nodes)
  } finally {
    await Promise.all(nodes.map((node) => node.stop('SIGKILL')))
    nats.kill('SIGKILL')
  }
}

/** n1 only lets clients in; the others have the same pool. */
function configOf(node: string, port: number): object {
  const pools = node === 'n1' ? [] : [{ id: 'echo', agent: 'echo' }]
  return { pools, cluster: { nats: `nats://127.0.0.1:${port}`, name: 'demo', node } }
}

async function show(nodes: readonly DemoBus[]): Promise<void> {
  const [near, , far] = nodes as [DemoBus, DemoBus, DemoBus]
  say(colors.bold(`stdio Bus ${VERSION}: three nodes on one NATS\n`))
  step(1, 'n1 only lets clients in; n2 and n3 have the pool echo')
  await Promise.all(nodes.map((node) => node.start()))
  await until(near, 'both others', ({ nodes: others }) => others.filter(({ pools }) => pools.length > 0).length === 2)
  say(`   ${colors.green('ready')}\n`)
  step(2, 'A client of n1 asks for the pool, and for that of a certain node')
  const client = await near.connect('A')
  await client.ask({ jsonrpc: '2.0', id: 1, method: 'hello', pool: 'echo' }, true)
  await client.ask({ jsonrpc: '2.0', id: 2, method: 'hello', pool: 'echo@n3' }, true)
  say('')
  step(3, 'n3 is killed: what it owed is answered, and the pool is served by n2')
  await far.stop('SIGKILL')
  await client.ask({ jsonrpc: '2.0', id: 3, method: 'hello', pool: 'echo@n3' }, true, true)
  await client.ask({ jsonrpc: '2.0', id: 4, method: 'hello', pool: 'echo' }, true, true)
  await client.ask({ jsonrpc: '2.0', id: 5, method: 'hello', pool: 'echo' }, true)
  client.close()
  say('')
  step(4, 'stdio-bus status --cluster, at n1')
  const page = formatCluster(await statusOf(near), { color: wantsColor(process.stdout) })
  say(page.trimEnd().replace(/^/gm, '   '))
}

async function statusOf({ control }: DemoBus): Promise<ClusterStatus> {
  return (await askControl({ control }, 'cluster')) as ClusterStatus
}

async function until(bus: DemoBus, what: string, isSo: (status: ClusterStatus) => boolean): Promise<void> {
  for (let waitedMs = 0; !isSo(await statusOf(bus)); waitedMs += STEP_MS) {
    if (waitedMs > WAIT_MS) throw new Error(`the node did not see ${what}`)
    await sleep(STEP_MS)
  }
}

function findServer(): string | undefined {
  const named = process.env['NATS_SERVER']
  if (named !== undefined && named !== '') return named
  const places = [...(process.env['PATH'] ?? '').split(delimiter), ...MORE_PLACES]
  const name = process.platform === 'win32' ? 'nats-server.exe' : 'nats-server'
  return places.map((place) => join(place, name)).find(isProgram)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function untilListening(nats: ChildProcess, port: number): Promise<void> {
  const failed = new Promise<never>((_resolve, reject) => {
    nats.once('error', ({ message }) =>
      reject(new WorldFailure(`nats-server cannot be started: ${message}; ${HOW_TO_GET_ONE}`)),
    )
    nats.once('exit', () => reject(new WorldFailure('nats-server has ended at once')))
  })
  failed.catch(() => {})
  for (let waitedMs = 0; waitedMs < WAIT_MS; waitedMs += STEP_MS) {
    if (await Promise.race([isListening(port), failed])) return
    await sleep(STEP_MS)
  }
  throw new WorldFailure('nats-server does not listen')
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
