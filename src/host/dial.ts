/**
 * One attempt to reach a socket: Unix, TCP, or TCP with TLS. It fails with the system's own error, or with UnusableFile.
 *
 * Invariant: a socket that is handed out is connected; one that is not is gone.
 */
import { connect, type Socket } from 'node:net'
import type { TcpAddress } from './address.ts'
import type { TlsFiles } from './tls-files.ts'

/** The files of TLS are read anew for every attempt, because certificates are exchanged. */
export type SocketAddress =
  | { readonly unix: string }
  | { readonly tcp: TcpAddress }
  | { readonly tls: TcpAddress; readonly files?: TlsFiles }

const KEEP_ALIVE_MS = 30_000

export async function dialSocket(address: SocketAddress, timeoutMs: number, signal?: AbortSignal): Promise<Socket> {
  const socket = await begin(address)
  const opened = 'tls' in address ? 'secureConnect' : 'connect'
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', giveUp)
      socket.off('error', fail)
    }
    const fail = (cause: Error): void => {
      settle()
      socket.on('error', () => {}).destroy()
      reject(cause)
    }
    const giveUp = (): void => fail(Object.assign(new Error('given up'), { code: 'ABORT_ERR' }))
    const timer = setTimeout(() => fail(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })), timeoutMs)
    signal?.addEventListener('abort', giveUp)
    socket.once('error', fail)
    socket.once(opened, () => {
      settle()
      if (!('unix' in address)) socket.setKeepAlive(true, KEEP_ALIVE_MS)
      resolve(socket)
    })
    if (signal?.aborted) giveUp()
  })
}

async function begin(address: SocketAddress): Promise<Socket> {
  // A half-open socket stays readable after the other side has ended: its last lines must still arrive.
  if ('unix' in address) return connect({ path: address.unix, allowHalfOpen: true })
  if ('tcp' in address) return connect({ ...address.tcp, noDelay: true, allowHalfOpen: true })
  const { openTls } = await import('./open-tls.ts')
  return openTls(address.tls, address.files)
}
