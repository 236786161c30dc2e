/**
 * Looks what NATS would let this node do: whether it is there, whether it has a directory for sessions, and whether it lets
 * somebody speak in the name of another, or listen to others (contract 14.9).
 *
 * It speaks to nobody: what it tries to say is addressed to a node that there is not.
 */
import { randomUUID } from 'node:crypto'
import { jetstreamManager } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { Broker, type BrokerOptions } from './broker.ts'
import { subjectOf } from './names.ts'

export interface Probed {
  /** Why the server cannot be reached, or does not want us. */
  readonly unreachable?: string
  readonly canForge: boolean
  readonly canEavesdrop: boolean
  readonly hasJetStream: boolean
}

const DENIED = /permissions violation/i

export async function probe(options: BrokerOptions, jsDomain: string | undefined): Promise<Probed> {
  const denied: string[] = []
  const broker = new Broker(options, {
    connected: () => {},
    disconnected: () => {},
    received: () => {},
    trouble: (sentence) => void denied.push(sentence),
  })
  try {
    await broker.connect()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { unreachable: why, canForge: false, canEavesdrop: false, hasJetStream: false }
  }
  try {
    return await tryAll(broker.connection!, options.cluster, denied, jsDomain)
  } finally {
    await broker.close()
  }
}

async function tryAll(
  connection: NatsConnection,
  cluster: string,
  denied: readonly string[],
  jsDomain: string | undefined,
): Promise<Probed> {
  const nobody = `check-${randomUUID().slice(0, 8)}`
  const isDenied = (operation: string): boolean =>
    denied.some((sentence) => DENIED.test(sentence) && sentence.toLowerCase().includes(operation))
  connection.publish(subjectOf(cluster, nobody, `${nobody}-too`), Buffer.alloc(0))
  connection.subscribe(subjectOf(cluster, nobody, '*'), { callback: () => {} })
  // The server says no before it answers this.
  await connection.flush()
  await connection.flush()
  const hasJetStream = await jetstreamManager(connection, {
    timeout: 2_000,
    ...(jsDomain && { domain: jsDomain }),
  }).then(
    () => true,
    () => false,
  )
  return { canForge: !isDenied('publish'), canEavesdrop: !isDenied('subscription'), hasJetStream }
}
