/** From what the configuration says of an upstream to a worker that is one (contract 11.1). */
import type { RemoteLaunch } from '../../config/bus-config.ts'
import { readTlsMaterial } from '../../host/tls-files.ts'
import { unixUrl } from '../../remote/address.ts'
import { connectUpstream } from '../../remote/connect.ts'
import { RemoteWorker } from '../../remote/remote-worker.ts'
import type { Upstream } from '../../remote/upstream.ts'

/** Files that cannot be used are a mistake of the user's before anything starts: fails with UnusableFile. */
export function upstreamOf(launch: RemoteLaunch, maxMessageBytes: number, busId: string | undefined): Upstream {
  const { url, ...rest } = launch
  readTlsMaterial(launch.tls)
  const target = url.startsWith('unix:') ? unixUrl(url.slice('unix:'.length)) : new URL(url)
  return { ...rest, url: target, maxMessageBytes, ...(busId === undefined ? {} : { busId }) }
}

export function openUpstream(upstream: Upstream, vias: readonly (readonly string[])[] = []): RemoteWorker {
  return new RemoteWorker(connectUpstream, upstream, vias)
}
