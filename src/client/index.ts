/**
 * `stdio-bus/client`: a program's way to a running bus.
 *
 * ```js
 * import { connect } from 'stdio-bus/client'
 *
 * const bus = await connect({ unix: '/run/user/1000/stdio-bus.sock', pool: 'coder' })
 * acp.client().connect(bus.acp())        // @agentclientprotocol/sdk
 * await mcpClient.connect(bus.mcp())     // @modelcontextprotocol/sdk 1.x, @modelcontextprotocol/client 2.x
 * await bus.agent('greeter', { input })   // this program, called by name
 * for await (const line of bus.lines())  // any other protocol: bytes of one JSON message
 * ```
 *
 * A bus that restarts is found again: requests in flight fail with `reasonOf(error) === 'bus_gone'`, what is said
 * meanwhile waits, and the new bus is told the pool and the `initialize` of this client. Sessions, subscriptions and log
 * levels of the old bus are gone with it.
 */
import { type BusAddress, dial, parseTcp } from './address.ts'
import { BusConnection } from './connection.ts'
import { RECONNECT_TIMEOUT_MS } from './link.ts'
import { isToken, readTokenFile, TOKEN_VARIABLE } from './token.ts'

export { UnusableFile } from '../host/given-file.ts'
export type { AcpStream } from './acp-stream.ts'
export type { BusAddress } from './address.ts'
export type { AgentCall, AgentMethod, AgentOptions, ServedAgent } from './agent-face.ts'
export type { BusConnection } from './connection.ts'
export {
  BusError,
  type BusErrorCode,
  BusGone,
  BusRefused,
  BusUnavailable,
  BusUntrusted,
  ConnectionClosed,
  isRetryable,
  reasonOf,
} from './errors.ts'
export type { McpTransport } from './mcp-transport.ts'

/** Where the bus is: exactly one of `unix`, `tcp`, `tls` and `locate`. */
export interface ConnectOptions {
  /** The path of its Unix socket. */
  readonly unix?: string
  /** `HOST:PORT`, `[IPv6]:PORT`, or the two apart. */
  readonly tcp?: string | { readonly host: string; readonly port: number }
  /** The same, with TLS. */
  readonly tls?: string | { readonly host: string; readonly port: number }
  /** With `tls`: the file of the authority that has signed the certificate of the bus (default: those of the runtime). */
  readonly ca?: string
  /** With `tls`: the files of this program's own certificate and its key. */
  readonly cert?: string
  readonly key?: string
  /** What this program proves itself with (default: the variable STDIO_BUS_TOKEN, if it is set). */
  readonly token?: string
  /** The same, in a file that nobody else may read; it is read anew for every connection. */
  readonly tokenFile?: string
  /** Asked before every attempt, for a bus whose address may change. */
  readonly locate?: () => Promise<BusAddress> | BusAddress
  /** The pool to talk to; left out, the bus decides (its listener's pool, `default_pool`, or the only one). */
  readonly pool?: string
  /** Whether a bus that went is looked for: false, or for how long (default 30 s). */
  readonly reconnect?: boolean | { readonly timeoutMs: number }
  /** The longest line in either direction (default 64 MiB); the bus has limits of its own. */
  readonly maxLineBytes?: number
  /** The bus has gone; so many requests have failed. */
  readonly onLost?: (failedRequests: number) => void
  /** The bus is back and knows this client again. */
  readonly onRestored?: () => void
}

/** Connects to a running bus; fails with BusUnavailable, BusUntrusted or BusRefused, or because a file cannot be used. */
export async function connect(options: ConnectOptions): Promise<BusConnection> {
  const locate = chooseAddress(options)
  const connection = new BusConnection(
    {
      dial: async () => dial(await locate()),
      pool: options.pool,
      token: chooseToken(options),
      reconnectTimeoutMs: reconnectTimeoutMs(options.reconnect),
      ...(options.maxLineBytes === undefined ? {} : { maxLineBytes: options.maxLineBytes }),
    },
    {
      lost: (failedRequests) => options.onLost?.(failedRequests),
      restored: () => options.onRestored?.(),
    },
  )
  await connection.open()
  return connection
}

function chooseAddress(options: ConnectOptions): () => Promise<BusAddress> | BusAddress {
  const { unix, tcp, tls, locate, ca, cert, key } = options
  const named = [unix, tcp, tls, locate].filter((each) => each !== undefined)
  if (named.length !== 1) throw new TypeError('connect() takes exactly one of unix, tcp, tls and locate')
  if (tls === undefined && (ca ?? cert ?? key) !== undefined) throw new TypeError('ca, cert and key go with tls')
  if (locate !== undefined) return locate
  if (unix !== undefined) return () => ({ unix })
  const address = tcp === undefined ? { tls: hostAndPort(tls!), files: { ca, cert, key } } : { tcp: hostAndPort(tcp) }
  return () => address
}

function hostAndPort(given: NonNullable<ConnectOptions['tcp']>): { readonly host: string; readonly port: number } {
  return typeof given === 'string' ? parseTcp(given) : given
}

function chooseToken({ token, tokenFile }: ConnectOptions): (() => string) | undefined {
  if (token !== undefined && tokenFile !== undefined) throw new TypeError('connect() takes one of token and tokenFile')
  if (tokenFile !== undefined) return () => readTokenFile(tokenFile)
  const given = token ?? process.env[TOKEN_VARIABLE]
  if (given === undefined || given === '') return undefined
  if (!isToken(given)) throw new TypeError(`${token === undefined ? TOKEN_VARIABLE : 'token'} holds no token`)
  return () => given
}

function reconnectTimeoutMs(reconnect: ConnectOptions['reconnect']): number {
  if (reconnect === false) return 0
  return typeof reconnect === 'object' ? reconnect.timeoutMs : RECONNECT_TIMEOUT_MS
}
