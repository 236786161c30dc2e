/** A web door of which only the address is given: the rest is as in a file that says nothing. */
import type { TcpAddress } from '../host/address.ts'
import type { HttpDoor } from './bus-config.ts'
import { httpDoor } from './http-schema.ts'

export function plainHttpDoor(
  { host, port }: TcpAddress,
  known: Partial<Pick<HttpDoor, 'cert' | 'key' | 'clientCa'>> & { readonly publicUrl?: string | undefined } = {},
): HttpDoor {
  const defaults = httpDoor.parse({ address: 'localhost:0' })
  const { publicUrl, ...files } = known
  return {
    host,
    port,
    pool: undefined,
    isClientCertOptional: false,
    sessionIdleMs: defaults.session_idle_sec * 1000,
    maxConnections: defaults.max_connections,
    hasConsole: defaults.console,
    hosts: defaults.hosts,
    origins: defaults.origins,
    ...files,
    ...(publicUrl === undefined ? {} : { publicUrl }),
  }
}
