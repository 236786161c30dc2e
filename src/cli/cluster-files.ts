/** What the section `cluster` says, with its files read, as the way to NATS takes it. Fails with UnusableFile. */
import type { BrokerOptions } from '../cluster/broker.ts'
import type { ClusterConfig } from '../config/bus-config.ts'
import { readSecretFile } from '../host/given-file.ts'
import { readTlsMaterial } from '../host/tls-files.ts'

export function brokerOptionsOf({ servers, name, node, credentials, tls }: ClusterConfig): BrokerOptions {
  const secret = credentials === undefined ? {} : { credentials: readSecretFile(credentials) }
  return { servers, cluster: name, node, tls: readTlsMaterial(tls), ...secret }
}
