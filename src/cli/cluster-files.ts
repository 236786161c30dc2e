/** What the section `cluster` says, with its files read, as the way to NATS takes it. Fails with UnusableFile. */
import type { BrokerOptions } from '../cluster/broker.ts'
import type { ClusterConfig } from '../config/bus-config.ts'
import { readSecretFile, UnusableFile } from '../host/given-file.ts'
import { readTlsMaterial } from '../host/tls-files.ts'

/** A token, and the seed of the key that proves whose it is. */
const CREDENTIALS =
  /-+BEGIN NATS USER JWT-+\s+\S+\s+-+END NATS USER JWT-+[\s\S]*-+BEGIN USER NKEY SEED-+\s+SU[A-Z2-7]{56}\s+-+END/

export function brokerOptionsOf({ servers, name, node, credentials, tls }: ClusterConfig): BrokerOptions {
  const secret = credentials === undefined ? {} : { credentials: readCredentials(credentials) }
  return { servers, cluster: name, node, tls: readTlsMaterial(tls), ...secret }
}

function readCredentials(path: string): string {
  const text = readSecretFile(path)
  if (CREDENTIALS.test(text)) return text
  throw new UnusableFile(path, 'holds no credentials of a NATS user, as nsc writes them')
}
