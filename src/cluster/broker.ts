/**
 * The way to NATS: one connection, which comes back by itself, and the subjects of one node on it (contract 14.1, 14.5, 14.8).
 *
 * It decides nothing and keeps nothing: what cannot be published now is not published, since the library would throw it
 * away. Nothing of a URL but its host is ever told.
 */
import {
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type Msg,
  type NatsConnection,
  type Subscription,
  usernamePasswordAuthenticator,
  wsconnect,
} from '@nats-io/transport-node'
import { isControl, readControl, writeWho } from './announcement.ts'
import { CLUSTER } from './limits.ts'
import { ALL, subjectOf } from './names.ts'
import { inboxOf } from './permissions.ts'

export interface BrokerOptions {
  /** They may hold passwords. */
  readonly servers: readonly string[]
  readonly cluster: string
  readonly node: string
  /** The content of a file of credentials. */
  readonly credentials?: string
  readonly tls: { readonly ca?: readonly string[]; readonly cert?: string; readonly key?: string }
}

export interface BrokerListener {
  connected(maxPayloadBytes: number): void
  disconnected(): void
  received(subject: string, message: Buffer): void
  /** A sentence for people. */
  trouble(sentence: string): void
}

const CONNECT_TIMEOUT_MS = 2_000
/** A server that does not answer two of these is given up. */
const PING_EVERY_MS = 700
const RETRY_MS = 500
const DEFAULT_PORT = '4222'
const NOTHING = Buffer.alloc(0)

export class Broker {
  readonly #options: BrokerOptions
  readonly #listener: BrokerListener
  #connection: NatsConnection | undefined
  #subscriptions: Subscription[] = []
  #isUp = false
  #isClosed = false
  #retry: NodeJS.Timeout | undefined

  constructor(options: BrokerOptions, listener: BrokerListener) {
    this.#options = options
    this.#listener = listener
  }

  /** The host and port of the server, once there is one. */
  get server(): string | undefined {
    return this.#connection?.getServer()
  }

  get connection(): NatsConnection | undefined {
    return this.#connection
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** One attempt; fails with an error of the library. */
  async connect(): Promise<void> {
    const options = connectionOptions(this.#options)
    const isWeb = /^wss?:/.test(this.#options.servers[0]!)
    const connection = await (isWeb ? connectOverWeb(options) : connect(options))
    if (this.#isClosed) return connection.close()
    this.#connection = connection
    void this.#follow(connection)
  }

  /** Somebody living has this name; asked before anything else is said or heard (contract 14.1). */
  async isNameTaken(): Promise<boolean> {
    const { cluster, node } = this.#options
    const connection = this.#connection!
    return new Promise((resolve) => {
      const settle = (isTaken: boolean): void => {
        clearTimeout(timer)
        subscription.unsubscribe()
        resolve(isTaken)
      }
      const timer = setTimeout(() => settle(false), CLUSTER.nameWaitMs)
      const callback = (_error: Error | null, heard: Msg): void => {
        const message = messageOf(heard)
        const said = isControl(message) ? readControl(message) : undefined
        if (said?.say === 'here' && said.announcement.state !== 'left') settle(true)
      }
      const subscription = connection.subscribe(subjectOf(cluster, ALL, node), { callback })
      connection.publish(subjectOf(cluster, node, node), writeWho())
    })
  }

  /** From now on this node hears and may speak. */
  join(): void {
    const { cluster, node } = this.#options
    const callback = (error: Error | null, heard: Msg): void => {
      if (error === null) this.#listener.received(heard.subject, messageOf(heard))
      else this.#listener.trouble(`NATS: ${error.message}`)
    }
    this.#subscriptions = [subjectOf(cluster, node, '*'), subjectOf(cluster, ALL, '*')].map((subject) =>
      this.#connection!.subscribe(subject, { callback }),
    )
    this.#up()
  }

  /** Tries until it is connected and has its name; `joined` is told the first time, `taken` each time it is refused. */
  persist(told: { joined(): void; taken(): void }): void {
    if (this.#isClosed) return
    this.#retry = setTimeout(() => void this.#tryAgain(told), RETRY_MS)
  }

  async #tryAgain(told: { joined(): void; taken(): void }): Promise<void> {
    try {
      if (this.#connection === undefined) await this.connect()
      if (this.#isClosed) return
      if (await this.isNameTaken()) {
        told.taken()
        return this.persist(told)
      }
      this.join()
      told.joined()
    } catch {
      this.persist(told)
    }
  }

  publish(subject: string, message: Buffer): boolean {
    if (!this.#isUp) return false
    try {
      this.#connection!.publish(subject, message)
      return true
    } catch {
      return false
    }
  }

  /** What was published has reached the server, or does not any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#isUp = false
    clearTimeout(this.#retry)
    const connection = this.#connection
    if (connection === undefined || connection.isClosed()) return
    await Promise.race([connection.flush().catch(() => {}), pause(CLUSTER.nameWaitMs)])
    await Promise.race([connection.close().catch(() => {}), pause(CLUSTER.nameWaitMs)])
  }

  async #follow(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === 'disconnect' || status.type === 'staleConnection') this.#down()
      else if (status.type === 'reconnect') this.#up()
      else if (status.type === 'error') this.#listener.trouble(`NATS: ${status.error.message}`)
    }
  }

  #up(): void {
    if (this.#isUp || this.#isClosed || this.#subscriptions.length === 0) return
    this.#isUp = true
    this.#listener.connected(this.#connection!.info?.max_payload ?? CLUSTER.maxMessageBytes)
  }

  #down(): void {
    if (!this.#isUp) return
    this.#isUp = false
    this.#listener.disconnected()
  }
}

function connectionOptions({ servers, credentials, tls, node }: BrokerOptions): ConnectionOptions {
  const urls = servers.map((server) => new URL(server))
  const { username, password } = urls[0]!
  const isSecure = urls.some(({ protocol }) => protocol === 'tls:' || protocol === 'wss:')
  const { ca, cert, key } = tls
  const hasFiles = ca !== undefined || cert !== undefined
  const files = { ...(ca && { ca: ca.join('\n') }), ...(cert && { cert }), ...(key && { key }) }
  return {
    servers: urls.map(hostOf),
    name: `stdio-bus ${node}`,
    noEcho: true,
    inboxPrefix: inboxOf(node),
    timeout: CONNECT_TIMEOUT_MS,
    maxReconnectAttempts: -1,
    reconnectTimeWait: CLUSTER.reconnectEveryMs,
    reconnectJitter: 0,
    reconnectJitterTLS: 0,
    ignoreAuthErrorAbort: true,
    pingInterval: PING_EVERY_MS,
    maxPingOut: 2,
    ...(isSecure || hasFiles ? { tls: files } : {}),
    ...authenticatorOf(credentials, username, password),
  }
}

function authenticatorOf(credentials: string | undefined, username: string, password: string) {
  if (credentials !== undefined) return { authenticator: credsAuthenticator(Buffer.from(credentials)) }
  if (username === '') return {}
  return { authenticator: usernamePasswordAuthenticator(decoded(username), decoded(password)) }
}

/** A percent sign that escapes nothing is one. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function hostOf({ protocol, hostname, port, pathname }: URL): string {
  if (protocol === 'ws:' || protocol === 'wss:') return `${protocol}//${hostname}${port && `:${port}`}${pathname}`
  return `${hostname}:${port || DEFAULT_PORT}`
}

/** The servers without what may be a secret. */
export function showServers(servers: readonly string[]): string[] {
  return servers.map((server) => {
    const { protocol, host } = new URL(server)
    return `${protocol}//${host}`
  })
}

/** The runtime may have no WebSocket of its own. */
async function connectOverWeb(options: ConnectionOptions): Promise<NatsConnection> {
  const { WebSocket: Socket } = await import('ws')
  // The library takes no files for these: a WebSocket of its own would not either.
  const { tls, ...others } = options
  return wsconnect({
    ...others,
    wsFactory: async (url: string) => {
      const socket = new Socket(url, { perMessageDeflate: false, ...(tls ?? {}) })
      socket.binaryType = 'arraybuffer'
      return { socket: socket as unknown as globalThis.WebSocket, encrypted: url.startsWith('wss:') }
    },
  } as ConnectionOptions)
}

/**
 * Nodes write no headers and want no replies. What has either may be something that the server kept for somebody and hands on
 * wherever that one lets it, under the subject of another: it says nothing (contract 14.9).
 */
function messageOf(heard: Msg): Buffer {
  if (isHandedOn(heard)) return NOTHING
  const { data } = heard
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength)
}

function isHandedOn(heard: Msg): boolean {
  try {
    return heard.headers !== undefined || !!heard.reply
  } catch {
    // Headers that cannot be read are headers.
    return true
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref())
}
