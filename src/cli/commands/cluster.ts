/**
 * `stdio-bus cluster permissions NODE` prints what a NATS user must be allowed who is that node and no other; `cluster
 * forget NODE` drops its pointers from the directory of sessions (contract 14.6, 14.9).
 */
import type { Command } from 'commander'
import { isNodeName } from '../../cluster/names.ts'
import { permissionsBlock } from '../../cluster/permissions.ts'
import type { ClusterConfig } from '../../config/bus-config.ts'
import { DEFAULT_FILE, readConfig } from '../../config/read.ts'
import { formatProblems } from '../../config/report.ts'
import { brokerOptionsOf } from '../cluster-files.ts'
import { UserMistake } from '../user-mistake.ts'
import { WorldFailure } from '../world-failure.ts'

interface Where {
  readonly config?: string
}

export function addCluster(program: Command): void {
  const cluster = program
    .command('cluster')
    .description('many nodes on NATS: permissions of a node, and sessions of one that is gone')
  where(
    cluster.command('permissions <node>').description('print what a user of NATS is allowed who is this node alone'),
  ).action(async (node: string, options: Where) => {
    const { name, jsDomain } = await clusterIn(options, node)
    process.stdout.write(permissionsBlock({ cluster: name, node, ...(jsDomain === undefined ? {} : { jsDomain }) }))
  })
  where(cluster.command('forget <node>').description('drop where the sessions of a node that is gone lived')).action(
    async (node: string, options: Where) => {
      const count = await forget(await clusterIn(options, node), node)
      process.stdout.write(`${count} ${count === 1 ? 'session' : 'sessions'} of ${node} forgotten\n`)
    },
  )
}

function where(command: Command): Command {
  return command.option('--config <path>', `the file with the section cluster (default: ./${DEFAULT_FILE})`)
}

async function clusterIn({ config: path }: Where, node: string): Promise<ClusterConfig> {
  if (!isNodeName(node))
    throw new UserMistake('a node is called by 1 to 64 letters, digits, "_" and "-", and not "all"')
  const reading = await readConfig(path)
  if (!reading.ok) throw new UserMistake(formatProblems(reading.problems).trimEnd())
  const { cluster } = reading.config
  if (cluster === undefined) throw new UserMistake(`${reading.config.file} has no section "cluster"`)
  return cluster
}

async function forget(config: ClusterConfig, node: string): Promise<number> {
  const { Broker } = await import('../../cluster/broker.ts')
  const { Directory } = await import('../../cluster/directory.ts')
  const quiet = { connected: () => {}, disconnected: () => {}, received: () => {}, trouble: () => {} }
  const broker = new Broker(brokerOptionsOf(config), quiet)
  const { name, jsDomain } = config
  const directory = new Directory({ cluster: name, node, ...(jsDomain === undefined ? {} : { jsDomain }) })
  try {
    await broker.connect()
    await directory.openOnce(broker.connection!)
    return await directory.forget(node)
  } catch (error) {
    throw new WorldFailure(`the directory of sessions cannot be had: ${error instanceof Error ? error.message : error}`)
  } finally {
    await broker.close()
  }
}
