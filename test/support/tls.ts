/** The authority, the bus and the clients of tests that speak TLS; everything is made when it is first asked for. */
import { readFileSync } from 'node:fs'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { afterAll } from 'vitest'
import { Authority, type Pair } from './certificates.ts'

const made = new Map<string, Authority>()
let pair: Pair | undefined

afterAll(() => {
  for (const authority of made.values()) authority.remove()
})

/** One for all tests of a file, or another one that nobody knows. */
export function testAuthority(name = 'an authority'): Authority {
  const authority = made.get(name) ?? new Authority(name)
  made.set(name, authority)
  return authority
}

/** The certificate of every bus that is not given another. */
export function busPair(): Pair {
  pair ??= testAuthority().server()
  return pair
}

export function tlsFlags({ cert, key }: Pair = busPair()): string[] {
  return ['--tls', '127.0.0.1:0', '--cert', cert, '--key', key]
}

/** The texts that `tls.connect` takes. */
export function textsOf({ cert, key }: Pair): ConnectionOptions {
  return { cert: readFileSync(cert), key: readFileSync(key) }
}

/** Begins a connection to `tls:HOST:PORT`, trusting the authority of the tests. */
export function dialTls(address: string, options: ConnectionOptions = {}): TLSSocket {
  const [, host, port] = /^(?:tls:)?(.*):(\d+)$/.exec(address) ?? []
  const target = { host: host!.replace(/^\[|\]$/g, ''), port: Number(port), allowHalfOpen: true }
  return connect({ ...target, ca: readFileSync(testAuthority().ca), ...options } as ConnectionOptions)
}
