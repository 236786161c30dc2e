/** Begins a TLS connection; `secureConnect` tells that the other side has proved who it is. Loaded by those who need it. */
import { connect, type TLSSocket } from 'node:tls'
import type { TcpAddress } from './address.ts'
import { MIN_TLS_VERSION, readTlsMaterial, type TlsFiles } from './tls-files.ts'

/** Fails with UnusableFile. */
export function openTls(address: TcpAddress, files: TlsFiles = {}): TLSSocket {
  const options = {
    ...address,
    ...readTlsMaterial(files),
    minVersion: MIN_TLS_VERSION,
    // Whatever the environment says: who is not known is not told anything.
    rejectUnauthorized: true,
    // The last lines must still arrive when the other side has ended.
    allowHalfOpen: true,
  }
  return connect(options).setNoDelay(true)
}
