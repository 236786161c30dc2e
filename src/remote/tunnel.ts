/** A way through a proxy to a host and port: CONNECT, and the socket behind it (contract 11.5). */
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { formatTcpAddress, type TcpAddress } from '../host/address.ts'
import { isSecure, tcpOf } from './address.ts'
import { UpstreamFailure } from './upstream.ts'

export function tunnelTo(target: TcpAddress, proxy: URL, timeoutMs: number): Promise<Socket> {
  if (isSecure(proxy)) throw new UpstreamFailure('a proxy for WebSockets must be an http:// one')
  const { host, port } = tcpOf(proxy)
  const path = formatTcpAddress(target)
  const headers = { host: path, ...credentialsOf(proxy) }
  return new Promise((resolve, reject) => {
    const asked = request({ host, port, method: 'CONNECT', path, headers, timeout: timeoutMs })
    asked.once('connect', ({ statusCode }, socket) => {
      socket.setTimeout(0)
      if (statusCode === 200) return resolve(socket as Socket)
      socket.destroy()
      reject(new UpstreamFailure(`the proxy answers HTTP ${statusCode}`, { isRefusal: statusCode === 407 }))
    })
    asked.once('timeout', () => asked.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })))
    asked.once('error', reject)
    asked.end()
  })
}

function credentialsOf({ username, password }: URL): Record<string, string> {
  if (username === '') return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` }
}
