/** What `check` says of a cluster: it asks the NATS server, and tries to speak as somebody else (contract 14.6, 14.9). */
import { showServers } from '../cluster/broker.ts'
import { probe } from '../cluster/probe.ts'
import type { CheckContext } from '../config/check.ts'
import type { Finding, Problem } from '../config/problem.ts'
import { UnusableFile } from '../host/given-file.ts'
import { brokerOptionsOf } from './cluster-files.ts'

export async function checkCluster({ config, source }: CheckContext): Promise<Problem[]> {
  if (config.cluster === undefined) return []
  return (await findingsOf(config.cluster)).map(source.place)
}

type ClusterConfig = NonNullable<CheckContext['config']['cluster']>

async function findingsOf(cluster: ClusterConfig): Promise<Finding[]> {
  const path = ['cluster', 'nats']
  try {
    const found = await probe(brokerOptionsOf(cluster), cluster.jsDomain)
    const servers = showServers(cluster.servers).join(', ')
    if (found.unreachable !== undefined)
      return [warn(path, `${servers}, which cannot be reached: ${found.unreachable}`, 'a NATS server that answers')]
    return [
      ...(found.canForge
        ? [warn(path, 'a server that lets this node speak as any other', permissions(cluster.node))]
        : []),
      ...(found.canEavesdrop
        ? [warn(path, 'a server that lets this node listen to what is for others', permissions(cluster.node))]
        : []),
      ...(found.hasJetStream
        ? []
        : [warn(path, 'a server without JetStream', 'JetStream, where sessions are to be found from every node')]),
    ]
  } catch (error) {
    if (!(error instanceof UnusableFile)) throw error
    return [{ severity: 'error', path: ['cluster'], found: error.message, allowed: 'files that can be used' }]
  }
}

function warn(path: readonly string[], found: string, allowed: string): Finding {
  return { severity: 'warning', path, found, allowed }
}

function permissions(node: string): string {
  return `a user for each node, with what "stdio-bus cluster permissions ${node}" prints`
}
